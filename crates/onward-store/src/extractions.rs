//! What models took out of texts, as schemas asked for it. An extraction belongs to a plan where its
//! artifact does, and stays, as that does, when the plan goes.

use onward_core::id::{ArtifactId, ExtractionId};
use onward_core::refusal::Issue;
use onward_core::{PlanId, Timestamp};
use serde_json::{Value as Json, json};

use crate::error::Error;
use crate::facts::first;
use crate::tx::Tx;
use crate::value::{Row, params};

/// Data that a model took out of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Extraction {
    /// Which one.
    pub id: ExtractionId,
    /// Out of what; nothing where the text came with the call.
    pub artifact: Option<ArtifactId>,
    /// What was asked for, as JSON Schema.
    pub schema: Json,
    /// What the model was told beside that.
    pub instructions: Option<String>,
    /// What it found.
    pub data: Json,
    /// Where that does not fit what was asked for; nowhere where it is valid.
    pub issues: Vec<Issue>,
    /// Which model.
    pub model: String,
    /// Who asked.
    pub actor: String,
    /// When.
    pub created_at: Timestamp,
}

impl Extraction {
    /// Whether the data fits what was asked for.
    pub fn is_valid(&self) -> bool {
        self.issues.is_empty()
    }
}

impl Tx {
    /// Keeps an extraction.
    pub fn add_extraction(&mut self, extraction: &Extraction) {
        let issues = extraction.issues.iter();
        let issues: Vec<Json> = issues
            .map(|issue| json!({ "path": issue.path, "message": issue.message }))
            .collect();
        let params = params![
            extraction.id.as_uuid(),
            extraction.artifact.map(|id| *id.as_uuid()),
            &extraction.schema,
            extraction.instructions.as_deref(),
            &extraction.data,
            extraction.is_valid(),
            &Json::Array(issues),
            &extraction.model,
            &extraction.actor,
            extraction.created_at,
        ];
        self.queue(self.statement("extraction_insert", params));
    }

    /// One extraction.
    pub async fn extraction(&mut self, id: ExtractionId) -> Result<Option<Extraction>, Error> {
        let rows = self.rows("extraction", params![id.as_uuid()]).await?;
        first(Some(rows), extraction)
    }

    /// What was taken out of a plan's artifacts, the oldest first.
    pub async fn extractions_of(
        &mut self,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<Extraction>, Error> {
        let params = params![plan.as_uuid(), limit];
        let rows = self.rows("extractions_of_plan", params).await?;
        rows.into_iter().map(extraction).collect()
    }
}

fn extraction(row: Row) -> Result<Extraction, Error> {
    let mut cells = row.cells("extractions");
    let id = ExtractionId::new(cells.id("extraction_id")?);
    let artifact = cells.maybe_id("artifact_id")?.map(ArtifactId::new);
    let schema = cells.json("schema")?;
    let instructions = cells.maybe_string("instructions")?;
    let data = cells.json("data")?;
    let valid = cells.flag("valid")?;
    let listed = cells.json("issues")?;
    let issues = issues(&listed);
    let issues = issues.filter(|issues| issues.is_empty() == valid);
    let issues = issues.ok_or_else(|| cells.corrupt("issues", "is no list that fits `valid`"))?;
    Ok(Extraction {
        id,
        artifact,
        schema,
        instructions,
        data,
        issues,
        model: cells.string("model")?,
        actor: cells.string("actor")?,
        created_at: cells.at("created_at")?,
    })
}

fn issues(listed: &Json) -> Option<Vec<Issue>> {
    let issue = |issue: &Json| {
        let text = |name: &str| Some(issue.get(name)?.as_str()?.to_owned());
        Some(Issue {
            path: text("path")?,
            message: text("message")?,
        })
    };
    listed.as_array()?.iter().map(issue).collect()
}
