//! `request_user_review`: pauses a step until the user decides.
//!
//! The review is recorded first. If the client supports elicitation forms, `mcp/form.rs` then shows
//! one, and [`ReviewOutcome::decided`](crate::wire::review::ReviewOutcome) is the response.

use onward_core::policy::{
    MAX_CLAIM_TOKEN, MAX_QUESTIONS, MAX_REMARK, MAX_SESSION_ID, MAX_SUMMARY,
};
use onward_engine::Caller;
use onward_engine::step::ReviewRequest;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::review::ReviewOutcome;

pub(crate) const NAME: &str = "request_user_review";

pub(super) struct RequestUserReview;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Step id
    step_id: String,
    /// What to review; becomes the step's result on approval
    #[schemars(length(min = 1, max = MAX_SUMMARY))]
    summary: String,
    /// Questions for the user
    #[schemars(length(max = MAX_QUESTIONS), inner(length(min = 1, max = MAX_REMARK)))]
    questions: Option<Vec<String>>,
    /// From `get_next_step`
    #[schemars(length(min = 1, max = MAX_CLAIM_TOKEN))]
    claim_token: Option<String>,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
}

impl Spec for RequestUserReview {
    type Input = Input;
    type Output = ReviewOutcome;

    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Request user review";
    const DESCRIPTION: &'static str = "Pause a claimed step for user review. Tell the user, then \
        call `submit_user_decision`, or `get_next_step` if they decided elsewhere.";
    const HINTS: Hints = Hints::ADDITIVE;
    const IN_CORE: bool = true;
    const UNLISTED: &'static [&'static str] = &["/properties/sessionId"];
    const STORES_REJECTED_INPUT: bool = true;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<ReviewOutcome, ToolError> {
        let work = || json!({ "summary": input.summary, "questions": input.questions });
        let step = params::step_id_or_store(context, caller, &input.step_id, work).await?;
        let request = ReviewRequest {
            step,
            summary: input.summary,
            questions: input.questions.unwrap_or_default(),
            token: params::claim_token(input.claim_token),
            session: params::session_id(input.session_id),
        };
        let requested = context.engine.request_review(caller, request).await?;
        Ok(ReviewOutcome::pending(
            &requested,
            context.base_url.as_deref(),
        ))
    }
}
