//! A step in a list: the row without its long texts.

use std::time::Duration;

use onward_core::id::SessionId;
use onward_core::stall::is_past;
use onward_core::step::FailReason;
use onward_core::{StepId, StepStatus, StepTimestamp, StepType, Timestamp};

use super::step::failure;
use crate::error::Error;
use crate::value::{Cells, Row};

/// A step in a list, without its long texts.
#[derive(Debug, Clone, PartialEq)]
pub struct StepLine {
    /// Step id.
    pub id: StepId,
    /// Position in the plan.
    pub order: u32,
    /// Kind of work.
    pub step_type: StepType,
    /// Short title.
    pub title: Option<String>,
    /// Status.
    pub status: StepStatus,
    /// Current attempt number.
    pub attempt: u32,
    /// Session of the current or last claim.
    pub session: Option<SessionId>,
    /// Start of that claim.
    pub started_at: Option<Timestamp>,
    /// Last activity since then.
    pub last_progress_at: Option<Timestamp>,
    /// Whether events of the holder's session are recorded as activity.
    pub monitored: bool,
    /// When the session that holds it ended.
    pub orphaned_at: Option<Timestamp>,
    /// When it exceeds its stall threshold, if it is in progress.
    pub stalls_at: Option<Timestamp>,
    /// Its own stall threshold.
    pub stall_threshold: Option<Duration>,
    /// Time of its end.
    pub ended_at: Option<Timestamp>,
    /// Summary of the result.
    pub result_summary: Option<String>,
    /// Reason of the failure.
    pub failure: Option<FailReason>,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// The last progress report of the current claim with a note or a percentage.
    pub note: Option<StepNote>,
    /// The step that this one redoes.
    pub supersedes: Option<StepId>,
    /// The step that redoes this one.
    pub superseded_by: Option<StepId>,
}

impl StepLine {
    /// The input of the stall detector.
    pub fn timestamp(&self) -> StepTimestamp {
        StepTimestamp {
            id: self.id,
            status: self.status,
            started_at: self.started_at,
            updated_at: self.updated_at,
            last_progress_at: self.last_progress_at,
        }
    }

    /// Whether it is in progress and past its stall threshold.
    pub fn is_stalled(&self, now: Timestamp) -> bool {
        self.status == StepStatus::InProgress && is_past(self.stalls_at, now)
    }
}

/// A progress report.
#[derive(Debug, Clone, PartialEq)]
pub struct StepNote {
    /// The agent's note.
    pub text: Option<String>,
    /// Progress in percent.
    pub percent: Option<f64>,
    /// Time of the report.
    pub at: Timestamp,
}

fn note(cells: &mut Cells, started_at: Option<Timestamp>) -> Result<Option<StepNote>, Error> {
    let text = cells.maybe_string("last_note")?;
    let percent = cells.maybe_real("last_percent")?;
    let at = cells.maybe_at("noted_at")?;
    // A note of an earlier attempt does not apply to this one.
    let at = at.filter(|at| started_at.is_some_and(|started_at| *at >= started_at));
    Ok(at.map(|at| StepNote { text, percent, at }))
}

/// Reads a row of `{line}`.
pub(crate) fn line(row: Row) -> Result<StepLine, Error> {
    let mut cells = row.cells("steps");
    let mut line = StepLine {
        id: StepId::new(cells.id("step_id")?),
        order: cells.u32("step_order")?,
        step_type: cells.word("step_type")?,
        title: cells.maybe_string("title")?,
        status: cells.word("status")?,
        attempt: cells.u32("attempt")?,
        session: cells.maybe_text("claim_session")?.map(SessionId::new),
        started_at: cells.maybe_at("started_at")?,
        last_progress_at: cells.maybe_at("last_progress_at")?,
        monitored: cells.flag("monitored")?,
        orphaned_at: cells.maybe_at("orphaned_at")?,
        stalls_at: cells.maybe_at("stalls_at")?,
        stall_threshold: cells.maybe_span("stall_threshold_ms")?,
        ended_at: cells.maybe_at("ended_at")?,
        result_summary: cells.maybe_string("result_summary")?,
        failure: failure(&mut cells)?,
        updated_at: cells.at("updated_at")?,
        note: None,
        supersedes: None,
        superseded_by: None,
    };
    // While a step is under review, its agent need not be active.
    let is_in_progress = line.status == StepStatus::InProgress;
    line.orphaned_at = line.orphaned_at.filter(|_| is_in_progress);
    line.note = note(&mut cells, line.started_at)?;
    line.supersedes = cells.maybe_id("supersedes")?.map(StepId::new);
    line.superseded_by = cells.maybe_id("superseded_by")?.map(StepId::new);
    Ok(line)
}
