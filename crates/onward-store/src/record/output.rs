//! Outputs of plans. A plan may have several outputs, each with a title and several versions. All
//! versions are kept as long as the plan; the last version of each output is indexed for search.

use onward_core::id::OutputId;
use onward_core::{PlanId, Timestamp};
use uuid::Uuid;

use super::search::SearchIndex;
use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Cells, Row, first, params};

/// One version of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Output id.
    pub id: OutputId,
    /// The plan.
    pub plan: PlanId,
    /// Title, shared by all versions of an output.
    pub title: String,
    /// Version, from 1.
    pub version: u32,
    /// Media type, such as `text/markdown`.
    pub media_type: String,
    /// Full content.
    pub content: String,
    /// Who stored it.
    pub actor: String,
    /// When it was stored.
    pub created_at: Timestamp,
}

/// The beginning of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputExcerpt {
    /// Output id.
    pub id: OutputId,
    /// Title.
    pub title: String,
    /// Last version.
    pub version: u32,
    /// Media type.
    pub media_type: String,
    /// First characters of the content.
    pub excerpt: String,
    /// Whether the content is longer.
    pub is_truncated: bool,
    /// When it was stored.
    pub created_at: Timestamp,
}

/// A version of an output, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputVersion {
    /// Output id.
    pub id: OutputId,
    /// Version, from 1.
    pub version: u32,
    /// Who stored it.
    pub actor: String,
    /// When it was stored.
    pub created_at: Timestamp,
}

/// Plan outputs.
pub struct Outputs<'t>(pub &'t mut Tx);

impl Outputs<'_> {
    /// Adds a version of an output. Search then finds it instead of the previous versions.
    pub fn add_output(&mut self, output: &Output) {
        let params = params![output.plan.as_uuid(), &output.title];
        self.0
            .queue(Statement::new(Query::ChunksDeleteOfVersions, params));
        let params = params![
            output.id.as_uuid(),
            output.plan.as_uuid(),
            &output.title,
            output.version,
            &output.media_type,
            &output.content,
            &output.actor,
            output.created_at,
        ];
        self.0.queue(Statement::new(Query::OutputInsert, params));
        SearchIndex(self.0).index(*output.id.as_uuid(), &output.title, &output.content);
    }

    /// Last version of the output with this title; 0 if there is none.
    pub async fn last_version(&mut self, plan: PlanId, title: &str) -> Result<u32, Error> {
        let params = params![plan.as_uuid(), title];
        let rows = self.0.rows(Query::OutputLastVersion, params).await?;
        let version = first(Some(rows), |row| row.cells("outputs").u32("version"))?;
        Ok(version.unwrap_or(0))
    }

    /// The plan of an output.
    pub async fn plan_of_output(&mut self, id: OutputId) -> Result<Option<PlanId>, Error> {
        let rows = self
            .0
            .rows(Query::OutputPlan, params![id.as_uuid()])
            .await?;
        first(Some(rows), |row| {
            let mut cells = row.cells("outputs");
            cells.id("output_id")?;
            cells.id("plan_id").map(PlanId::new)
        })
    }

    /// One version of an output.
    pub async fn output(&mut self, id: OutputId) -> Result<Option<Output>, Error> {
        let rows = self.0.rows(Query::Output, params![id.as_uuid()]).await?;
        first(Some(rows), output)
    }

    /// The versions of the output with this title, newest first.
    pub async fn output_versions(
        &mut self,
        plan: PlanId,
        title: &str,
        limit: u32,
    ) -> Result<Vec<OutputVersion>, Error> {
        let params = params![plan.as_uuid(), title, limit];
        let rows = self.0.rows(Query::OutputVersions, params).await?;
        let version = |row: Row| {
            let mut cells = row.cells("outputs");
            Ok(OutputVersion {
                id: OutputId::new(cells.id("output_id")?),
                version: cells.u32("version")?,
                actor: cells.string("actor")?,
                created_at: cells.at("created_at")?,
            })
        };
        rows.into_iter().map(version).collect()
    }

    /// All versions of all outputs of a plan, oldest first.
    pub async fn outputs_of(
        &mut self,
        plan: PlanId,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<Output>, Error> {
        let params = params![plan.as_uuid(), limit, offset];
        let rows = self.0.rows(Query::OutputsOfPlan, params).await?;
        rows.into_iter().map(output).collect()
    }

    /// The beginnings of the outputs of a plan, newest first.
    pub async fn output_excerpts(
        &mut self,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<OutputExcerpt>, Error> {
        let params = params![plan.as_uuid(), limit];
        let rows = self.0.rows(Query::OutputExcerpts, params).await?;
        rows.into_iter().map(excerpt).collect()
    }

    /// The beginnings of the outputs of all plans, newest first.
    pub async fn latest_outputs(
        &mut self,
        limit: u32,
    ) -> Result<Vec<(PlanId, OutputExcerpt)>, Error> {
        let rows = self.0.rows(Query::OutputsLatest, params![limit]).await?;
        let outputs = rows.into_iter().map(|row| {
            let mut cells = row.cells("outputs");
            let plan = PlanId::new(cells.id("plan_id")?);
            Ok((plan, read_excerpt(&mut cells)?))
        });
        outputs.collect()
    }

    /// Reads a page of all outputs, in the order of their ids. Returns the last id, if any.
    pub async fn outputs_page(
        &mut self,
        behind: Option<OutputId>,
        limit: u32,
    ) -> Result<Option<OutputId>, Error> {
        let behind = behind.map_or(Uuid::nil(), |id| *id.as_uuid());
        let rows = self
            .0
            .rows(Query::OutputsPage, params![behind, limit])
            .await?;
        let mut last = None;
        for row in rows {
            last = Some(output(row)?.id);
        }
        Ok(last)
    }
}

fn output(row: Row) -> Result<Output, Error> {
    let mut cells = row.cells("outputs");
    Ok(Output {
        id: OutputId::new(cells.id("output_id")?),
        plan: PlanId::new(cells.id("plan_id")?),
        title: cells.string("title")?,
        version: cells.u32("version")?,
        media_type: cells.string("media_type")?,
        content: cells.string("content")?,
        actor: cells.string("actor")?,
        created_at: cells.at("created_at")?,
    })
}

fn excerpt(row: Row) -> Result<OutputExcerpt, Error> {
    read_excerpt(&mut row.cells("outputs"))
}

fn read_excerpt(cells: &mut Cells) -> Result<OutputExcerpt, Error> {
    let id = OutputId::new(cells.id("output_id")?);
    let title = cells.string("title")?;
    let version = cells.u32("version")?;
    let media_type = cells.string("media_type")?;
    let excerpt = cells.string("excerpt")?;
    let bytes = u64::try_from(excerpt.len()).unwrap_or(u64::MAX);
    Ok(OutputExcerpt {
        id,
        title,
        version,
        media_type,
        excerpt,
        is_truncated: cells.u64("content_bytes")? > bytes,
        created_at: cells.at("created_at")?,
    })
}
