//! Full-text index: the chunks of artifacts, outputs and results, written in the same transaction as
//! these, and the search.
//!
//! The core splits a text into words. A query is a list of words, never text in the query syntax of
//! a database; the words are quoted here.

use onward_core::id::{ArtifactId, OutputId};
use onward_core::search::{chunks, index_text};
use onward_core::{PlanId, StepId, Timestamp};
use uuid::Uuid;

use crate::backend::Syntax;
use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, first, params};

/// A search query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Words, as normalized by the core.
    pub words: Vec<String>,
    /// Whether a chunk must contain all of them, or any.
    pub all: bool,
    /// Only items of this plan.
    pub plan: Option<PlanId>,
    /// Only artifacts of this kind, or results.
    pub kind: Option<String>,
    /// Only items stored at this instant or later.
    pub created_after: Option<Timestamp>,
    /// Only items stored before this instant.
    pub created_before: Option<Timestamp>,
}

impl Search {
    /// Whether the search is restricted to a part of the tenant's chunks.
    pub(crate) fn is_filtered(&self) -> bool {
        let Self {
            words: _,
            all: _,
            plan,
            kind,
            created_after,
            created_before,
        } = self;
        plan.is_some() || kind.is_some() || created_after.is_some() || created_before.is_some()
    }
}

/// Source of a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// An artifact.
    Artifact(ArtifactId),
    /// An output of a plan.
    Output(OutputId),
    /// The result of a step.
    Result(StepId),
}

/// A search hit, found by its best chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Artifact, output or result.
    pub source: Source,
    /// Its title.
    pub title: String,
    /// `note`, `late_result`, …; `result` for a result; `None` for an output.
    pub kind: Option<String>,
    /// Plan that it belongs to.
    pub plan: Option<PlanId>,
    /// Origin of the content.
    pub source_url: Option<String>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// First character of the chunk, and its number of characters.
    chunk: (u64, u64),
}

/// The search index: chunks, words and vectors.
pub struct SearchIndex<'t>(pub &'t mut Tx);

impl SearchIndex<'_> {
    /// Indexes a text; returns the number of its chunks.
    pub(crate) fn index(&mut self, source: Uuid, title: &str, content: &str) -> usize {
        let title = index_text(title);
        let all = chunks(content);
        for (ordinal, chunk) in all.iter().enumerate() {
            let words = index_text(chunk.text);
            let place = params![
                source,
                ordinal,
                chunk.start,
                chunk.characters,
                &title,
                words
            ];
            self.0.queue(Statement::new(Query::ChunkInsert, place));
        }
        all.len()
    }

    /// The best hits among this many of the best chunks, best first.
    pub async fn search(
        &mut self,
        search: &Search,
        among: u32,
        limit: u32,
    ) -> Result<Vec<Hit>, Error> {
        if search.words.is_empty() {
            return Ok(Vec::new());
        }
        let asked = self.quoted(&search.words, search.all);
        let params = params![
            asked,
            among,
            search.plan.map(|id| *id.as_uuid()),
            search.kind.as_deref(),
            search.created_after,
            search.created_before,
            limit,
        ];
        let rows = self.0.rows(Query::Search, params).await?;
        rows.into_iter().map(hit).collect()
    }

    /// Number of chunks that contain each of these words, counted up to `most`.
    pub async fn word_counts(&mut self, words: &[String], most: u32) -> Result<Vec<u64>, Error> {
        let questions = words
            .iter()
            .map(|word| {
                let word = self.quoted(std::slice::from_ref(word), true);
                Statement::new(Query::WordCount, params![word, most])
            })
            .collect();
        let answers = self.0.query(questions).await?.into_iter();
        let count = |rows| {
            let count = first(Some(rows), |row| row.cells("chunks").u64("chunks"));
            Ok(count?.unwrap_or(0))
        };
        answers.map(count).collect()
    }

    /// The words as a full-text query for this database. A word contains only letters, digits and
    /// marks, so it cannot contain a quote.
    fn quoted(&self, words: &[String], all: bool) -> String {
        let Syntax { quote, and, or, .. } = self.0.syntax();
        let between = if all { and } else { or };
        let words = words.iter().map(|word| format!("{quote}{word}{quote}"));
        words.collect::<Vec<_>>().join(between)
    }

    /// Texts of the chunks by which these hits were found, in the same order.
    pub async fn pieces(&mut self, hits: &[Hit]) -> Result<Vec<String>, Error> {
        let questions = hits
            .iter()
            .map(|hit| {
                let (name, id) = match hit.source {
                    Source::Artifact(id) => (Query::ArtifactPiece, *id.as_uuid()),
                    Source::Output(id) => (Query::OutputPiece, *id.as_uuid()),
                    Source::Result(id) => (Query::ResultPiece, *id.as_uuid()),
                };
                let (start, characters) = hit.chunk;
                Statement::new(name, params![id, start.saturating_add(1), characters])
            })
            .collect();
        let answers = self.0.query(questions).await?.into_iter().zip(hits);
        let piece = |(rows, hit): (Vec<Row>, &Hit)| {
            let (table, key) = match hit.source {
                Source::Artifact(_) => ("artifacts", "artifact_id"),
                Source::Output(_) => ("outputs", "output_id"),
                Source::Result(_) => ("results", "step_id"),
            };
            let piece = first(Some(rows), |row| {
                let mut cells = row.cells(table);
                cells.id(key)?;
                cells.string("piece")
            });
            Ok(piece?.unwrap_or_default())
        };
        answers.map(piece).collect()
    }
}

pub(crate) fn hit(row: Row) -> Result<Hit, Error> {
    let mut cells = row.cells("chunks");
    let id = cells.id("source_id")?;
    let source = match cells.u64("source")? {
        0 => Source::Artifact(ArtifactId::new(id)),
        1 => Source::Output(OutputId::new(id)),
        _ => Source::Result(StepId::new(id)),
    };
    let chunk = (cells.u64("starts_at")?, cells.u64("characters")?);
    let title = cells.string("title")?;
    let kind = cells.maybe_string("artifact_type")?;
    let plan = cells.maybe_id("plan_id")?.map(PlanId::new);
    let source_url = cells.maybe_string("source_url")?;
    // Only the order matters: the ranks of the two databases are not comparable.
    cells.maybe_real("rank")?;
    Ok(Hit {
        source,
        title,
        kind,
        plan,
        source_url,
        created_at: cells.at("created_at")?,
        chunk,
    })
}
