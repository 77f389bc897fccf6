//! `submit_step_result`: what came out of a step. A result that is refused is kept, and the refusal
//! says where.

use onward_core::step::StepResult;
use onward_engine::Caller;
use onward_engine::submit::Submission;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::submitted::Submitted;

pub(super) struct SubmitStepResult;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    step_id: String,
    #[schemars(length(min = 1, max = 20_000))]
    result_summary: String,
    /// Data that branches look at
    result: Option<Map<String, Value>>,
    #[schemars(range(min = 0, max = 1))]
    confidence: Option<f64>,
    step_execution_report: Option<Map<String, Value>>,
    output_formatting_notes: Option<String>,
    claim_token: Option<String>,
    session_id: Option<String>,
    /// Also claim the next step: it is in `nextStep`
    claim_next: Option<bool>,
}

impl Spec for SubmitStepResult {
    type Input = Input;
    type Output = Submitted;

    const NAME: &'static str = "submit_step_result";
    const TITLE: &'static str = "Submit a step's result";
    const DESCRIPTION: &'static str =
        "Complete a step with what you found. Do then what `next` says.";
    const HINTS: Hints = Hints {
        read_only: false,
        idempotent: true,
        destructive: false,
    };
    const IN_CORE: bool = true;
    const BRINGS_WORK: bool = true;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Submitted, Refused> {
        let result = StepResult {
            summary: input.result_summary,
            data: input.result.map(Value::Object),
            confidence: input.confidence,
            report: input.step_execution_report.map(Value::Object),
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
        let step = given::step_of_work(desk, caller, &input.step_id, work).await?;
        let submission = Submission {
            step,
            result,
            token: given::token(input.claim_token),
            session: given::session(input.session_id),
            claim_next: input.claim_next.unwrap_or(false),
        };
        let submitted = desk.engine.submit(caller, submission).await?;
        Ok(Submitted::of(&submitted, desk.base_url.as_deref()))
    }
}
