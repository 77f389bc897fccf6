//! `submit_step_result`: completes a step. A rejected result is stored as an artifact, and the
//! error contains its id. A result that does not meet the gates of its step is rejected.

use std::borrow::Cow;

use onward_core::policy::{
    MAX_CLAIM_TOKEN, MAX_CRITERION, MAX_EVIDENCE, MAX_EVIDENCE_TEXT, MAX_REMARK, MAX_SESSION_ID,
    MAX_SUMMARY,
};
use onward_core::step::{Evidence as CoreEvidence, EvidenceKind as CoreKind, StepResult};
use onward_engine::Caller;
use onward_engine::submit::Submission;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::gates as wire;
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
    /// At least one entry per `acceptanceCriteria`
    #[schemars(length(max = MAX_EVIDENCE))]
    evidence: Option<Vec<Evidence>>,
    /// From `get_next_step`
    #[schemars(length(min = 1, max = MAX_CLAIM_TOKEN))]
    claim_token: Option<String>,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
    /// Also claim the next step, returned in `nextStep`
    claim_next: Option<bool>,
}

// No doc comment: it would become a description of the array items in the schema.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Evidence {
    /// Its text or number
    criterion: Criterion,
    kind: EvidenceKind,
    /// What to check
    #[schemars(length(min = 1, max = MAX_EVIDENCE_TEXT))]
    value: String,
    /// What it showed
    #[schemars(length(min = 1, max = MAX_EVIDENCE_TEXT))]
    outcome: String,
}

/// A criterion, by its text or its number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Criterion {
    Number(u32),
    Text(String),
}

impl JsonSchema for Criterion {
    fn schema_name() -> Cow<'static, str> {
        "Criterion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": ["string", "integer"], "maxLength": MAX_CRITERION })
    }
}

/// command: that ran; test: its name; commit: hash; pull_request: address; file: path; url: address;
/// note: text
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EvidenceKind {
    Command,
    Test,
    Commit,
    PullRequest,
    File,
    Url,
    Note,
}

impl From<Evidence> for CoreEvidence {
    fn from(evidence: Evidence) -> Self {
        Self {
            criterion: match evidence.criterion {
                Criterion::Number(number) => number.to_string(),
                Criterion::Text(text) => text,
            },
            kind: match evidence.kind {
                EvidenceKind::Command => CoreKind::Command,
                EvidenceKind::Test => CoreKind::Test,
                EvidenceKind::Commit => CoreKind::Commit,
                EvidenceKind::PullRequest => CoreKind::PullRequest,
                EvidenceKind::File => CoreKind::File,
                EvidenceKind::Url => CoreKind::Url,
                EvidenceKind::Note => CoreKind::Note,
            },
            value: evidence.value,
            outcome: evidence.outcome,
        }
    }
}

impl Spec for SubmitStepResult {
    type Input = Input;
    type Output = SubmittedResult;

    const NAME: &'static str = "submit_step_result";
    const TITLE: &'static str = "Submit the result of a step (task, todo)";
    const DESCRIPTION: &'static str =
        "Complete a claimed step (task) with its result. Then follow `next`.";
    const HINTS: Hints = Hints {
        read_only: false,
        idempotent: true,
        destructive: false,
    };
    const IN_CORE: bool = true;
    const UNLISTED_IN_CORE: &'static [&'static str] = &[
        "/properties/stepExecutionReport",
        "/properties/outputFormattingNotes",
        "/properties/evidence",
    ];
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
            evidence: (input.evidence.into_iter().flatten())
                .map(CoreEvidence::from)
                .collect(),
        };
        let work = || {
            json!({
                "resultSummary": result.summary,
                "result": result.data,
                "confidence": result.confidence,
                "stepExecutionReport": result.report,
                "outputFormattingNotes": result.formatting_notes,
                "evidence": wire::Evidence::list(&result.evidence),
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
            &context.dashboard.review_links(),
        ))
    }
}
