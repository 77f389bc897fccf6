//! Context of a step. Results of its dependencies are loaded first, with summaries and data, so
//! they are never truncated before the rest.

use std::collections::BTreeSet;
use std::sync::Arc;

use onward_core::apply::StepDecision;
use onward_core::event::ReviewAction;
use onward_core::step::Gates;
use onward_core::{Event, PlanId, Step, StepId, StepStatus, StepType};
use onward_store::{
    Briefs, Contexts, Excerpt, Facts, OutputExcerpt, Plans, Sheet, Tx, UserFeedback,
};

use super::budget::{Budget, cost, json_cost};
use super::excerpts::{
    ENTRY_COST, PAGE_SIZE, StepWithResult, add_data, add_evidence, artifacts, may_fit, outputs,
};
use crate::error::Error;
use crate::plan::dependency::{Dependency, dependencies};

/// Cost of the response apart from its texts and lists.
const BASE_COST: usize = 650;
/// Cost of an id in a list.
const ID_COST: usize = 39;
/// Maximum number of reviews of the step, and of feedback entries on the plan.
const MAX_FEEDBACK: u32 = 10;

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
    /// The outcomes of its dependencies.
    pub dependencies: Vec<Dependency>,
    /// Artifacts: first of this step, then of the plan, each newest first.
    pub artifacts: Vec<Excerpt>,
    /// Outputs of the plan so far, newest first.
    pub outputs: Vec<OutputExcerpt>,
    /// Feedback: first on this step, then on the plan, each newest first.
    pub feedback: Vec<String>,
    /// The last decision on the step, or on the steps before it that concern it.
    pub decision: Option<StepDecision>,
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
    /// The gates of its result: complete or absent.
    pub gates: Option<Arc<Gates>>,
}

pub(super) async fn read(tx: &mut Tx, id: StepId, max_chars: usize) -> Result<StepContext, Error> {
    let Some((sheet, step)) = Plans(tx).sheet_of_step(id).await? else {
        return Err(Error::StepNotFound {
            step: id.to_string(),
            kept: None,
        });
    };
    let plan = sheet.head.id;
    let mut budget = Budget::new(max_chars.saturating_sub(BASE_COST));
    let spec_needs = step.spec.depends_on.clone();
    let needed: BTreeSet<StepId> = spec_needs.iter().copied().collect();
    let has_feedback = may_have_feedback(&step);
    let decision = Facts(tx).surroundings(plan, &step).await?.decision;
    let order = step.order;
    let (step, name, research_question) = step_details(sheet, step, &mut budget);

    let decision = decision.filter(|decision| budget.spend(decision_cost(decision)));
    let needs = |below| Briefs::CompletedNeeded(id, below);
    let mut results = results(tx, needs, u32::MAX, &BTreeSet::new(), &mut budget).await?;
    add_evidence(tx, results.iter_mut(), &mut budget).await?;
    add_data(tx, results.iter_mut(), &mut budget).await?;

    let mut share = budget.share(4);
    let mut dependencies = dependencies(tx, &spec_needs).await?;
    dependencies.retain_mut(|dependency| {
        let outcome = dependency.reason.as_mut();
        let mut none = String::new();
        let outcome = outcome.or(dependency.result_summary.as_mut());
        share.entry(ENTRY_COST, outcome.unwrap_or(&mut none))
    });
    budget.return_share(share);

    let mut share = budget.share(4);
    let feedback = feedback(tx, plan, id, has_feedback, &mut share).await?;
    budget.return_share(share);
    let mut share = budget.share(4);
    let artifacts = artifacts(tx, plan, Some(id), &mut share).await?;
    budget.return_share(share);
    let mut share = budget.share(8);
    let outputs = outputs(tx, plan, &mut share).await?;
    budget.return_share(share);

    let before = |below| Briefs::CompletedBelow(plan, below);
    let mut others = self::results(tx, before, order, &needed, &mut budget).await?;
    add_evidence(tx, others.iter_mut(), &mut budget).await?;
    add_data(tx, others.iter_mut(), &mut budget).await?;
    results.extend(others);
    Ok(StepContext {
        step,
        plan,
        name,
        research_question,
        results,
        dependencies,
        artifacts,
        outputs,
        feedback,
        decision,
        truncated: budget.is_truncated(),
    })
}

/// The step, and the name and question of its plan. They are truncated only if they exceed the
/// budget on their own.
fn step_details(sheet: Sheet, step: Step, budget: &mut Budget) -> (StepDetails, String, String) {
    let (mut name, mut question) = (sheet.brief.name, sheet.brief.research_question);
    let (status, attempt) = (step.status(), step.attempt());
    let (id, order, mut spec) = (step.id(), step.order, step.spec);
    budget.text(&mut name, usize::MAX);
    if let Some(title) = &mut spec.title {
        budget.text(title, usize::MAX);
    }
    let reserved = cost(&question).min(budget.left() / 4);
    budget.text(
        &mut spec.instructions,
        budget.left().saturating_sub(reserved),
    );
    budget.text(&mut question, usize::MAX);
    let fits = budget.left() / 10 / ID_COST;
    if spec.depends_on.len() > fits {
        spec.depends_on.truncate(fits);
        budget.mark_truncated();
    }
    budget.spend(spec.depends_on.len() * ID_COST);
    let gates = spec.gates.filter(|gates| budget.spend(gates_cost(gates)));
    let step = StepDetails {
        id,
        order,
        step_type: spec.step_type,
        title: spec.title,
        status,
        attempt,
        instructions: spec.instructions,
        depends_on: spec.depends_on,
        gates,
    };
    (step, name, question)
}

fn decision_cost(decision: &StepDecision) -> usize {
    let decided = &decision.decided;
    let answers = decided.answers.as_ref().map_or(0, json_cost);
    answers.saturating_add(decided.remark().map_or(0, cost)) + ENTRY_COST
}

fn gates_cost(gates: &Gates) -> usize {
    let criteria = gates.acceptance_criteria.iter().map(|text| cost(text) + 3);
    let schema = gates.result_schema.as_ref().map_or(0, json_cost);
    criteria.sum::<usize>().saturating_add(schema) + ENTRY_COST / 2
}

/// Results of completed steps, in descending order from `below`, within the budget.
async fn results(
    tx: &mut Tx,
    which: impl Fn(u32) -> Briefs,
    mut below: u32,
    excluded: &BTreeSet<StepId>,
    budget: &mut Budget,
) -> Result<Vec<StepWithResult>, Error> {
    let mut found = Vec::new();
    loop {
        let page = Contexts(tx).briefs(which(below), PAGE_SIZE).await?;
        let Some(last) = page.last() else {
            return Ok(found);
        };
        below = last.order;
        let page: Vec<_> = page
            .into_iter()
            .filter(|brief| !excluded.contains(&brief.id))
            .collect();
        let ids = may_fit(page.iter(), ENTRY_COST, budget.left());
        let all_fit = ids.len() == page.len();
        if !all_fit {
            budget.mark_truncated();
        }
        for (step, summary) in page.into_iter().zip(Contexts(tx).summaries(&ids).await?) {
            let mut summary = summary.unwrap_or_default();
            if !budget.entry(ENTRY_COST, &mut summary) {
                return Ok(found);
            }
            found.push(StepWithResult {
                step,
                summary: Some(summary),
                data: None,
                evidence: Vec::new(),
            });
        }
        if !all_fit {
            return Ok(found);
        }
    }
}

/// Whether the step may have review feedback. A step that is still open has it in its instructions,
/// so for most steps the audit trail need not be searched.
fn may_have_feedback(step: &Step) -> bool {
    step.status().is_terminal() || step.has_feedback()
}

/// Feedback on the step, then on the plan.
async fn feedback(
    tx: &mut Tx,
    plan: PlanId,
    step: StepId,
    has_feedback: bool,
    budget: &mut Budget,
) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    if has_feedback {
        for entry in Contexts(tx).reviews_of(plan, step, MAX_FEEDBACK).await? {
            if let Event::UserReviewed {
                action: ReviewAction::Decided { feedback, .. },
                ..
            } = entry.event
            {
                all.extend(feedback);
            }
        }
    }
    let about_plan = UserFeedback(tx).feedback_of(plan, MAX_FEEDBACK).await?;
    all.extend(
        about_plan
            .into_iter()
            .filter_map(|feedback| feedback.comment),
    );
    let mut listed = Vec::new();
    for mut comment in all {
        if !budget.entry(3, &mut comment) {
            break;
        }
        listed.push(comment);
    }
    Ok(listed)
}
