//! Changes to the step list: insert, remove, reorder. Orders stay 1-based and without gaps.
//!
//! A change renumbers the steps and rebuilds the indexes.

use std::collections::{BTreeMap, BTreeSet};

use super::index::Index;
use super::{ApplyErrorKind, Plan};
use crate::branch::Branch;
use crate::event::{Event, Successor};
use crate::id::StepId;
use crate::step::{NewStep, Step, StepStatus};
use crate::time::Timestamp;

impl Plan {
    pub(super) fn insert(
        &mut self,
        after: u32,
        specs: &[NewStep],
        at: Timestamp,
    ) -> Result<(), ApplyErrorKind> {
        let position = usize::try_from(after).map_err(|_| ApplyErrorKind::InvalidStepList)?;
        let mut ids = BTreeSet::new();
        let fresh = specs
            .iter()
            .all(|spec| self.step(spec.id).is_none() && ids.insert(spec.id));
        if position > self.steps.len() || !fresh {
            return Err(ApplyErrorKind::InvalidStepList);
        }
        let steps = specs.iter().map(|spec| Step::new(spec.clone(), 0, at));
        self.steps.splice(position..position, steps);
        self.renumber();
        Ok(())
    }

    pub(super) fn remove(&mut self, id: StepId) -> Result<(), ApplyErrorKind> {
        let position = self
            .index
            .position(id)
            .ok_or(ApplyErrorKind::UnknownStep(id))?;
        let removable = (self.step(id)).is_some_and(|step| {
            step.status() == StepStatus::Pending && step.spec.supersedes.is_none()
        });
        if !removable || !self.index.dependents(id).is_empty() {
            return Err(ApplyErrorKind::InvalidStepList);
        }
        self.steps.remove(position);
        self.branches.remove(&id);
        self.renumber();
        Ok(())
    }

    pub(super) fn reorder(&mut self, ids: &[StepId]) -> Result<(), ApplyErrorKind> {
        let positions: BTreeMap<StepId, usize> = ids.iter().copied().zip(0..).collect();
        let whole = positions.len() == self.steps.len()
            && ids.len() == self.steps.len()
            && self
                .steps
                .iter()
                .all(|step| positions.contains_key(&step.id()));
        if !whole {
            return Err(ApplyErrorKind::InvalidStepList);
        }
        self.steps
            .sort_by_key(|step| positions.get(&step.id()).copied());
        self.renumber();
        Ok(())
    }

    /// Replaces the definition of a pending step.
    pub(super) fn update_step(
        &mut self,
        spec: &NewStep,
        event: &Event,
        at: Timestamp,
    ) -> Result<(), ApplyErrorKind> {
        let is_known = |id: &StepId| *id != spec.id && self.step(*id).is_some();
        if !spec.depends_on.iter().all(is_known) {
            return Err(ApplyErrorKind::InvalidStepList);
        }
        self.change_step(spec.id, event, at)?;
        self.index = Index::new(&self.steps, &self.branches);
        Ok(())
    }

    /// Supersedes terminal steps. Each successor is inserted directly after its step. Pending steps
    /// and branches that refer to a superseded step then refer to its successor; a branch that stays
    /// after a superseded step is history and does not change.
    pub(super) fn redo(
        &mut self,
        successors: &[Successor],
        event: &Event,
        at: Timestamp,
    ) -> Result<(), ApplyErrorKind> {
        let mut new_ids = BTreeMap::new();
        for successor in successors {
            let superseded = self.step_at(successor.order).filter(|step| {
                successor.step.supersedes == Some(step.id())
                    && step.status() == successor.from
                    && step.status().is_terminal()
                    && step.superseded_by.is_none()
            });
            let id = superseded.ok_or(ApplyErrorKind::InvalidStepList)?.id();
            let is_new = self.step(successor.step.id).is_none();
            if !is_new || new_ids.insert(id, successor.step.id).is_some() {
                return Err(ApplyErrorKind::InvalidStepList);
            }
        }
        if new_ids.values().collect::<BTreeSet<_>>().len() != successors.len() {
            return Err(ApplyErrorKind::InvalidStepList);
        }
        for step in &mut self.steps {
            step.apply(event, at)?;
        }
        self.move_branches(successors);
        for branch in self.branches.values_mut().flatten() {
            let after = self.index.position(branch.after);
            let after = after.and_then(|position| self.steps.get(position));
            if after.is_none_or(|step| step.superseded_by.is_none())
                && let Some(redirected) = branch.redirected(&new_ids)
            {
                *branch = redirected;
            }
        }
        let mut steps = Vec::with_capacity(self.steps.len() + successors.len());
        let mut successors: BTreeMap<u32, &Successor> = (successors.iter())
            .map(|successor| (successor.order, successor))
            .collect();
        for step in std::mem::take(&mut self.steps) {
            let successor = successors.remove(&step.order);
            steps.push(step);
            steps.extend(successor.map(|successor| Step::new(successor.step.clone(), 0, at)));
        }
        self.steps = steps;
        self.renumber();
        Ok(())
    }

    fn move_branches(&mut self, successors: &[Successor]) {
        for successor in successors {
            let Some(superseded) = successor.step.supersedes else {
                continue;
            };
            let branches = self.branches.remove(&superseded).unwrap_or_default();
            let (mut moved, kept): (Vec<Branch>, Vec<Branch>) =
                (branches.into_iter()).partition(|branch| successor.branches.contains(&branch.id));
            for branch in &mut moved {
                branch.after = successor.step.id;
            }
            for (step, branches) in [(superseded, kept), (successor.step.id, moved)] {
                if !branches.is_empty() {
                    self.branches.insert(step, branches);
                }
            }
        }
    }

    fn renumber(&mut self) {
        for (order, step) in (1u32..).zip(&mut self.steps) {
            step.order = order;
        }
        self.index = Index::new(&self.steps, &self.branches);
    }
}
