//! Budgets in words, for the terminal, pages, exports and notifications.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::budget::{Budget, BudgetState, Exhausted, Limit};

use super::format;

fn amount(limit: Limit, amount: u64) -> String {
    match limit {
        Limit::Duration => format::duration(Duration::from_millis(amount)),
        Limit::Steps | Limit::Attempts | Limit::Tokens => amount.to_string(),
    }
}

const fn noun(limit: Limit) -> &'static str {
    match limit {
        Limit::Steps => "steps",
        Limit::Attempts => "attempts",
        Limit::Duration => "since the first claim",
        Limit::Tokens => "tokens",
    }
}

/// All limits with their use: "3 of 10 steps, unknown of 50000 tokens".
pub(crate) fn use_text(budget: &BudgetState, now: Timestamp) -> String {
    let parts = Limit::ALL.iter().filter_map(|limit| {
        let max = amount(*limit, budget.limits.max(*limit)?);
        let used = budget.used(*limit, now);
        let used = used.map_or("unknown".to_owned(), |used| amount(*limit, used));
        Some(format!("{used} of {max} {}", noun(*limit)))
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// All limits without their use: "10 steps, 2 h since the first claim".
pub(crate) fn limits_text(budget: &Budget) -> String {
    let parts = Limit::ALL.iter().filter_map(|limit| {
        let max = amount(*limit, budget.max(*limit)?);
        Some(format!("{max} {}", noun(*limit)))
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// The exhausted limit: "3 of 3 attempts".
pub(crate) fn exhausted_text(exhausted: &Exhausted) -> String {
    let Exhausted { limit, max, used } = *exhausted;
    let (used, max) = (amount(limit, used), amount(limit, max));
    format!("{used} of {max} {}", noun(limit))
}
