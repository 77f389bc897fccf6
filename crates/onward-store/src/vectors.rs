//! What chunks mean: which of them wait for a model, what it said of them, and which are near to a query.
//!
//! A search looks through the signs of all chunks, a bit for each of their numbers, and compares the
//! numbers themselves only of those whose signs are nearest. So it costs little on both databases, and
//! needs no extension of either; a server that has pgvector finds the nearest signs by an index, where a
//! tenant has many. What is held in memory is bounded: those few, and
//! on SQLite the signs.

use std::collections::BTreeMap;
use std::sync::Arc;

use onward_core::search::Vector;
use uuid::Uuid;

use crate::backend::sqlite;
use crate::error::Error;
use crate::facts::first;
use crate::search::{Hit, Search, hit};
use crate::tx::{Connection, Statement, Tx};
use crate::value::{IntoValue, Row, Value, params};

/// How many chunks are compared number by number.
const AMONG: u32 = 1_000;

/// From so many chunks on a tenant has an index of their signs, on a server that can have one. With fewer,
/// looking at all of them takes hardly longer.
pub const MANY: u64 = 20_000;

/// A chunk that a model has not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The artifact or output, and the how many-th of its chunks.
    place: (Uuid, i64),
    /// What that is called.
    pub title: String,
    /// The chunk.
    pub text: String,
}

/// What a model said of a chunk; nothing where it refused it.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    place: (Uuid, i64),
    vector: Option<Vector>,
}

impl Waiting {
    /// What the model said of it.
    pub fn embedded(&self, vector: Option<Vector>) -> Embedded {
        let place = self.place;
        Embedded { place, vector }
    }
}

/// Something that is near to what was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Near {
    /// What, by the nearest of its chunks.
    pub hit: Hit,
    /// How near: 1 is the same direction, 0 nothing in common.
    pub likeness: f64,
}

/// How many chunks there are, and what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexHealth {
    /// All chunks.
    pub chunks: u64,
    /// Those that can be found by what they mean.
    pub embedded: u64,
    /// Those that the model of today has not seen.
    pub waiting: u64,
    /// Those that it refused.
    pub refused: u64,
}

/// Which chunks are asked for: so many whose signs are nearest, of what fits.
pub(crate) struct Asked<'a> {
    pub(crate) vector: &'a Vector,
    pub(crate) model: &'a str,
    pub(crate) search: &'a Search,
    pub(crate) among: u32,
}

/// A tenant's chunks, as one model sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Many {
    /// Whose.
    pub tenant: Arc<str>,
    /// Which model.
    pub model: Arc<str>,
    /// How many numbers it gives.
    pub width: u64,
    /// How many chunks, counted no further than [`MANY`].
    pub chunks: u64,
}

/// What became of the indexes of signs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Indexed {
    /// How many were built.
    pub made: u64,
    /// How many nobody needs any more, or were left half built.
    pub dropped: u64,
}

/// Whether a server can find the nearest signs by an index, which takes the extension pgvector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pgvector {
    /// It can.
    Used {
        /// The version.
        version: String,
        /// How many indexes there are.
        indexes: u64,
    },
    /// It could, if somebody created the extension in this database.
    Available {
        /// The version that would be created.
        version: String,
    },
    /// The extension is too old.
    TooOld {
        /// The version that is created.
        version: String,
        /// One that the server has, too, and that would do.
        newer: Option<String>,
    },
    /// It has no pgvector that would do.
    Missing,
}

impl Tx {
    /// Chunks that this model has not seen.
    pub async fn chunks_waiting(&mut self, model: &str, limit: u32) -> Result<Vec<Waiting>, Error> {
        let rows = self.rows("chunks_waiting", params![model, limit]).await?;
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

    /// Keeps what a model said of a chunk, if that is still there.
    pub fn set_vector(&mut self, model: &str, embedded: &Embedded) {
        let (source, ordinal) = embedded.place;
        let sign = embedded.vector.as_ref().map(Vector::sign);
        let sign = self.sign(&sign.unwrap_or_default());
        // The sign first: whoever deletes the chunk meanwhile waits for it, or is waited for.
        let params = params![source, ordinal, model, sign];
        self.queue(self.statement("sign_set", params));
        let statement = match &embedded.vector {
            Some(vector) => {
                self.statement("vector_put", params![source, ordinal, vector.to_bytes()])
            }
            None => self.statement("vector_drop", params![source, ordinal]),
        };
        self.queue(statement);
    }

    /// A sign as this database keeps it.
    fn sign(&self, sign: &[bool]) -> Value {
        match &self.connection {
            Connection::Sqlite(_) => Vector::packed(sign).into_value(),
            Connection::Postgres(_) => {
                let bits = sign.iter().map(|bit| if *bit { '1' } else { '0' });
                bits.collect::<String>().into_value()
            }
        }
    }

    /// What is nearest, the nearest first. The words of the search are not looked at.
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
        // What is queued is sent first, as in front of every question.
        self.ask(Vec::new()).await?;
        let mut found = Vec::new();
        let mut keep = |place: (Uuid, i64), bytes: &[u8]| {
            let likeness = Vector::from_bytes(bytes).and_then(|other| vector.likeness(&other));
            if let Some(likeness) = likeness {
                found.push((place, likeness));
            }
        };
        if let Connection::Sqlite(connection) = &self.connection {
            let (near, vectors) = (self.near(&asked), self.statement("vector", Vec::new()));
            let sign = Vector::packed(&vector.sign());
            let changes = self.statement("sign_changes", Vec::new());
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

    /// What finds the chunks whose signs are nearest, of what fits.
    fn near(&self, asked: &Asked<'_>) -> Statement {
        let Asked {
            vector,
            model,
            search,
            among,
        } = asked;
        let params = params![
            *model,
            self.sign(&vector.sign()),
            *among,
            search.is_filtered(),
            search.plan.map(|id| *id.as_uuid()),
            search.kind.as_deref(),
            search.created_after,
            search.created_before,
        ];
        self.statement("near", params)
    }

    /// These chunks with their numbers, on a server. Where nothing is filtered, the tenant's index is asked
    /// first. Where there is none, or it knows fewer than are asked for, all chunks are looked at.
    pub(crate) async fn near_rows(&mut self, asked: &Asked<'_>) -> Result<Vec<Row>, Error> {
        if !asked.search.is_filtered() {
            let sign = self.sign(&asked.vector.sign());
            let params = params![asked.model, sign, asked.among];
            let rows = self.rows("near_by_index", params).await?;
            if u32::try_from(rows.len()).is_ok_and(|rows| rows >= asked.among) {
                return Ok(rows);
            }
        }
        let near = self.near(asked);
        Ok(self.ask(vec![near]).await?.pop().unwrap_or_default())
    }

    /// What these chunks belong to.
    async fn hits(
        &mut self,
        chunks: Vec<((Uuid, i64), f64)>,
        limit: u32,
    ) -> Result<Vec<Near>, Error> {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let chunks: Vec<_> = chunks.into_iter().take(most).collect();
        let questions = chunks
            .iter()
            .map(|((source, ordinal), _)| self.statement("near_hit", params![*source, *ordinal]));
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

    /// How many chunks a model has seen, where an index could be of use to this tenant.
    pub async fn many(&mut self, model: &Arc<str>) -> Result<Option<Many>, Error> {
        if matches!(self.connection, Connection::Sqlite(_)) {
            return Ok(None);
        }
        let rows = self.rows("many_signs", params![model, MANY]).await?;
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

    /// How much of the index the model of today has seen; all of it waits where there is none.
    pub async fn index_health(&mut self, model: Option<&str>) -> Result<IndexHealth, Error> {
        let mut health = IndexHealth::default();
        for row in self.rows("chunks_by_model", params![]).await? {
            let mut cells = row.cells("chunk_signs");
            let of: Arc<str> = cells.text("model")?;
            let (chunks, refused) = (cells.u64("chunks")?, cells.u64("refused")?);
            health.chunks += chunks;
            if model == Some(&*of) {
                health.embedded += chunks.saturating_sub(refused);
                health.refused += refused;
            } else {
                health.waiting += chunks;
            }
        }
        Ok(health)
    }

    /// Takes out of the index what belongs to nothing.
    pub fn drop_lost_index(&mut self) {
        for name in [
            "chunks_delete_lost",
            "signs_delete_lost",
            "vectors_delete_lost",
        ] {
            self.queue(self.statement(name, Vec::new()));
        }
    }

    /// Cuts a page of what is searched into its chunks anew, by ids; the last id, if there was any.
    pub async fn reindex_page(
        &mut self,
        behind: Uuid,
        limit: u32,
    ) -> Result<Option<(Uuid, u64, u64)>, Error> {
        let rows = self.rows("sources_page", params![behind, limit]).await?;
        let mut done = None;
        for row in rows {
            let mut cells = row.cells("artifacts");
            let id = cells.id("source_id")?;
            let (title, content) = (cells.text("title")?, cells.text("content")?);
            self.queue(self.statement("chunks_delete_of_source", params![id]));
            let chunks = self.index(id, &title, &content);
            let (_, sources, all) = done.unwrap_or((id, 0, 0));
            let chunks = u64::try_from(chunks).unwrap_or(u64::MAX);
            done = Some((id, sources + 1, all + chunks));
        }
        Ok(done)
    }
}

/// The nearest chunk of each artifact and output, the nearest first.
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
    // Ids sort by the time at which they were made: of two that are as near, the newer one.
    best.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    best
}
