//! Integrity checks of the search index and of the database itself.

use std::sync::Arc;

use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::params;

/// Integrity checks.
pub struct Integrity<'t>(pub &'t mut Tx);

impl Integrity<'_> {
    /// Number of chunks, and inconsistencies of the search index with their counts.
    pub async fn index_faults(&mut self) -> Result<(u64, Vec<(Arc<str>, u64)>), Error> {
        let (mut chunks, mut faults) = (0, Vec::new());
        for row in self.0.rows(Query::IndexFaults, params![]).await? {
            let mut cells = row.cells("chunks");
            let (what, many) = (cells.text("what")?, cells.u64("many")?);
            match &*what {
                "chunks" => chunks = many,
                _ if many > 0 => faults.push((what, many)),
                _ => {}
            }
        }
        Ok((chunks, faults))
    }

    /// Integrity errors of the database file; empty if it is intact.
    pub async fn file_faults(&mut self) -> Result<Vec<String>, Error> {
        let questions = [Query::QuickCheckBegin, Query::QuickCheck];
        let questions = questions.map(|name| Statement::without_tenant(name, params![]));
        let rows = self
            .0
            .query(questions.into())
            .await?
            .pop()
            .unwrap_or_default();
        let mut faults = Vec::new();
        for row in rows {
            let line = row.cells("(file)").string("quick_check")?;
            if line != "ok" {
                faults.push(line);
            }
        }
        Ok(faults)
    }
}
