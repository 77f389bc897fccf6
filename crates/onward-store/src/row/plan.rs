//! Row of a plan: its head, and its brief.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use onward_core::attention::Facts;
use onward_core::id::{ReviewId, SessionId};
use onward_core::plan::{Brief, ForkedFrom, Origin, PendingReview, PlanFailure, PlanState};
use onward_core::routing::Routing;
use onward_core::{Counts, PlanHead, PlanId, PlanStatus, StepId, Timestamp};

use serde::{Deserialize, Serialize};

use super::{labels_text, maybe_mirror, read_labels, read_priority};
use crate::codec::budget::BudgetStateJson;
use crate::codec::json;
use crate::codec::scalar::Text;
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
    /// Last action of an agent or a user.
    pub acted_at: Timestamp,
    /// Last activity of an agent.
    pub worked_at: Timestamp,
    /// The plan's owner.
    pub owner: Owner,
    /// The tokens of its steps, if a count is known.
    pub tokens: Option<u64>,
}

/// The owner of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// The author of the plan, without the kind of credential.
    pub person: String,
    /// The agent that created it.
    pub origin: RequestOrigin,
}

/// The agent behind a request, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestOrigin {
    /// Name and version of the agent.
    pub client: Option<String>,
    /// Host name of the agent's machine.
    pub host: Option<String>,
    /// Working directory of the agent.
    pub directory: Option<String>,
}

impl Owner {
    /// The owner of a plan with this author in the audit trail.
    pub(crate) fn new(author: &str, origin: RequestOrigin) -> Self {
        Self {
            person: Self::person_of(author).to_owned(),
            origin,
        }
    }

    /// The name of an author without the kind of its credential.
    pub fn person_of(author: &str) -> &str {
        let kinds = ["user:", "token:"];
        let person = kinds.iter().find_map(|kind| author.strip_prefix(kind));
        person.unwrap_or(author)
    }
}

/// Approximate time of the last action, in units of ten seconds. Lists are ordered by it first, so
/// that their index rarely changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeBucket(pub(crate) i64);

impl TimeBucket {
    pub(crate) fn new(at: Timestamp) -> Self {
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
pub(crate) struct StoredVersion {
    pub(crate) bucket: TimeBucket,
    /// The plan's version.
    pub(crate) seq: u64,
    pub(crate) tag: VersionTag,
    /// Whether the plan has branches or reviews.
    pub(crate) has_context: bool,
    state: PlanState,
    steps: u32,
}

impl StoredVersion {
    pub(crate) fn new(
        head: &PlanHead,
        bucket: TimeBucket,
        tag: VersionTag,
        has_context: bool,
    ) -> Self {
        Self {
            bucket,
            seq: head.seq,
            tag,
            has_context,
            state: head.state.clone(),
            steps: head.counts.total(),
        }
    }

    /// Whether both are the same version.
    pub(crate) fn is_version_of(&self, other: &StoredVersion) -> bool {
        self.seq == other.seq && self.tag == other.tag
    }

    /// Whether the state and the number of steps are unchanged in `head`.
    pub(crate) fn has_state_of(&self, head: &PlanHead) -> bool {
        self.state == head.state && self.steps == head.counts.total()
    }
}

/// Reads `{head}, {known}`.
pub(crate) fn head_and_known(cells: &mut Cells) -> Result<(PlanHead, StoredVersion), Error> {
    let head = read_head(cells)?;
    let bucket = TimeBucket(cells.int("acted_about")?);
    let tag = VersionTag(cells.int("version_tag")?);
    let known = StoredVersion::new(&head, bucket, tag, cells.flag("has_context")?);
    Ok((head, known))
}

/// Reads a row of `{head}, {sheet}`.
pub(crate) fn sheet(row: Row) -> Result<Sheet, Error> {
    read_sheet(&mut row.cells("plans"))
}

/// Reads a row of `{head}, {sheet}, {attention}`.
pub(crate) fn sheet_and_facts(row: Row) -> Result<(Sheet, Facts), Error> {
    let mut cells = row.cells("plans");
    let sheet = read_sheet(&mut cells)?;
    let facts = read_facts(&mut cells, sheet.created_at, sheet.worked_at)?;
    Ok((sheet, facts))
}

/// An open plan without its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPlan {
    /// Status and counts.
    pub head: PlanHead,
    /// Name.
    pub name: String,
    /// Last action of an agent or a user.
    pub acted_at: Timestamp,
    /// The plan's owner.
    pub owner: Owner,
    /// The facts for its attention.
    pub facts: Facts,
}

/// Reads a row of `{open_plan}`.
pub(crate) fn open_plan(row: Row) -> Result<OpenPlan, Error> {
    let mut cells = row.cells("plans");
    let head = read_head(&mut cells)?;
    let name = cells.string("name")?;
    let (created_at, _) = (cells.at("created_at")?, cells.at("updated_at")?);
    let (acted_at, worked_at) = (cells.at("acted_at")?, cells.at("worked_at")?);
    let owner = read_owner(&mut cells)?;
    let facts = read_facts(&mut cells, created_at, worked_at)?;
    Ok(OpenPlan {
        head,
        name,
        acted_at,
        owner,
        facts,
    })
}

fn read_owner(cells: &mut Cells) -> Result<Owner, Error> {
    Ok(Owner {
        person: cells.string("created_by")?,
        origin: RequestOrigin {
            client: cells.maybe_string("client")?,
            host: cells.maybe_string("host")?,
            directory: cells.maybe_string("directory")?,
        },
    })
}

fn read_facts(
    cells: &mut Cells,
    created_at: Timestamp,
    worked_at: Timestamp,
) -> Result<Facts, Error> {
    Ok(Facts {
        stuck_since: cells.maybe_at("stuck_since")?,
        asked_at: cells.maybe_at("asked_at")?,
        orphaned_at: cells.maybe_at("orphaned_at")?,
        has_ready_step: cells.int("ready")? > 0,
        created_at,
        worked_at,
    })
}

fn read_sheet(cells: &mut Cells) -> Result<Sheet, Error> {
    let mut sheet = Sheet {
        head: read_head(cells)?,
        brief: Brief {
            name: cells.string("name")?,
            research_question: cells.string("research_question")?,
            design_rationale: cells.maybe_string("design_rationale")?,
            output_formatting_notes: cells.maybe_string("output_formatting_notes")?,
            forked_from: None,
        },
        created_at: cells.at("created_at")?,
        updated_at: cells.at("updated_at")?,
        acted_at: cells.at("acted_at")?,
        worked_at: cells.at("worked_at")?,
        owner: read_owner(cells)?,
        tokens: None,
    };
    sheet.brief.forked_from = read_fork(cells)?;
    sheet.tokens = cells.maybe_u64("tokens")?;
    Ok(sheet)
}

fn read_fork(cells: &mut Cells) -> Result<Option<ForkedFrom>, Error> {
    let plan = cells.maybe_id("forked_from")?.map(PlanId::new);
    let step = cells.maybe_u64("forked_step")?;
    let step = step.and_then(|order| u32::try_from(order).ok());
    Ok(plan
        .zip(step)
        .map(|(plan, step_order)| ForkedFrom { plan, step_order }))
}

/// Mirror of a pending review. Keys are in alphabetical order.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PendingReviewJson {
    review_id: Text<ReviewId>,
    step_id: Text<StepId>,
}

impl From<&PendingReview> for PendingReviewJson {
    fn from(pending: &PendingReview) -> Self {
        Self {
            review_id: Text(pending.review),
            step_id: Text(pending.step),
        }
    }
}

impl From<PendingReviewJson> for PendingReview {
    fn from(json: PendingReviewJson) -> Self {
        Self {
            step: json.step_id.0,
            review: json.review_id.0,
        }
    }
}

fn read_head(cells: &mut Cells) -> Result<PlanHead, Error> {
    let id = PlanId::new(cells.id("plan_id")?);
    let status: PlanStatus = cells.word("status")?;
    let reviews = maybe_mirror::<Vec<PendingReviewJson>>(cells, "open_reviews")?;
    let marked_at = cells.maybe_at("marked_at")?;
    let ended_at = cells.maybe_at("ended_at")?;
    let failure_kind = cells.maybe_text("failure_kind")?;
    let failure_words = cells.maybe_string("failure_words")?;
    let missing = |column| cells.corrupt(column, format!("is empty on a plan that is `{status}`"));
    let state = match status {
        PlanStatus::Planning => PlanState::Planning,
        PlanStatus::Executing => PlanState::Executing,
        PlanStatus::AwaitingReview => PlanState::AwaitingReview {
            reviews: reviews
                .filter(|reviews| !reviews.is_empty())
                .ok_or_else(|| missing("open_reviews"))?
                .into_iter()
                .map(PendingReview::from)
                .collect(),
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
    let mut head = PlanHead {
        id,
        origin: Origin::default(),
        state,
        last_session: cells.maybe_text("last_session")?.map(SessionId::new),
        counts: Counts {
            pending: cells.u32("pending")?,
            in_progress: cells.u32("in_progress")?,
            awaiting_input: cells.u32("awaiting_input")?,
            completed: cells.u32("completed")?,
            skipped: cells.u32("skipped")?,
            failed: cells.u32("failed")?,
            superseded: 0,
        },
        seq: cells.u64("seq")?,
        stall_threshold: cells.maybe_span("stall_threshold_ms")?,
        on_stall: cells.word("on_stall")?,
        on_dependency_failure: cells.word("on_dependency_failure")?,
        routing: Routing::default(),
        budget: None,
    };
    head.origin = cells.word("origin")?;
    head.counts.superseded = cells.u32("superseded")?;
    head.routing.project_key = cells.maybe_string("project_key")?;
    head.routing.labels = read_labels(cells)?;
    head.routing.priority = read_priority(cells)?;
    head.budget = maybe_mirror::<BudgetStateJson>(cells, "budget")?.map(Into::into);
    Ok(head)
}

/// The id, then all columns of the head that an event can change, in table order.
pub(crate) fn changing(head: &PlanHead) -> Vec<Value> {
    let mut open_reviews = None;
    let (mut marked_at, mut ended_at, mut failure) = (None, None, (None, None));
    match &head.state {
        PlanState::Planning | PlanState::Executing => {}
        PlanState::AwaitingReview { reviews } => {
            let reviews: Vec<_> = reviews.iter().map(PendingReviewJson::from).collect();
            open_reviews = Some(json::write(&reviews));
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
        open_reviews,
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

/// The budget as JSON.
pub(crate) fn budget_text(head: &PlanHead) -> Option<String> {
    let budget = head.budget.map(BudgetStateJson::from);
    budget.map(|budget| json::write(&budget))
}

/// All other columns of the row, besides those of [`changing`].
pub(crate) fn fixed(sheet: &Sheet, tag: VersionTag) -> Vec<Value> {
    params![
        sheet.head.stall_threshold,
        sheet.head.on_stall.as_str(),
        sheet.head.on_dependency_failure.as_str(),
        &sheet.brief.name,
        &sheet.brief.research_question,
        sheet.brief.design_rationale.as_deref(),
        sheet.brief.output_formatting_notes.as_deref(),
        sheet.created_at,
        sheet.updated_at,
        sheet.acted_at,
        sheet.worked_at,
        &sheet.owner.person,
        sheet.owner.origin.client.as_deref(),
        sheet.owner.origin.host.as_deref(),
        sheet.owner.origin.directory.as_deref(),
        tag.0,
        sheet.head.origin.as_str(),
        sheet.head.counts.superseded,
        sheet.brief.forked_from.map(|fork| *fork.plan.as_uuid()),
        sheet.brief.forked_from.map(|fork| fork.step_order),
        sheet.head.routing.project_key.as_deref(),
        labels_text(&sheet.head.routing.labels),
        u32::from(sheet.head.routing.priority),
        budget_text(&sheet.head),
    ]
}
