//! `export_plan`: a plan as one document, which `onward import` takes in elsewhere.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tools::{Desk, Hints, Refused, Spec, given};

pub(super) struct ExportPlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
}

/// The document, whose form is the business of whoever imports it.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Document(#[schemars(with = "Map<String, Value>")] Value);

impl Spec for ExportPlan {
    type Input = Input;
    type Output = Document;

    const NAME: &'static str = "export_plan";
    const TITLE: &'static str = "Export a plan";
    const DESCRIPTION: &'static str =
        "The whole plan with its audit trail, as a document for `onward import`.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Document, Refused> {
        let plan = given::plan(&input.plan_id)?;
        Ok(Document(desk.engine.export(caller, plan).await?))
    }
}
