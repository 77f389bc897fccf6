//! Changes to the step list: insert, remove, reorder. Orders stay 1-based and without gaps.
//!
//! A change renumbers the steps and rebuilds the indexes.

use std::collections::BTreeMap;

use super::index::Index;
use super::{ApplyErrorKind, Plan};
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
        let mut ids = std::collections::BTreeSet::new();
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
        let pending = self.step(id).map(Step::status) == Some(StepStatus::Pending);
        if !pending || !self.index.dependents(id).is_empty() {
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

    fn renumber(&mut self) {
        for (order, step) in (1u32..).zip(&mut self.steps) {
            step.order = order;
        }
        self.index = Index::new(&self.steps, &self.branches);
    }
}
