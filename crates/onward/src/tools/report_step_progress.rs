//! `report_step_progress`: a sign of life.

use onward_engine::Caller;
use onward_engine::step::Progress;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::step::Progressed;

pub(super) struct ReportStepProgress;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    step_id: String,
    note: Option<String>,
    #[schemars(range(min = 0, max = 100))]
    percent: Option<f64>,
    claim_token: Option<String>,
    session_id: Option<String>,
}

impl Spec for ReportStepProgress {
    type Input = Input;
    type Output = Progressed;

    const NAME: &'static str = "report_step_progress";
    const TITLE: &'static str = "Report progress";
    const DESCRIPTION: &'static str =
        "Show that you still work on a step, before `stallThresholdMs` passes in silence.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = true;
    const BRINGS_WORK: bool = true;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Progressed, Refused> {
        let work = || json!({ "note": input.note, "percent": input.percent });
        let step = given::step_of_work(desk, caller, &input.step_id, work).await?;
        let progress = Progress {
            step,
            note: input.note,
            percent: input.percent,
            token: given::token(input.claim_token),
            session: given::session(input.session_id),
        };
        let progressed = desk.engine.report_progress(caller, progress).await?;
        Ok(Progressed::of(&progressed))
    }
}
