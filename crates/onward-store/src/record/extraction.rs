//! Structured data that models extracted from texts, according to a schema. An extraction belongs
//! to the plan of its artifact, and remains, like the artifact, when the plan is deleted. An
//! extraction from text that came with the call is part of the request log, and is deleted with it.

use onward_core::id::{ArtifactId, ExtractionId};
use onward_core::refusal::Issue;
use onward_core::{PlanId, Timestamp};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Cells, Row, first, params};

/// Data that a model extracted from a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Extraction {
    /// Extraction id.
    pub id: ExtractionId,
    /// The artifact; `None` if the text came with the call.
    pub artifact: Option<ArtifactId>,
    /// The requested JSON Schema.
    pub schema: Json,
    /// Additional instructions for the model.
    pub instructions: Option<String>,
    /// The extracted data.
    pub data: Json,
    /// Violations of the schema; empty if the data is valid.
    pub issues: Vec<Issue>,
    /// Name of the model.
    pub model: String,
    /// Who requested it.
    pub actor: String,
    /// Time of the extraction.
    pub created_at: Timestamp,
}

impl Extraction {
    /// Whether the data conforms to the schema.
    pub fn is_valid(&self) -> bool {
        self.issues.is_empty()
    }
}

/// Extracted data.
pub struct Extractions<'t>(pub &'t mut Tx);

impl Extractions<'_> {
    /// Stores an extraction.
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
        self.0
            .queue(Statement::new(Query::ExtractionInsert, params));
    }

    /// An extraction by its id.
    pub async fn extraction(&mut self, id: ExtractionId) -> Result<Option<Extraction>, Error> {
        let rows = self
            .0
            .rows(Query::Extraction, params![id.as_uuid()])
            .await?;
        first(Some(rows), extraction)
    }

    /// Reads a page of all extractions, in the order of their ids. Returns the last id, if any, and
    /// the extractions whose artifact is missing.
    pub async fn extractions_page(
        &mut self,
        behind: Option<ExtractionId>,
        limit: u32,
    ) -> Result<Option<(ExtractionId, Vec<ExtractionId>)>, Error> {
        let behind = behind.map_or(Uuid::nil(), |id| *id.as_uuid());
        let params = params![behind, limit];
        let rows = self.0.rows(Query::ExtractionsPage, params).await?;
        let (mut last, mut lost) = (None, Vec::new());
        for row in rows {
            let (extraction, is_lost) = extraction_and(row, |cells| cells.flag("lost"))?;
            last = Some(extraction.id);
            lost.extend(is_lost.then_some(extraction.id));
        }
        Ok(last.map(|last| (last, lost)))
    }

    /// Deletes extractions from before this instant whose text came with the call; returns their
    /// number. An extraction from an artifact stays as long as the artifact.
    pub async fn forget_extractions(&mut self, before: Timestamp) -> Result<u64, Error> {
        let rows = self
            .0
            .rows(Query::ExtractionsCountBefore, params![before])
            .await?;
        self.0.queue(Statement::new(
            Query::ExtractionsDeleteBefore,
            params![before],
        ));
        let count = first(Some(rows), |row| {
            row.cells("extractions").u64("extractions")
        });
        Ok(count?.unwrap_or(0))
    }

    /// Extractions from the artifacts of a plan, oldest first.
    pub async fn extractions_of(
        &mut self,
        plan: PlanId,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<Extraction>, Error> {
        let params = params![plan.as_uuid(), limit, offset];
        let rows = self.0.rows(Query::ExtractionsOfPlan, params).await?;
        rows.into_iter().map(extraction).collect()
    }
}

fn extraction(row: Row) -> Result<Extraction, Error> {
    Ok(extraction_and(row, |_| Ok(()))?.0)
}

/// An extraction, and the additional columns of its row.
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
    let issues =
        issues.ok_or_else(|| cells.corrupt("issues", "is not a list consistent with `valid`"))?;
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
