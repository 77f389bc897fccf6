//! The response of `submit_feedback`.

use onward_core::id::FeedbackId;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FeedbackReceipt {
    feedback_id: String,
}

impl FeedbackReceipt {
    pub(crate) fn new(id: FeedbackId) -> Self {
        Self {
            feedback_id: id.to_string(),
        }
    }
}
