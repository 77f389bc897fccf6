//! Titles of tasks: their words, and which of them identify a task.
//!
//! Lists of different tasks have words in common: most coding lists contain "Explore the code" and
//! "Run the tests". So generic words do not count. Numbers and single letters are no evidence that
//! two titles mean the same, and different ones are evidence against it: "Fix bug 0" is not "Fix bug
//! 1".

use std::collections::BTreeSet;

use crate::search::{specific_word, words};

/// The words of a title that identify a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Title {
    /// Words that are not generic.
    pub(super) specific: BTreeSet<String>,
    /// Numbers and single letters.
    marks: BTreeSet<String>,
}

impl Title {
    pub(super) fn new(text: &str) -> Self {
        let mut title = Self::default();
        for word in words(text).map(|word| word.text) {
            if is_mark(&word) {
                title.marks.insert(word);
                continue;
            }
            title.specific.extend(specific_word(word));
        }
        title
    }

    pub(super) fn without(mut self, common: &BTreeSet<String>) -> Self {
        self.specific.retain(|word| !common.contains(word));
        self
    }

    pub(super) fn is_specific(&self) -> bool {
        !self.specific.is_empty()
    }

    /// Whether both titles mean the same task: at least half of their specific words are common, or
    /// the shorter one is a part of the other.
    pub(super) fn matches(&self, other: &Self) -> bool {
        let common = self.specific.intersection(&other.specific).count();
        let (one, two) = (self.specific.len(), other.specific.len());
        let is_part = common >= 2 && common == one.min(two);
        common > 0 && (is_part || 2 * common >= one + two - common) && !self.conflicts(other)
    }

    /// Whether each has a number or a letter that the other one has not.
    fn conflicts(&self, other: &Self) -> bool {
        !self.marks.is_subset(&other.marks) && !other.marks.is_subset(&self.marks)
    }
}

fn is_mark(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
        || (word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

/// Whether both titles have specific words in common, so that they mean the same task.
pub(super) fn is_same_task(one: &str, other: &str) -> bool {
    Title::new(one).matches(&Title::new(other))
}

/// Whether both titles have the same words.
pub(super) fn same_words(one: &str, other: &str) -> bool {
    let texts = |text| words(text).map(|word| word.text);
    texts(one).eq(texts(other))
}

/// Whether at least half of the distinct words of both texts are common, and their numbers do not
/// differ.
pub(super) fn similar(one: &str, other: &str) -> bool {
    let distinct = |text: &str| {
        let mut words: Vec<String> = words(text).map(|word| word.text).collect();
        words.sort();
        words.dedup();
        words
    };
    let is_other = Title::new(one).conflicts(&Title::new(other));
    let (one, other) = (distinct(one), distinct(other));
    let common = one.iter().filter(|word| other.contains(word)).count();
    common > 0 && 2 * common >= one.len() + other.len() - common && !is_other
}
