//! `extract_data`: takes data out of a text, as a schema asks for it. The only tool that needs a model:
//! the one that is configured, else the agent's own, where its client lends it (`mcp/sampling.rs`).

use onward_core::Code;
use onward_core::policy::MAX_CONTENT_BYTES;
use onward_engine::Caller;
use onward_engine::extract::Extracted;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Desk, Hints, Refused, Spec, given};
use crate::extraction::{Check, Job};
use crate::model::Unanswered;
use crate::wire::research::Extraction;

pub(crate) const NAME: &str = "extract_data";

/// Characters of what a model is told beside the schema.
const MAX_INSTRUCTIONS: usize = 20_000;

pub(super) struct ExtractData;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Input {
    /// JSON Schema 2020-12
    schema: Map<String, Value>,
    /// This or `artifactId`
    #[schemars(length(min = 1))]
    source_text: Option<String>,
    artifact_id: Option<String>,
    instructions: Option<String>,
}

impl Spec for ExtractData {
    type Input = Input;
    type Output = Extraction;

    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Extract data";
    const DESCRIPTION: &'static str = "Have a model take data that fits a schema out of a text or a stored artifact. \
        `valid` says whether it fits, `issues` where not.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = false;
    const REACHES_OUT: bool = true;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Extraction, Refused> {
        let job = prepare(desk, caller, input).await?;
        let Some(extractor) = &desk.extractor else {
            return Err(not_configured());
        };
        let extracted = extractor.extract(&job).await;
        let (judged, model) = extracted.map_err(|why| unanswered(extractor.model(), why))?;
        keep(desk, caller, job.extracted(judged, model)).await
    }
}

/// What is to be done, if the caller may have it done.
pub(crate) async fn prepare(desk: &Desk, caller: &Caller, input: Input) -> Result<Job, Refused> {
    desk.engine.may_extract(caller)?;
    let check = Check::of(input.schema).map_err(|why| Refused::invalid("schema", why))?;
    let instructions = input.instructions.filter(|words| !words.trim().is_empty());
    let characters = instructions
        .as_ref()
        .map_or(0, |words| words.chars().count());
    if characters > MAX_INSTRUCTIONS {
        return Err(Refused::invalid(
            "instructions",
            format!("has {characters} characters, at most {MAX_INSTRUCTIONS} are allowed"),
        ));
    }
    let (text, artifact) = match (input.source_text, input.artifact_id) {
        (Some(text), None) => (text, None),
        (None, Some(id)) => {
            let id = given::artifact(&id)?;
            (desk.engine.artifact(caller, id).await?.content, Some(id))
        }
        (Some(_), Some(_)) => {
            let message = "must not stand beside `sourceText`: give one of them";
            return Err(Refused::invalid("artifactId", message));
        }
        (None, None) => {
            let message = "is needed, or `artifactId`";
            return Err(Refused::invalid("sourceText", message));
        }
    };
    if text.trim().is_empty() || text.len() > MAX_CONTENT_BYTES {
        let message = format!("must have 1 to {MAX_CONTENT_BYTES} bytes that are not blank");
        return Err(Refused::invalid("sourceText", message));
    }
    Ok(Job {
        text,
        artifact,
        check,
        instructions,
    })
}

/// Keeps what came of it.
pub(crate) async fn keep(
    desk: &Desk,
    caller: &Caller,
    extracted: Extracted,
) -> Result<Extraction, Refused> {
    let stored = desk.engine.store_extraction(caller, extracted).await?;
    Ok(Extraction::of(stored))
}

/// Nobody is there to ask.
fn not_configured() -> Refused {
    Refused {
        code: Code::NotConfigured,
        message: "no model is configured that could extract data, and this client lends none"
            .to_owned(),
        hint: "read the text and extract it yourself; or let your user set `model` under \
               `[extraction]` in `onward.toml` and the key in `ONWARD_EXTRACTION_API_KEY` \
               (`onward config --help` shows how)"
            .to_owned(),
        details: None,
        missing: false,
    }
}

/// The model does not answer.
pub(crate) fn unanswered(model: &str, why: Unanswered) -> Refused {
    let (message, hint) = match why {
        Unanswered::Away(why) => (
            format!("the model `{model}` does not answer: {why}"),
            "call again in a minute, or extract it yourself",
        ),
        Unanswered::Refused(why) => (
            format!("the model `{model}` does not take this: {why}"),
            "give a shorter text or a simpler schema, or extract it yourself",
        ),
    };
    Refused {
        code: Code::Unavailable,
        message,
        hint: hint.to_owned(),
        details: None,
        missing: false,
    }
}
