//! `submit_feedback`: records the user's feedback on a plan or one of its outputs.

use onward_core::policy::MAX_REMARK;
use onward_engine::Caller;
use onward_engine::feedback::NewFeedback;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::feedback::FeedbackReceipt;

pub(super) struct SubmitFeedback;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Plan id
    plan_id: String,
    /// 1 (poor) to 5 (excellent)
    #[schemars(range(min = 1, max = 5))]
    rating: Option<u32>,
    /// The user's words
    #[schemars(length(max = MAX_REMARK))]
    comment: Option<String>,
    /// Output of the plan that the feedback is about
    output_id: Option<String>,
}

impl Spec for SubmitFeedback {
    type Input = Input;
    type Output = FeedbackReceipt;

    const NAME: &'static str = "submit_feedback";
    const TITLE: &'static str = "Submit feedback";
    const DESCRIPTION: &'static str =
        "Record the user's feedback on a whole plan: a rating, a comment, or both.";
    const HINTS: Hints = Hints::ADDITIVE;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<FeedbackReceipt, ToolError> {
        let feedback = NewFeedback {
            plan: params::plan_id(&input.plan_id)?,
            rating: input.rating,
            comment: input.comment,
            output: input.output_id,
        };
        let id = context.engine.submit_feedback(caller, feedback).await?;
        Ok(FeedbackReceipt::new(id))
    }
}
