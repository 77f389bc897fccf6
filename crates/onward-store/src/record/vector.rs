//! Embeddings: chunks that wait for a model, their vectors, and nearest-neighbour search.
//!
//! Sign-bit quantization with int8 re-ranking: a search compares the sign bits of all chunks, one
//! bit per dimension, and reads the vectors of those with the nearest signs only. This needs no
//! extension of the database; on a server with pgvector, tenants with many chunks have an index
//! over the signs. Memory use is bounded: the candidates, and on SQLite the sign-bit cache.

use std::collections::BTreeMap;
use std::sync::Arc;

use onward_core::search::Vector;
use uuid::Uuid;

use super::search::{Hit, Search, SearchIndex, hit};
use crate::backend::{Candidate, NearestSearch};
use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::value::{first, params};
use crate::vector_index::{MANY, Many};

/// Number of chunks that are re-ranked by their vectors.
const AMONG: u32 = 1_000;

/// A chunk that a model has not embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Artifact or output, and ordinal of the chunk.
    place: (Uuid, i64),
    /// Title of the artifact or output.
    pub title: String,
    /// Text of the chunk.
    pub text: String,
}

/// Embedding of a chunk; without a vector if the model rejected the chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    place: (Uuid, i64),
    vector: Option<Vector>,
}

impl Waiting {
    /// Adds the vector from the model.
    pub fn embedded(&self, vector: Option<Vector>) -> Embedded {
        let place = self.place;
        Embedded { place, vector }
    }
}

/// A hit of a nearest-neighbour search.
#[derive(Debug, Clone, PartialEq)]
pub struct Near {
    /// The hit, found by its nearest chunk.
    pub hit: Hit,
    /// Cosine similarity: 1 is the same direction, 0 is unrelated.
    pub likeness: f64,
}

/// Number of chunks in each embedding state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexHealth {
    /// All chunks.
    pub chunks: u64,
    /// Embedded by the current model.
    pub embedded: u64,
    /// Not embedded by the current model.
    pub waiting: u64,
    /// Rejected by the current model.
    pub refused: u64,
}

impl SearchIndex<'_> {
    /// Chunks that this model has not embedded.
    pub async fn chunks_waiting(&mut self, model: &str, limit: u32) -> Result<Vec<Waiting>, Error> {
        let rows = self
            .0
            .rows(Query::ChunksWaiting, params![model, limit])
            .await?;
        rows.into_iter()
            .map(|row| {
                let mut cells = row.cells("chunk_signs");
                Ok(Waiting {
                    place: (cells.id("source_id")?, cells.int("ordinal")?),
                    title: cells.maybe_string("title")?.unwrap_or_default(),
                    text: cells.maybe_string("piece")?.unwrap_or_default(),
                })
            })
            .collect()
    }

    /// Stores the embedding of a chunk, if the chunk still exists.
    pub fn set_vector(&mut self, model: &str, embedded: &Embedded) {
        let (source, ordinal) = embedded.place;
        let sign = embedded.vector.as_ref().map(Vector::sign_bits);
        let sign = (self.0.syntax().sign)(&sign.unwrap_or_default());
        // The sign first: its row lock serializes this with a concurrent deletion of the chunk.
        let params = params![source, ordinal, model, sign];
        self.0.queue(Statement::new(Query::SignSet, params));
        let statement = match &embedded.vector {
            Some(vector) => Statement::new(
                Query::VectorPut,
                params![source, ordinal, vector.to_bytes()],
            ),
            None => Statement::new(Query::VectorDrop, params![source, ordinal]),
        };
        self.0.queue(statement);
    }

    /// The nearest hits, nearest first. Ignores the words of the search.
    pub async fn nearest(
        &mut self,
        vector: &Vector,
        model: &str,
        search: &Search,
        limit: u32,
    ) -> Result<Vec<Near>, Error> {
        let mut found = Vec::new();
        for (chunk, bytes) in self.candidates(vector, model, search, AMONG).await? {
            let other = Vector::from_bytes(&bytes);
            if let Some(likeness) = other.and_then(|other| vector.cosine_similarity(&other)) {
                found.push((chunk, likeness));
            }
        }
        self.hits(best_of_each(found), limit).await
    }

    /// The chunks with the nearest signs among those that match, each with its vector.
    pub(crate) async fn candidates(
        &mut self,
        vector: &Vector,
        model: &str,
        search: &Search,
        count: u32,
    ) -> Result<Vec<Candidate>, Error> {
        let bits = vector.sign_bits();
        let sign = (self.0.syntax().sign)(&bits);
        let is_filtered = search.is_filtered();
        let scan = params![
            model,
            sign.clone(),
            count,
            is_filtered,
            search.plan.map(|id| *id.as_uuid()),
            search.kind.as_deref(),
            search.created_after,
            search.created_before,
        ];
        let by_index = Statement::new(Query::NearByIndex, params![model, sign, count]);
        let changes = Statement::new(Query::SignChanges, Vec::new());
        let search = NearestSearch {
            tenant: Arc::clone(self.0.tenant()),
            model: model.to_owned(),
            sign: bits,
            count,
            by_index: (!is_filtered).then_some(by_index),
            scan: Statement::new(Query::Near, scan),
            changes: (!is_filtered).then_some(changes),
            vector: Statement::new(Query::Vector, Vec::new()),
        };
        self.0.nearest(search).await
    }

    /// The artifacts, outputs and results of these chunks.
    async fn hits(
        &mut self,
        chunks: Vec<((Uuid, i64), f64)>,
        limit: u32,
    ) -> Result<Vec<Near>, Error> {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let chunks: Vec<_> = chunks.into_iter().take(most).collect();
        let questions = chunks.iter().map(|((source, ordinal), _)| {
            Statement::new(Query::NearHit, params![*source, *ordinal])
        });
        let questions = questions.collect();
        let answers = self.0.query(questions).await?.into_iter().zip(chunks);
        let mut found = Vec::new();
        for (rows, (_, likeness)) in answers {
            if let Some(hit) = first(Some(rows), hit)? {
                found.push(Near { hit, likeness });
            }
        }
        Ok(found)
    }

    /// Number of chunks of this tenant that a model has embedded; `None` on SQLite, which has no
    /// such index.
    pub async fn many(&mut self, model: &Arc<str>) -> Result<Option<Many>, Error> {
        if !self.0.syntax().has_sign_index {
            return Ok(None);
        }
        let rows = self.0.rows(Query::ManySigns, params![model, MANY]).await?;
        let (tenant, model) = (Arc::clone(self.0.tenant()), Arc::clone(model));
        first(Some(rows), |row| {
            let mut cells = row.cells("chunk_signs");
            Ok(Many {
                tenant,
                model,
                width: cells.u64("width")?,
                chunks: cells.u64("chunks")?,
            })
        })
    }

    /// Number of chunks in each state for the current model; without a model, all are waiting.
    pub async fn index_health(&mut self, model: Option<&str>) -> Result<IndexHealth, Error> {
        let mut health = IndexHealth::default();
        for row in self.0.rows(Query::ChunksByModel, params![]).await? {
            let mut cells = row.cells("chunk_signs");
            let embedded_by: Arc<str> = cells.text("model")?;
            let (chunks, refused) = (cells.u64("chunks")?, cells.u64("refused")?);
            health.chunks += chunks;
            if model == Some(&*embedded_by) {
                health.embedded += chunks.saturating_sub(refused);
                health.refused += refused;
            } else {
                health.waiting += chunks;
            }
        }
        Ok(health)
    }

    /// Deletes index entries whose source is missing.
    pub fn drop_lost_index(&mut self) {
        for name in [
            Query::ChunksDeleteLost,
            Query::SignsDeleteLost,
            Query::VectorsDeleteLost,
        ] {
            self.0.queue(Statement::new(name, Vec::new()));
        }
    }

    /// Splits a page of artifacts, outputs and results into chunks again, in the order of their ids. Returns
    /// the last id and the numbers of sources and chunks, if any.
    pub async fn reindex_page(
        &mut self,
        behind: Uuid,
        limit: u32,
    ) -> Result<Option<(Uuid, u64, u64)>, Error> {
        let rows = self
            .0
            .rows(Query::SourcesPage, params![behind, limit])
            .await?;
        let mut done = None;
        for row in rows {
            let mut cells = row.cells("artifacts");
            let id = cells.id("source_id")?;
            let (title, content) = (cells.text("title")?, cells.text("content")?);
            self.0
                .queue(Statement::new(Query::ChunksDeleteOfSource, params![id]));
            let chunks = self.index(id, &title, &content);
            let (_, sources, all) = done.unwrap_or((id, 0, 0));
            let chunks = u64::try_from(chunks).unwrap_or(u64::MAX);
            done = Some((id, sources + 1, all + chunks));
        }
        Ok(done)
    }
}

/// The nearest chunk of each artifact and output, nearest first.
fn best_of_each(found: Vec<((Uuid, i64), f64)>) -> Vec<((Uuid, i64), f64)> {
    let mut best: BTreeMap<Uuid, (i64, f64)> = BTreeMap::new();
    for ((source, ordinal), likeness) in found {
        let known = best.entry(source).or_insert((ordinal, likeness));
        let better =
            likeness > known.1 || (likeness.total_cmp(&known.1).is_eq() && ordinal < known.0);
        if better {
            *known = (ordinal, likeness);
        }
    }
    let mut best: Vec<_> = best
        .into_iter()
        .map(|(source, (ordinal, likeness))| ((source, ordinal), likeness))
        .collect();
    // Ids sort by creation time: of two equally near ones, the newer one comes first.
    best.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    best
}
