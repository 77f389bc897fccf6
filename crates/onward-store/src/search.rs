//! The index of words: the chunks of artifacts and outputs, written with them in one transaction, and
//! what is found by it.
//!
//! Which words a chunk has is said by the core. A query comes as words, never as text of a database's
//! own query language; here it gets the quotes of each.

use onward_core::id::{ArtifactId, OutputId};
use onward_core::search::{chunks, spelled};
use onward_core::{PlanId, Timestamp};
use uuid::Uuid;

use crate::error::Error;
use crate::facts::first;
use crate::tx::{Connection, Tx};
use crate::value::{Row, params};

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// The words, as the core spells them.
    pub words: Vec<String>,
    /// Whether a chunk must hold all of them, or any.
    pub all: bool,
    /// Only what belongs to this plan.
    pub plan: Option<PlanId>,
    /// Only artifacts of this kind.
    pub kind: Option<String>,
    /// Only what was stored then or later.
    pub created_after: Option<Timestamp>,
    /// Only what was stored earlier.
    pub created_before: Option<Timestamp>,
}

impl Search {
    /// Whether not everything that a tenant has is looked at.
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

/// Where something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// In something found or made.
    Artifact(ArtifactId),
    /// In what a plan delivers.
    Output(OutputId),
}

/// Something that was found, by the best of its chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Where.
    pub source: Source,
    /// What that is called.
    pub title: String,
    /// `note`, `late_result`, …; an output has none.
    pub kind: Option<String>,
    /// The plan that it belongs to.
    pub plan: Option<PlanId>,
    /// Where it came from.
    pub source_url: Option<String>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// The character at which the chunk begins, and how many it has.
    chunk: (u64, u64),
}

impl Tx {
    /// Makes a text findable; the number of its chunks.
    pub(crate) fn index(&mut self, source: Uuid, title: &str, content: &str) -> usize {
        let title = spelled(title);
        let all = chunks(content);
        for (ordinal, chunk) in all.iter().enumerate() {
            let words = spelled(chunk.text);
            let place = params![
                source,
                ordinal,
                chunk.start,
                chunk.characters,
                &title,
                words
            ];
            self.queue(self.statement("chunk_insert", place));
        }
        all.len()
    }

    /// How many chunks an artifact or an output is searched by.
    pub async fn chunk_count(&mut self, source: Source) -> Result<u64, Error> {
        let id = match source {
            Source::Artifact(id) => *id.as_uuid(),
            Source::Output(id) => *id.as_uuid(),
        };
        let rows = self.rows("chunk_count", params![id]).await?;
        let count = first(Some(rows), |row| row.cells("chunks").u64("chunks"))?;
        Ok(count.unwrap_or(0))
    }

    /// What fits best among so many of the best chunks, the best first.
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
        let rows = self.rows("search", params).await?;
        rows.into_iter().map(hit).collect()
    }

    /// How many chunks hold each of these words, counted no further than this.
    pub async fn word_counts(&mut self, words: &[String], most: u32) -> Result<Vec<u64>, Error> {
        let questions = words
            .iter()
            .map(|word| {
                let word = self.quoted(std::slice::from_ref(word), true);
                self.statement("word_count", params![word, most])
            })
            .collect();
        let answers = self.ask(questions).await?.into_iter();
        let count = |rows| {
            let count = first(Some(rows), |row| row.cells("chunks").u64("chunks"));
            Ok(count?.unwrap_or(0))
        };
        answers.map(count).collect()
    }

    /// The words as one query in the language of this database. A word holds letters, digits and
    /// marks alone, so no quote can be in it.
    fn quoted(&self, words: &[String], all: bool) -> String {
        let (quote, between) = match (&self.connection, all) {
            (Connection::Sqlite(_), true) => ('"', " AND "),
            (Connection::Sqlite(_), false) => ('"', " OR "),
            (Connection::Postgres(_), true) => ('\'', " & "),
            (Connection::Postgres(_), false) => ('\'', " | "),
        };
        let words = words.iter().map(|word| format!("{quote}{word}{quote}"));
        words.collect::<Vec<_>>().join(between)
    }

    /// The texts of the chunks by which these were found, in the same order.
    pub async fn pieces(&mut self, hits: &[Hit]) -> Result<Vec<String>, Error> {
        let questions = hits
            .iter()
            .map(|hit| {
                let (name, id) = match hit.source {
                    Source::Artifact(id) => ("artifact_piece", *id.as_uuid()),
                    Source::Output(id) => ("output_piece", *id.as_uuid()),
                };
                let (start, characters) = hit.chunk;
                self.statement(name, params![id, start.saturating_add(1), characters])
            })
            .collect();
        let answers = self.ask(questions).await?.into_iter().zip(hits);
        let piece = |(rows, hit): (Vec<Row>, &Hit)| {
            let (table, key) = match hit.source {
                Source::Artifact(_) => ("artifacts", "artifact_id"),
                Source::Output(_) => ("outputs", "output_id"),
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
    let source = match cells.flag("is_output")? {
        true => Source::Output(OutputId::new(id)),
        false => Source::Artifact(ArtifactId::new(id)),
    };
    let chunk = (cells.u64("starts_at")?, cells.u64("characters")?);
    let title = cells.string("title")?;
    let kind = cells.maybe_string("artifact_type")?;
    let plan = cells.maybe_id("plan_id")?.map(PlanId::new);
    let source_url = cells.maybe_string("source_url")?;
    // How well it fits is said by its place: the numbers of the two databases mean different things.
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
