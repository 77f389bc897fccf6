//! Context for an agent that starts a step or resumes a plan, within a character budget. Read-only,
//! except that a session resuming a plan is recorded in the plan's audit trail.
//!
//! The budget limits the loaded data, so a plan with 10,000 steps costs no more than its response.
//! It counts the characters of the JSON response, including field names and ids. `budget.rs` tracks
//! it; `step.rs` and `plan.rs` decide how to spend it.

mod budget;
mod plan;
mod step;

use onward_core::id::SessionId;
use onward_core::role::Permission;
use onward_core::step::Review;
use onward_core::{PlanId, StepId, StepStatus, StepType};
use onward_store::{Excerpt, OutputExcerpt, Recent, Sheet, StepBrief, Tx};
use serde_json::Value;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::next_step::StepInProgress;
use crate::sanitize;
use budget::{Budget, cost, json_cost};

/// Default budget of a step's context, in characters.
pub const STEP_CHARS: usize = 20_000;
/// Default budget of a plan's context, in characters.
pub const PLAN_CHARS: usize = 40_000;
/// Maximum budget, in characters.
pub const MAX_CHARS: usize = 1_000_000;

/// Cost of a list entry apart from its texts: ids, numbers and field names.
const ENTRY_COST: usize = 170;
/// Maximum number of artifacts, and of outputs.
const MAX_EXCERPTS: u32 = 50;
/// Number of steps per query.
const PAGE_SIZE: u32 = 32;

/// Context for working on a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepContext {
    /// The step.
    pub step: StepDetails,
    /// Its plan.
    pub plan: PlanId,
    /// The plan's name.
    pub name: String,
    /// The plan's question.
    pub research_question: String,
    /// Results of earlier steps: first of its dependencies, then of the other steps before it, each
    /// nearest first.
    pub results: Vec<StepWithResult>,
    /// Artifacts: first of this step, then of the plan, each newest first.
    pub artifacts: Vec<Excerpt>,
    /// Outputs of the plan so far, newest first.
    pub outputs: Vec<OutputExcerpt>,
    /// Feedback: first on this step, then on the plan, each newest first.
    pub feedback: Vec<String>,
    /// Whether anything was truncated or omitted.
    pub truncated: bool,
}

/// The step to work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDetails {
    /// The step's id.
    pub id: StepId,
    /// Position in the plan.
    pub order: u32,
    /// Type of work.
    pub step_type: StepType,
    /// Display title.
    pub title: Option<String>,
    /// The step's status.
    pub status: StepStatus,
    /// The current attempt number.
    pub attempt: u32,
    /// Instructions for the agent.
    pub instructions: String,
    /// The steps it depends on.
    pub depends_on: Vec<StepId>,
}

/// A step with as much of its result as the budget allows.
#[derive(Debug, Clone, PartialEq)]
pub struct StepWithResult {
    /// The step.
    pub step: StepBrief,
    /// Summary of the result.
    pub summary: Option<String>,
    /// Structured data of the result: complete or absent.
    pub data: Option<Value>,
}

/// Context for resuming a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanContext {
    /// The plan.
    pub sheet: Sheet,
    /// Steps in order; if the budget does not allow all, those nearest to the current position.
    pub steps: Vec<StepWithResult>,
    /// Number of steps omitted.
    pub steps_omitted: u32,
    /// Artifacts, newest first.
    pub artifacts: Vec<Excerpt>,
    /// Outputs so far, newest first.
    pub outputs: Vec<OutputExcerpt>,
    /// The step under review and the review request.
    pub review: Option<(StepId, Review)>,
    /// Steps in progress of other sessions.
    pub interrupted: Vec<StepInProgress>,
    /// The most recent events, oldest first.
    pub recent: Vec<Recent>,
    /// Whether anything was truncated or omitted.
    pub truncated: bool,
    /// The recommended next tool call.
    pub next: String,
}

impl Engine {
    /// Context for working on a step.
    pub async fn step_context(
        &self,
        caller: &Caller,
        step: StepId,
        max_chars: Option<usize>,
    ) -> Result<StepContext, Error> {
        caller.allow(Permission::Read)?;
        let budget_chars = budget_chars(max_chars, STEP_CHARS)?;
        let context = self.store.read(&caller.tenant, move |tx| {
            Box::pin(step::read(tx, step, budget_chars))
        });
        context.await
    }

    /// Context for resuming a plan. If another session worked on the plan last, this session's
    /// resumption is recorded once, provided the caller may work on the plan.
    pub async fn plan_context(
        &self,
        caller: &Caller,
        plan: PlanId,
        session: Option<SessionId>,
        max_chars: Option<usize>,
    ) -> Result<PlanContext, Error> {
        caller.allow(Permission::Read)?;
        let budget_chars = budget_chars(max_chars, PLAN_CHARS)?;
        let session = sanitize::session(session);
        if let Some(session) = &session
            && caller.allow(Permission::Work).is_ok()
        {
            self.record_session_resume(caller, plan, session.clone())
                .await?;
        }
        let now = self.now();
        let context = self.store.read(&caller.tenant, move |tx| {
            Box::pin(plan::read(tx, plan, session.clone(), budget_chars, now))
        });
        context.await
    }
}

fn budget_chars(requested: Option<usize>, default: usize) -> Result<usize, Error> {
    let budget_chars = requested.unwrap_or(default);
    if budget_chars == 0 || budget_chars > MAX_CHARS {
        let message = format!("must be between 1 and {MAX_CHARS}");
        return Err(Error::invalid("maxChars", message));
    }
    Ok(budget_chars)
}

/// Excerpts of artifacts, within the budget.
async fn artifacts(
    tx: &mut Tx,
    plan: PlanId,
    step: Option<StepId>,
    budget: &mut Budget,
) -> Result<Vec<Excerpt>, Error> {
    let mut found = tx
        .excerpts(plan, step, MAX_EXCERPTS.saturating_add(1))
        .await?
        .into_iter();
    let mut listed = Vec::new();
    for mut artifact in found.by_ref().take(count(MAX_EXCERPTS)) {
        let fixed_cost = ENTRY_COST.saturating_add(cost(&artifact.title));
        if !budget.entry(fixed_cost, &mut artifact.excerpt) {
            return Ok(listed);
        }
        listed.push(artifact);
    }
    if found.next().is_some() {
        budget.mark_truncated();
    }
    Ok(listed)
}

/// Excerpts of outputs, within the budget.
async fn outputs(
    tx: &mut Tx,
    plan: PlanId,
    budget: &mut Budget,
) -> Result<Vec<OutputExcerpt>, Error> {
    let most = MAX_EXCERPTS.saturating_add(1);
    let mut found = tx.output_excerpts(plan, most).await?.into_iter();
    let mut listed = Vec::new();
    for mut output in found.by_ref().take(count(MAX_EXCERPTS)) {
        let texts = cost(&output.title).saturating_add(cost(&output.media_type));
        if !budget.entry(ENTRY_COST.saturating_add(texts), &mut output.excerpt) {
            return Ok(listed);
        }
        listed.push(output);
    }
    if found.next().is_some() {
        budget.mark_truncated();
    }
    Ok(listed)
}

/// The leading steps whose summaries may fit, at a fixed cost per step. A lower bound: a character
/// has at most four bytes.
fn may_fit<'t>(
    briefs: impl Iterator<Item = &'t StepBrief>,
    fixed_cost: usize,
    mut left: usize,
) -> Vec<StepId> {
    let fit = briefs.take_while(|brief| {
        let fits = left > fixed_cost;
        let bytes = usize::try_from(brief.summary_bytes.unwrap_or(0)).unwrap_or(usize::MAX);
        left = left.saturating_sub(fixed_cost).saturating_sub(bytes / 4);
        fits
    });
    fit.map(|brief| brief.id).collect()
}

/// Loads structured results within the budget, in the order of the steps.
async fn add_data<'t>(
    tx: &mut Tx,
    steps: impl Iterator<Item = &'t mut StepWithResult>,
    budget: &mut Budget,
) -> Result<(), Error> {
    let with_data = steps.filter(|entry| entry.step.data_bytes.is_some());
    let mut selected = Vec::new();
    let mut left = budget.left();
    for entry in with_data {
        // A text has at least as many bytes as characters.
        let bytes = entry.step.data_bytes.unwrap_or(0);
        match left.checked_sub(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            Some(rest) => {
                left = rest;
                selected.push(entry);
            }
            None => budget.mark_truncated(),
        }
    }
    for page in selected.chunks_mut(count(PAGE_SIZE)) {
        let ids: Vec<StepId> = page.iter().map(|entry| entry.step.id).collect();
        for (entry, data) in page.iter_mut().zip(tx.data(&ids).await?) {
            entry.data = data.filter(|data| budget.spend(json_cost(data)));
        }
    }
    Ok(())
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
