//! `request_user_review`: pauses a step until the user decides.
//!
//! The review is recorded first. If the client supports elicitation forms, `mcp/form.rs` then shows
//! one, and [`ReviewOutcome::decided`](crate::wire::review::ReviewOutcome) is the response.

use std::sync::Arc;

use onward_core::Timestamp;
use onward_core::id::TaskId;
use onward_core::policy::{
    MAX_CLAIM_TOKEN, MAX_FIELDS, MAX_NAME, MAX_QUESTIONS, MAX_REMARK, MAX_SESSION_ID, MAX_SUMMARY,
    MAX_TIME,
};
use onward_core::step::{Deadline, OnDeadline, ReviewField, ReviewOptions, ReviewScope};
use onward_engine::Caller;
use onward_engine::step::ReviewRequest;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::params::MAX_THRESHOLD_MS;
use super::review_fields::Field;
use super::{Hints, RunFuture, Spec, ToolContext, ToolError, params};
use crate::wire::review::ReviewOutcome;

pub(crate) const NAME: &str = "request_user_review";

/// The request itself takes time, and a deadline must be in the future.
const MIN_REMIND_AFTER_MS: u64 = 1_000;

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
    /// Typed questions: {name, type: text|number|boolean|choice|choices, title?, options?: [{value,
    /// title?}], default?}. Answers: `result.review.answers`
    #[schemars(length(max = MAX_FIELDS))]
    fields: Option<Vec<Field>>,
    scope: Option<Scope>,
    /// Deadline of the decision, RFC 3339
    #[schemars(length(max = MAX_TIME))]
    due_at: Option<String>,
    /// Instead of `dueAt`: from now on
    #[schemars(range(min = MIN_REMIND_AFTER_MS, max = MAX_THRESHOLD_MS))]
    remind_after_ms: Option<u64>,
    on_deadline: Option<AtDeadline>,
    /// Member who should decide
    #[schemars(length(min = 1, max = MAX_NAME))]
    assignee: Option<String>,
    /// From `get_next_step`
    #[schemars(length(min = 1, max = MAX_CLAIM_TOKEN))]
    claim_token: Option<String>,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
}

/// plan (default): the plan waits; step: only this step and those that depend on it wait
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Scope {
    #[default]
    Plan,
    Step,
}

impl From<Scope> for ReviewScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Plan => ReviewScope::Plan,
            Scope::Step => ReviewScope::Step,
        }
    }
}

/// Without a decision: remind (default): notify again; approve: use the summary; skip: skip the step;
/// reject: fail the plan
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AtDeadline {
    Remind,
    Approve,
    Skip,
    Reject,
}

impl From<AtDeadline> for OnDeadline {
    fn from(action: AtDeadline) -> Self {
        match action {
            AtDeadline::Remind => OnDeadline::Remind,
            AtDeadline::Approve => OnDeadline::Approve,
            AtDeadline::Skip => OnDeadline::Skip,
            AtDeadline::Reject => OnDeadline::Reject,
        }
    }
}

/// The deadline of the decision.
fn deadline(input: &Input, now: Timestamp) -> Result<Option<Deadline>, ToolError> {
    let due_at = params::timestamp(input.due_at.clone(), "dueAt")?;
    let after = params::duration(input.remind_after_ms);
    let at = match (due_at, after) {
        (Some(_), Some(_)) => {
            let message = "cannot be combined with `dueAt`";
            return Err(ToolError::invalid("remindAfterMs", message));
        }
        (Some(at), None) => Some(at),
        (None, after) => after.and_then(|after| now.checked_add(after)),
    };
    let action = input.on_deadline.map(OnDeadline::from);
    match at {
        None if action.is_some() => {
            let message = "requires `dueAt` or `remindAfterMs`";
            Err(ToolError::invalid("onDeadline", message))
        }
        at => Ok(at.map(|at| Deadline {
            at,
            action: action.unwrap_or_default(),
        })),
    }
}

impl Spec for RequestUserReview {
    type Input = Input;
    type Output = ReviewOutcome;

    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Request a user review of a step";
    const DESCRIPTION: &'static str = "Pause a claimed step for user review. Tell the user, then \
        call `submit_user_decision`, or `get_next_step` if they decided elsewhere.";
    const HINTS: Hints = Hints::ADDITIVE;
    const IN_CORE: bool = true;
    // The description of `fields` has its properties, in fewer tokens.
    const UNLISTED: &'static [&'static str] = &[
        "/properties/sessionId",
        "/properties/fields/items/properties",
        "/properties/fields/items/required",
    ];
    const UNLISTED_IN_CORE: &'static [&'static str] = &[
        "/properties/scope",
        "/properties/fields",
        "/properties/dueAt",
        "/properties/remindAfterMs",
        "/properties/onDeadline",
        "/properties/assignee",
    ];
    const STORES_REJECTED_INPUT: bool = true;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<ReviewOutcome, ToolError> {
        let request = request(context, caller, input).await?;
        let requested = context.engine.request_review(caller, request).await?;
        Ok(ReviewOutcome::pending(
            &requested,
            &context.dashboard.review_links(),
        ))
    }
}

/// [`Spec::run`] that stores a task with the review.
pub(crate) fn run_as_task(
    context: ToolContext,
    caller: Caller,
    arguments: Arc<Value>,
    task: TaskId,
) -> RunFuture {
    Box::pin(async move {
        let input = super::deserialize(&arguments, false)?;
        let request = request(&context, &caller, input).await?;
        let requested = context
            .engine
            .request_review_as_task(&caller, request, NAME, task)
            .await?;
        let pending = ReviewOutcome::pending(&requested, &context.dashboard.review_links());
        serde_json::to_value(pending).map_err(|_| ToolError::internal(NAME))
    })
}

async fn request(
    context: &ToolContext,
    caller: &Caller,
    input: Input,
) -> Result<ReviewRequest, ToolError> {
    let work = || json!({ "summary": input.summary, "questions": input.questions });
    let step = params::step_id_or_store(context, caller, &input.step_id, work).await?;
    let deadline = deadline(&input, context.engine.now())?;
    let fields = input.fields.unwrap_or_default().into_iter();
    let fields = fields.map(ReviewField::from).collect();
    Ok(ReviewRequest {
        step,
        summary: input.summary,
        questions: input.questions.unwrap_or_default(),
        scope: input.scope.unwrap_or_default().into(),
        options: ReviewOptions {
            fields,
            deadline,
            assignee: input.assignee,
        },
        token: params::claim_token(input.claim_token),
        session: params::session_id(input.session_id),
    })
}
