//! Changes of the list itself: insert, remove, reorder. Orders stay 1-based and gapless.
//!
//! These touch the steps behind the place of the change, since their orders shift; the indexes are
//! made anew.

use std::collections::BTreeMap;

use super::index::Index;
use super::{Misfit, Plan};
use crate::id::StepId;
use crate::step::{NewStep, Step, StepStatus};
use crate::time::Timestamp;

impl Plan {
    pub(super) fn insert(
        &mut self,
        after: u32,
        specs: &[NewStep],
        at: Timestamp,
    ) -> Result<(), Misfit> {
        let place = usize::try_from(after).map_err(|_| Misfit::List)?;
        let mut ids = std::collections::BTreeSet::new();
        let fresh = specs
            .iter()
            .all(|spec| self.step(spec.id).is_none() && ids.insert(spec.id));
        if place > self.steps.len() || !fresh {
            return Err(Misfit::List);
        }
        let steps = specs.iter().map(|spec| Step::new(spec.clone(), 0, at));
        self.steps.splice(place..place, steps);
        self.renumber();
        Ok(())
    }

    pub(super) fn remove(&mut self, id: StepId) -> Result<(), Misfit> {
        let place = self.index.place(id).ok_or(Misfit::UnknownStep(id))?;
        let pending = self.step(id).map(Step::status) == Some(StepStatus::Pending);
        if !pending || !self.index.dependents(id).is_empty() {
            return Err(Misfit::List);
        }
        self.steps.remove(place);
        self.branches.remove(&id);
        self.renumber();
        Ok(())
    }

    pub(super) fn reorder(&mut self, ids: &[StepId]) -> Result<(), Misfit> {
        let places: BTreeMap<StepId, usize> = ids.iter().copied().zip(0..).collect();
        let whole = places.len() == self.steps.len()
            && ids.len() == self.steps.len()
            && self
                .steps
                .iter()
                .all(|step| places.contains_key(&step.id()));
        if !whole {
            return Err(Misfit::List);
        }
        self.steps
            .sort_by_key(|step| places.get(&step.id()).copied());
        self.renumber();
        Ok(())
    }

    fn renumber(&mut self) {
        for (order, step) in (1u32..).zip(&mut self.steps) {
            step.order = order;
        }
        self.index = Index::of(&self.steps, &self.branches);
    }
}
