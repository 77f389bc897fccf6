//! Forks a plan: creates a plan with the same steps that takes over the results before a given
//! step. The source does not change.
//!
//! - Completed steps before the given step are completed with the same results.
//! - Skipped steps before it are not copied. A dependency on one is already satisfied.
//! - The fork has the budget of its source. Steps whose results are taken over count as assigned.
//! - All other steps are pending. Superseded steps are never copied.
//!
//! A copied step has the branches of its source, unless its result was taken over or the branch has
//! already added its steps, which are copied like the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::approval;
use super::check::Check;
use super::draft::Draft;
use super::modify::{is_spent, last_successor};
use crate::apply::Plan;
use crate::branch::{Action, Branch};
use crate::command::ForkPlan;
use crate::event::{Change, Created, Event};
use crate::id::{BranchId, ClaimToken, StepId};
use crate::plan::{Brief, ForkedFrom, Origin, PlanHead};
use crate::policy::{MAX_NAME, MAX_QUESTION};
use crate::refusal::Refusal;
use crate::step::{Claim, NewStep, Step, StepResult, StepState, StepStatus};
use crate::time::Timestamp;

/// Sources of new ids and tokens.
pub struct NewIds<'a> {
    /// Ids for steps.
    pub step: &'a mut dyn FnMut() -> StepId,
    /// Ids for branches.
    pub branch: &'a mut dyn FnMut() -> BranchId,
    /// Tokens for the claims of the steps whose results are taken over.
    pub token: &'a mut dyn FnMut() -> ClaimToken,
}

/// Decides the command. The first event creates the plan.
pub fn decide(
    source: &Plan,
    command: &ForkPlan,
    ids: &mut NewIds<'_>,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    check(source, command)?;
    let copied: Vec<&Step> = (source.steps().iter())
        .filter(|step| is_copied(step, command.from_order))
        .collect();
    let new_ids: BTreeMap<StepId, StepId> = (copied.iter())
        .map(|step| (step.id(), (ids.step)()))
        .collect();
    let superseded_by: BTreeMap<StepId, Option<StepId>> = (source.steps().iter())
        .map(|step| (step.id(), step.superseded_by))
        .collect();
    let copies = Copies {
        source,
        from_order: command.from_order,
        new_ids,
        superseded_by,
    };
    let steps = copied.iter().filter_map(|step| copies.step(&step.spec));
    let created = Created {
        plan: command.plan,
        origin: Origin::Caller,
        brief: brief(source, command),
        steps: steps.collect(),
        branches: copies.branches(&copied, ids),
        stall_threshold: source.head().stall_threshold,
        on_stall: source.head().on_stall,
        on_dependency_failure: source.head().on_dependency_failure,
        session: command.session.clone(),
        routing: source.head().routing.clone(),
        budget: source.head().budget.map(|budget| budget.limits),
    };
    let mut draft = Draft::new(&PlanHead::new(&created), now);
    for step in &copied {
        let result = taken_over(step, command.from_order);
        let Some((id, result)) = copies.new_ids.get(&step.id()).zip(result) else {
            continue;
        };
        let claim = Claim {
            attempt: 1,
            token: (ids.token)(),
            session: None,
        };
        draft.push(Event::StepStarted { step: *id, claim })?;
        draft.push(Event::StepCompleted {
            step: *id,
            from: StepStatus::InProgress,
            result: Arc::clone(result),
            verdicts: Vec::new(),
            session: None,
        })?;
    }
    if let Some(review) = command.approval {
        let copies = copied.iter().zip(&created.steps);
        let open = copies.filter(|(step, _)| taken_over(step, command.from_order).is_none());
        let open = open.map(|(_, copy)| copy);
        approval::request(&mut draft, &created, open, review)?;
    }
    let rationale = created.brief.design_rationale.clone();
    let change = Change::Created(Box::new(created));
    let mut events = vec![Event::PlanModified { change, rationale }];
    events.extend(draft.into_events());
    Ok(events)
}

fn check(source: &Plan, command: &ForkPlan) -> Result<(), Refusal> {
    let mut check = Check::default();
    if let Some(name) = &command.name {
        check.text("name", name, MAX_NAME);
    }
    if let Some(question) = &command.research_question {
        check.text("researchQuestion", question, MAX_QUESTION);
    }
    check.remark("planDesignRationale", command.design_rationale.as_deref());
    check.finish()?;
    let last = source.head().counts.last_order();
    if command.from_order == 0 || command.from_order > last {
        return Err(Refusal::InvalidStepReference {
            path: "fromStepOrder".to_owned(),
            actual: format!("order {}", command.from_order),
            expected: format!("the order of a step of the plan `fromPlanId`, 1 to {last}"),
        });
    }
    Ok(())
}

fn brief(source: &Plan, command: &ForkPlan) -> Brief {
    let brief = source.brief();
    let name = command.name.as_ref().unwrap_or(&brief.name);
    let question = command.research_question.as_ref();
    let rationale = command.design_rationale.as_ref();
    Brief {
        name: name.clone(),
        research_question: question.unwrap_or(&brief.research_question).clone(),
        design_rationale: rationale.or(brief.design_rationale.as_ref()).cloned(),
        output_formatting_notes: brief.output_formatting_notes.clone(),
        forked_from: Some(ForkedFrom {
            plan: source.head().id,
            step_order: command.from_order,
        }),
    }
}

fn is_copied(step: &Step, from_order: u32) -> bool {
    let is_settled = step.order < from_order && step.status() == StepStatus::Skipped;
    step.superseded_by.is_none() && !is_settled
}

/// The result that the copy of a step takes over.
fn taken_over(step: &Step, from_order: u32) -> Option<&Arc<StepResult>> {
    match &step.state {
        StepState::Completed { result, .. } if step.order < from_order => Some(result),
        StepState::Pending { .. }
        | StepState::InProgress(_)
        | StepState::AwaitingInput { .. }
        | StepState::Completed { .. }
        | StepState::Skipped { .. }
        | StepState::Failed { .. } => None,
    }
}

/// The steps of the source and their copies.
struct Copies<'a> {
    source: &'a Plan,
    from_order: u32,
    new_ids: BTreeMap<StepId, StepId>,
    superseded_by: BTreeMap<StepId, Option<StepId>>,
}

impl Copies<'_> {
    /// The copy of a step, or of the step that redoes it.
    fn id(&self, id: StepId) -> Option<StepId> {
        let last = last_successor(&self.superseded_by, id);
        self.new_ids.get(&last).copied()
    }

    fn step(&self, spec: &NewStep) -> Option<NewStep> {
        let mut depends_on = Vec::with_capacity(spec.depends_on.len());
        for id in spec.depends_on.iter().filter_map(|id| self.id(*id)) {
            if !depends_on.contains(&id) {
                depends_on.push(id);
            }
        }
        Some(NewStep {
            id: self.id(spec.id)?,
            depends_on,
            supersedes: None,
            ..spec.clone()
        })
    }

    fn branches(&self, copied: &[&Step], ids: &mut NewIds<'_>) -> Vec<Branch> {
        let pending = copied.iter();
        let pending = pending.filter(|step| taken_over(step, self.from_order).is_none());
        let branches = pending.flat_map(|step| self.source.branches_after(step.id()));
        let open =
            branches.filter(|branch| !is_spent(branch, |added| self.source.step(added).is_some()));
        open.filter_map(|branch| self.branch(branch, ids)).collect()
    }

    /// The copy of a branch. `None` if its target is not copied.
    fn branch(&self, branch: &Branch, ids: &mut NewIds<'_>) -> Option<Branch> {
        let action = match &branch.action {
            Action::Continue | Action::Fail { .. } => branch.action.clone(),
            Action::SkipTo { target } => Action::SkipTo {
                target: self.id(*target)?,
            },
            Action::AddSteps { steps } => Action::AddSteps {
                steps: self.added(steps, ids).into(),
            },
        };
        Some(Branch {
            id: (ids.branch)(),
            after: self.id(branch.after)?,
            condition: branch.condition.clone(),
            action,
        })
    }

    /// Copies of the steps that a branch adds. They refer to each other and to steps of the plan.
    fn added(&self, steps: &[NewStep], ids: &mut NewIds<'_>) -> Vec<NewStep> {
        let own: BTreeMap<StepId, StepId> =
            (steps.iter()).map(|step| (step.id, (ids.step)())).collect();
        let copy = |step: &NewStep| {
            let needed = step.depends_on.iter();
            let needed = needed.filter_map(|id| own.get(id).copied().or_else(|| self.id(*id)));
            Some(NewStep {
                id: *own.get(&step.id)?,
                depends_on: needed.collect(),
                ..step.clone()
            })
        };
        steps.iter().filter_map(copy).collect()
    }
}
