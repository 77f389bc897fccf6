//! `report_step_progress`: a heartbeat that restarts a step's stall timer.

use onward_core::policy::{MAX_CLAIM_TOKEN, MAX_REMARK, MAX_SESSION_ID};
use onward_engine::Caller;
use onward_engine::step::ProgressReport;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::step::ProgressReceipt;

pub(super) struct ReportStepProgress;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Step id
    step_id: String,
    /// Progress so far
    #[schemars(length(max = MAX_REMARK))]
    note: Option<String>,
    /// Percent done
    #[schemars(range(min = 0, max = 100))]
    percent: Option<f64>,
    /// From `get_next_step`
    #[schemars(length(min = 1, max = MAX_CLAIM_TOKEN))]
    claim_token: Option<String>,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
}

impl Spec for ReportStepProgress {
    type Input = Input;
    type Output = ProgressReceipt;

    const NAME: &'static str = "report_step_progress";
    const TITLE: &'static str = "Report progress of a step (task)";
    const DESCRIPTION: &'static str = "Report that you are still working on a step. Call it at least once per \
        `stallThresholdMs`, or another session may take over the step.";
    const HINTS: Hints = Hints::ADDITIVE;
    const IN_CORE: bool = true;
    const UNLISTED_IN_CORE: &'static [&'static str] = &["/properties/percent"];
    const UNLISTED: &'static [&'static str] = &["/properties/sessionId"];
    const STORES_REJECTED_INPUT: bool = true;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<ProgressReceipt, ToolError> {
        let work = || json!({ "note": input.note, "percent": input.percent });
        let step = params::step_id_or_store(context, caller, &input.step_id, work).await?;
        let progress = ProgressReport {
            step,
            note: input.note,
            percent: input.percent,
            token: params::claim_token(input.claim_token),
            session: params::session_id(input.session_id),
        };
        let progressed = context.engine.report_progress(caller, progress).await?;
        Ok(ProgressReceipt::new(&progressed))
    }
}
