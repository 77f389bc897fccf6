//! Is anybody still working? Asked of a task table that is not Onward's:
//! `cargo run -p onward-core --example detect_stalls`.
//!
//! The detector needs no plan, no database and no ids of its own: it takes five fields per task, and
//! gives back the ids that it was given. It changes nothing. A test compares the output with
//! `detect_stalls.txt`.

use std::io::{self, Write};

use onward_core::policy::DEFAULT_STALL_THRESHOLD;
use onward_core::{
    StepStatus, StepTimestamp, Timestamp, detect_stalled_steps, is_plan_stalled, next_stall_at,
};

/// A row as somebody else keeps it: a number for an id, a word for a status, minutes for times. Ids
/// may be of any type that can be cloned.
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

/// So many minutes after nine o'clock.
fn minutes(minutes: i64) -> Timestamp {
    Timestamp::from_millis(1_785_229_200_000 + minutes * 60_000)
}

/// Asks, and prints the answers.
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
        let look_again = match next_stall_at(&steps, now, limit) {
            Some(limit_at) => format!("look again at {}", limit_at.next()),
            None => "nothing else can stall".to_owned(),
        };
        let verdict = match is_plan_stalled(&steps, now, limit) {
            true => format!("stalled: {stalled:?}"),
            false => "all alive".to_owned(),
        };
        writeln!(out, "{now}  {verdict:<21}  {look_again}")?;
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "an example prints its answer")]
fn main() -> io::Result<()> {
    run(&mut io::stdout())
}
