//! What makes a text findable: the chunks that it is cut into, the words that stand for it, the numbers
//! that say what it means, and the piece of it that is shown.
//!
//! The databases keep these words and rank by them; which words there are is said here alone, so that
//! a text is found by the same queries on each. A query is a list of words and nothing else: it has no
//! syntax that could be wrong, or that a text could smuggle in.

mod chunk;
mod fuse;
mod snippet;
mod vector;
mod word;

pub use chunk::{CHUNK, Chunk, OVERLAP, chunks};
pub use fuse::{Fused, K, fuse};
pub use snippet::{SNIPPET, snippet};
pub use vector::{MAX_DIMENSIONS, Vector, apart};
pub use word::{MAX_WORD, Word, words};

/// The most words of a query that are looked for.
pub const MAX_WORDS: usize = 32;

/// What is looked for: words, each once, in the order in which they were asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    words: Vec<String>,
}

impl Query {
    /// The words of a text, whatever else it holds.
    pub fn of(text: &str) -> Self {
        let mut found: Vec<String> = Vec::new();
        for word in words(text) {
            if found.len() == MAX_WORDS {
                break;
            }
            if !found.contains(&word.text) {
                found.push(word.text);
            }
        }
        Self { words: found }
    }

    /// The words; none where the text had none, and then nothing is found.
    pub fn words(&self) -> &[String] {
        &self.words
    }
}

/// The words of a text, apart from each other: what a database indexes.
pub fn spelled(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for word in words(text) {
        if !spelled.is_empty() {
            spelled.push(' ');
        }
        spelled.push_str(&word.text);
    }
    spelled
}
