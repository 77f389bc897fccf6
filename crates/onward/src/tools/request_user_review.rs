//! `request_user_review`: puts a question to a person; the step waits until they decide.
//!
//! The review is recorded before anybody is asked. Where the agent's own window can show a form, the
//! protocol's layer asks there, and [`Reviewing::decided`](crate::wire::review::Reviewing) says what
//! came of it.

use onward_engine::Caller;
use onward_engine::step::Question;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::review::Reviewing;

pub(crate) const NAME: &str = "request_user_review";

pub(super) struct RequestUserReview;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    step_id: String,
    /// What the person reads; on approval it is the step's result
    #[schemars(length(min = 1, max = 20_000))]
    summary: String,
    questions: Option<Vec<String>>,
    claim_token: Option<String>,
    session_id: Option<String>,
}

impl Spec for RequestUserReview {
    type Input = Input;
    type Output = Reviewing;

    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Ask for review";
    const DESCRIPTION: &'static str = "Pause a step you hold until a person decides. \
        Tell your user; pass on what they say with `submit_user_decision`, \
        or look with `get_next_step` whether they decided elsewhere.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = true;
    const BRINGS_WORK: bool = true;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Reviewing, Refused> {
        let work = || json!({ "summary": input.summary, "questions": input.questions });
        let step = given::step_of_work(desk, caller, &input.step_id, work).await?;
        let question = Question {
            step,
            summary: input.summary,
            questions: input.questions.unwrap_or_default(),
            token: given::token(input.claim_token),
            session: given::session(input.session_id),
        };
        let asked = desk.engine.request_review(caller, question).await?;
        Ok(Reviewing::asked(&asked, desk.base_url.as_deref()))
    }
}
