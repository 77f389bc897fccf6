//! Permissions: one table of role × permission.
//!
//! Authentication is done in other crates. By default, agents cannot decide reviews, because an
//! agent would approve its own work. A tenant can allow it. The `local` tenant does, because there
//! the agent submits the user's decision.

use std::fmt;
use std::str::FromStr;

use crate::policy::{UnknownVariant, parse_variant};

/// A role in a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// All permissions.
    Owner,
    /// Manages members, tokens and plans.
    Admin,
    /// Creates and works on plans, decides reviews; deletes nothing.
    Member,
    /// A program: all tools, but no review decisions.
    Agent,
    /// Read access.
    Viewer,
}

/// A permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Read plans, sessions, artifacts and the audit trail; search; export.
    Read,
    /// Create or import a plan.
    CreatePlan,
    /// Claim steps, submit results, report progress, request reviews, modify plans, store
    /// artifacts, give feedback.
    Work,
    /// Record sessions, turns and tool calls.
    Record,
    /// Decide a review.
    DecideReview,
    /// Act as a user: resume a plan, change it on the dashboard, close a call, switch loop control.
    Intervene,
    /// Abandon a plan.
    AbandonPlan,
    /// Delete a plan with its audit trail.
    DeletePlan,
    /// List, create and revoke tokens.
    ManageTokens,
    /// List, add and remove members, and assign roles.
    ManageMembers,
    /// Change thresholds, retention, notifications and whether agents decide reviews.
    ManageTenant,
}

/// A missing permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the role `{role}` cannot {permission}")]
pub struct Forbidden {
    /// The caller's role.
    pub role: Role,
    /// The required permission.
    pub permission: Permission,
}

/// Exceptions from the table, set by the tenant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TenantPolicy {
    /// Agents may decide reviews.
    pub agents_decide_reviews: bool,
}

impl TenantPolicy {
    /// The `local` tenant: one user, whose agent passes on their decisions.
    pub const LOCAL: TenantPolicy = TenantPolicy {
        agents_decide_reviews: true,
    };
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 5] = [
        Role::Owner,
        Role::Admin,
        Role::Member,
        Role::Agent,
        Role::Viewer,
    ];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Admin => "admin",
            Role::Member => "member",
            Role::Agent => "agent",
            Role::Viewer => "viewer",
        }
    }

    /// Whether the role has the permission.
    pub const fn may(self, permission: Permission, tenant: TenantPolicy) -> bool {
        use Permission as P;
        match self {
            Role::Owner => match permission {
                P::Read | P::CreatePlan | P::Work | P::Record | P::DecideReview | P::Intervene => {
                    true
                }
                P::AbandonPlan | P::DeletePlan => true,
                P::ManageTokens | P::ManageMembers | P::ManageTenant => true,
            },
            Role::Admin => match permission {
                P::Read | P::CreatePlan | P::Work | P::Record | P::DecideReview | P::Intervene => {
                    true
                }
                P::AbandonPlan | P::ManageTokens | P::ManageMembers => true,
                P::DeletePlan | P::ManageTenant => false,
            },
            Role::Member => match permission {
                P::Read | P::CreatePlan | P::Work | P::Record | P::DecideReview | P::Intervene => {
                    true
                }
                P::AbandonPlan => true,
                P::DeletePlan | P::ManageTokens | P::ManageMembers | P::ManageTenant => false,
            },
            Role::Agent => match permission {
                P::Read | P::CreatePlan | P::Work | P::Record => true,
                P::DecideReview => tenant.agents_decide_reviews,
                P::Intervene | P::AbandonPlan | P::DeletePlan => false,
                P::ManageTokens | P::ManageMembers | P::ManageTenant => false,
            },
            Role::Viewer => match permission {
                P::Read => true,
                P::CreatePlan | P::Work | P::Record | P::DecideReview | P::Intervene => false,
                P::AbandonPlan | P::DeletePlan => false,
                P::ManageTokens | P::ManageMembers | P::ManageTenant => false,
            },
        }
    }

    /// Returns an error if the role does not have the permission.
    pub const fn allow(
        self,
        permission: Permission,
        tenant: TenantPolicy,
    ) -> Result<(), Forbidden> {
        if self.may(permission, tenant) {
            Ok(())
        } else {
            Err(Forbidden {
                role: self,
                permission,
            })
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

impl Permission {
    /// All permissions.
    pub const ALL: [Permission; 11] = [
        Permission::Read,
        Permission::CreatePlan,
        Permission::Work,
        Permission::Record,
        Permission::DecideReview,
        Permission::Intervene,
        Permission::AbandonPlan,
        Permission::DeletePlan,
        Permission::ManageTokens,
        Permission::ManageMembers,
        Permission::ManageTenant,
    ];

    /// A verb phrase that completes "cannot …".
    pub const fn as_str(self) -> &'static str {
        match self {
            Permission::Read => "read",
            Permission::CreatePlan => "create plans",
            Permission::Work => "work on plans",
            Permission::Record => "record sessions",
            Permission::DecideReview => "decide reviews",
            Permission::Intervene => "change plans",
            Permission::AbandonPlan => "abandon plans",
            Permission::DeletePlan => "delete plans",
            Permission::ManageTokens => "manage tokens",
            Permission::ManageMembers => "manage members",
            Permission::ManageTenant => "manage the tenant",
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
