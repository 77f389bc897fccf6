//! The engine on the database of a test, in the test's process.

use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine, ToolCall};
use onward_testbed::Program;

/// Opens the database, runs the work and closes the database.
pub(crate) fn with_engine<T>(
    program: &Program,
    work: impl AsyncFnOnce(&Engine, &Caller) -> T,
) -> T {
    let address = Address::parse(&program.database).expect("address is valid");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("runtime starts");
    runtime.block_on(async {
        let engine = Engine::open(&address, Settings::default()).await;
        let engine = engine.expect("database opens");
        let value = work(&engine, &Caller::local("test")).await;
        engine.close().await;
        value
    })
}

/// The request log, newest first.
pub(crate) fn logged_requests(program: &Program) -> Vec<ToolCall> {
    with_engine(program, async |engine, caller| {
        let logged = engine.logged_requests(caller, None, 100).await;
        logged.expect("log is readable")
    })
}
