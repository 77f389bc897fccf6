//! Text search: chunks, words, embeddings, rank fusion and snippets.
//!
//! The databases index and rank the words that this module produces, so that both find the same
//! texts. A query is a plain list of words without syntax, so it cannot be malformed or injected.

mod chunk;
mod rank_fusion;
mod snippet;
mod specific;
mod vector;
mod word;

pub use chunk::{Chunk, MAX_CHUNK_CHARS, MAX_CHUNK_OVERLAP, chunks};
pub use rank_fusion::{FusedRank, RRF_K, fuse_ranks};
pub use snippet::{MAX_SNIPPET_CHARS, snippet};
pub use specific::{similarity, specific_word, specific_words};
pub use vector::{MAX_DIMENSIONS, Vector, hamming_distance};
pub use word::{MAX_WORD_CHARS, Word, words};

/// The maximum number of words in a query.
pub const MAX_WORDS: usize = 32;

/// A search query: distinct words in their original order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    words: Vec<String>,
}

impl Query {
    /// Extracts the words of a text. Everything else is ignored.
    pub fn parse(text: &str) -> Self {
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

    /// The words. A query without words finds nothing.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Whether the texts contain every word of the query, as a whole word or a prefix. A query
    /// without words matches nothing.
    pub fn matches(&self, texts: &[&str]) -> bool {
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

/// The words of a text, separated by spaces, for full-text indexes.
pub fn index_text(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for word in words(text) {
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(&word.text);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_texts_that_contain_every_word_or_prefix() {
        let texts = ["Heat pumps", "Which fits a Flât of 1965? 潮汐"];
        for query in ["heat", "PUMP flat", "which 1965", "flát hea", "潮", "o a"] {
            assert!(Query::parse(query).matches(&texts), "{query}");
        }
        for query in ["", "!?", "umps", "heat coal", "lat", "汐洋"] {
            assert!(!Query::parse(query).matches(&texts), "{query}");
        }
    }
}
