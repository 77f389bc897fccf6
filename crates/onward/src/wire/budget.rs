//! The budget of a plan.

use onward_core::budget::{BudgetState, Exhausted as CoreExhausted};
use schemars::JsonSchema;
use serde::Serialize;

/// The limits of a plan and their use.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BudgetView {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    used: UsedView,
    /// No step is assigned until a person raises the limit
    #[serde(skip_serializing_if = "Option::is_none")]
    exhausted: Option<ExhaustedView>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UsedView {
    steps: u64,
    attempts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_claim_at: Option<String>,
    /// Omitted: unknown
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
}

/// A limit that is reached.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExhaustedView {
    /// `maxSteps`, `maxAttempts`, `maxDurationMs` or `maxTokens`
    limit: &'static str,
    max: u64,
    used: u64,
}

impl ExhaustedView {
    pub(crate) fn new(exhausted: &CoreExhausted) -> Self {
        Self {
            limit: exhausted.limit.as_str(),
            max: exhausted.max,
            used: exhausted.used,
        }
    }
}

impl BudgetView {
    /// `tokens` are those of the plan, if a count is known.
    pub(super) fn new(
        budget: &BudgetState,
        exhausted: Option<&CoreExhausted>,
        tokens: Option<u64>,
    ) -> Self {
        let (limits, used) = (&budget.limits, &budget.used);
        Self {
            max_steps: limits.max_steps,
            max_attempts: limits.max_attempts,
            max_duration_ms: limits.max_duration_ms,
            max_tokens: limits.max_tokens,
            used: UsedView {
                steps: used.steps,
                attempts: used.attempts,
                first_claim_at: used.first_claim_at.map(super::at),
                tokens,
            },
            exhausted: exhausted.map(ExhaustedView::new),
        }
    }
}
