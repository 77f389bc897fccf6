//! Creation of plans, with idempotency keys.

use std::sync::Arc;

use onward_core::command::{ActionSpec, CreatePlan, StepSpec};
use onward_core::id::{BranchId, PlanId, ReviewId, StepId};
use onward_core::plan::Brief;
use onward_core::step::{Review, ReviewBy, ReviewScope};
use onward_core::{Code, PlanStatus, StepStatus};

use super::{Context, Model, Plan, Step, resolve};
use crate::response::Response;

impl Model {
    pub(crate) fn create(
        &mut self,
        tenant: &Arc<str>,
        command: &CreatePlan,
        key: Option<&str>,
        ctx: &Context<'_>,
    ) -> Response {
        let plan = match build_plan(command, ctx) {
            Ok(plan) => plan,
            Err(code) => return Response::Rejected(code, None),
        };
        if let Some(key) = key {
            let key = (Arc::clone(tenant), key.to_owned());
            let content = content(command);
            match self.keys.get(&key) {
                Some((existing, stored)) if *stored == content => {
                    return Response::Created(*existing);
                }
                Some(_) => return Response::Rejected(Code::Conflict, None),
                None => {
                    self.keys.insert(key, (plan.id, content));
                }
            }
        }
        let id = plan.id;
        self.plans.insert((Arc::clone(tenant), id), plan);
        Response::Created(id)
    }

    /// Removes the idempotency keys of a deleted plan.
    pub(crate) fn remove_keys(&mut self, tenant: &Arc<str>, plan: PlanId) {
        self.keys
            .retain(|(owner, _), (keyed, _)| owner != tenant || *keyed != plan);
    }
}

fn build_plan(command: &CreatePlan, ctx: &Context<'_>) -> Result<Plan, Code> {
    let threshold = command.stall_threshold;
    if command.name.trim().is_empty() || threshold.is_some_and(|span| span.is_zero()) {
        return Err(Code::InvalidInput);
    }
    resolve::check(&command.steps)?;
    for branch in &command.branches {
        resolve::check_branch(branch)?;
    }
    let steps = resolve::steps(&[], &command.steps, command.on_dependency_failure)?;
    let list: Vec<StepId> = steps.iter().map(|step| step.id).collect();
    let mut branches = Vec::new();
    for branch in &command.branches {
        branches.push(resolve::branch(
            &list,
            branch,
            command.on_dependency_failure,
        )?);
    }
    let brief = Brief {
        name: command.name.clone(),
        research_question: command.research_question.clone(),
        design_rationale: command.design_rationale.clone(),
        output_formatting_notes: command.output_formatting_notes.clone(),
        forked_from: None,
    };
    let steps = steps.into_iter().map(Step::new).collect();
    let mut plan = Plan::new(command.plan, brief, steps, branches, ctx.now);
    plan.threshold = threshold;
    plan.on_stall = command.on_stall;
    plan.on_dependency_failure = command.on_dependency_failure;
    plan.routing.clone_from(&command.routing);
    plan.budget = command.budget;
    plan.last_session = command.session.clone();
    plan.record("plan_modified", Some("created"), None, ctx);
    if let Some(review) = command.approval {
        plan.await_approval(review, ctx);
    }
    Ok(plan)
}

impl Plan {
    /// The first step waits for the approval of the plan.
    fn await_approval(&mut self, review: ReviewId, ctx: &Context<'_>) {
        let mut summary = format!("{}\n\nSteps:\n\n", self.brief.research_question);
        for (index, step) in self.steps.iter().enumerate() {
            let title = step.spec.title.as_ref().unwrap_or(&step.spec.instructions);
            summary.push_str(&format!("{}. {title}\n", index + 1));
        }
        let first = &mut self.steps[0];
        first.status = StepStatus::AwaitingInput;
        first.review = Some(Review {
            id: review,
            summary,
            questions: Vec::new(),
            requested_at: ctx.now,
            scope: ReviewScope::Start,
            options: Default::default(),
            by: Some(ReviewBy::Person),
            session: ctx.session.cloned(),
            result: None,
        });
        let id = first.id();
        self.record("user_reviewed", Some("review_requested"), Some(id), ctx);
        self.stopped_by.push(id);
        self.set_status(PlanStatus::AwaitingReview, ctx);
    }
}

/// The content of a creation request without ids.
fn content(command: &CreatePlan) -> String {
    let mut content = command.clone();
    content.plan = PlanId::from_u128(0);
    content.approval = content.approval.map(|_| ReviewId::from_u128(0));
    content.steps.iter_mut().for_each(clear_id);
    for branch in &mut content.branches {
        branch.id = BranchId::from_u128(0);
        if let ActionSpec::AddSteps(steps) = &mut branch.action {
            steps.iter_mut().for_each(clear_id);
        }
    }
    format!("{content:?}")
}

fn clear_id(step: &mut StepSpec) {
    step.id = StepId::from_u128(0);
}
