//! Row of a step: its specification, and its state with the associated data.

use std::sync::Arc;

use onward_core::decide::modify::StepOutline;
use onward_core::id::{ArtifactId, BranchId, ClaimToken, ReviewId, SessionId};
use onward_core::policy::OnDependencyFailure;
use onward_core::routing::DEFAULT_PRIORITY;
use onward_core::step::{
    Claim, Evidence, FailReason, Gates, NewStep, OnDeadline, Review, ReviewBy, ReviewScope,
    SkipCause, Step, StepResult, StepState, Undelivered, Work,
};
use onward_core::{Json, PlanId, StepId, StepStatus, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{labels_text, maybe_mirror, mirror, read_labels, read_priority};
use crate::codec::gates::{EvidenceJson, ResultJson, evidence};
use crate::codec::json;
use crate::codec::review::{FieldJson, due_at, fields, on_deadline, options};
use crate::codec::scalar::{Text, optional, texts, values};
use crate::error::Error;
use crate::value::{Cells, IntoValue, Row, Value, params};

/// Reads a row of `{step}`.
pub(crate) fn step(row: Row) -> Result<(PlanId, Step), Error> {
    read(&mut row.cells("steps"))
}

/// Reads rows of `{step}`.
pub(crate) fn steps(rows: Vec<Row>) -> Result<Vec<Step>, Error> {
    rows.into_iter()
        .map(|row| step(row).map(|(_, step)| step))
        .collect()
}

/// Reads a step among the columns of other tables, if the row contains one.
pub(crate) fn joined(cells: &mut Cells) -> Result<Option<Step>, Error> {
    let found = cells.turn_to("steps", "step_id");
    let step = found.then(|| read(cells).map(|(_, step)| step));
    step.transpose()
}

/// Stored value of [`Undelivered`]; 0 if there is nothing to deliver.
const fn undelivered_code(undelivered: Option<Undelivered>) -> u32 {
    match undelivered {
        None => 0,
        Some(Undelivered::Feedback) => 1,
        Some(Undelivered::Instructions) => 2,
    }
}

fn undelivered(cells: &mut Cells) -> Result<Option<Undelivered>, Error> {
    match cells.u32("undelivered")? {
        0 => Ok(None),
        1 => Ok(Some(Undelivered::Feedback)),
        2 => Ok(Some(Undelivered::Instructions)),
        other => Err(cells.corrupt("undelivered", format!("is {other}, not 0, 1 or 2"))),
    }
}

/// Reads a row of `{step}, open_dependencies`.
pub(crate) fn step_and_open(row: Row) -> Result<(Step, u32), Error> {
    let mut cells = row.cells("steps");
    let (_, step) = read(&mut cells)?;
    Ok((step, cells.u32("open_dependencies")?))
}

fn read(cells: &mut Cells) -> Result<(PlanId, Step), Error> {
    let id = StepId::new(cells.id("step_id")?);
    let plan = PlanId::new(cells.id("plan_id")?);
    let order = cells.u32("step_order")?;
    let mut spec = NewStep {
        id,
        step_type: cells.word("step_type")?,
        title: cells.maybe_string("title")?,
        instructions: cells.string("instructions")?,
        depends_on: values(mirror(cells, "depends_on")?),
        stall_threshold: cells.maybe_span("stall_threshold_ms")?,
        max_attempts: cells.u32("max_attempts")?,
        gates: gates(cells)?,
        supersedes: None,
        labels: Vec::new(),
        priority: DEFAULT_PRIORITY,
        on_dependency_failure: OnDependencyFailure::default(),
    };
    let state = state(cells)?;
    let superseded = mirror::<Vec<String>>(cells, "superseded")?;
    let updated_at = cells.at("updated_at")?;
    spec.supersedes = cells.maybe_id("supersedes")?.map(StepId::new);
    let superseded_by = cells.maybe_id("superseded_by")?.map(StepId::new);
    spec.labels = read_labels(cells)?;
    spec.priority = read_priority(cells)?;
    spec.on_dependency_failure = cells.word("on_dependency_failure")?;
    let step = Step {
        spec,
        order,
        state,
        superseded: superseded.into_iter().map(ClaimToken::new).collect(),
        superseded_by,
        updated_at,
    };
    Ok((plan, step))
}

fn gates(cells: &mut Cells) -> Result<Option<Arc<Gates>>, Error> {
    let gates = maybe_mirror::<GatesJson<String>>(cells, "gates")?;
    Ok(gates.map(|json| Arc::new(json.into())))
}

/// Reads a row of `step_outlines`.
pub(crate) fn outline(row: Row) -> Result<StepOutline, Error> {
    let mut cells = row.cells("steps");
    let id = StepId::new(cells.id("step_id")?);
    let order = cells.u32("step_order")?;
    let mut spec = NewStep {
        id,
        step_type: cells.word("step_type")?,
        title: cells.maybe_string("title")?,
        instructions: cells.string("instructions")?,
        depends_on: values(mirror(&mut cells, "depends_on")?),
        stall_threshold: cells.maybe_span("stall_threshold_ms")?,
        max_attempts: cells.u32("max_attempts")?,
        gates: gates(&mut cells)?,
        supersedes: None,
        labels: Vec::new(),
        priority: DEFAULT_PRIORITY,
        on_dependency_failure: OnDependencyFailure::default(),
    };
    let status = cells.word("status")?;
    spec.supersedes = cells.maybe_id("supersedes")?.map(StepId::new);
    let superseded_by = cells.maybe_id("superseded_by")?.map(StepId::new);
    spec.labels = read_labels(&mut cells)?;
    spec.priority = read_priority(&mut cells)?;
    spec.on_dependency_failure = cells.word("on_dependency_failure")?;
    Ok(StepOutline {
        spec,
        order,
        status,
        superseded_by,
    })
}

fn state(cells: &mut Cells) -> Result<StepState, Error> {
    let status: StepStatus = cells.word("status")?;
    let attempt = cells.u32("attempt")?;
    let token = cells.maybe_text("claim_token")?;
    let session = cells.maybe_text("claim_session")?.map(SessionId::new);
    let claim = token.map(|token| Claim {
        attempt,
        token: ClaimToken::new(token),
        session,
    });
    let started_at = cells.maybe_at("started_at")?;
    let last_progress_at = cells.maybe_at("last_progress_at")?;
    let monitored = cells.flag("monitored")?;
    let stall_marked = cells.maybe_at("stall_marked_at")?;
    let orphaned_at = cells.maybe_at("orphaned_at")?;
    let undelivered = undelivered(cells)?;
    let kept = cells.maybe_id("kept_artifact_id")?.map(ArtifactId::new);
    let review = review(cells)?;
    let ended_at = cells.maybe_at("ended_at")?;
    let result = result(cells)?;
    let skipped_by = skipped_by(cells)?;
    let failure = failure(cells)?;

    let missing = |column| cells.corrupt(column, format!("is empty on a step that is `{status}`"));
    let work = |claim: Option<Claim>| {
        Ok::<Work, Error>(Work {
            claim: claim.ok_or_else(|| missing("claim_token"))?,
            started_at: started_at.ok_or_else(|| missing("started_at"))?,
            last_progress_at,
            monitored,
            stall_marked,
            orphaned_at,
            undelivered,
            kept,
        })
    };
    let ended_at = || ended_at.ok_or_else(|| missing("ended_at"));
    Ok(match status {
        StepStatus::Pending => StepState::Pending { attempt },
        StepStatus::InProgress => StepState::InProgress(work(claim)?),
        StepStatus::AwaitingInput => {
            let review = review.ok_or_else(|| missing("review"))?;
            let work = match review.scope {
                ReviewScope::Plan | ReviewScope::Step => Some(work(claim)?),
                ReviewScope::Start => None,
            };
            StepState::AwaitingInput { work, review }
        }
        StepStatus::Completed => StepState::Completed {
            claim: claim.ok_or_else(|| missing("claim_token"))?,
            started_at: started_at.ok_or_else(|| missing("started_at"))?,
            ended_at: ended_at()?,
            result: Arc::new(result.ok_or_else(|| missing("result_summary"))?),
        },
        StepStatus::Skipped => StepState::Skipped {
            by: skipped_by,
            claim,
            ended_at: ended_at()?,
        },
        StepStatus::Failed => StepState::Failed {
            reason: failure.ok_or_else(|| missing("failure_kind"))?,
            claim,
            ended_at: ended_at()?,
        },
    })
}

/// Mirror of the gates. Keys are in alphabetical order, here and below.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GatesJson<T> {
    acceptance_criteria: Vec<T>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    result_schema: Option<Json>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    review_by: Option<Text<ReviewBy>>,
}

impl From<GatesJson<String>> for Gates {
    fn from(json: GatesJson<String>) -> Self {
        Self {
            result_schema: json.result_schema,
            acceptance_criteria: json.acceptance_criteria,
            review_by: json.review_by.map(|by| by.0),
        }
    }
}

impl<'g> From<&'g Gates> for GatesJson<&'g str> {
    fn from(gates: &'g Gates) -> Self {
        let criteria = gates.acceptance_criteria.iter();
        Self {
            acceptance_criteria: criteria.map(String::as_str).collect(),
            result_schema: gates.result_schema.clone(),
            review_by: gates.review_by.map(Text),
        }
    }
}

/// Mirror of a review.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct ReviewJson<T> {
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    assignee: Option<T>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    due_at: Option<Text<Timestamp>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<FieldJson<T>>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    on_deadline: Option<Text<OnDeadline>>,
    questions: Vec<T>,
    requested_at: Text<Timestamp>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    result: Option<ResultJson<T>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    review_by: Option<Text<ReviewBy>>,
    review_id: Text<ReviewId>,
    scope: Text<ReviewScope>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    session_id: Option<T>,
    summary: T,
}

impl From<ReviewJson<String>> for Review {
    fn from(json: ReviewJson<String>) -> Self {
        Self {
            id: json.review_id.0,
            summary: json.summary,
            questions: json.questions,
            requested_at: json.requested_at.0,
            scope: json.scope.0,
            by: json.review_by.map(|by| by.0),
            session: json.session_id.map(SessionId::new),
            result: json.result.map(Into::into),
            options: options(json.fields, json.due_at, json.on_deadline, json.assignee),
        }
    }
}

impl<'r> From<&'r Review> for ReviewJson<&'r str> {
    fn from(review: &'r Review) -> Self {
        Self {
            assignee: review.options.assignee.as_deref(),
            due_at: due_at(&review.options),
            fields: fields(&review.options.fields),
            on_deadline: on_deadline(&review.options),
            questions: review.questions.iter().map(String::as_str).collect(),
            requested_at: Text(review.requested_at),
            result: review.result.as_deref().map(ResultJson::from),
            review_by: review.by.map(Text),
            review_id: Text(review.id),
            scope: Text(review.scope),
            session_id: review.session.as_ref().map(SessionId::as_str),
            summary: &review.summary,
        }
    }
}

fn review(cells: &mut Cells) -> Result<Option<Review>, Error> {
    let review = maybe_mirror::<ReviewJson<String>>(cells, "review")?;
    Ok(review.map(Review::from))
}

fn result(cells: &mut Cells) -> Result<Option<StepResult>, Error> {
    let summary = cells.maybe_string("result_summary")?;
    let confidence = cells.maybe_real("result_confidence")?;
    let data = cells.maybe_json("result")?;
    let report = cells.maybe_json("result_report")?;
    let formatting_notes = cells.maybe_string("result_notes")?;
    let evidence = evidence_of(cells)?;
    Ok(summary.map(|summary| StepResult {
        summary,
        data,
        confidence,
        report,
        formatting_notes,
        evidence,
    }))
}

/// Reads the evidence of a result.
pub(crate) fn evidence_of(cells: &mut Cells) -> Result<Vec<Evidence>, Error> {
    let evidence = maybe_mirror::<Vec<EvidenceJson<String>>>(cells, "result_evidence")?;
    Ok(evidence.into_iter().flatten().map(Evidence::from).collect())
}

/// The cause if the step was skipped.
fn skipped_by(cells: &mut Cells) -> Result<SkipCause, Error> {
    let branch = cells.maybe_id("skipped_by_branch")?;
    let review = cells.maybe_id("skipped_by_review")?;
    let branch = branch.map(|id| SkipCause::Branch(BranchId::new(id)));
    let cause = branch.or(review.map(|id| SkipCause::Review(ReviewId::new(id))));
    Ok(cause.unwrap_or(SkipCause::Person))
}

pub(crate) fn failure(cells: &mut Cells) -> Result<Option<FailReason>, Error> {
    let kind = cells.maybe_text("failure_kind")?;
    let words = cells.maybe_string("failure_words")?;
    let Some(kind) = kind else { return Ok(None) };
    match FailReason::from_kind(&kind, words) {
        Some(reason) => Ok(Some(reason)),
        None => Err(cells.corrupt("failure_kind", format!("unknown kind `{kind}`"))),
    }
}

/// Parameters of `step_insert`.
pub(crate) fn inserted(
    plan: PlanId,
    spec: &NewStep,
    order: u32,
    at: Timestamp,
    open_dependencies: usize,
) -> Vec<Value> {
    params![
        spec.id.as_uuid(),
        plan.as_uuid(),
        order,
        spec.step_type.as_str(),
        spec.title.as_deref(),
        &spec.instructions,
        json::write(&texts(&spec.depends_on)),
        spec.stall_threshold,
        spec.max_attempts,
        gates_text(spec),
        at,
        open_dependencies,
        spec.supersedes.map(|step| *step.as_uuid()),
        labels_text(&spec.labels),
        u32::from(spec.priority),
        spec.on_dependency_failure.as_str(),
    ]
}

fn gates_text(spec: &NewStep) -> Option<String> {
    let gates = spec.gates.as_deref();
    gates.map(|gates| json::write(&GatesJson::from(gates)))
}

/// Parameters of `step_definition`: the id, then the columns of the definition that can change.
pub(crate) fn definition(step: &Step) -> Vec<Value> {
    let spec = &step.spec;
    params![
        spec.id.as_uuid(),
        spec.step_type.as_str(),
        spec.title.as_deref(),
        &spec.instructions,
        json::write(&texts(&spec.depends_on)),
        spec.stall_threshold,
        gates_text(spec),
        step.updated_at,
        labels_text(&spec.labels),
        u32::from(spec.priority),
        spec.on_dependency_failure.as_str(),
    ]
}

/// Parameters of `step_update`: those of `step_advance`, then the other columns of the state.
pub(crate) fn changing(step: &Step, stalls_at: Option<Timestamp>, commit_seq: u64) -> Vec<Value> {
    let mut row = advancing(step, stalls_at, commit_seq);
    let mut review = None;
    let (mut branch, mut skip_review): (Option<Uuid>, Option<Uuid>) = (None, None);
    let mut failure: (Option<&str>, Option<&str>) = (None, None);
    match &step.state {
        StepState::Pending { .. } | StepState::InProgress(_) | StepState::Completed { .. } => {}
        StepState::AwaitingInput { review: open, .. } => {
            review = Some(json::write(&ReviewJson::from(open)))
        }
        StepState::Skipped { by, .. } => match by {
            SkipCause::Branch(id) => branch = Some(*id.as_uuid()),
            SkipCause::Review(id) => skip_review = Some(*id.as_uuid()),
            SkipCause::Person => {}
        },
        StepState::Failed { reason, .. } => {
            failure = (Some(reason.kind()), reason.text());
        }
    }
    let work = step.claimed_work();
    let (_, _, result) = times_and_result(step);
    let evidence = result.and_then(|result| evidence(&result.evidence));
    row.extend(params![
        work.and_then(|work| work.last_progress_at),
        work.is_some_and(|work| work.monitored),
        work.and_then(|work| work.stall_marked),
        work.and_then(|work| work.orphaned_at),
        undelivered_code(work.and_then(|work| work.undelivered)),
        work.and_then(|work| work.kept.map(|id| *id.as_uuid())),
        review.as_ref(),
        evidence.map(|evidence| json::write(&evidence)),
        branch,
        skip_review,
        failure.0,
        failure.1,
        superseded(step),
    ]);
    row
}

/// Parameters of `step_advance` for a step that was only claimed or completed: the id, then the
/// columns that a claim and a result change.
pub(crate) fn advancing(step: &Step, stalls_at: Option<Timestamp>, commit_seq: u64) -> Vec<Value> {
    let (started_at, ended_at, result) = times_and_result(step);
    let claim = step.claim();
    params![
        step.id().as_uuid(),
        step.status().as_str(),
        step.attempt(),
        claim.map(|claim| claim.token.as_str()),
        claim.and_then(|claim| claim.session.as_ref().map(SessionId::as_str)),
        started_at,
        ended_at,
        result.map(|result| &result.summary),
        result.and_then(|result| result.confidence),
        result.and_then(|result| result.data.as_ref()),
        result.and_then(|result| result.report.as_ref()),
        result.and_then(|result| result.formatting_notes.as_deref()),
        step.updated_at,
        stalls_at,
        // The statement keeps the commit in which the step ended first.
        ended_at.map(|_| commit_seq),
    ]
}

/// Start, end and result.
fn times_and_result(step: &Step) -> (Option<Timestamp>, Option<Timestamp>, Option<&StepResult>) {
    match &step.state {
        StepState::Pending { .. } => (None, None, None),
        StepState::InProgress(_) | StepState::AwaitingInput { .. } => {
            let work = step.claimed_work();
            (work.map(|work| work.started_at), None, None)
        }
        StepState::Completed {
            started_at,
            ended_at,
            result,
            ..
        } => (Some(*started_at), Some(*ended_at), Some(result)),
        StepState::Skipped { ended_at, .. } | StepState::Failed { ended_at, .. } => {
            (None, Some(*ended_at), None)
        }
    }
}

/// Most steps have no superseded claims.
fn superseded(step: &Step) -> Value {
    if step.superseded.is_empty() {
        return "[]".into_value();
    }
    let tokens: Vec<&str> = step.superseded.iter().map(ClaimToken::as_str).collect();
    json::write(&tokens).into_value()
}
