//! Bad days: the file is locked, the disk is full, the server crashes or says nothing, the path leads to
//! something else. Calls answer `unavailable` with a hint and within their time, nothing hangs,
//! nothing that was acknowledged is lost, and work goes on by itself when the day gets better.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "a test says what is wrong by failing, and has no callers to document; not every \
              test uses all of what they share"
)]

#[path = "../agents/answers.rs"]
mod answers;
#[path = "../agents/busy.rs"]
mod busy;
#[path = "../agents/commits.rs"]
mod commits;
#[path = "../agents/dice.rs"]
mod dice;
#[path = "../agents/history.rs"]
mod history;
#[path = "../agents/place.rs"]
mod place;
#[path = "../agents/plans.rs"]
mod plans;
#[path = "../agents/process.rs"]
mod process;
#[path = "../agents/promises.rs"]
mod promises;
#[path = "../agents/scribe.rs"]
mod scribe;
#[path = "../agents/trails.rs"]
mod trails;
mod worker;

mod bad_files;
mod full_disk;
mod locked_file;
mod lost_answers;
mod outage;
mod silent_server;

use std::time::Duration;

use onward_core::Code;
use onward_engine::Error;

use history::{Line, Told, What};

/// Nothing may take longer than this. What it bounds has limits of its own, which are shorter.
const LIMIT: Duration = Duration::from_secs(30);

/// How the words begin of what passes by itself, or when a person frees a disk or starts a server.
/// Other errors of a database have the same code, and other words.
const UNAVAILABLE: &str = "the database is unavailable";

/// Every call that was answered with trouble was told that this passes, and what helps.
fn are_unavailable(lines: &[Line]) {
    for line in lines {
        if let What::Told(Told::Trouble { code, hint, words }) = &line.what {
            assert_eq!(code, "unavailable", "{line:?}");
            assert!(words.contains(UNAVAILABLE), "{line:?}");
            assert!(!hint.is_empty(), "{line:?}");
        }
    }
}

/// The answer, which must come within the limit.
async fn in_time<T>(answer: impl Future<Output = T>) -> T {
    let answer = tokio::time::timeout(LIMIT, answer).await;
    answer.expect("an answer within the limit")
}

/// Says that the database is away, and what to do about it.
fn is_unavailable(why: &Error) {
    assert_eq!(why.code(), Code::Unavailable, "{why}");
    assert!(why.to_string().contains(UNAVAILABLE), "{why}");
    assert!(!why.hint().is_empty(), "{why}");
}
