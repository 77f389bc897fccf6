//! `submit_user_decision`: what a person decided about a step that waits for them.

use onward_core::event::Decision as Decided;
use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::review;

pub(super) struct SubmitUserDecision;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    step_id: String,
    decision: Decision,
    /// `modify` needs it
    feedback: Option<String>,
    #[serde(rename = "claimToken")]
    _claim_token: Option<String>,
    #[serde(rename = "sessionId")]
    _session_id: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    Approve,
    Reject,
    Modify,
    Skip,
}

impl From<Decision> for Decided {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Approve => Decided::Approve,
            Decision::Reject => Decided::Reject,
            Decision::Modify => Decided::Modify,
            Decision::Skip => Decided::Skip,
        }
    }
}

impl Spec for SubmitUserDecision {
    type Input = Input;
    type Output = review::Decided;

    const NAME: &'static str = "submit_user_decision";
    const TITLE: &'static str = "Submit a person's decision";
    const DESCRIPTION: &'static str = "Pass on what a person decided about a step under review: \
        never your own view. `reject` fails the plan, `modify` sends the step back to you.";
    const HINTS: Hints = Hints {
        read_only: false,
        idempotent: false,
        destructive: true,
    };
    const IN_CORE: bool = true;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<review::Decided, Refused> {
        let step = given::step(&input.step_id)?;
        let decision = input.decision.into();
        let reviewed = desk
            .engine
            .decide_review(caller, step, decision, input.feedback);
        Ok(review::Decided::of(&reviewed.await?))
    }
}
