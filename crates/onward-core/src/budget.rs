//! The budget of a plan: limits on the steps and attempts that are assigned, on the time since the
//! first claim, and on the tokens of its sessions.
//!
//! An exhausted budget stops only the assignment of steps. Work that is already assigned continues,
//! and its results are accepted. Once no step is in progress, the plan is marked as stalled.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::policy::{MAX_MAX_ATTEMPTS, MAX_STEPS, MAX_THRESHOLD, UnknownVariant, parse_variant};
use crate::time::Timestamp;

/// The upper bound of `maxTokens`, which every JSON parser reads exactly.
pub const MAX_TOKENS: u64 = 1_000_000_000_000_000;

/// A limit of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Different steps that were assigned.
    Steps,
    /// Claims of all steps.
    Attempts,
    /// Milliseconds since the first claim.
    Duration,
    /// Tokens of the sessions while they worked on the plan's steps.
    Tokens,
}

impl Limit {
    /// All limits.
    pub const ALL: [Limit; 4] = [
        Limit::Steps,
        Limit::Attempts,
        Limit::Duration,
        Limit::Tokens,
    ];

    /// The name of the field in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Limit::Steps => "maxSteps",
            Limit::Attempts => "maxAttempts",
            Limit::Duration => "maxDurationMs",
            Limit::Tokens => "maxTokens",
        }
    }

    /// The highest value.
    pub const fn upper_bound(self) -> u64 {
        match self {
            Limit::Steps => MAX_STEPS as u64,
            Limit::Attempts => MAX_STEPS as u64 * MAX_MAX_ATTEMPTS as u64,
            Limit::Duration => MAX_THRESHOLD.as_secs() * 1000,
            Limit::Tokens => MAX_TOKENS,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Limit {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// The limits of a plan. At least one is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    /// Different steps that may be assigned.
    pub max_steps: Option<u64>,
    /// Claims of all steps.
    pub max_attempts: Option<u64>,
    /// Milliseconds since the first claim.
    pub max_duration_ms: Option<u64>,
    /// Tokens of the sessions while they work on the plan's steps.
    pub max_tokens: Option<u64>,
}

impl Budget {
    /// The value of a limit.
    pub const fn max(&self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::Steps => self.max_steps,
            Limit::Attempts => self.max_attempts,
            Limit::Duration => self.max_duration_ms,
            Limit::Tokens => self.max_tokens,
        }
    }

    /// Sets the value of a limit.
    pub const fn set(&mut self, limit: Limit, max: Option<u64>) {
        match limit {
            Limit::Steps => self.max_steps = max,
            Limit::Attempts => self.max_attempts = max,
            Limit::Duration => self.max_duration_ms = max,
            Limit::Tokens => self.max_tokens = max,
        }
    }

    /// Whether `new` allows more than this budget: a limit is higher or missing.
    pub fn is_raised_by(&self, new: Option<&Budget>) -> bool {
        Limit::ALL.iter().any(|limit| {
            let new = new.and_then(|new| new.max(*limit));
            self.max(*limit)
                .is_some_and(|old| new.is_none_or(|new| new > old))
        })
    }
}

/// What a plan has used of its budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Different steps that were assigned.
    pub steps: u64,
    /// Claims of all steps.
    pub attempts: u64,
    /// The first claim.
    pub first_claim_at: Option<Timestamp>,
    /// The tokens when they were last compared with the limit. `None` if no count is known.
    pub tokens: Option<u64>,
}

impl Used {
    /// Counts a claim.
    pub(crate) fn count(&mut self, attempt: u32, at: Timestamp) {
        self.attempts = self.attempts.saturating_add(1);
        if attempt == 1 {
            self.steps = self.steps.saturating_add(1);
        }
        self.first_claim_at.get_or_insert(at);
    }
}

/// A limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted {
    /// The limit.
    pub limit: Limit,
    /// Its value.
    pub max: u64,
    /// The amount used.
    pub used: u64,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, max, used } = self;
        write!(f, "`{limit}` is {max}, used {used}")
    }
}

/// The budget of a plan and its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetState {
    /// The limits.
    pub limits: Budget,
    /// The use.
    pub used: Used,
    /// The limit that was recorded as exhausted. No step is assigned until the budget changes.
    pub exhausted: Option<Exhausted>,
}

impl BudgetState {
    /// An unused budget.
    pub fn new(limits: Budget) -> Self {
        Self {
            limits,
            used: Used::default(),
            exhausted: None,
        }
    }

    /// The amount that counts towards a limit. `None` if it is unknown.
    pub fn used(&self, limit: Limit, now: Timestamp) -> Option<u64> {
        match limit {
            Limit::Steps => Some(self.used.steps),
            Limit::Attempts => Some(self.used.attempts),
            Limit::Duration => Some(self.used.first_claim_at.map_or(0, |first| {
                u64::try_from(now.since(first).as_millis()).unwrap_or(u64::MAX)
            })),
            Limit::Tokens => self.used.tokens,
        }
    }

    /// The exhausted limit, whether or not it is recorded.
    pub fn exhausted(&self, now: Timestamp) -> Option<Exhausted> {
        let reached = |limit: &Limit| {
            let (max, used) = (self.limits.max(*limit)?, self.used(*limit, now)?);
            let limit = *limit;
            (used >= max).then_some(Exhausted { limit, max, used })
        };
        self.exhausted
            .or_else(|| Limit::ALL.iter().find_map(reached))
    }

    /// When `maxDurationMs` is reached, unless a limit is already recorded as exhausted.
    pub fn ends_at(&self) -> Option<Timestamp> {
        let max = Duration::from_millis(self.limits.max_duration_ms?);
        let ends_at = self.used.first_claim_at?.checked_add(max);
        ends_at.filter(|_| self.exhausted.is_none())
    }
}
