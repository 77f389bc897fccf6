//! The measured server and page requests.

use std::time::{Duration, Instant};

use onward_engine::Address;
use onward_testbed::{Connection, Program, Server};

/// Starts `onward serve` with rate limits effectively disabled.
pub(crate) fn start(database: &Address) -> Server {
    let database = match database {
        Address::File(path) => path.display().to_string(),
        Address::Server(url) => url.clone(),
    };
    Program::new(env!("CARGO_BIN_EXE_onward"), "bench-pages")
        .with_database(database)
        .with_env("ONWARD_LIMITS__TOKEN_CALLS_PER_SECOND", 1_000_000)
        .with_env("ONWARD_LIMITS__TENANT_CALLS_PER_SECOND", 1_000_000)
        .serve()
}

/// Requests a page. Returns the time until the last byte, and the size.
pub(crate) fn get(connection: &mut Connection, path: &str) -> (Duration, usize) {
    let began = Instant::now();
    connection.send(&format!("GET {path}"), "Accept: text/html\r\n", "");
    let (head, body) = connection.read_response();
    assert!(head.starts_with("http/1.1 200"), "{path}: {head}");
    (began.elapsed(), body.len())
}
