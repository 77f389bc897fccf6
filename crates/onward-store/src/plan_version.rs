//! Versions of the plans that a transaction has read or written.

use onward_core::PlanId;

use crate::row::plan::StoredVersion;

/// Version and state of each plan, as last read or written in a transaction.
#[derive(Default)]
pub(crate) struct Versions {
    known: Vec<(PlanId, StoredVersion)>,
    /// Whether a plan was read in two versions.
    changed: bool,
}

impl Versions {
    /// Records a plan that was read; the commit is checked against it. If the transaction has
    /// already read another version, its result is invalid.
    pub(crate) fn record_read(&mut self, plan: PlanId, known: StoredVersion) {
        self.changed |= (self.get(plan)).is_some_and(|was| !was.is_version_of(&known));
        self.record_write(plan, known);
    }

    /// Records a plan that was written.
    pub(crate) fn record_write(&mut self, plan: PlanId, known: StoredVersion) {
        self.known.retain(|(id, _)| *id != plan);
        self.known.push((plan, known));
    }

    /// Version and state of a plan.
    pub(crate) fn get(&self, plan: PlanId) -> Option<&StoredVersion> {
        let known = self.known.iter().find(|(id, _)| *id == plan);
        known.map(|(_, known)| known)
    }

    /// The plan that was read or written first since it was last read or written.
    pub(crate) fn first(&self) -> Option<PlanId> {
        self.known.first().map(|(id, _)| *id)
    }

    /// Whether a plan was read in two versions.
    pub(crate) fn have_changed(&self) -> bool {
        self.changed
    }
}
