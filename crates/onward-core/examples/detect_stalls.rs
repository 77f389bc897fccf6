//! Detects stalled tasks in a task table that is not Onward's:
//! `cargo run -p onward-core --example detect_stalls`.
//!
//! The detector needs no plan and no database: it takes five fields per task and returns the ids of
//! the stalled ones. It changes nothing. A test compares the output with `detect_stalls.txt`.

use std::io::{self, Write};

use onward_core::policy::DEFAULT_STALL_THRESHOLD;
use onward_core::{
    StepStatus, StepTimestamp, Timestamp, detect_stalled_steps, is_plan_stalled, next_stall_at,
};

/// A row of another program: a numeric id, a text status, times in minutes. Ids may have any type
/// that can be cloned.
struct Task {
    id: u32,
    state: &'static str,
    claimed: Option<i64>,
    heartbeat: Option<i64>,
    changed: i64,
}

impl Task {
    fn timestamp(&self) -> StepTimestamp<u32> {
        StepTimestamp {
            id: self.id,
            status: match self.state {
                "running" => StepStatus::InProgress,
                "blocked" => StepStatus::AwaitingInput,
                "done" => StepStatus::Completed,
                _ => StepStatus::Pending,
            },
            started_at: self.claimed.map(minutes),
            updated_at: minutes(self.changed),
            last_progress_at: self.heartbeat.map(minutes),
        }
    }
}

/// The time this many minutes after nine o'clock.
fn minutes(minutes: i64) -> Timestamp {
    Timestamp::from_millis(1_785_229_200_000 + minutes * 60_000)
}

/// Runs the detector and prints the results.
pub(crate) fn run(out: &mut impl Write) -> io::Result<()> {
    #[rustfmt::skip]
    let table = [
        Task { id: 4711, state: "done",    claimed: Some(0), heartbeat: None,     changed: 4 },
        Task { id: 4712, state: "running", claimed: Some(0), heartbeat: None,     changed: 0 },
        Task { id: 4713, state: "running", claimed: Some(0), heartbeat: Some(20), changed: 20 },
        Task { id: 4714, state: "blocked", claimed: Some(0), heartbeat: None,     changed: 5 },
        Task { id: 4715, state: "queued",  claimed: None,    heartbeat: None,     changed: 0 },
    ];
    let steps = table.each_ref().map(Task::timestamp);
    let limit = DEFAULT_STALL_THRESHOLD;
    for now in [30, 31, 51].map(minutes) {
        let stalled = detect_stalled_steps(&steps, now, limit);
        let next_check = match next_stall_at(&steps, now, limit) {
            Some(limit_at) => format!("next check at {}", limit_at.next()),
            None => "no further stalls possible".to_owned(),
        };
        let verdict = if is_plan_stalled(&steps, now, limit) {
            format!("stalled: {stalled:?}")
        } else {
            "no stalls".to_owned()
        };
        writeln!(out, "{now}  {verdict:<21}  {next_check}")?;
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "an example prints its output")]
fn main() -> io::Result<()> {
    run(&mut io::stdout())
}
