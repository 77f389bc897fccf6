//! A plan comes into being, by the model: once per key.

use std::sync::Arc;

use onward_core::Code;
use onward_core::command::{ActionSpec, CreatePlan, StepSpec};
use onward_core::id::{BranchId, PlanId, StepId};
use onward_core::plan::Brief;

use super::{Model, Moment, Plan, Step, shape};
use crate::said::Said;

impl Model {
    pub(crate) fn create(
        &mut self,
        tenant: &Arc<str>,
        command: &CreatePlan,
        key: Option<&str>,
        at: &Moment<'_>,
    ) -> Said {
        let plan = match made(command, at) {
            Ok(plan) => plan,
            Err(code) => return Said::Refused(code, None),
        };
        if let Some(key) = key {
            let name = (Arc::clone(tenant), key.to_owned());
            let content = content(command);
            match self.keys.get(&name) {
                Some((known, before)) if *before == content => return Said::Created(*known),
                Some(_) => return Said::Refused(Code::Conflict, None),
                None => {
                    self.keys.insert(name, (plan.id, content));
                }
            }
        }
        let id = plan.id;
        self.plans.insert((Arc::clone(tenant), id), plan);
        Said::Created(id)
    }

    /// A key goes with its plan.
    pub(crate) fn forget_keys(&mut self, tenant: &Arc<str>, plan: PlanId) {
        self.keys
            .retain(|(of, _), (known, _)| of != tenant || *known != plan);
    }
}

fn made(command: &CreatePlan, at: &Moment<'_>) -> Result<Plan, Code> {
    let threshold = command.stall_threshold;
    if command.name.trim().is_empty() || threshold.is_some_and(|span| span.is_zero()) {
        return Err(Code::InvalidInput);
    }
    shape::check(&command.steps)?;
    for branch in &command.branches {
        shape::check_branch(branch)?;
    }
    let steps = shape::steps(&[], 0, &command.steps)?;
    let list: Vec<StepId> = steps.iter().map(|step| step.id).collect();
    let mut branches = Vec::new();
    for branch in &command.branches {
        branches.push(shape::branch(&list, branch)?);
    }
    let brief = Brief {
        name: command.name.clone(),
        research_question: command.research_question.clone(),
        design_rationale: command.design_rationale.clone(),
        output_formatting_notes: command.output_formatting_notes.clone(),
    };
    let steps = steps.into_iter().map(Step::new).collect();
    let mut plan = Plan::new(command.plan, brief, steps, branches, at.now);
    plan.threshold = threshold;
    plan.on_stall = command.on_stall;
    plan.last_session = command.session.clone();
    plan.note("plan_modified", Some("created"), None, at);
    Ok(plan)
}

/// What it is made from, but for the ids.
fn content(command: &CreatePlan) -> String {
    let mut bare = command.clone();
    bare.plan = PlanId::from_u128(0);
    bare.steps.iter_mut().for_each(nameless);
    for branch in &mut bare.branches {
        branch.id = BranchId::from_u128(0);
        if let ActionSpec::AddSteps(steps) = &mut branch.action {
            steps.iter_mut().for_each(nameless);
        }
    }
    format!("{bare:?}")
}

fn nameless(step: &mut StepSpec) {
    step.id = StepId::from_u128(0);
}
