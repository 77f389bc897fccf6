//! `extract_data`: extracts data from a text according to a JSON Schema.
//!
//! The only tool that needs a model: the configured one, or the client's own through MCP sampling
//! (`mcp/sampling.rs`).

use onward_core::Code;
use onward_core::policy::MAX_CONTENT_BYTES;
use onward_engine::Caller;
use onward_engine::context::MAX_CHARS;
use onward_engine::extract::NewExtraction;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::extraction::Job;
use crate::model::ModelError;
use crate::wire::research::Extraction;

pub(crate) const NAME: &str = "extract_data";

/// Characters of `instructions`.
const MAX_INSTRUCTIONS: usize = 20_000;

pub(super) struct ExtractData;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Input {
    /// JSON Schema (2020-12) of the data; at most 64 KiB; `$ref` only within the schema
    schema: Map<String, Value>,
    /// Text to extract from; at most 1 MiB in UTF-8. Set this or `artifactId`
    #[schemars(length(min = 1, max = MAX_CONTENT_BYTES))]
    source_text: Option<String>,
    /// Stored research to extract from
    artifact_id: Option<String>,
    /// What to look for, in addition to the schema
    #[schemars(length(max = MAX_INSTRUCTIONS))]
    instructions: Option<String>,
}

impl Spec for ExtractData {
    type Input = Input;
    type Output = Extraction;

    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Extract data";
    const DESCRIPTION: &'static str = "Extract structured data from a text or stored research with \
        a model, following a JSON Schema. If `valid` is false, `issues` lists where `data` does \
        not match.";
    const HINTS: Hints = Hints::ADDITIVE;
    const OPEN_WORLD: bool = true;
    // Cut data no longer matches its schema.
    const DEFAULT_CHARS: usize = MAX_CHARS;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<Extraction, ToolError> {
        let job = prepare(context, caller, input).await?;
        let Some(extractor) = &context.extractor else {
            return Err(not_configured());
        };
        let extracted = extractor.extract(&job).await;
        let (evaluation, model) = extracted.map_err(|why| model_error(extractor.model(), why))?;
        store(context, caller, job.into_extracted(evaluation, model)).await
    }
}

/// Checks permission and input, and loads the artifact.
pub(crate) async fn prepare(
    context: &ToolContext,
    caller: &Caller,
    input: Input,
) -> Result<Job, ToolError> {
    context.engine.may_extract(caller)?;
    let instructions = input.instructions.filter(|text| !text.trim().is_empty());
    let (text, artifact) = match (input.source_text, input.artifact_id) {
        (Some(text), None) => (text, None),
        (None, Some(id)) => {
            let id = params::artifact_id(&id)?;
            (context.engine.artifact(caller, id).await?.content, Some(id))
        }
        (Some(_), Some(_)) => {
            let message = "cannot be combined with `sourceText`; send only one of them";
            return Err(ToolError::invalid("artifactId", message));
        }
        (None, None) => {
            let message = "is required unless `artifactId` is set";
            return Err(ToolError::invalid("sourceText", message));
        }
    };
    if text.trim().is_empty() || text.len() > MAX_CONTENT_BYTES {
        let message = format!("must not be blank and must have at most {MAX_CONTENT_BYTES} bytes");
        return Err(ToolError::invalid("sourceText", message));
    }
    let job = Job::new(input.schema, text, artifact, instructions).await;
    job.map_err(|why| ToolError::invalid("schema", why))
}

/// Stores the extraction.
pub(crate) async fn store(
    context: &ToolContext,
    caller: &Caller,
    extracted: NewExtraction,
) -> Result<Extraction, ToolError> {
    let stored = context.engine.store_extraction(caller, extracted).await?;
    Ok(Extraction::new(stored))
}

fn not_configured() -> ToolError {
    ToolError {
        code: Code::NotConfigured,
        message: "no extraction model is configured and the client does not support MCP sampling"
            .to_owned(),
        hint:
            "extract the data yourself, or ask the operator to set `model` under `[extraction]` in \
               `config.toml` and the key in `ONWARD_EXTRACTION__API_KEY` (see `onward config \
               --help`)"
                .to_owned(),
        needs_operator: false,
        details: None,
        not_found: false,
    }
}

/// The model could not be reached, or rejected the request.
pub(crate) fn model_error(model: &str, why: ModelError) -> ToolError {
    let (message, hint) = match why {
        ModelError::Unavailable(why) => (
            format!("the model `{model}` is unavailable: {why}"),
            "call again in a minute, or extract the data yourself",
        ),
        ModelError::Rejected(why) => (
            format!("the model `{model}` rejected the request: {why}"),
            "send a shorter text or a simpler schema, or extract the data yourself",
        ),
    };
    ToolError {
        code: Code::Unavailable,
        message,
        hint: hint.to_owned(),
        needs_operator: false,
        details: None,
        not_found: false,
    }
}
