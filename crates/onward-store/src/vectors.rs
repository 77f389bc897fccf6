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

use crate::backend::sqlite;
use crate::error::Error;
use crate::facts::first;
use crate::query::Query;
use crate::search::{Hit, Search, hit};
use crate::statement::Statement;
use crate::tx::{Connection, Tx};
use crate::value::{IntoValue, Row, Value, params};

/// Number of chunks that are re-ranked by their vectors.
const AMONG: u32 = 1_000;

/// Number of chunks from which a tenant has a sign-bit index, if the server supports it. With
/// fewer, a full scan takes little longer.
pub const MANY: u64 = 20_000;

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

/// Parameters of a search: the number of chunks with the nearest signs, among those that match.
pub(crate) struct Asked<'a> {
    pub(crate) vector: &'a Vector,
    pub(crate) model: &'a str,
    pub(crate) search: &'a Search,
    pub(crate) among: u32,
}

/// Chunks of a tenant, embedded by one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Many {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The model.
    pub model: Arc<str>,
    /// Number of dimensions.
    pub width: u64,
    /// Number of chunks, counted up to [`MANY`].
    pub chunks: u64,
}

/// Changes to the sign-bit indexes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Number of indexes built.
    pub made: u64,
    /// Number of indexes dropped because they were no longer needed, or invalid.
    pub dropped: u64,
}

/// State of the extension pgvector, which sign-bit indexes require.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pgvector {
    /// Created and supported.
    Used {
        /// Its version.
        version: String,
        /// Number of indexes.
        indexes: u64,
    },
    /// Available, but not created in this database.
    Available {
        /// Version that would be created.
        version: String,
    },
    /// Created, but too old.
    TooOld {
        /// Its version.
        version: String,
        /// Supported version that the server provides.
        newer: Option<String>,
    },
    /// Not available in a supported version.
    Missing,
}

impl Tx {
    /// Chunks that this model has not embedded.
    pub async fn chunks_waiting(&mut self, model: &str, limit: u32) -> Result<Vec<Waiting>, Error> {
        let rows = self
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
        let sign = self.sign(&sign.unwrap_or_default());
        // The sign first: its row lock serializes this with a concurrent deletion of the chunk.
        let params = params![source, ordinal, model, sign];
        self.queue(self.statement(Query::SignSet, params));
        let statement = match &embedded.vector {
            Some(vector) => self.statement(
                Query::VectorPut,
                params![source, ordinal, vector.to_bytes()],
            ),
            None => self.statement(Query::VectorDrop, params![source, ordinal]),
        };
        self.queue(statement);
    }

    /// A sign in the format of this database.
    fn sign(&self, sign: &[bool]) -> Value {
        match &self.connection {
            Connection::Sqlite(_) => Vector::pack_bits(sign).into_value(),
            Connection::Postgres(_) => {
                let bits = sign.iter().map(|bit| if *bit { '1' } else { '0' });
                bits.collect::<String>().into_value()
            }
        }
    }

    /// The nearest hits, nearest first. Ignores the words of the search.
    pub async fn nearest(
        &mut self,
        vector: &Vector,
        model: &str,
        search: &Search,
        limit: u32,
    ) -> Result<Vec<Near>, Error> {
        let asked = Asked {
            vector,
            model,
            search,
            among: AMONG,
        };
        // Queued writes are sent first, as before every query.
        self.ask(Vec::new()).await?;
        let mut found = Vec::new();
        let mut keep = |place: (Uuid, i64), bytes: &[u8]| {
            let likeness =
                Vector::from_bytes(bytes).and_then(|other| vector.cosine_similarity(&other));
            if let Some(likeness) = likeness {
                found.push((place, likeness));
            }
        };
        if let Connection::Sqlite(connection) = &self.connection {
            let (near, vectors) = (self.near(&asked), self.statement(Query::Vector, Vec::new()));
            let sign = Vector::pack_bits(&vector.sign_bits());
            let changes = self.statement(Query::SignChanges, Vec::new());
            let asked = sqlite::Asked {
                tenant: self.tenant(),
                model,
                sign: &sign,
                among: AMONG,
                signs: &near,
                changes: (!search.is_filtered()).then_some(&changes),
                vectors: &vectors,
            };
            connection.near(&asked, keep)?;
        } else {
            for row in self.near_rows(&asked).await? {
                let mut cells = row.cells("vectors");
                let place = (cells.id("source_id")?, cells.int("ordinal")?);
                keep(place, &cells.bytes("vector")?);
            }
        }
        self.hits(best_of_each(found), limit).await
    }

    /// The statement that finds the chunks with the nearest signs, among those that match.
    fn near(&self, asked: &Asked<'_>) -> Statement {
        let Asked {
            vector,
            model,
            search,
            among,
        } = asked;
        let params = params![
            *model,
            self.sign(&vector.sign_bits()),
            *among,
            search.is_filtered(),
            search.plan.map(|id| *id.as_uuid()),
            search.kind.as_deref(),
            search.created_after,
            search.created_before,
        ];
        self.statement(Query::Near, params)
    }

    /// These chunks with their vectors, on a server. An unfiltered search tries the tenant's index
    /// first. Without an index, or if it finds fewer chunks than requested, all chunks are scanned.
    pub(crate) async fn near_rows(&mut self, asked: &Asked<'_>) -> Result<Vec<Row>, Error> {
        if !asked.search.is_filtered() {
            let sign = self.sign(&asked.vector.sign_bits());
            let params = params![asked.model, sign, asked.among];
            let rows = self.rows(Query::NearByIndex, params).await?;
            if u32::try_from(rows.len()).is_ok_and(|rows| rows >= asked.among) {
                return Ok(rows);
            }
        }
        let near = self.near(asked);
        Ok(self.ask(vec![near]).await?.pop().unwrap_or_default())
    }

    /// The artifacts and outputs of these chunks.
    async fn hits(
        &mut self,
        chunks: Vec<((Uuid, i64), f64)>,
        limit: u32,
    ) -> Result<Vec<Near>, Error> {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let chunks: Vec<_> = chunks.into_iter().take(most).collect();
        let questions = chunks.iter().map(|((source, ordinal), _)| {
            self.statement(Query::NearHit, params![*source, *ordinal])
        });
        let questions = questions.collect();
        let answers = self.ask(questions).await?.into_iter().zip(chunks);
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
        if matches!(self.connection, Connection::Sqlite(_)) {
            return Ok(None);
        }
        let rows = self.rows(Query::ManySigns, params![model, MANY]).await?;
        let (tenant, model) = (Arc::clone(self.tenant()), Arc::clone(model));
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
        for row in self.rows(Query::ChunksByModel, params![]).await? {
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
            self.queue(self.statement(name, Vec::new()));
        }
    }

    /// Splits a page of artifacts and outputs into chunks again, in the order of their ids. Returns
    /// the last id and the numbers of sources and chunks, if any.
    pub async fn reindex_page(
        &mut self,
        behind: Uuid,
        limit: u32,
    ) -> Result<Option<(Uuid, u64, u64)>, Error> {
        let rows = self
            .rows(Query::SourcesPage, params![behind, limit])
            .await?;
        let mut done = None;
        for row in rows {
            let mut cells = row.cells("artifacts");
            let id = cells.id("source_id")?;
            let (title, content) = (cells.text("title")?, cells.text("content")?);
            self.queue(self.statement(Query::ChunksDeleteOfSource, params![id]));
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
