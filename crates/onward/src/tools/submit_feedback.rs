//! `submit_feedback`: what somebody says about a plan as a whole.

use onward_engine::Caller;
use onward_engine::feedback::Opinion;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::feedback::Given;

pub(super) struct SubmitFeedback;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
    #[schemars(range(min = 1, max = 5))]
    rating: Option<u32>,
    comment: Option<String>,
    output_id: Option<String>,
}

impl Spec for SubmitFeedback {
    type Input = Input;
    type Output = Given;

    const NAME: &'static str = "submit_feedback";
    const TITLE: &'static str = "Submit feedback";
    const DESCRIPTION: &'static str =
        "Keep what your user says about a plan as a whole: a rating, a comment, or both.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Given, Refused> {
        let opinion = Opinion {
            plan: given::plan(&input.plan_id)?,
            rating: input.rating,
            comment: input.comment,
            output: input.output_id,
        };
        let id = desk.engine.submit_feedback(caller, opinion).await?;
        Ok(Given::of(id))
    }
}
