//! Fair shares of a pool: one caller holds at most a quarter, one tenant at most three quarters, so
//! that no caller can exclude the others.

use super::auth::Principal;

/// The parts of one caller, of one tenant and of all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shares {
    pub(super) caller: usize,
    pub(super) tenant: usize,
    pub(super) all: usize,
}

impl Shares {
    pub(super) fn new(all: usize) -> Self {
        Self {
            caller: (all / 4).max(1),
            tenant: (all / 4).saturating_mul(3).max(1),
            all,
        }
    }

    /// The shares of this caller. The user of an open server has no share, only the whole.
    pub(super) fn of(self, principal: &Principal) -> Self {
        if principal.is_local_user {
            Self {
                caller: self.all,
                tenant: self.all,
                all: self.all,
            }
        } else {
            self
        }
    }
}

/// The share that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exhausted {
    Caller,
    Tenant,
    All,
}

impl Exhausted {
    /// A phrase that completes "too many … ".
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Exhausted::Caller => "of this caller",
            Exhausted::Tenant => "of this tenant",
            Exhausted::All => "on this server",
        }
    }
}
