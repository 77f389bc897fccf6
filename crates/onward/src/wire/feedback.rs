//! Feedback that is kept: the answer of `submit_feedback`.

use onward_core::id::FeedbackId;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Given {
    feedback_id: String,
}

impl Given {
    pub(crate) fn of(id: FeedbackId) -> Self {
        Self {
            feedback_id: id.to_string(),
        }
    }
}
