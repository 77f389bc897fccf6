//! `submit_user_decision`: records the user's decision on a step under review.

use onward_core::event::Decision as CoreDecision;
use onward_core::policy::{MAX_CLAIM_TOKEN, MAX_REMARK, MAX_SESSION_ID};
use onward_core::step::StepState;
use onward_core::{Code, StepId};
use onward_engine::step::ReviewDecision;
use onward_engine::{Caller, Error};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::review;

pub(super) struct SubmitUserDecision;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Step id
    step_id: String,
    decision: Decision,
    /// The user's comment; required for modify
    #[schemars(length(max = MAX_REMARK))]
    feedback: Option<String>,
    /// From `get_next_step`
    #[schemars(length(min = 1, max = MAX_CLAIM_TOKEN))]
    claim_token: Option<String>,
    /// Session id, for the audit trail
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
}

/// approve: complete the step; reject: fail the step and the plan; modify: redo the step with
/// `feedback`; skip: skip the step
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    Approve,
    Reject,
    Modify,
    Skip,
}

impl From<Decision> for CoreDecision {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Approve => CoreDecision::Approve,
            Decision::Reject => CoreDecision::Reject,
            Decision::Modify => CoreDecision::Modify,
            Decision::Skip => CoreDecision::Skip,
        }
    }
}

impl Spec for SubmitUserDecision {
    type Input = Input;
    type Output = review::DecisionOutcome;

    const NAME: &'static str = "submit_user_decision";
    const TITLE: &'static str = "Submit the user's review decision";
    const DESCRIPTION: &'static str = "Submit the user's decision, never your own, on a step under \
        review. Then call `get_next_step`.";
    const HINTS: Hints = Hints {
        read_only: false,
        // The same decision can be made again on a later review of the step.
        idempotent: false,
        destructive: true,
    };
    const IN_CORE: bool = true;
    const UNLISTED: &'static [&'static str] = &["/properties/sessionId", "/properties/claimToken"];

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<review::DecisionOutcome, ToolError> {
        let step = params::step_id(&input.step_id)?;
        let review = ReviewDecision {
            step,
            decision: input.decision.into(),
            feedback: input.feedback,
            token: params::claim_token(input.claim_token),
            session: params::session_id(input.session_id),
        };
        match context.engine.decide_review(caller, review).await {
            Ok(reviewed) => Ok(review::DecisionOutcome::new(&reviewed)),
            Err(error) if error.code() == Code::Forbidden => {
                Err(with_review_page(context, caller, step, error).await)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The error for a caller that may not decide, with the page where the user does.
async fn with_review_page(
    context: &ToolContext,
    caller: &Caller,
    step: StepId,
    forbidden: Error,
) -> ToolError {
    let mut error = ToolError::from(forbidden);
    let found = context.engine.step(caller, step).await;
    if let (Some(base), Ok((_, step))) = (&context.base_url, found)
        && let StepState::AwaitingInput { review, .. } = step.state
    {
        let url = review::url(base, &review.id.to_string());
        error.hint = format!("ask the user to decide the review: open {url}");
    }
    error
}
