//! Research artifacts: texts found or produced during research.

use onward_core::id::ArtifactId;
use onward_core::{PlanId, StepId, Timestamp};
use serde_json::Value as Json;
use uuid::Uuid;

use super::search::SearchIndex;
use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, first, params};

/// A research artifact, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Artifact id.
    pub id: ArtifactId,
    /// Plan that it belongs to, while that plan exists.
    pub plan: Option<PlanId>,
    /// Step that it belongs to.
    pub step: Option<StepId>,
    /// `note`, `late_result`, ….
    pub kind: String,
    /// Title.
    pub title: String,
    /// Full content.
    pub content: String,
    /// Origin of the content.
    pub source_url: Option<String>,
    /// Additional data: a JSON object.
    pub metadata: Json,
    /// When it was stored.
    pub created_at: Timestamp,
}

impl Artifact {
    /// All kinds.
    pub const KINDS: [&str; 7] = [
        "note",
        "source",
        "data",
        "finding",
        "quote",
        "late_result",
        "other",
    ];
}

/// Research artifacts.
pub struct Artifacts<'t>(pub &'t mut Tx);

impl Artifacts<'_> {
    /// Stores an artifact and indexes it for search; returns the number of its chunks.
    pub fn keep(&mut self, artifact: &Artifact) -> usize {
        self.keep_unlisted(artifact);
        SearchIndex(self.0).index(*artifact.id.as_uuid(), &artifact.title, &artifact.content)
    }

    /// Stores an artifact that only its id finds: it is not indexed for search.
    pub fn keep_unlisted(&mut self, artifact: &Artifact) {
        let params = params![
            artifact.id.as_uuid(),
            artifact.plan.map(|id| *id.as_uuid()),
            artifact.step.map(|id| *id.as_uuid()),
            &artifact.kind,
            &artifact.title,
            &artifact.content,
            artifact.source_url.as_deref(),
            &artifact.metadata,
            artifact.created_at,
        ];
        self.0.queue(Statement::new(Query::ArtifactInsert, params));
    }

    /// Deletes an artifact stored with [`keep_unlisted`](Self::keep_unlisted), if it exists.
    pub fn discard(&mut self, id: ArtifactId) {
        let statement = Statement::new(Query::ArtifactDelete, params![id.as_uuid()]);
        self.0.queue(statement);
    }

    /// Attaches an artifact that outlived its plan to that plan again. An artifact that belongs to
    /// a plan stays there.
    pub fn adopt(&mut self, artifact: &Artifact) {
        let params = params![
            artifact.id.as_uuid(),
            artifact.plan.map(|id| *id.as_uuid()),
            artifact.step.map(|id| *id.as_uuid()),
        ];
        self.0.queue(Statement::new(Query::ArtifactAdopt, params));
    }

    /// An artifact by its id.
    pub async fn artifact(&mut self, id: ArtifactId) -> Result<Option<Artifact>, Error> {
        let rows = self.0.rows(Query::Artifact, params![id.as_uuid()]).await?;
        first(Some(rows), artifact)
    }

    /// Reads a page of all artifacts, in the order of their ids. Returns the last id, if any.
    pub async fn artifacts_page(
        &mut self,
        behind: Option<ArtifactId>,
        limit: u32,
    ) -> Result<Option<ArtifactId>, Error> {
        let behind = behind.map_or(Uuid::nil(), |id| *id.as_uuid());
        let rows = self
            .0
            .rows(Query::ArtifactsPage, params![behind, limit])
            .await?;
        let mut last = None;
        for row in rows {
            last = Some(artifact(row)?.id);
        }
        Ok(last)
    }

    /// Artifacts of a plan, oldest first.
    pub async fn artifacts_of(
        &mut self,
        id: PlanId,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<Artifact>, Error> {
        let params = params![id.as_uuid(), limit, offset];
        let rows = self.0.rows(Query::ArtifactsOfPlan, params).await?;
        rows.into_iter().map(artifact).collect()
    }
}

fn artifact(row: Row) -> Result<Artifact, Error> {
    let mut cells = row.cells("artifacts");
    Ok(Artifact {
        id: ArtifactId::new(cells.id("artifact_id")?),
        plan: cells.maybe_id("plan_id")?.map(PlanId::new),
        step: cells.maybe_id("step_id")?.map(StepId::new),
        kind: cells.string("artifact_type")?,
        title: cells.string("title")?,
        content: cells.string("content")?,
        source_url: cells.maybe_string("source_url")?,
        metadata: cells.json("metadata")?,
        created_at: cells.at("created_at")?,
    })
}
