//! Number of disk syncs. PostgreSQL counts its own; for SQLite, `bench/syncs` counts the system
//! calls of this program, which only drives a given number of steps.

use std::path::PathBuf;

use onward_engine::{Address, Engine};

use crate::drive;

const FILE: &str = "ONWARD_BENCH_SYNCS_FILE";

pub(crate) fn is_requested() -> bool {
    std::env::var_os(FILE).is_some()
}

/// Creates plans of ten steps in the file named by the environment, and drives some of them.
/// Arguments: `PLANS DRIVEN`, and `claim-next` to submit and claim in one call.
pub(crate) fn drive() {
    let file = PathBuf::from(std::env::var_os(FILE).expect("file name is set"));
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| -> usize { args[index].parse().expect("the argument is a number") };
    let (plans, driven) = (number(0), number(1));
    let claim_next = args.iter().any(|arg| arg == "claim-next");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("runtime started");
    runtime.block_on(async {
        let address = Address::File(file);
        let engine = Engine::open(&address, Default::default());
        let engine = engine.await.expect("engine opened");
        let queue = drive::create_plans(&engine, plans, 10).await;
        queue.lock().expect("lock not poisoned").truncate(driven);
        drive::complete_all(&engine, queue, claim_next).await;
        // Exit without closing the engine: the final checkpoint is not part of a step.
        std::process::exit(0);
    });
}

/// Number of write-ahead log syncs since the server started.
pub(crate) async fn server_syncs(url: &str) -> i64 {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .expect("connected");
    tokio::spawn(connection);
    let row = client
        .query_one("SELECT wal_sync FROM pg_stat_wal", &[])
        .await;
    row.expect("statistics read").get(0)
}
