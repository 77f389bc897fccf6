//! The calls of this process: how many run, or have yet to go into the log, so that its end can wait for
//! them, and how they went, for whoever counts.

use std::sync::LazyLock;
use std::time::Duration;

use metrics::{counter, histogram};
use serde_json::Value;
use tokio::sync::watch;

use super::Refused;

static RUNNING: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// A call that runs, until this is dropped.
pub(crate) struct Running;

/// One more runs.
pub(crate) fn begin() -> Running {
    RUNNING.send_modify(|running| *running += 1);
    Running
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.send_modify(|running| *running = running.saturating_sub(1));
    }
}

/// Waits until none runs.
pub(crate) async fn none() {
    // The sender lives as long as the process.
    drop(RUNNING.subscribe().wait_for(|running| *running == 0).await);
}

/// Counts a call that was answered.
pub(super) fn count(tool: &'static str, answer: &Result<Value, Refused>, took: Duration) {
    let outcome = match answer {
        Ok(_) => "ok",
        Err(refused) => refused.code.as_str(),
    };
    counter!("onward_tool_calls_total", "tool" => tool, "outcome" => outcome).increment(1);
    histogram!("onward_tool_call_seconds", "tool" => tool).record(took);
}
