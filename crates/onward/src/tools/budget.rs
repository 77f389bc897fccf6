//! The budget field of `create_research_plan` and `modify_plan`.

use onward_core::budget::{Budget as CoreBudget, Limit};
use schemars::JsonSchema;
use serde::Deserialize;

const MAX_STEPS: u64 = Limit::Steps.upper_bound();
const MAX_ATTEMPTS: u64 = Limit::Attempts.upper_bound();
const MAX_DURATION_MS: u64 = Limit::Duration.upper_bound();
const MAX_TOKENS: u64 = Limit::Tokens.upper_bound();

/// The limits of a plan.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Budget {
    /// Steps assigned
    #[schemars(range(min = 1, max = MAX_STEPS))]
    max_steps: Option<u64>,
    /// Claims of all steps
    #[schemars(range(min = 1, max = MAX_ATTEMPTS))]
    max_attempts: Option<u64>,
    /// Since the first claim
    #[schemars(range(min = 1, max = MAX_DURATION_MS))]
    max_duration_ms: Option<u64>,
    /// Of sessions on its steps
    #[schemars(range(min = 1, max = MAX_TOKENS))]
    max_tokens: Option<u64>,
}

impl Budget {
    /// The limits. `None` if none is set.
    pub(super) fn limits(self) -> Option<CoreBudget> {
        let limits = CoreBudget {
            max_steps: self.max_steps,
            max_attempts: self.max_attempts,
            max_duration_ms: self.max_duration_ms,
            max_tokens: self.max_tokens,
        };
        (limits != CoreBudget::default()).then_some(limits)
    }
}
