//! Who asks, for which tenant, in which role. Every use case asks here whether they may.

use std::sync::Arc;

use onward_core::Role;
use onward_core::id::SessionId;
use onward_core::role::{Forbidden, Permission, TenantPolicy};
use onward_store::Author;

use crate::clean;

/// The tenant of a machine that has one person.
pub const LOCAL: &str = "local";

/// Who asks.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Whose data.
    pub tenant: Arc<str>,
    /// Who, in the audit trail: a user, a token, a part of Onward.
    pub name: String,
    /// In which role.
    pub role: Role,
    /// What the tenant allows beyond the roles.
    pub policy: TenantPolicy,
}

impl Caller {
    /// The user of this machine, who may do everything.
    pub fn local(name: impl Into<String>) -> Self {
        Self {
            tenant: LOCAL.into(),
            name: name.into(),
            role: Role::Owner,
            policy: TenantPolicy::LOCAL,
        }
    }

    /// A part of Onward that acts by itself for a tenant, such as the sweep.
    pub(crate) fn onward(tenant: Arc<str>, part: &str) -> Self {
        Self {
            tenant,
            name: part.to_owned(),
            role: Role::Owner,
            policy: TenantPolicy::default(),
        }
    }

    /// Whether they may.
    pub fn allow(&self, permission: Permission) -> Result<(), Forbidden> {
        self.role.allow(permission, self.policy)
    }

    /// Their name as it is stored.
    pub(crate) fn signature(&self) -> String {
        let mut name = self.name.clone();
        clean::text(&mut name);
        name
    }

    pub(crate) fn author(&self, session: Option<&SessionId>) -> Author {
        Author {
            name: self.signature(),
            session: session.cloned(),
        }
    }
}
