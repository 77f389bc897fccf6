//! An embedding model for tests: it relates a few groups of words, and can be made
//! unavailable or reject texts.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use onward_engine::embed::{Embedder, EmbedderError, Embedding, Purpose};

/// Groups of related words; each group is one dimension of the embedding.
const GROUPS: [&[&str]; 4] = [
    &["whale", "cetacean", "dolphin", "orca"],
    &["moon", "lunar", "satellite"],
    &["bread", "loaf", "bakery"],
    &["law", "statute", "court"],
];

pub(crate) const UNAVAILABLE: &str = "model is unavailable";
pub(crate) const EXHAUSTED: &str = "no texts remaining";
pub(crate) const REJECTED: &str = "text is too long";

pub(crate) struct TestEmbedder {
    name: &'static str,
    batch: u32,
    pub(crate) unavailable: AtomicBool,
    /// Rejects texts that contain this word.
    pub(crate) rejected_word: Option<&'static str>,
    /// Sizes of the embedded batches.
    pub(crate) batches: Mutex<Vec<usize>>,
    pub(crate) queries: AtomicU32,
    /// Becomes unavailable after this many texts.
    pub(crate) remaining: AtomicU32,
}

impl TestEmbedder {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            batch: 4,
            unavailable: AtomicBool::new(false),
            rejected_word: None,
            batches: Mutex::default(),
            queries: AtomicU32::new(0),
            remaining: AtomicU32::new(u32::MAX),
        }
    }

    fn vector(text: &str) -> Vec<f32> {
        let text = text.to_lowercase();
        // Not zero, so that every text has a direction.
        let mut vector = vec![-0.01; 12];
        for (group, number) in GROUPS.iter().zip(&mut vector) {
            for word in *group {
                let count = u16::try_from(text.matches(word).count()).unwrap();
                *number += f32::from(count);
            }
        }
        vector
    }
}

impl Embedder for TestEmbedder {
    fn model(&self) -> &str {
        self.name
    }

    fn batch(&self) -> u32 {
        self.batch
    }

    fn embed(&self, texts: Vec<String>, purpose: Purpose) -> Embedding<'_> {
        Box::pin(async move {
            if self.unavailable.load(Ordering::SeqCst) {
                return Err(EmbedderError::Unavailable(UNAVAILABLE.to_owned()));
            }
            match purpose {
                Purpose::Query => drop(self.queries.fetch_add(1, Ordering::SeqCst)),
                Purpose::Chunk => {
                    let remaining = self.remaining.load(Ordering::SeqCst);
                    let count = u32::try_from(texts.len()).unwrap();
                    let Some(remaining) = remaining.checked_sub(count) else {
                        return Err(EmbedderError::Unavailable(EXHAUSTED.to_owned()));
                    };
                    self.remaining.store(remaining, Ordering::SeqCst);
                    self.batches.lock().unwrap().push(texts.len());
                }
            }
            let rejected =
                |text: &String| self.rejected_word.is_some_and(|word| text.contains(word));
            if texts.iter().any(rejected) {
                return Err(EmbedderError::Rejected(REJECTED.to_owned()));
            }
            Ok(texts.iter().map(|text| Self::vector(text)).collect())
        })
    }
}
