//! The caller of a command: tenant, name, role and permission checks.

use std::sync::Arc;

use onward_core::Role;
use onward_core::id::SessionId;
use onward_core::role::{Forbidden, Permission, TenantPolicy};
use onward_store::{Author, RequestOrigin};

use crate::connection::Connection;
use crate::sanitize;

/// The tenant of a single-user installation.
pub const LOCAL: &str = "local";

/// Maximum length of each part of an origin.
const MAX_ORIGIN_CHARS: usize = 300;

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
    /// The agent behind the request, as far as it is known.
    pub origin: RequestOrigin,
    /// The connection of an agent that has started this process as its server.
    pub connection: Option<Connection>,
}

impl Caller {
    /// The user of this machine, with all permissions.
    pub fn local(name: impl Into<String>) -> Self {
        Self {
            tenant: LOCAL.into(),
            name: name.into(),
            role: Role::Owner,
            policy: TenantPolicy::LOCAL,
            origin: RequestOrigin::default(),
            connection: None,
        }
    }

    /// A component of Onward that acts on behalf of a tenant, such as the sweep.
    pub(crate) fn internal(tenant: Arc<str>, component: &str) -> Self {
        Self {
            tenant,
            name: component.to_owned(),
            role: Role::Owner,
            policy: TenantPolicy::default(),
            origin: RequestOrigin::default(),
            connection: None,
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

    /// The agent behind the request, sanitized for storage.
    pub(crate) fn origin(&self) -> RequestOrigin {
        let mut origin = self.origin.clone();
        for text in [&mut origin.client, &mut origin.host, &mut origin.directory] {
            sanitize::optional_text(text);
            if let Some(text) = text {
                *text = text.chars().take(MAX_ORIGIN_CHARS).collect();
            }
        }
        origin
    }

    pub(crate) fn author(&self, session: Option<&SessionId>) -> Author {
        Author {
            name: self.actor(),
            session: session.cloned(),
        }
    }
}
