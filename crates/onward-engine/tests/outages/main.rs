//! Outage tests: a locked, deleted or replaced file, a full disk, a failed sync, a PostgreSQL server
//! that crashes or does not respond, and paths that are not databases. Calls fail with `unavailable`
//! and a hint within the time limit, acknowledged changes are not lost, and work continues without a
//! restart when the outage ends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "tests report failures by panicking and have no documented API; each test crate uses \
              only a part of `agents`"
)]

#[path = "../agents/agents.rs"]
mod agents;
mod worker;

mod exhausted_pool;
mod failed_sync;
mod full_disk;
mod invalid_paths;
mod late_server;
mod links;
mod locked_file;
mod lost_file;
mod lost_responses;
mod older_database;
mod server_crash;
mod sweep_load;
mod unresponsive_server;

use std::io;
use std::time::Duration;

use onward_core::Code;
use onward_engine::Error;
use onward_store as store;

use agents::history::{FailureKind, Record, RecordKind, Response};

/// Time limit of every call. The timeouts of the store are shorter.
const LIMIT: Duration = Duration::from_secs(30);

/// Every failed call reported that the database is unavailable, with a hint.
fn assert_failures_are_unavailable(records: &[Record]) {
    for record in records {
        if let RecordKind::Response(Response::Failed { kind, hint, .. }) = &record.kind {
            let unavailable =
                matches!(kind, FailureKind::Unavailable | FailureKind::OutcomeUnknown);
            assert!(unavailable && !hint.is_empty(), "{record:?}");
        }
    }
}

async fn within_limit<T>(future: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(LIMIT, future).await;
    result.expect("call completed within the limit")
}

/// Whether the system reported `EIO`.
fn is_input_output_error(error: &store::Error) -> bool {
    const EIO: i32 = 5;
    let store::Error::Unavailable { source, .. } = error else {
        return false;
    };
    let cause = source.as_ref().and_then(|cause| cause.downcast_ref());
    cause.and_then(io::Error::raw_os_error) == Some(EIO)
}

/// The database is unavailable, and the error has a hint. Other store errors have the same code.
fn assert_unavailable(error: &Error) {
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    let unavailable = matches!(error, Error::Store(store::Error::Unavailable { .. }));
    assert!(unavailable && !error.hint().is_empty(), "{error}");
}
