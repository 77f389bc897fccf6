//! Changes of plans and sessions, as published to subscribers.

use std::sync::Arc;

use onward_core::PlanId;

/// A change made by a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The tenant that owns the subject; empty for [`Subject::All`].
    pub tenant: Arc<str>,
    /// The plan or session that changed.
    pub what: Subject,
    /// The audit sequence number of a changed plan, if this process committed the change. A
    /// subscriber that also polls recognizes the change by it.
    pub seq: Option<u64>,
}

impl Changed {
    /// Changes were missed, so subscribers must read everything again.
    pub(crate) fn all() -> Self {
        Self {
            tenant: "".into(),
            what: Subject::All,
            seq: None,
        }
    }
}

/// A subject whose changes are published.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A plan.
    Plan(PlanId),
    /// An agent session, with its turns and tool calls.
    Session(Arc<str>),
    /// All plans and sessions of all tenants: the connection for notifications was lost, and
    /// changes by other servers may not have been reported. Subscribers read everything again.
    All,
}
