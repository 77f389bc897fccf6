//! An embedder without a model: each word adds to or subtracts from a few of 768 dimensions, chosen
//! by its hash. It costs next to nothing, so the benchmark measures search only.

use std::hash::{DefaultHasher, Hash, Hasher};

use onward_engine::embed::{Embedder, Embedding, Purpose};

/// Dimensions of a common model.
const DIMENSIONS: usize = 768;
/// Number of dimensions that a word affects.
const DIMENSIONS_PER_WORD: u64 = 8;

pub(crate) struct HashEmbedder;

impl Embedder for HashEmbedder {
    fn model(&self) -> &str {
        "hash"
    }

    fn batch(&self) -> u32 {
        256
    }

    fn embed(&self, texts: Vec<String>, _: Purpose) -> Embedding<'_> {
        Box::pin(async move { Ok(texts.iter().map(|text| vector(text)).collect()) })
    }
}

fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS];
    for word in text.split_whitespace() {
        for seed in 0..DIMENSIONS_PER_WORD {
            let mut hasher = DefaultHasher::new();
            (word, seed).hash(&mut hasher);
            let hash = hasher.finish();
            let index = usize::try_from(hash >> 1).unwrap_or(0) % DIMENSIONS;
            vector[index] += if hash & 1 == 0 { 1.0 } else { -1.0 };
        }
    }
    vector
}
