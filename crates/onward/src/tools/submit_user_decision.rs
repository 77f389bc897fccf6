//! `submit_user_decision`: records the user's decision on a step under review.

use onward_core::command::{Modification, StepSpec};
use onward_core::event::Decision as CoreDecision;
use onward_core::policy::{
    MAX_CLAIM_TOKEN, MAX_INSTRUCTIONS, MAX_REMARK, MAX_SESSION_ID, MAX_STEPS, MAX_TITLE,
};
use onward_core::{Code, StepId, StepType};
use onward_engine::step::ReviewDecision;
use onward_engine::{Caller, Engine, Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::hint::Interface;
use crate::wire::review;

pub(super) struct SubmitUserDecision;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Step id, unless `reviewId` is given
    step_id: Option<String>,
    /// Decides this review only
    review_id: Option<String>,
    decision: Decision,
    /// The user's comment; required for modify
    #[schemars(length(max = MAX_REMARK))]
    feedback: Option<String>,
    /// Answers to the `fields` of the review, by name
    answers: Option<Map<String, Value>>,
    /// From `get_next_step`
    #[schemars(length(min = 1, max = MAX_CLAIM_TOKEN))]
    claim_token: Option<String>,
    /// Session id, for a review by another session
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
    /// Changes to the steps of a plan that is approved before its start
    #[schemars(length(max = MAX_STEPS))]
    edits: Option<Vec<Edit>>,
}

/// A change to a step, or a new step at the end of the plan.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Edit {
    /// Step to change; default: a new step
    pub(crate) step_id: Option<String>,
    /// New title
    #[schemars(length(min = 1, max = MAX_TITLE))]
    pub(crate) title: Option<String>,
    /// New text; required unless `remove` is set
    #[schemars(length(min = 1, max = MAX_INSTRUCTIONS))]
    pub(crate) instructions: Option<String>,
    /// Remove the step
    pub(crate) remove: Option<bool>,
}

impl Edit {
    /// The changes of a list of edits.
    pub(crate) fn modifications(
        edits: Vec<Self>,
        engine: &Engine,
    ) -> Result<Vec<Modification>, ToolError> {
        let edits = edits.into_iter().enumerate();
        let change = |(index, edit): (usize, Self)| edit.modification(index, engine);
        edits.map(change).collect()
    }

    fn modification(self, index: usize, engine: &Engine) -> Result<Modification, ToolError> {
        let invalid = |field: &str, message: &str| {
            ToolError::invalid(format!("edits[{index}].{field}"), message)
        };
        let step = self.step_id.as_deref().map(params::step_id).transpose()?;
        if self.remove == Some(true) {
            let step = step.ok_or_else(|| invalid("stepId", "is required with `remove`"))?;
            return Ok(Modification::RemoveStep { step });
        }
        let instructions = self.instructions;
        let instructions = instructions
            .ok_or_else(|| invalid("instructions", "is required unless `remove` is set"))?;
        Ok(match (step, self.title) {
            (Some(step), Some(title)) => Modification::RenameStep {
                step,
                title,
                instructions,
            },
            (Some(step), None) => Modification::UpdateInstructions { step, instructions },
            (None, title) => {
                let id = engine.new_step_id();
                let spec = StepSpec {
                    title,
                    ..StepSpec::new(id, StepType::Custom, instructions)
                };
                Modification::AddSteps {
                    steps: vec![spec],
                    insert_after: None,
                }
            }
        })
    }
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
        review. With `reviewBy: other_session`, decide yourself in another session. Then call \
        `get_next_step`.";
    const HINTS: Hints = Hints {
        read_only: false,
        // The same decision can be made again on a later review of the step.
        idempotent: false,
        destructive: true,
    };
    const IN_CORE: bool = true;
    const UNLISTED: &'static [&'static str] = &["/properties/claimToken", "/properties/edits"];
    const UNLISTED_IN_CORE: &'static [&'static str] = &[
        "/properties/reviewId",
        "/properties/sessionId",
        "/properties/answers",
    ];

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<review::DecisionOutcome, ToolError> {
        let review = input.review_id.as_deref().map(params::review_id);
        let review = review.transpose()?;
        let step = match (&input.step_id, review) {
            (Some(step), _) => params::step_id(step)?,
            (None, Some(review)) => context.engine.step_of_review(caller, review).await?,
            (None, None) => {
                let message = "is required unless `reviewId` is given";
                return Err(ToolError::invalid("stepId", message));
            }
        };
        let review = ReviewDecision {
            step,
            review,
            // An MCP client is an agent, also if it passes on a user's decision.
            is_by_agent: matches!(context.interface, Interface::Mcp(_)),
            decision: input.decision.into(),
            feedback: input.feedback,
            answers: input.answers.unwrap_or_default(),
            token: params::claim_token(input.claim_token),
            session: params::session_id(input.session_id),
            edits: Edit::modifications(input.edits.unwrap_or_default(), &context.engine)?,
            link_recipient: None,
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

/// The error for a caller that may not decide, with the page or command where the user does.
async fn with_review_page(
    context: &ToolContext,
    caller: &Caller,
    step: StepId,
    forbidden: Error,
) -> ToolError {
    let mut error = ToolError::from(forbidden);
    let found = context.engine.step(caller, step).await;
    let review = found
        .ok()
        .and_then(|(_, step)| Some(step.open_review()?.id.to_string()));
    let links = context.dashboard.review_links();
    if let Some(review) = review {
        if let Some(url) = links.url(&review) {
            error.hint = format!("ask the user to decide the review: open {url}");
        } else if let Some(command) = links.command(&review) {
            error.hint = format!("ask the user to decide the review: run `{command}`");
        }
    }
    error
}

/// A question of a review with its number, as in the feedback.
pub(crate) fn question_line(index: usize, question: &str) -> String {
    format!("{}. {question}", index + 1)
}

/// The feedback of a review form: the answers, each after its question, and then the comment. The
/// script of the app does the same.
pub(crate) fn feedback_with_answers(
    questions: &[String],
    answers: &[String],
    comment: Option<&str>,
) -> Option<String> {
    let pairs = questions.iter().zip(answers).enumerate();
    let answered = pairs.filter(|(_, (_, answer))| !answer.is_empty());
    let parts = answered
        .map(|(index, (question, answer))| format!("{}\n{answer}", question_line(index, question)));
    let parts: Vec<String> = parts.chain(comment.map(str::to_owned)).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_contains_each_answer_after_its_question() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let questions: Vec<String> = texts(&["Red?", "Blue?"]);
        let none: Vec<String> = texts(&["", ""]);
        let second: Vec<String> = texts(&["", "Yes, both."]);
        assert_eq!(feedback_with_answers(&questions, &none, None), None);
        assert_eq!(
            feedback_with_answers(&questions, &none, Some("ok")).as_deref(),
            Some("ok")
        );
        assert_eq!(
            feedback_with_answers(&questions, &second, Some("ok")).as_deref(),
            Some("2. Blue?\nYes, both.\n\nok")
        );
    }
}
