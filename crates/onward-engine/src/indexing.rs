//! Indexes of what chunks mean, on a PostgreSQL with pgvector: who has so many chunks that one is worth its
//! cost gets one, and whoever has no use for it any more loses it.
//!
//! Nothing is found by them that would not be found without, only sooner. So nobody waits for this, and
//! what fails here is tried again later. What an index is, and how it is built, is the store's business.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{Indexed, Many, Pgvector};
use tokio::sync::watch;

use crate::engine::Engine;
use crate::error::Error;

/// How often is looked whether somebody has many chunks by now.
const LOOK: Duration = Duration::from_secs(600);

impl Engine {
    /// Sees to the indexes until it is told to stop. Ends at once on a file, or where there is no model.
    pub async fn keep_indexing(
        &self,
        mut stop: watch::Receiver<bool>,
        mut tell: impl FnMut(&Result<Indexed, Error>) + Send,
    ) {
        if self.meaning.is_none() || self.store.file().is_some() {
            return;
        }
        while !*stop.borrow() {
            tokio::select! {
                done = self.index_signs() => tell(&done),
                _ = stop.wait_for(|stop| *stop) => return,
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Sees to the indexes of all tenants, once. It may take minutes, and nobody is in its way.
    pub async fn index_signs(&self) -> Result<Indexed, Error> {
        let Some(meaning) = &self.meaning else {
            return Ok(Indexed::default());
        };
        let model: Arc<str> = Arc::from(meaning.model());
        let mut many = Vec::new();
        for tenant in self.tenants().await? {
            let of = Arc::clone(&model);
            let counted = self.store.read(&tenant.name, move |tx| {
                let of = Arc::clone(&of);
                Box::pin(async move { tx.many(&of).await })
            });
            let counted: Option<Many> = counted.await.map_err(Error::Store)?;
            many.extend(counted);
        }
        Ok(self.store.index_signs(&many).await?)
    }

    /// Whether the server can have such indexes; none for a file.
    pub async fn pgvector(&self) -> Result<Option<Pgvector>, Error> {
        Ok(self.store.pgvector().await?)
    }
}
