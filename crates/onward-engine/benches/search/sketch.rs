//! Numbers for texts without a model: each word pushes a few of 768 numbers up or down, always the same
//! ones. It knows nothing of meaning and costs next to nothing, so what is measured is the search alone.

use std::hash::{DefaultHasher, Hash, Hasher};

use onward_engine::embed::{Embedder, Embedding, Purpose};

/// As many numbers as a common model gives.
const DIMENSIONS: usize = 768;
/// How many of them a word pushes.
const PUSHED: u64 = 8;

pub(crate) struct Sketch;

impl Embedder for Sketch {
    fn model(&self) -> &str {
        "sketch"
    }

    fn batch(&self) -> u32 {
        256
    }

    fn embed(&self, texts: Vec<String>, _: Purpose) -> Embedding<'_> {
        Box::pin(async move { Ok(texts.iter().map(|text| numbers(text)).collect()) })
    }
}

fn numbers(text: &str) -> Vec<f32> {
    let mut numbers = vec![0.0; DIMENSIONS];
    for word in text.split_whitespace() {
        for push in 0..PUSHED {
            let mut hasher = DefaultHasher::new();
            (word, push).hash(&mut hasher);
            let hash = hasher.finish();
            let place = usize::try_from(hash >> 1).unwrap_or(0) % DIMENSIONS;
            numbers[place] += if hash & 1 == 0 { 1.0 } else { -1.0 };
        }
    }
    numbers
}
