//! Row of the audit trail.

use onward_core::id::SessionId;
use onward_core::{Event, PlanId, StepId, Timestamp};

use crate::codec;
use crate::error::Error;
use crate::row::plan::VersionTag;
use crate::value::{Cells, Row, Value, params};

/// Author of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// A user, a token, or a part of Onward such as the sweep.
    pub name: String,
    /// Session, if an agent named one.
    pub session: Option<SessionId>,
}

/// An entry of the audit trail.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Sequence number in the plan, from 1.
    pub seq: u64,
    /// Sequence number of the first event of the same commit.
    pub commit_seq: u64,
    /// Time of the event.
    pub at: Timestamp,
    /// Who caused it.
    pub author: Author,
    /// The event.
    pub event: Event,
}

/// Reads a row of `{event}`.
pub(crate) fn entry(row: Row) -> Result<Entry, Error> {
    joined(&mut row.cells("events"))
}

/// Reads a row of `{event}` with the due time and the version tag of its plan.
pub(crate) fn entry_of_plan(row: Row) -> Result<(Entry, (Option<Timestamp>, VersionTag)), Error> {
    let mut cells = row.cells("events");
    let entry = joined(&mut cells)?;
    let due_at = cells.maybe_at("due_at")?;
    Ok((entry, (due_at, VersionTag(cells.int("version_tag")?))))
}

/// Reads a row of `{event}` with the order of its step, if the step exists.
pub(crate) fn entry_with_order(row: Row) -> Result<(Entry, Option<u32>), Error> {
    let mut cells = row.cells("events");
    let entry = joined(&mut cells)?;
    Ok((entry, cells.maybe_u32("step_order")?))
}

/// Reads a row of `{event}` with its plan in the first column.
pub(crate) fn entry_with_plan(row: Row) -> Result<(PlanId, Entry), Error> {
    let mut cells = row.cells("events");
    let plan = PlanId::new(cells.id("plan_id")?);
    Ok((plan, joined(&mut cells)?))
}

fn joined(cells: &mut Cells) -> Result<Entry, Error> {
    let seq = cells.u64("seq")?;
    let commit_seq = cells.u64("commit_seq")?;
    let at = cells.at("at")?;
    let author = Author {
        name: cells.string("actor")?,
        session: cells.maybe_text("session")?.map(SessionId::new),
    };
    let name = cells.text("name")?;
    let step = cells.maybe_id("step_id")?.map(StepId::new);
    let details = cells.text("details")?;
    let event =
        codec::decode(&name, step, &details).map_err(|why| cells.undecodable("details", why))?;
    Ok(Entry {
        seq,
        commit_seq,
        at,
        author,
        event,
    })
}

/// Parameters of `event_insert`.
pub(crate) fn inserted(plan: PlanId, entry: &Entry) -> Vec<Value> {
    params![
        plan.as_uuid(),
        entry.seq,
        entry.commit_seq,
        entry.at,
        &entry.author.name,
        entry.author.session.as_ref().map(SessionId::as_str),
        entry.event.name(),
        entry.event.step().map(|step| *step.as_uuid()),
        codec::encode_details(&entry.event),
    ]
}
