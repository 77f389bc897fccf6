//! Who may do what: one table of role × permission, and nothing else.
//!
//! Whose role it is, and how that was proven, is known further up. An agent does not decide a review,
//! for it would approve itself, unless its tenant allows it: the `local` tenant does, since there the
//! agent passes on what its person said.

use std::fmt;
use std::str::FromStr;

use crate::policy::{UnknownWord, from_word};

/// What somebody is in a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// May do everything.
    Owner,
    /// Looks after members, tokens and plans.
    Admin,
    /// Makes and works on plans and reviews; deletes nothing.
    Member,
    /// A program: all tools, but it does not decide a review.
    Agent,
    /// Reads.
    Viewer,
}

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// See plans, sessions, artifacts, the audit trail; search; export.
    Read,
    /// Create a plan, or import one.
    CreatePlan,
    /// Take on steps, submit results, report progress, ask for review, modify, store research, give
    /// feedback.
    Work,
    /// Record what the guard sees: sessions, turns, calls.
    Record,
    /// Decide a review.
    DecideReview,
    /// Act on a plan as a person does: resume it, hand a step out again, close a call by hand.
    Intervene,
    /// Abandon a plan.
    AbandonPlan,
    /// Delete a plan with its audit trail.
    DeletePlan,
    /// See, create and revoke tokens.
    ManageTokens,
    /// See, add and remove members, and give them roles.
    ManageMembers,
    /// Change thresholds, retention, notifications, and whether agents decide reviews.
    ManageTenant,
}

/// What a role may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the role `{role}` may not {permission}")]
pub struct Forbidden {
    /// Whose role.
    pub role: Role,
    /// What was asked.
    pub permission: Permission,
}

/// What a tenant allows beyond the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TenantPolicy {
    /// Agents may decide reviews.
    pub agents_decide_reviews: bool,
}

impl TenantPolicy {
    /// The tenant `local`: one person, whose agent passes on what they said.
    pub const LOCAL: TenantPolicy = TenantPolicy {
        agents_decide_reviews: true,
    };
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 5] = [
        Role::Owner,
        Role::Admin,
        Role::Member,
        Role::Agent,
        Role::Viewer,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Admin => "admin",
            Role::Member => "member",
            Role::Agent => "agent",
            Role::Viewer => "viewer",
        }
    }

    /// The table.
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

    /// The table, as an answer.
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
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &Self::ALL, Self::as_str)
    }
}

impl Permission {
    /// Every permission.
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

    /// What it is to have it, so that "may not …" reads well.
    pub const fn as_str(self) -> &'static str {
        match self {
            Permission::Read => "read",
            Permission::CreatePlan => "create plans",
            Permission::Work => "work on plans",
            Permission::Record => "record sessions",
            Permission::DecideReview => "decide reviews",
            Permission::Intervene => "intervene in plans",
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
