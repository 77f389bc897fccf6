//! Which chunks are near: the signs of all are looked through one after the other, none is kept but the
//! nearest, and of those the numbers are read.

use std::collections::BinaryHeap;

use onward_core::search::apart;
use rusqlite::types::ValueRef;
use uuid::Uuid;

use super::{Connection, error};
use crate::error::{Corrupt, Error};
use crate::sql::{self, Dialect};
use crate::tx::Statement;

impl Connection {
    /// Hands on the numbers of the chunks whose signs are nearest, in no order.
    pub(crate) fn near(
        &self,
        signs: &Statement,
        vectors: &Statement,
        sign: &[u8],
        among: u32,
        mut keep: impl FnMut((Uuid, i64), &[u8]),
    ) -> Result<(), Error> {
        let failed = |why| error::running(why, vectors.name);
        let text = sql::text(vectors.name, Dialect::Sqlite);
        let mut prepared = self.file.prepare_cached(text).map_err(failed)?;
        let tenant = vectors.params.first();
        for (_, source, ordinal) in self.nearest_signs(signs, sign, among)? {
            let id = Uuid::from_bytes(source);
            let params = rusqlite::params![tenant, source, ordinal];
            let mut rows = prepared.query(params).map_err(failed)?;
            if let Some(row) = rows.next().map_err(failed)? {
                match row.get_ref(0).map_err(failed)? {
                    ValueRef::Blob(bytes) => keep((id, ordinal), bytes),
                    ValueRef::Null
                    | ValueRef::Integer(_)
                    | ValueRef::Real(_)
                    | ValueRef::Text(_) => {
                        return Err(corrupt("vectors", "vector", id, "holds no bytes"));
                    }
                }
            }
        }
        Ok(())
    }

    fn nearest_signs(
        &self,
        signs: &Statement,
        sign: &[u8],
        among: u32,
    ) -> Result<BinaryHeap<(u32, [u8; 16], i64)>, Error> {
        let failed = |why| error::running(why, signs.name);
        let text = sql::text(signs.name, Dialect::Sqlite);
        let mut prepared = self.file.prepare_cached(text).map_err(failed)?;
        let params = rusqlite::params_from_iter(&signs.params);
        let mut rows = prepared.query(params).map_err(failed)?;
        let most = usize::try_from(among).unwrap_or(usize::MAX);
        // The farthest of those that are kept is on top.
        let mut nearest: BinaryHeap<(u32, [u8; 16], i64)> =
            BinaryHeap::with_capacity(most.min(4_096) + 1);
        while let Some(row) = rows.next().map_err(failed)? {
            let ValueRef::Blob(other) = row.get_ref(2).map_err(failed)? else {
                return Err(corrupt(
                    "chunk_signs",
                    "sign",
                    Uuid::nil(),
                    "holds no bytes",
                ));
            };
            if other.len() != sign.len() {
                continue;
            }
            let far = apart(sign, other);
            let full = nearest.len() == most;
            if full && nearest.peek().is_some_and(|(farthest, ..)| far > *farthest) {
                continue;
            }
            let source: [u8; 16] = row.get(0).map_err(failed)?;
            nearest.push((far, source, row.get(1).map_err(failed)?));
            if full {
                nearest.pop();
            }
        }
        Ok(nearest)
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
