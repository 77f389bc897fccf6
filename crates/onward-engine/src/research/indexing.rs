//! Vector indexes on PostgreSQL with pgvector: created for tenants with enough chunks to justify
//! the cost, and dropped when no longer needed.
//!
//! An index only makes search faster; it finds nothing that a scan would miss. Indexing runs in the
//! background, and failures are retried. The store defines and builds the indexes.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{Distribution, Indexed, Many, SearchIndex, VectorExtension};
use tokio::sync::watch;

use crate::engine::Engine;
use crate::error::Error;

/// Interval between checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(600);

impl Engine {
    /// Maintains the indexes until stopped. Returns immediately without a server or an embedding
    /// model.
    pub async fn run_indexer(
        &self,
        mut stop: watch::Receiver<bool>,
        mut on_round: impl FnMut(&Result<Indexed, Error>) + Send,
    ) {
        if self.embeddings.is_none() || !self.store.is_on_server() {
            return;
        }
        while !*stop.borrow() {
            tokio::select! {
                done = self.update_indexes() => on_round(&done),
                _ = stop.wait_for(|stop| *stop) => return,
            }
            tokio::select! {
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Creates and drops indexes for all tenants, once. May take minutes; does not block other
    /// work.
    pub async fn update_indexes(&self) -> Result<Indexed, Error> {
        let Some(embeddings) = &self.embeddings else {
            return Ok(Indexed::default());
        };
        let model: Arc<str> = Arc::from(embeddings.model());
        let mut many = Vec::new();
        for tenant in self.tenants().await? {
            let model_name = Arc::clone(&model);
            let counted = self.store.read(&tenant.name, move |tx| {
                let model_name = Arc::clone(&model_name);
                Box::pin(async move { SearchIndex(tx).many(&model_name).await })
            });
            let counted: Option<Many> = counted.await.map_err(Error::Store)?;
            many.extend(counted);
        }
        Ok(self.store.index_signs(&many).await?)
    }

    /// The nodes of a distributed database; `None` if it is not distributed.
    pub async fn distribution(&self) -> Result<Option<Distribution>, Error> {
        Ok(self.store.distribution().await?)
    }

    /// Whether the server supports vector indexes; `None` on SQLite.
    pub async fn vector_extension(&self) -> Result<Option<VectorExtension>, Error> {
        Ok(self.store.vector_extension().await?)
    }
}
