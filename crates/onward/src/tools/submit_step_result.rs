//! `submit_step_result`: completes a step. A rejected result is stored as an artifact, and the
//! error contains its id.

use onward_core::policy::{MAX_CLAIM_TOKEN, MAX_REMARK, MAX_SESSION_ID, MAX_SUMMARY};
use onward_core::step::StepResult;
use onward_engine::Caller;
use onward_engine::submit::Submission;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::submitted::SubmittedResult;

pub(super) struct SubmitStepResult;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Step id
    step_id: String,
    /// What you did and found; later steps read it
    #[schemars(length(min = 1, max = MAX_SUMMARY))]
    result_summary: String,
    /// Data for branch conditions and later steps, at most 1 MiB
    result: Option<Map<String, Value>>,
    /// Your certainty
    #[schemars(range(min = 0, max = 1))]
    confidence: Option<f64>,
    /// How you worked, at most 1 MiB
    step_execution_report: Option<Map<String, Value>>,
    /// How to present it in the output
    #[schemars(length(max = MAX_REMARK))]
    output_formatting_notes: Option<String>,
    /// From `get_next_step`
    #[schemars(length(min = 1, max = MAX_CLAIM_TOKEN))]
    claim_token: Option<String>,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
    /// Also claim the next step, returned in `nextStep`
    claim_next: Option<bool>,
}

impl Spec for SubmitStepResult {
    type Input = Input;
    type Output = SubmittedResult;

    const NAME: &'static str = "submit_step_result";
    const TITLE: &'static str = "Submit a step result";
    const DESCRIPTION: &'static str =
        "Complete a claimed step (task) with its result. Then follow `next`.";
    const HINTS: Hints = Hints {
        read_only: false,
        idempotent: true,
        destructive: false,
    };
    const IN_CORE: bool = true;
    const UNLISTED_IN_CORE: &'static [&'static str] = &["/properties/stepExecutionReport"];
    const UNLISTED: &'static [&'static str] = &["/properties/sessionId"];
    const STORES_REJECTED_INPUT: bool = true;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<SubmittedResult, ToolError> {
        let result = StepResult {
            summary: input.result_summary,
            data: input.result.map(|result| Value::Object(result).into()),
            confidence: input.confidence,
            report: input
                .step_execution_report
                .map(|report| Value::Object(report).into()),
            formatting_notes: input.output_formatting_notes,
        };
        let work = || {
            json!({
                "resultSummary": result.summary,
                "result": result.data,
                "confidence": result.confidence,
                "stepExecutionReport": result.report,
                "outputFormattingNotes": result.formatting_notes,
            })
        };
        let step = params::step_id_or_store(context, caller, &input.step_id, work).await?;
        let submission = Submission {
            step,
            result,
            token: params::claim_token(input.claim_token),
            session: params::session_id(input.session_id),
            claim_next: input.claim_next.unwrap_or(false),
        };
        let submitted = context.engine.submit(caller, submission).await?;
        Ok(SubmittedResult::new(
            &submitted,
            context.interface,
            context.base_url.as_deref(),
        ))
    }
}
