//! Embeds chunks: one process per database sends them to the embedding model in batches, while
//! there are chunks that the current model has not embedded.
//!
//! The chunks themselves are the queue, so a process that takes over after a crash or a change of
//! model finds the remaining work in the database. [`Embedder`] implementations call the model. If
//! the model is unavailable, only embedding stops, and it is retried with backoff.

use std::sync::Arc;
use std::time::Duration;

use onward_core::role::Permission;
use onward_core::search::Vector;
use onward_store::{Embedded, IndexHealth, Lead, SearchIndex, Waiting};
use tokio::sync::watch;
use uuid::Uuid;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::engine::embedder::EmbeddingState;
use crate::error::Error;

pub use crate::engine::embedder::{Embedder, EmbedderError, EmbedderFailure, Embedding, Purpose};

/// Interval at which chunks stored by other processes are polled.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Initial delay after a failure; doubles up to `MAX_RETRY_DELAY`.
const RETRY_DELAY: Duration = Duration::from_secs(5);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(120);
/// After a failure, searches skip the model for this long.
const SKIP_AFTER_FAILURE: Duration = Duration::from_secs(30);
/// Number of artifacts, outputs and results per transaction when reindexing.
const REINDEX_BATCH: u32 = 16;
/// A text that every model accepts, to detect a misconfigured model.
const PLAIN_TEXT: &str = "onward";

/// Result of one embedding round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmbedRound {
    /// Chunks that were embedded.
    pub embedded: u64,
    /// Chunks that the model rejected.
    pub rejected: u64,
}

/// Why a round stopped early.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EmbedError {
    /// The model failed.
    #[error("the embedding model failed: {0}")]
    Model(#[source] EmbedderError),
    /// The engine failed, for example because the database is unavailable.
    #[error(transparent)]
    Engine(#[from] Error),
}

impl From<onward_store::Error> for EmbedError {
    fn from(error: onward_store::Error) -> Self {
        EmbedError::Engine(error.into())
    }
}

/// State of the search index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHealth {
    /// The chunks.
    pub index: IndexHealth,
    /// The embedding model; `None` if only full-text search is available.
    pub model: Option<String>,
    /// The last failure in this process, unless a later request succeeded.
    pub last_failure: Option<EmbedderFailure>,
}

/// Result of a reindex.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReindexReport {
    /// Number of artifacts, outputs and results.
    pub sources: u64,
    /// Number of their chunks.
    pub chunks: u64,
}

impl Engine {
    /// Sets the embedding model.
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embeddings = Some(Arc::new(EmbeddingState::new(embedder)));
        self
    }

    /// Wakes the embedder after chunks were stored.
    pub(crate) fn wake_embedder(&self) {
        if let Some(embeddings) = &self.embeddings {
            embeddings.wake();
        }
    }

    /// The embedding of a query and the model's name. `None` if there is no model or it failed
    /// recently.
    pub(crate) async fn embed_query(&self, query: &str) -> Option<(Vector, Arc<str>)> {
        let embeddings = self.embeddings.as_ref()?;
        let is_recent =
            |last_failure: &EmbedderFailure| self.now().since(last_failure.at) < SKIP_AFTER_FAILURE;
        if embeddings.last_failure().as_ref().is_some_and(is_recent) {
            return None;
        }
        let texts = vec![query.to_owned()];
        let embedded = embeddings.embedder.embed(texts, Purpose::Query).await;
        let vector = match embedded {
            Ok(numbers) => numbers
                .first()
                .and_then(|numbers| Vector::quantize(numbers)),
            Err(EmbedderError::Rejected(_)) => None,
            Err(EmbedderError::Unavailable(error)) => {
                let at = self.now();
                embeddings.set_failure(Some(EmbedderFailure { at, error }));
                return None;
            }
        };
        embeddings.set_failure(None);
        Some((vector?, Arc::from(embeddings.embedder.model())))
    }

    /// Embeds chunks until stopped, whenever no other process on the database does. Returns
    /// immediately if there is no model.
    pub async fn run_embedder(
        &self,
        mut stop: watch::Receiver<bool>,
        mut on_round: impl FnMut(&Result<EmbedRound, EmbedError>) + Send,
    ) {
        let Some(embeddings) = self.embeddings.clone() else {
            return;
        };
        let mut pause = RETRY_DELAY;
        while !*stop.borrow() {
            let leading = tokio::select! {
                leading = self.store.lead(Lead::Embed) => leading,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            let Ok(mut leading) = leading else {
                tokio::select! {
                    () = tokio::time::sleep(RETRY_DELAY) => continue,
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            };
            while !leading.is_lost() {
                let round = tokio::select! {
                    round = self.embed_pending() => round,
                    _ = stop.wait_for(|stop| *stop) => return,
                };
                on_round(&round);
                let delay = match &round {
                    Ok(_) => POLL_INTERVAL,
                    Err(_) => pause,
                };
                pause = if round.is_ok() {
                    RETRY_DELAY
                } else {
                    MAX_RETRY_DELAY.min(pause * 2)
                };
                tokio::select! {
                    () = tokio::time::sleep(delay) => {}
                    // While the model is unavailable, new chunks wait for the retry.
                    () = embeddings.woken(), if round.is_ok() => {}
                    () = leading.lost() => {}
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            }
        }
    }

    /// Embeds all chunks of all tenants that the model has not embedded.
    pub async fn embed_pending(&self) -> Result<EmbedRound, EmbedError> {
        let mut round = EmbedRound::default();
        let Some(embeddings) = &self.embeddings else {
            return Ok(round);
        };
        let model: Arc<str> = Arc::from(embeddings.embedder.model());
        for tenant in self.tenants().await? {
            self.index_results(&tenant.name).await?;
            loop {
                let (of, batch) = (Arc::clone(&model), embeddings.embedder.batch());
                let waiting = self.store.read(&tenant.name, move |tx| {
                    let of = Arc::clone(&of);
                    Box::pin(async move { SearchIndex(tx).chunks_waiting(&of, batch).await })
                });
                let waiting: Vec<Waiting> = waiting.await.map_err(Error::from)?;
                if waiting.is_empty() {
                    break;
                }
                let embedded = match embed_chunks(&*embeddings.embedder, &waiting).await {
                    Ok(embedded) => embedded,
                    Err(error) => {
                        let at = self.now();
                        let last_failure = EmbedderFailure {
                            at,
                            error: error.to_string(),
                        };
                        embeddings.set_failure(Some(last_failure));
                        return Err(EmbedError::Model(error));
                    }
                };
                embeddings.set_failure(None);
                let refused = embedded
                    .iter()
                    .filter(|(_, is_embedded)| !is_embedded)
                    .count();
                round.rejected += u64::try_from(refused).unwrap_or(u64::MAX);
                round.embedded += u64::try_from(embedded.len() - refused).unwrap_or(u64::MAX);
                let (of, embedded) = (Arc::clone(&model), Arc::new(embedded));
                let kept = self.store.write(&tenant.name, move |tx| {
                    let (of, embedded) = (Arc::clone(&of), Arc::clone(&embedded));
                    Box::pin(async move {
                        for (embedded, _) in embedded.iter() {
                            SearchIndex(tx).set_vector(&of, embedded);
                        }
                        Ok::<(), Error>(())
                    })
                });
                kept.await?;
            }
        }
        Ok(round)
    }

    /// State of the tenant's search index.
    pub async fn search_health(&self, caller: &Caller) -> Result<SearchHealth, Error> {
        caller.allow(Permission::Read)?;
        let embeddings = self.embeddings.as_ref();
        let model = embeddings.map(|embeddings| embeddings.embedder.model().to_owned());
        let of = model.clone();
        let index = self.store.read(&caller.tenant, move |tx| {
            let of = of.clone();
            Box::pin(async move { SearchIndex(tx).index_health(of.as_deref()).await })
        });
        Ok(SearchHealth {
            index: index.await?,
            model,
            last_failure: embeddings.and_then(|embeddings| embeddings.last_failure()),
        })
    }

    /// Splits all searchable texts into chunks again. Deletes their embeddings, which are then
    /// computed again.
    pub async fn reindex(&self, caller: &Caller) -> Result<ReindexReport, Error> {
        caller.allow(Permission::ManageTenant)?;
        self.index_results(&caller.tenant).await?;
        let mut done = ReindexReport::default();
        // Orphaned index rows are deleted first: they would conflict with the new ones.
        let lost = self.store.write(&caller.tenant, |tx| {
            Box::pin(async {
                SearchIndex(tx).drop_lost_index();
                Ok::<(), onward_store::Error>(())
            })
        });
        lost.await?;
        let mut after = Uuid::nil();
        loop {
            let page = self.store.write(&caller.tenant, move |tx| {
                Box::pin(async move { SearchIndex(tx).reindex_page(after, REINDEX_BATCH).await })
            });
            let page: Option<(Uuid, u64, u64)> = page.await.map_err(Error::Store)?;
            let Some((last, sources, chunks)) = page else {
                break;
            };
            after = last;
            done.sources += sources;
            done.chunks += chunks;
        }
        self.wake_embedder();
        Ok(done)
    }
}

/// Embeds chunks. The flag is false for a chunk that the model rejected.
async fn embed_chunks(
    embedder: &dyn Embedder,
    waiting: &[Waiting],
) -> Result<Vec<(Embedded, bool)>, EmbedderError> {
    let texts: Vec<String> = waiting.iter().map(chunk_text).collect();
    let numbers = match embedder.embed(texts.clone(), Purpose::Chunk).await {
        Ok(numbers) if numbers.len() == texts.len() => numbers.into_iter().map(Some).collect(),
        Ok(numbers) => {
            return Err(EmbedderError::Unavailable(format!(
                "{} vectors for {} texts",
                numbers.len(),
                texts.len()
            )));
        }
        Err(error @ EmbedderError::Unavailable(_)) => return Err(error),
        Err(error @ EmbedderError::Rejected(_)) => embed_one_by_one(embedder, texts, error).await?,
    };
    let vectors = numbers
        .into_iter()
        .map(|numbers| Vector::quantize(&numbers?));
    let embedded = waiting.iter().zip(vectors);
    let embedded = embedded.map(|(chunk, vector)| {
        let is_embedded = vector.is_some();
        (chunk.embedded(vector), is_embedded)
    });
    Ok(embedded.collect())
}

/// Embeds the texts one by one, to find those that the model rejects. If it also rejects a plain
/// text, the model is misconfigured, and no chunk is marked as rejected.
async fn embed_one_by_one(
    embedder: &dyn Embedder,
    texts: Vec<String>,
    error: EmbedderError,
) -> Result<Vec<Option<Vec<f32>>>, EmbedderError> {
    let plain = embedder
        .embed(vec![PLAIN_TEXT.to_owned()], Purpose::Chunk)
        .await;
    if plain.is_err() {
        return Err(error);
    }
    let mut all = Vec::with_capacity(texts.len());
    for text in texts {
        all.push(match embedder.embed(vec![text], Purpose::Chunk).await {
            Ok(numbers) => numbers.into_iter().next(),
            Err(EmbedderError::Rejected(_)) => None,
            Err(error @ EmbedderError::Unavailable(_)) => return Err(error),
        });
    }
    Ok(all)
}

/// The text sent to the model: the chunk with the title of its source.
fn chunk_text(chunk: &Waiting) -> String {
    format!("{}\n\n{}", chunk.title, chunk.text)
}
