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

    /// Whether all words are in these texts, each as the beginning of a word or all of it. A query without
    /// words fits nothing.
    pub fn fits(&self, texts: &[&str]) -> bool {
        let mut missing: Vec<&String> = self.words.iter().collect();
        for word in texts.iter().flat_map(|text| words(text)) {
            missing.retain(|wanted| !word.text.starts_with(wanted.as_str()));
            if missing.is_empty() {
                break;
            }
        }
        missing.is_empty() && !self.words.is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_fits_where_it_holds_all_words_or_their_beginnings() {
        let texts = ["Heat pumps", "Which fits a Flât of 1965? 潮汐"];
        for fits in ["heat", "PUMP flat", "which 1965", "flát hea", "潮", "o a"] {
            assert!(Query::of(fits).fits(&texts), "{fits}");
        }
        for fits_not in ["", "!?", "umps", "heat coal", "lat", "汐洋"] {
            assert!(!Query::of(fits_not).fits(&texts), "{fits_not}");
        }
    }
}
