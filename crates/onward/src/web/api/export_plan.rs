//! `export_plan`: a plan as one JSON document for `onward import`.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tools::{Hints, Spec, ToolContext, ToolError, params};

pub(super) struct ExportPlan;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
}

/// The exported document. Its format is not part of the API schema.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Document(#[schemars(with = "Map<String, Value>")] Value);

impl Spec for ExportPlan {
    type Input = Input;
    type Output = Document;

    const NAME: &'static str = "export_plan";
    const TITLE: &'static str = "Export a plan";
    const DESCRIPTION: &'static str =
        "The complete plan with its audit trail, as a document for `onward import`.";
    const HINTS: Hints = Hints::READ_ONLY;
    const IN_CORE: bool = false;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<Document, ToolError> {
        let plan = params::plan_id(&input.plan_id)?;
        Ok(Document(context.engine.export(caller, plan).await?))
    }
}
