//! Gates of steps, and the evidence of results.

use onward_core::step::Evidence as CoreEvidence;
use schemars::JsonSchema;
use serde::Serialize;

/// Evidence that a result meets a criterion.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Evidence {
    criterion: String,
    kind: &'static str,
    value: String,
    outcome: String,
}

impl Evidence {
    pub(crate) fn list(evidence: &[CoreEvidence]) -> Vec<Self> {
        let entries = evidence.iter().map(|entry| Self {
            criterion: entry.criterion.clone(),
            kind: entry.kind.as_str(),
            value: entry.value.clone(),
            outcome: entry.outcome.clone(),
        });
        entries.collect()
    }
}
