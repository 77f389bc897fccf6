//! Budgets and token counts in words, for the terminal and pages.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::budget::{Budget, BudgetState, Exhausted, Limit};
use onward_engine::{SessionUsage, UsageSource};

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

/// All limits with their use: "3 of 10 steps, unknown of 50000 tokens". `tokens` are those of the plan.
pub(crate) fn use_text(budget: &BudgetState, tokens: Option<u64>, now: Timestamp) -> String {
    let parts = Limit::ALL.iter().filter_map(|limit| {
        let max = amount(*limit, budget.limits.max(*limit)?);
        let used = match limit {
            Limit::Tokens => tokens,
            Limit::Steps | Limit::Attempts | Limit::Duration => budget.used(*limit, now),
        };
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

/// A number of tokens. An unknown one is not zero.
pub(crate) fn tokens_text(tokens: Option<u64>) -> String {
    tokens.map_or("unknown".to_owned(), |tokens| tokens.to_string())
}

/// The tokens of a session: "1200 (input 200, cache 900, output 100), from the proxy".
pub(crate) fn session_tokens(usage: Option<&SessionUsage>) -> String {
    let Some(usage) = usage else {
        return tokens_text(None);
    };
    let tokens = &usage.tokens;
    let source = match usage.source {
        UsageSource::Proxy => "the proxy",
        UsageSource::Transcript => "the transcript",
    };
    format!(
        "{} (input {}, cache written {}, cache read {}, output {}), from {source}",
        tokens.total(),
        tokens.input,
        tokens.cache_creation,
        tokens.cache_read,
        tokens.output
    )
}
