//! Modification of plans.

use std::time::Duration;

use onward_core::branch::Action;
use onward_core::command::{Modification, StepRef, StepSpec, StepUpdate};
use onward_core::step::{FailReason, Undelivered};
use onward_core::{Code, PlanStatus, StepId, StepStatus};

use super::plan::Branch;
use super::{Context, Plan, Step, resolve};

impl Plan {
    pub(crate) fn modify(
        &mut self,
        modification: &Modification,
        resume: bool,
        ctx: &Context<'_>,
    ) -> Result<(), Code> {
        if let Modification::SetBudget { budget, by_person } = modification {
            self.set_budget(*budget, *by_person, ctx)?;
            self.complete_if_done(ctx);
            return Ok(());
        }
        match self.status {
            PlanStatus::Planning | PlanStatus::Executing => {}
            PlanStatus::Stalled if resume => self.resume("person", ctx),
            _ if self.is_stopped_by_budget(ctx.now) => return Err(Code::BudgetExhausted),
            _ => return Err(Code::PlanNotModifiable),
        }
        let record = |plan: &mut Plan, action, step| {
            plan.record("plan_modified", Some(action), step, ctx);
        };
        let find = |plan: &Plan, step: &StepId| plan.index_of(*step).ok_or(Code::StepNotFound);
        match modification {
            Modification::AddSteps {
                steps,
                insert_after,
            } => {
                self.add_steps(steps, *insert_after)?;
                record(self, "add_steps", None);
            }
            Modification::RemoveStep { step } => {
                let index = find(self, step)?;
                if self.steps[index].status != StepStatus::Pending
                    || self.is_referenced(*step)
                    || self.steps[index].spec.supersedes.is_some()
                    || self.steps.len() == 1
                {
                    return Err(Code::StepNotRemovable);
                }
                self.steps.remove(index);
                self.branches.retain(|branch| branch.after != *step);
                record(self, "remove_step", Some(*step));
            }
            Modification::ReorderSteps { steps } => {
                self.reorder(steps)?;
                record(self, "reorder_steps", None);
            }
            Modification::UpdateInstructions { step, instructions } => {
                if instructions.trim().is_empty() {
                    return Err(Code::InvalidInput);
                }
                let index = find(self, step)?;
                let changed = &mut self.steps[index];
                changed.spec.instructions.clone_from(instructions);
                if changed.status == StepStatus::InProgress {
                    let undelivered = &mut changed.current_claim_mut().undelivered;
                    undelivered.get_or_insert(Undelivered::Instructions);
                }
                record(self, "update_step_instructions", Some(*step));
            }
            Modification::RenameStep {
                step,
                title,
                instructions,
            } => {
                let index = find(self, step)?;
                let spec = &mut self.steps[index].spec;
                spec.title = Some(title.clone());
                spec.instructions.clone_from(instructions);
                record(self, "rename_step", Some(*step));
            }
            Modification::UpdateStep { step, update } => {
                let is_blank = |text: &Option<String>| {
                    text.as_ref().is_some_and(|text| text.trim().is_empty())
                };
                if is_blank(&update.instructions)
                    || update.stall_threshold == Some(Some(Duration::ZERO))
                {
                    return Err(Code::InvalidInput);
                }
                let index = find(self, step)?;
                self.update_step(index, update)?;
                record(self, "update_step", Some(*step));
            }
            Modification::UpdatePlan { update } => {
                if update.priority.is_some_and(|priority| priority > 9) {
                    return Err(Code::InvalidInput);
                }
                if let Some(key) = &update.project_key {
                    self.routing.project_key = (!key.is_empty()).then(|| key.clone());
                }
                if let Some(labels) = &update.labels {
                    self.routing.labels.clone_from(labels);
                }
                self.routing.priority = update.priority.unwrap_or(self.routing.priority);
                record(self, "update_plan", None);
            }
            Modification::SetBudget { .. } => {}
            Modification::FailStep { step, reason } => {
                let index = find(self, step)?;
                match self.steps[index].status {
                    StepStatus::Pending | StepStatus::InProgress => {}
                    _ => return Err(Code::IllegalTransition),
                }
                record(self, "fail_step", Some(*step));
                self.fail_step(index, FailReason::Manual(reason.clone()), ctx);
            }
            // The engine redoes a failed step first; the agents do not skip steps.
            Modification::SkipStep { .. } => return Err(Code::IllegalTransition),
            Modification::RequeueStep { step } => {
                let index = find(self, step)?;
                if self.steps[index].status != StepStatus::InProgress {
                    return Err(Code::IllegalTransition);
                }
                record(self, "requeue_step", Some(*step));
                self.requeue(index, "by_hand", ctx);
            }
            Modification::RedoStep {
                step,
                reason,
                cascade,
                ids,
            } => {
                if reason.trim().is_empty() {
                    return Err(Code::InvalidInput);
                }
                let index = find(self, step)?;
                let redone = &self.steps[index];
                if !redone.has_ended() || redone.superseded_by.is_some() {
                    return Err(Code::IllegalTransition);
                }
                self.redo(*step, reason, *cascade, ids)?;
                record(self, "redo_step", Some(*step));
            }
            Modification::AddBranch { branch } => {
                resolve::check_branch(branch)?;
                let resolved =
                    resolve::branch(&self.step_ids(), branch, self.on_dependency_failure)?;
                let after = self.index_of(resolved.after).expect("step exists");
                if self.steps[after].has_ended() {
                    return Err(Code::IllegalTransition);
                }
                record(self, "add_branch", Some(resolved.after));
                self.branches.push(resolved);
            }
        }
        self.complete_if_done(ctx);
        Ok(())
    }

    fn update_step(&mut self, index: usize, update: &StepUpdate) -> Result<(), Code> {
        if self.steps[index].status != StepStatus::Pending {
            return Err(Code::IllegalTransition);
        }
        let mut spec = self.steps[index].spec.clone();
        if let Some(refs) = &update.depends_on {
            spec.depends_on = Vec::new();
            for needed in refs {
                let found = match needed {
                    StepRef::Id(id) => self.index_of(*id),
                    StepRef::Order(order) => order
                        .checked_sub(1)
                        .and_then(|index| usize::try_from(index).ok()),
                };
                let found = found.and_then(|index| self.steps.get(index));
                let id = found.ok_or(Code::InvalidDependency)?.id();
                if !spec.depends_on.contains(&id) {
                    spec.depends_on.push(id);
                }
            }
            // Everything that the step needs, directly or indirectly.
            let mut needed = spec.depends_on.clone();
            let mut next = 0;
            while let Some(id) = needed.get(next) {
                let index = self.index_of(*id).expect("dependencies exist");
                for id in self.steps[index].spec.depends_on.clone() {
                    if !needed.contains(&id) {
                        needed.push(id);
                    }
                }
                next += 1;
            }
            if needed.contains(&spec.id) {
                return Err(Code::InvalidDependency);
            }
        }
        spec.step_type = update.step_type.unwrap_or(spec.step_type);
        if let Some(title) = &update.title {
            spec.title = (!title.is_empty()).then(|| title.clone());
        }
        if let Some(instructions) = &update.instructions {
            spec.instructions.clone_from(instructions);
        }
        spec.stall_threshold = update.stall_threshold.unwrap_or(spec.stall_threshold);
        let policy = update.on_dependency_failure;
        spec.on_dependency_failure = policy.unwrap_or(spec.on_dependency_failure);
        spec.priority = update.priority.unwrap_or(spec.priority);
        if let Some(labels) = &update.labels {
            spec.labels.clone_from(labels);
        }
        self.steps[index].spec = spec;
        Ok(())
    }

    /// Adds a successor after the step and, with `cascade`, after every completed step that depends
    /// on it through completed steps.
    fn redo(
        &mut self,
        step: StepId,
        reason: &str,
        cascade: bool,
        ids: &[StepId],
    ) -> Result<(), Code> {
        let mut redone = vec![step];
        loop {
            let more = self.steps.iter().find(|other| {
                other.status == StepStatus::Completed
                    && other.superseded_by.is_none()
                    && !redone.contains(&other.id())
                    && other
                        .spec
                        .depends_on
                        .iter()
                        .any(|needed| redone.contains(needed))
            });
            match more {
                Some(more) if cascade => redone.push(more.id()),
                Some(_) | None => break,
            }
        }
        if redone.len() > ids.len() {
            return Err(Code::LimitExceeded);
        }
        redone.sort_by_key(|id| self.index_of(*id));
        let existing = self.step_ids();
        for (old, new) in redone.iter().zip(ids) {
            let index = self.index_of(*old).expect("step exists");
            self.steps[index].superseded_by = Some(*new);
            let mut spec = self.steps[index].spec.clone();
            spec.id = *new;
            spec.supersedes = Some(*old);
            spec.instructions += &format!("\n\n---\n\nRedo reason: {reason}");
            self.steps.insert(index + 1, Step::new(spec));
            for branch in self
                .branches
                .iter_mut()
                .filter(|branch| branch.after == *old)
            {
                let is_spent = match &branch.action {
                    Action::AddSteps { steps } => {
                        steps.iter().any(|added| existing.contains(&added.id))
                    }
                    _ => false,
                };
                if !is_spent {
                    branch.after = *new;
                }
            }
        }
        let pairs: Vec<(StepId, StepId)> = redone.into_iter().zip(ids.iter().copied()).collect();
        let successor = |id: &StepId| pairs.iter().find(|(old, _)| old == id).map(|(_, new)| *new);
        let earlier: Vec<(StepId, StepId)> = (self.steps.iter())
            .filter_map(|step| Some((step.id(), step.superseded_by?)))
            .collect();
        for step in self
            .steps
            .iter_mut()
            .filter(|step| step.status == StepStatus::Pending)
        {
            let is_successor = pairs.iter().any(|(_, new)| *new == step.id());
            let mut needed: Vec<StepId> = Vec::new();
            for id in &step.spec.depends_on {
                let mut id = successor(id).unwrap_or(*id);
                // A successor depends on the latest version of each step.
                while let Some((_, next)) =
                    earlier.iter().find(|(old, _)| is_successor && *old == id)
                {
                    id = *next;
                }
                if !is_successor || !needed.contains(&id) {
                    needed.push(id);
                }
            }
            step.spec.depends_on = needed;
        }
        for branch in &mut self.branches {
            if earlier.iter().any(|(old, _)| *old == branch.after) {
                continue;
            }
            match &mut branch.action {
                Action::Continue | Action::Fail { .. } => {}
                Action::SkipTo { target } => *target = successor(target).unwrap_or(*target),
                Action::AddSteps { steps } => {
                    let mut changed = steps.to_vec();
                    for needed in changed.iter_mut().flat_map(|step| &mut step.depends_on) {
                        *needed = successor(needed).unwrap_or(*needed);
                    }
                    *steps = changed.into();
                }
            }
        }
        Ok(())
    }

    fn step_ids(&self) -> Vec<StepId> {
        self.steps.iter().map(Step::id).collect()
    }

    fn add_steps(&mut self, specs: &[StepSpec], insert_after: Option<u32>) -> Result<(), Code> {
        resolve::check(specs)?;
        let preceding = insert_after.unwrap_or(self.total());
        if preceding > self.total() {
            return Err(Code::InvalidStepReference);
        }
        let index = usize::try_from(preceding).expect("count fits usize");
        let resolved = resolve::steps(&self.step_ids(), specs, self.on_dependency_failure)?;
        self.steps
            .splice(index..index, resolved.into_iter().map(Step::new));
        Ok(())
    }

    /// Whether a step depends on it, or a branch skips to it or adds steps that depend on it.
    fn is_referenced(&self, step: StepId) -> bool {
        let references = |branch: &Branch| match &branch.action {
            Action::Continue | Action::Fail { .. } => false,
            Action::SkipTo { target } => *target == step,
            Action::AddSteps { steps } => {
                steps.iter().any(|added| added.depends_on.contains(&step))
            }
        };
        let depends = |other: &Step| other.spec.depends_on.contains(&step);
        let mut others = self.branches.iter().filter(|branch| branch.after != step);
        self.steps.iter().any(depends) || others.any(references)
    }

    fn reorder(&mut self, ids: &[StepId]) -> Result<(), Code> {
        let mut sorted = ids.to_vec();
        let mut own = self.step_ids();
        sorted.sort();
        own.sort();
        if sorted != own {
            return Err(Code::IncompleteStepList);
        }
        let position = |step: &Step| ids.iter().position(|id| *id == step.id());
        self.steps.sort_by_key(|step| position(step));
        Ok(())
    }
}
