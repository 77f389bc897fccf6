//! A taken branch and its effect.

use onward_core::branch::Effect;
use onward_core::id::BranchId;
use schemars::JsonSchema;
use serde::Serialize;

use super::excerpt::{self, is_zero};

/// The branch that applied, and its effect.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TakenBranch {
    branch_id: String,
    action: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped_step_ids: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    skipped_step_ids_omitted: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    added_step_ids: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    added_step_ids_omitted: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl TakenBranch {
    pub(super) fn new((branch, effect): &(BranchId, Effect)) -> Self {
        let mut taken = Self {
            branch_id: branch.to_string(),
            action: effect.action(),
            skipped_step_ids: Vec::new(),
            skipped_step_ids_omitted: 0,
            added_step_ids: Vec::new(),
            added_step_ids_omitted: 0,
            reason: None,
        };
        match effect {
            Effect::Continued => {}
            Effect::Skipped { steps, .. } => {
                (taken.skipped_step_ids, taken.skipped_step_ids_omitted) =
                    excerpt::ids(steps.iter());
            }
            Effect::Added { steps } => {
                (taken.added_step_ids, taken.added_step_ids_omitted) =
                    excerpt::ids(steps.iter().map(|step| &step.id));
            }
            Effect::FailedPlan { reason } => taken.reason.clone_from(reason),
            Effect::Nothing { reason: why } => taken.reason = Some(why.to_string()),
        }
        taken
    }
}
