//! What models took out of texts, as schemas asked for it. An extraction belongs to a plan where its
//! artifact does, and stays, as that does, when the plan goes. One out of a text that came with a call is a
//! part of the log of calls, and is forgotten with it.

use onward_core::id::{ArtifactId, ExtractionId};
use onward_core::refusal::Issue;
use onward_core::{PlanId, Timestamp};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::error::Error;
use crate::facts::first;
use crate::tx::Tx;
use crate::value::{Cells, Row, params};

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

    /// Reads a page of all extractions, by their ids; the last id, if there was any, and which of them are
    /// out of an artifact that is not there.
    pub async fn extractions_page(
        &mut self,
        behind: Option<ExtractionId>,
        limit: u32,
    ) -> Result<Option<(ExtractionId, Vec<ExtractionId>)>, Error> {
        let behind = behind.map_or(Uuid::nil(), |id| *id.as_uuid());
        let params = params![behind, limit];
        let rows = self.rows("extractions_page", params).await?;
        let (mut last, mut lost) = (None, Vec::new());
        for row in rows {
            let (extraction, is_lost) = extraction_and(row, |cells| cells.flag("lost"))?;
            last = Some(extraction.id);
            lost.extend(is_lost.then_some(extraction.id));
        }
        Ok(last.map(|last| (last, lost)))
    }

    /// Forgets extractions from before this instant out of texts that came with their call, and says how
    /// many. One out of an artifact stays as long as that.
    pub async fn forget_extractions(&mut self, before: Timestamp) -> Result<u64, Error> {
        let rows = self
            .rows("extractions_count_before", params![before])
            .await?;
        self.queue(self.statement("extractions_delete_before", params![before]));
        let count = first(Some(rows), |row| {
            row.cells("extractions").u64("extractions")
        });
        Ok(count?.unwrap_or(0))
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
    Ok(extraction_and(row, |_| Ok(()))?.0)
}

/// An extraction, and what else stands in its row.
fn extraction_and<T>(
    row: Row,
    beside: impl FnOnce(&mut Cells) -> Result<T, Error>,
) -> Result<(Extraction, T), Error> {
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
    let extraction = Extraction {
        id,
        artifact,
        schema,
        instructions,
        data,
        issues,
        model: cells.string("model")?,
        actor: cells.string("actor")?,
        created_at: cells.at("created_at")?,
    };
    Ok((extraction, beside(&mut cells)?))
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
