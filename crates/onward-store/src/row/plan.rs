//! Row of a plan: its head, and its brief.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use onward_core::id::{ReviewId, SessionId};
use onward_core::plan::{Brief, PlanFailure, PlanState};
use onward_core::{Counts, PlanHead, PlanId, PlanStatus, StepId, Timestamp};

use crate::error::Error;
use crate::value::{Cells, Row, Value, params};

/// A plan without its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// Status and counts.
    pub head: PlanHead,
    /// Description by its author.
    pub brief: Brief,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Approximate time of the last change, in units of ten seconds. Lists are ordered by it first, so
/// that their index rarely changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct About(pub(crate) i64);

impl About {
    pub(crate) fn of(at: Timestamp) -> Self {
        Self(at.as_millis() / 10_000)
    }
}

/// Random number next to a plan's sequence number, new with every commit. Two histories that
/// continue from a common past (after a restore, or a failover that lost commits) repeat sequence
/// numbers, but not tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VersionTag(pub(crate) i64);

impl VersionTag {
    /// A new tag. The hash keys come from the system's random number generator, and differ between
    /// calls. The tag is never observable, so it need not come from the engine's environment.
    pub(crate) fn random() -> Self {
        Self(RandomState::new().hash_one(()).cast_signed())
    }
}

/// Columns of a plan in the database that an index or the version check depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) about: About,
    /// The plan's version.
    pub(crate) seq: u64,
    pub(crate) tag: VersionTag,
    state: PlanState,
    steps: u32,
}

impl Known {
    pub(crate) fn of(head: &PlanHead, about: About, tag: VersionTag) -> Self {
        Self {
            about,
            seq: head.seq,
            tag,
            state: head.state.clone(),
            steps: head.counts.total(),
        }
    }

    /// Whether both are the same version.
    pub(crate) fn is_version_of(&self, other: &Known) -> bool {
        self.seq == other.seq && self.tag == other.tag
    }

    /// Whether the state and the number of steps are unchanged in `head`.
    pub(crate) fn stays(&self, head: &PlanHead) -> bool {
        self.state == head.state && self.steps == head.counts.total()
    }
}

/// Reads `{head}, updated_about, version_tag`.
pub(crate) fn head_and_known(cells: &mut Cells) -> Result<(PlanHead, Known), Error> {
    let head = read_head(cells)?;
    let about = About(cells.int("updated_about")?);
    let tag = VersionTag(cells.int("version_tag")?);
    let known = Known::of(&head, about, tag);
    Ok((head, known))
}

/// Reads a row of `{head}, {sheet}`.
pub(crate) fn sheet(row: Row) -> Result<Sheet, Error> {
    read_sheet(&mut row.cells("plans"))
}

/// Reads a row of `{head}, {sheet}, stalled`.
pub(crate) fn sheet_and_stalled(row: Row) -> Result<(Sheet, bool), Error> {
    let mut cells = row.cells("plans");
    let sheet = read_sheet(&mut cells)?;
    Ok((sheet, cells.int("stalled")? > 0))
}

fn read_sheet(cells: &mut Cells) -> Result<Sheet, Error> {
    Ok(Sheet {
        head: read_head(cells)?,
        brief: Brief {
            name: cells.string("name")?,
            research_question: cells.string("research_question")?,
            design_rationale: cells.maybe_string("design_rationale")?,
            output_formatting_notes: cells.maybe_string("output_formatting_notes")?,
        },
        created_at: cells.at("created_at")?,
        updated_at: cells.at("updated_at")?,
    })
}

fn read_head(cells: &mut Cells) -> Result<PlanHead, Error> {
    let id = PlanId::new(cells.id("plan_id")?);
    let status: PlanStatus = cells.word("status")?;
    let review_step = cells.maybe_id("review_step")?.map(StepId::new);
    let review = cells.maybe_id("review_id")?.map(ReviewId::new);
    let marked_at = cells.maybe_at("marked_at")?;
    let ended_at = cells.maybe_at("ended_at")?;
    let failure_kind = cells.maybe_text("failure_kind")?;
    let failure_words = cells.maybe_string("failure_words")?;
    let missing = |column| cells.corrupt(column, format!("is empty on a plan that is `{status}`"));
    let state = match status {
        PlanStatus::Planning => PlanState::Planning,
        PlanStatus::Executing => PlanState::Executing,
        PlanStatus::AwaitingReview => PlanState::AwaitingReview {
            step: review_step.ok_or_else(|| missing("review_step"))?,
            review: review.ok_or_else(|| missing("review_id"))?,
        },
        PlanStatus::Stalled => PlanState::Stalled {
            marked_at: marked_at.ok_or_else(|| missing("marked_at"))?,
        },
        PlanStatus::Completed => PlanState::Completed {
            ended_at: ended_at.ok_or_else(|| missing("ended_at"))?,
        },
        PlanStatus::Failed => PlanState::Failed {
            reason: {
                let kind = failure_kind.ok_or_else(|| missing("failure_kind"))?;
                PlanFailure::from_kind(&kind, failure_words).ok_or_else(|| {
                    cells.corrupt("failure_kind", format!("unknown kind `{kind}`"))
                })?
            },
            ended_at: ended_at.ok_or_else(|| missing("ended_at"))?,
        },
    };
    Ok(PlanHead {
        id,
        state,
        last_session: cells.maybe_text("last_session")?.map(SessionId::new),
        counts: Counts {
            pending: cells.u32("pending")?,
            in_progress: cells.u32("in_progress")?,
            awaiting_input: cells.u32("awaiting_input")?,
            completed: cells.u32("completed")?,
            skipped: cells.u32("skipped")?,
            failed: cells.u32("failed")?,
        },
        seq: cells.u64("seq")?,
        stall_threshold: cells.maybe_span("stall_threshold_ms")?,
        on_stall: cells.word("on_stall")?,
    })
}

/// The id, then all columns of the head that an event can change, in table order.
pub(crate) fn changing(head: &PlanHead) -> Vec<Value> {
    let mut review = (None, None);
    let (mut marked_at, mut ended_at, mut failure) = (None, None, (None, None));
    match &head.state {
        PlanState::Planning | PlanState::Executing => {}
        PlanState::AwaitingReview { step, review: id } => {
            review = (Some(step.as_uuid()), Some(id.as_uuid()));
        }
        PlanState::Stalled { marked_at: at } => marked_at = Some(*at),
        PlanState::Completed { ended_at: at } => ended_at = Some(*at),
        PlanState::Failed {
            reason,
            ended_at: at,
        } => {
            ended_at = Some(*at);
            failure = (Some(reason.kind()), reason.text());
        }
    }
    let mut changing = params![
        head.id.as_uuid(),
        head.status().as_str(),
        review.0,
        review.1,
        marked_at,
        ended_at,
        failure.0,
        failure.1,
    ];
    changing.extend(counted(head));
    changing
}

/// The id, then all columns that an event can change while the state and the number of steps are
/// unchanged.
pub(crate) fn counting(head: &PlanHead) -> Vec<Value> {
    let mut counting = params![head.id.as_uuid()];
    counting.extend(counted(head));
    counting
}

fn counted(head: &PlanHead) -> Vec<Value> {
    let counts = &head.counts;
    params![
        head.last_session.as_ref().map(SessionId::as_str),
        counts.pending,
        counts.in_progress,
        counts.awaiting_input,
        counts.completed,
        counts.skipped,
        counts.failed,
        head.seq,
    ]
}

/// All other columns of the row, besides those of [`changing`].
pub(crate) fn fixed(sheet: &Sheet, tag: VersionTag) -> Vec<Value> {
    params![
        sheet.head.stall_threshold,
        sheet.head.on_stall.as_str(),
        &sheet.brief.name,
        &sheet.brief.research_question,
        sheet.brief.design_rationale.as_deref(),
        sheet.brief.output_formatting_notes.as_deref(),
        sheet.created_at,
        sheet.updated_at,
        tag.0,
    ]
}
