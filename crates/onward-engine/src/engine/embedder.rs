//! The interface of an embedding model, and the state of the model in this process.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use onward_core::Timestamp;
use tokio::sync::Notify;

/// Purpose of an embedding; some models distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A search query; a user is waiting.
    Query,
    /// Stored text.
    Chunk,
}

/// An embedding error. Text instead of a source, because the client removes credentials from it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedderError {
    /// The model does not respond, or responds with something unexpected. Retried later.
    #[error("{0}")]
    Unavailable(String),
    /// The model rejects these texts.
    #[error("{0}")]
    Rejected(String),
}

/// One vector per text, in order.
pub type Embedding<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Vec<f32>>, EmbedderError>> + Send + 'a>>;

/// An embedding model.
pub trait Embedder: Send + Sync {
    /// The model's name. Embeddings of models with different names are not compared.
    fn model(&self) -> &str;
    /// Maximum number of texts per request.
    fn batch(&self) -> u32;
    /// Embeds texts. Completes within a bounded time.
    fn embed(&self, texts: Vec<String>, purpose: Purpose) -> Embedding<'_>;
}

/// The most recent failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedderFailure {
    /// When it happened.
    pub at: Timestamp,
    /// The error.
    pub error: String,
}

/// The embedding model and its last failure.
pub(crate) struct EmbeddingState {
    pub(crate) embedder: Arc<dyn Embedder>,
    notify: Notify,
    last_failure: Mutex<Option<EmbedderFailure>>,
}

impl EmbeddingState {
    pub(crate) fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self {
            embedder,
            notify: Notify::new(),
            last_failure: Mutex::default(),
        }
    }

    /// The model's name.
    pub(crate) fn model(&self) -> &str {
        self.embedder.model()
    }

    /// Wakes the embedding loop of this process.
    pub(crate) fn wake(&self) {
        self.notify.notify_one();
    }

    /// Returns when chunks were stored.
    pub(crate) async fn woken(&self) {
        self.notify.notified().await;
    }

    pub(crate) fn set_failure(&self, last_failure: Option<EmbedderFailure>) {
        // Only assignments happen under the lock, so a poisoned value is still valid.
        *self
            .last_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = last_failure;
    }

    pub(crate) fn last_failure(&self) -> Option<EmbedderFailure> {
        let last_failure = self
            .last_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        last_failure.clone()
    }
}
