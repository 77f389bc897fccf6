//! Nearest-neighbour search: compares the sign bits of all matching chunks, from the cache or
//! streamed from the file, keeps only the nearest ones, and reads their vectors for re-ranking.

use std::collections::BinaryHeap;

use onward_core::search::{Vector, hamming_distance};
use rusqlite::OptionalExtension as _;
use rusqlite::types::ValueRef;
use uuid::Uuid;

use super::file::File;
use super::sign_bit_cache::Signs;
use super::{error, statement_text};
use crate::backend::{Candidate, NearestSearch};
use crate::error::{Corrupt, Error};
use crate::statement::Statement;

/// The nearest chunks so far; the farthest of them is on top of the heap.
struct Nearest {
    most: usize,
    heap: BinaryHeap<(u32, ([u8; 16], i64))>,
}

impl Nearest {
    fn new(count: u32) -> Self {
        let most = usize::try_from(count).unwrap_or(usize::MAX);
        let heap = BinaryHeap::with_capacity(most.min(4_096) + 1);
        Self { most, heap }
    }

    /// Adds a chunk, if it is one of the nearest.
    fn add(&mut self, distance: u32, place: ([u8; 16], i64)) {
        let farthest = self.heap.peek();
        if self.heap.len() >= self.most && farthest.is_none_or(|(farthest, _)| distance > *farthest)
        {
            return;
        }
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

/// The chunks with the nearest signs, with their vectors.
pub(super) fn nearest(file: &File, search: &NearestSearch) -> Result<Vec<Candidate>, Error> {
    let sign = Vector::pack_bits(&search.sign);
    let query = search.vector.query;
    let failed = |why| error::running(why, query.name());
    let mut prepared = file
        .file
        .prepare_cached(statement_text::text(query)?.0)
        .map_err(failed)?;
    let mut found = Vec::new();
    for (source, ordinal) in nearest_signs(file, search, &sign)?.places() {
        let id = Uuid::from_bytes(source);
        let params = rusqlite::params![search.tenant, source, ordinal];
        let mut rows = prepared.query(params).map_err(failed)?;
        if let Some(row) = rows.next().map_err(failed)? {
            let ValueRef::Blob(bytes) = row.get_ref(0).map_err(failed)? else {
                return Err(corrupt("vectors", "vector", id, "does not contain bytes"));
            };
            found.push(((id, ordinal), bytes.into()));
        }
    }
    Ok(found)
}

fn nearest_signs(file: &File, search: &NearestSearch, sign: &[u8]) -> Result<Nearest, Error> {
    let Some(changes) = &search.changes else {
        return read_signs(file, search, sign, |_, _| ());
    };
    let changes = sign_changes(file, changes)?;
    let (tenant, model) = (&search.tenant, &search.model);
    if let Some(cached) = file.signs.get(tenant, model, changes) {
        let mut nearest = Nearest::new(search.count);
        for (distance, place) in cached.hamming_distances(sign) {
            nearest.add(distance, place);
        }
        return Ok(nearest);
    }
    let mut read = Some(Signs::empty(tenant, model, changes, sign.len()));
    let nearest = read_signs(file, search, sign, |place, sign| {
        if read.as_mut().is_some_and(|read| !read.add(place, sign)) {
            read = None;
        }
    })?;
    read.into_iter().for_each(|read| file.signs.put(read));
    Ok(nearest)
}

/// Streams the signs from the file, and passes each one to `each`.
fn read_signs(
    file: &File,
    search: &NearestSearch,
    sign: &[u8],
    mut each: impl FnMut(([u8; 16], i64), &[u8]),
) -> Result<Nearest, Error> {
    let Statement { query, params, .. } = &search.scan;
    let failed = |why| error::running(why, query.name());
    let mut prepared = file
        .file
        .prepare_cached(statement_text::text(*query)?.0)
        .map_err(failed)?;
    let mut rows = prepared
        .query(rusqlite::params_from_iter(params))
        .map_err(failed)?;
    let mut nearest = Nearest::new(search.count);
    while let Some(row) = rows.next().map_err(failed)? {
        let ValueRef::Blob(other) = row.get_ref(2).map_err(failed)? else {
            let why = "does not contain bytes";
            return Err(corrupt("chunk_signs", "sign", Uuid::nil(), why));
        };
        if other.len() != sign.len() {
            continue;
        }
        let source: [u8; 16] = row.get(0).map_err(failed)?;
        let place = (source, row.get(1).map_err(failed)?);
        each(place, other);
        nearest.add(hamming_distance(sign, other), place);
    }
    Ok(nearest)
}

/// Change count of the tenant's signs, in the snapshot of this reader.
fn sign_changes(file: &File, changes: &Statement) -> Result<i64, Error> {
    let Statement { query, params, .. } = changes;
    let failed = |why| error::running(why, query.name());
    let mut prepared = file
        .file
        .prepare_cached(statement_text::text(*query)?.0)
        .map_err(failed)?;
    let params = rusqlite::params_from_iter(params);
    let found = prepared.query_row(params, |row| row.get(0)).optional();
    Ok(found.map_err(failed)?.unwrap_or(0))
}

fn corrupt(table: &'static str, column: &'static str, row: Uuid, why: &str) -> Error {
    Error::from(Corrupt {
        table,
        column,
        row: row.to_string(),
        why: why.to_owned(),
    })
}
