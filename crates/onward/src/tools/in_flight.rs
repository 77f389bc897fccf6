//! The number of calls in flight, so that shutdown can wait for them, and the metrics of finished
//! calls.
//!
//! A call is in flight until its request log entry is queued.

use std::sync::LazyLock;
use std::time::Duration;

use metrics::{counter, histogram};
use serde_json::Value;
use tokio::sync::watch;

use super::ToolError;

static COUNT: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// A call in flight, until this is dropped.
pub(crate) struct InFlight;

/// Counts a call as in flight.
pub(crate) fn track() -> InFlight {
    COUNT.send_modify(|count| *count += 1);
    InFlight
}

impl Drop for InFlight {
    fn drop(&mut self) {
        COUNT.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Waits until no call is in flight.
pub(crate) async fn wait_until_idle() {
    // The sender is static, so waiting cannot fail.
    drop(COUNT.subscribe().wait_for(|count| *count == 0).await);
}

/// Records the outcome and duration of a call.
pub(super) fn record_metrics(
    tool: &'static str,
    result: &Result<Value, ToolError>,
    took: Duration,
) {
    let outcome = match result {
        Ok(_) => "ok",
        Err(error) => error.code.as_str(),
    };
    counter!("onward_tool_calls_total", "tool" => tool, "outcome" => outcome).increment(1);
    histogram!("onward_tool_call_seconds", "tool" => tool).record(took);
}
