//! Changing a plan's list, by the model.

use onward_core::branch::Action;
use onward_core::command::{Modification, StepSpec};
use onward_core::step::FailReason;
use onward_core::{Code, PlanStatus, StepId, StepStatus};

use super::plan::Branch;
use super::{Moment, Plan, Step, shape};

impl Plan {
    pub(crate) fn modify(
        &mut self,
        modification: &Modification,
        resume: bool,
        at: &Moment<'_>,
    ) -> Result<(), Code> {
        match self.status {
            PlanStatus::Planning | PlanStatus::Executing => {}
            PlanStatus::Stalled if resume => self.resume("person", at),
            _ => return Err(Code::PlanNotModifiable),
        }
        let noted = |plan: &mut Plan, action, step| {
            plan.note("plan_modified", Some(action), step, at);
        };
        let find = |plan: &Plan, step: &StepId| plan.place(*step).ok_or(Code::StepNotFound);
        match modification {
            Modification::AddSteps {
                steps,
                insert_after,
            } => {
                self.add_steps(steps, *insert_after)?;
                noted(self, "add_steps", None);
            }
            Modification::RemoveStep { step } => {
                let place = find(self, step)?;
                if self.steps[place].status != StepStatus::Pending || self.needs(*step) {
                    return Err(Code::StepNotRemovable);
                }
                self.steps.remove(place);
                self.branches.retain(|branch| branch.after != *step);
                noted(self, "remove_step", Some(*step));
            }
            Modification::ReorderSteps { steps } => {
                self.reorder(steps)?;
                noted(self, "reorder_steps", None);
            }
            Modification::UpdateInstructions { step, instructions } => {
                if instructions.trim().is_empty() {
                    return Err(Code::InvalidInput);
                }
                let place = find(self, step)?;
                self.steps[place].spec.instructions.clone_from(instructions);
                noted(self, "update_step_instructions", Some(*step));
            }
            Modification::FailStep { step, reason } => {
                let place = find(self, step)?;
                match self.steps[place].status {
                    StepStatus::Pending | StepStatus::InProgress => {}
                    _ => return Err(Code::IllegalTransition),
                }
                noted(self, "fail_step", Some(*step));
                self.fail_step(place, FailReason::ByHand(reason.clone()), at);
            }
            Modification::RequeueStep { step } => {
                let place = find(self, step)?;
                if self.steps[place].status != StepStatus::InProgress {
                    return Err(Code::IllegalTransition);
                }
                noted(self, "requeue_step", Some(*step));
                self.hand_back(place, "by_hand", at);
            }
            Modification::AddBranch { branch } => {
                shape::check_branch(branch)?;
                let made = shape::branch(&self.list(), branch)?;
                let after = self.place(made.after).expect("it was looked up");
                if self.steps[after].is_over() {
                    return Err(Code::IllegalTransition);
                }
                noted(self, "add_branch", Some(made.after));
                self.branches.push(made);
            }
        }
        self.settle(at);
        Ok(())
    }

    fn list(&self) -> Vec<StepId> {
        self.steps.iter().map(Step::id).collect()
    }

    fn add_steps(&mut self, specs: &[StepSpec], insert_after: Option<u32>) -> Result<(), Code> {
        shape::check(specs)?;
        let behind = insert_after.unwrap_or(self.total());
        if behind > self.total() {
            return Err(Code::InvalidStepReference);
        }
        let behind = usize::try_from(behind).expect("few steps");
        let made = shape::steps(&self.list(), behind, specs)?;
        self.steps
            .splice(behind..behind, made.into_iter().map(Step::new));
        Ok(())
    }

    /// Whether a step depends on it, or a branch leads to it or would add steps that depend on it.
    fn needs(&self, step: StepId) -> bool {
        let names = |branch: &Branch| match &branch.action {
            Action::Continue | Action::Fail { .. } => false,
            Action::SkipTo { target } => *target == step,
            Action::AddSteps { steps } => {
                steps.iter().any(|added| added.depends_on.contains(&step))
            }
        };
        let depends = |other: &Step| other.spec.depends_on.contains(&step);
        let mut others = self.branches.iter().filter(|branch| branch.after != step);
        self.steps.iter().any(depends) || others.any(names)
    }

    fn reorder(&mut self, ids: &[StepId]) -> Result<(), Code> {
        let mut sorted = ids.to_vec();
        let mut own = self.list();
        sorted.sort();
        own.sort();
        if sorted != own {
            return Err(Code::IncompleteStepList);
        }
        let place = |step: &Step| ids.iter().position(|id| *id == step.id());
        self.steps.sort_by_key(|step| place(step));
        Ok(())
    }
}
