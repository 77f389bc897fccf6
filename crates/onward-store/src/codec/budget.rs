//! Mirrors of a budget: its limits, its use and the exhausted limit. Keys are in alphabetical order.

use onward_core::Timestamp;
use onward_core::budget::{Budget, BudgetState, Exhausted, Limit, Used};
use serde::{Deserialize, Serialize};

use super::scalar::Text;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BudgetJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
}

impl From<Budget> for BudgetJson {
    fn from(budget: Budget) -> Self {
        Self {
            max_attempts: budget.max_attempts,
            max_duration_ms: budget.max_duration_ms,
            max_steps: budget.max_steps,
            max_tokens: budget.max_tokens,
        }
    }
}

impl From<BudgetJson> for Budget {
    fn from(json: BudgetJson) -> Self {
        Self {
            max_steps: json.max_steps,
            max_attempts: json.max_attempts,
            max_duration_ms: json.max_duration_ms,
            max_tokens: json.max_tokens,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UsedJson {
    attempts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_claim_at: Option<Text<Timestamp>>,
    steps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
}

impl From<Used> for UsedJson {
    fn from(used: Used) -> Self {
        Self {
            attempts: used.attempts,
            first_claim_at: used.first_claim_at.map(Text),
            steps: used.steps,
            tokens: used.tokens,
        }
    }
}

impl From<UsedJson> for Used {
    fn from(json: UsedJson) -> Self {
        Self {
            steps: json.steps,
            attempts: json.attempts,
            first_claim_at: json.first_claim_at.map(|at| at.0),
            tokens: json.tokens,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExhaustedJson {
    limit: Text<Limit>,
    max: u64,
    used: u64,
}

impl From<Exhausted> for ExhaustedJson {
    fn from(exhausted: Exhausted) -> Self {
        let Exhausted { limit, max, used } = exhausted;
        let limit = Text(limit);
        Self { limit, max, used }
    }
}

impl From<ExhaustedJson> for Exhausted {
    fn from(json: ExhaustedJson) -> Self {
        Self {
            limit: json.limit.0,
            max: json.max,
            used: json.used,
        }
    }
}

/// Mirror of a budget in the row of its plan.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BudgetStateJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    exhausted: Option<ExhaustedJson>,
    limits: BudgetJson,
    used: UsedJson,
}

impl From<BudgetState> for BudgetStateJson {
    fn from(budget: BudgetState) -> Self {
        Self {
            exhausted: budget.exhausted.map(Into::into),
            limits: budget.limits.into(),
            used: budget.used.into(),
        }
    }
}

impl From<BudgetStateJson> for BudgetState {
    fn from(json: BudgetStateJson) -> Self {
        Self {
            limits: json.limits.into(),
            used: json.used.into(),
            exhausted: json.exhausted.map(Into::into),
        }
    }
}
