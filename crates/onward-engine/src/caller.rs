//! The caller of a command: tenant, name, role and permission checks.

use std::sync::Arc;

use onward_core::Role;
use onward_core::id::SessionId;
use onward_core::role::{Forbidden, Permission, TenantPolicy};
use onward_store::Author;

use crate::sanitize;

/// The tenant of a single-user installation.
pub const LOCAL: &str = "local";

/// The authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The tenant whose data the caller accesses.
    pub tenant: Arc<str>,
    /// Name in the audit trail: a user, a token or a component of Onward.
    pub name: String,
    /// The caller's role.
    pub role: Role,
    /// Tenant settings that extend the roles.
    pub policy: TenantPolicy,
}

impl Caller {
    /// The user of this machine, with all permissions.
    pub fn local(name: impl Into<String>) -> Self {
        Self {
            tenant: LOCAL.into(),
            name: name.into(),
            role: Role::Owner,
            policy: TenantPolicy::LOCAL,
        }
    }

    /// A component of Onward that acts on behalf of a tenant, such as the sweep.
    pub(crate) fn internal(tenant: Arc<str>, component: &str) -> Self {
        Self {
            tenant,
            name: component.to_owned(),
            role: Role::Owner,
            policy: TenantPolicy::default(),
        }
    }

    /// Checks a permission.
    pub fn allow(&self, permission: Permission) -> Result<(), Forbidden> {
        self.role.allow(permission, self.policy)
    }

    /// The caller's name, sanitized for storage.
    pub(crate) fn actor(&self) -> String {
        let mut name = self.name.clone();
        sanitize::text(&mut name);
        name
    }

    pub(crate) fn author(&self, session: Option<&SessionId>) -> Author {
        Author {
            name: self.actor(),
            session: session.cloned(),
        }
    }
}
