//! Nearest-neighbour search: compares the sign bits of all matching chunks, from the cache or
//! streamed from the file, keeps only the nearest ones, and reads their vectors for re-ranking.

use std::collections::BinaryHeap;

use onward_core::search::hamming_distance;
use rusqlite::OptionalExtension as _;
use rusqlite::types::ValueRef;
use uuid::Uuid;

use super::held::Signs;
use super::{Connection, error};
use crate::error::{Corrupt, Error};
use crate::query::Dialect;
use crate::statement::Statement;

/// Parameters of a search.
pub(crate) struct Asked<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) model: &'a str,
    pub(crate) sign: &'a [u8],
    /// Number of nearest chunks to find.
    pub(crate) among: u32,
    /// Reads the signs of the matching chunks.
    pub(crate) signs: &'a Statement,
    /// Reads the change count that validates cached signs; `None` if the search is filtered.
    pub(crate) changes: Option<&'a Statement>,
    /// Reads the vector of a chunk.
    pub(crate) vectors: &'a Statement,
}

/// The nearest chunks so far; the farthest of them is on top of the heap.
struct Nearest {
    most: usize,
    heap: BinaryHeap<(u32, ([u8; 16], i64))>,
}

impl Nearest {
    fn of(among: u32) -> Self {
        let most = usize::try_from(among).unwrap_or(usize::MAX);
        let heap = BinaryHeap::with_capacity(most.min(4_096) + 1);
        Self { most, heap }
    }

    /// Whether a chunk at this distance could be one of them.
    fn takes(&self, distance: u32) -> bool {
        let farthest = self.heap.peek();
        self.heap.len() < self.most || farthest.is_some_and(|(farthest, _)| distance <= *farthest)
    }

    fn add(&mut self, distance: u32, place: ([u8; 16], i64)) {
        self.heap.push((distance, place));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }

    /// Their keys, in the order of the file.
    fn places(self) -> Vec<([u8; 16], i64)> {
        let mut places: Vec<_> = self.heap.into_iter().map(|(_, place)| place).collect();
        places.sort_unstable();
        places
    }
}

impl Connection {
    /// Passes the vectors of the chunks with the nearest signs to `keep`.
    pub(crate) fn near(
        &self,
        asked: &Asked<'_>,
        mut keep: impl FnMut((Uuid, i64), &[u8]),
    ) -> Result<(), Error> {
        let failed = |why| error::running(why, asked.vectors.query.name());
        let text = asked.vectors.query.text(Dialect::Sqlite);
        let mut prepared = self.file.prepare_cached(text).map_err(failed)?;
        for (source, ordinal) in self.nearest_signs(asked)?.places() {
            let id = Uuid::from_bytes(source);
            let params = rusqlite::params![asked.tenant, source, ordinal];
            let mut rows = prepared.query(params).map_err(failed)?;
            if let Some(row) = rows.next().map_err(failed)? {
                match row.get_ref(0).map_err(failed)? {
                    ValueRef::Blob(bytes) => keep((id, ordinal), bytes),
                    ValueRef::Null
                    | ValueRef::Integer(_)
                    | ValueRef::Real(_)
                    | ValueRef::Text(_) => {
                        return Err(corrupt("vectors", "vector", id, "does not contain bytes"));
                    }
                }
            }
        }
        Ok(())
    }

    fn nearest_signs(&self, asked: &Asked<'_>) -> Result<Nearest, Error> {
        let Some(changes) = asked.changes else {
            return self.read_signs(asked, |_, _| ());
        };
        let changes = self.sign_changes(changes)?;
        if let Some(held) = self.held.get(asked.tenant, asked.model, changes) {
            let mut nearest = Nearest::of(asked.among);
            for (distance, place) in held.apart(asked.sign) {
                if nearest.takes(distance) {
                    nearest.add(distance, place);
                }
            }
            return Ok(nearest);
        }
        let (tenant, bytes) = (asked.tenant, asked.sign.len());
        let mut read = Some(Signs::none(tenant, asked.model, changes, bytes));
        let nearest = self.read_signs(asked, |place, sign| {
            if read.as_mut().is_some_and(|read| !read.add(place, sign)) {
                read = None;
            }
        })?;
        read.into_iter().for_each(|read| self.held.put(read));
        Ok(nearest)
    }

    /// Streams the signs from the file, and passes each one to `each`.
    fn read_signs(
        &self,
        asked: &Asked<'_>,
        mut each: impl FnMut(([u8; 16], i64), &[u8]),
    ) -> Result<Nearest, Error> {
        let signs = asked.signs;
        let failed = |why| error::running(why, signs.query.name());
        let text = signs.query.text(Dialect::Sqlite);
        let mut prepared = self.file.prepare_cached(text).map_err(failed)?;
        let params = rusqlite::params_from_iter(&signs.params);
        let mut rows = prepared.query(params).map_err(failed)?;
        let mut nearest = Nearest::of(asked.among);
        while let Some(row) = rows.next().map_err(failed)? {
            let ValueRef::Blob(other) = row.get_ref(2).map_err(failed)? else {
                let why = "does not contain bytes";
                return Err(corrupt("chunk_signs", "sign", Uuid::nil(), why));
            };
            if other.len() != asked.sign.len() {
                continue;
            }
            let source: [u8; 16] = row.get(0).map_err(failed)?;
            let place = (source, row.get(1).map_err(failed)?);
            each(place, other);
            let distance = hamming_distance(asked.sign, other);
            if nearest.takes(distance) {
                nearest.add(distance, place);
            }
        }
        Ok(nearest)
    }

    /// Change count of the tenant's signs, in the snapshot of this reader.
    fn sign_changes(&self, changes: &Statement) -> Result<i64, Error> {
        let failed = |why| error::running(why, changes.query.name());
        let text = changes.query.text(Dialect::Sqlite);
        let mut prepared = self.file.prepare_cached(text).map_err(failed)?;
        let params = rusqlite::params_from_iter(&changes.params);
        let found = prepared.query_row(params, |row| row.get(0)).optional();
        Ok(found.map_err(failed)?.unwrap_or(0))
    }
}

fn corrupt(table: &'static str, column: &'static str, row: Uuid, why: &str) -> Error {
    Error::Corrupt(Corrupt {
        table,
        column,
        row: row.to_string(),
        why: why.to_owned(),
    })
}
