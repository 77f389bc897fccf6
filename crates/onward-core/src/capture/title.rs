//! Titles of tasks: their words, and which of them identify a task.
//!
//! Lists of different tasks have words in common: most coding lists contain "Explore the code" and
//! "Run the tests". So generic words do not count. Numbers and single letters are no evidence that
//! two titles mean the same, and different ones are evidence against it: "Fix bug 0" is not "Fix bug
//! 1".

use std::collections::BTreeSet;

use crate::search::words;

/// Words of English task lists that do not identify a task, in the singular. Other languages need
/// none: a list continues a plan only if the plan contains all of its specific tasks.
const GENERIC: &str = "a about above actually add address adjust after again all also alway an \
    analyse analyze and any app application apply approach are area as ask assess at back base basic \
    be before below best better both branch bug build bump but by can case change changelog check \
    choose class clean close code codebase collect commit compare complete component config \
    configuration configure confirm context continue core correct could create current data debug \
    decide define delete dependency deploy describe design detail determine develop diff \
    do doc document documentation doe done draft each edge edit enable end ensure entry error \
    evaluate every everything examine example execute existing explore extend extra extract fail \
    failing failure feature figure file fill final finalize find finding finish first fix folder \
    follow for format found from full function gather generate get go goal good handle has have help \
    how i identify if implement implementation important improve in include information initial input \
    inspect install integrate into investigate is issue it item job keep key last later lint list \
    local locate look main make manual manually me merge message method minor modify module more \
    move must my name necessary need needed new next no not note now of off old on one onto open \
    optimize option or other our out outline output over package page part pas pass per plan polish \
    possible pr prepare present problem project proper properly publish pull push put quality question \
    read readme ready rebuild record refactor refine regression related release relevant remaining \
    remove rename repair replace repo report repository request require requirement research resolve \
    rest restart result retry return review revise rework rewrite root run running save scan scope \
    script search second section see set setup ship should show simple single so solution solve some \
    sort source spec split start state step stop study style subtask submit suite suitable summarise \
    summarize summary support sure switch sync system tag task team test testing than that the their \
    them then there thing third thi this those through tidy time to todo together tool topic track try \
    tweak two type typecheck unclear under understand unit until up update upgrade usage use user \
    using valid validate value verify version via view wait want warning watch way we what when where \
    whether which while who whole why will wire with without work workflow working would wrap write \
    your";

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
            let word = singular(word);
            if !is_generic(&word) {
                title.specific.insert(word);
            }
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

fn singular(mut word: String) -> String {
    if word.is_ascii() && word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

/// Whether the word, or the word without a common ending, is generic.
fn is_generic(word: &str) -> bool {
    let is_listed = |word: &str| GENERIC.split_ascii_whitespace().any(|one| one == word);
    let is_stem = |ending: &str| {
        let stem = word.strip_suffix(ending);
        stem.is_some_and(|stem| is_listed(stem) || is_listed(&format!("{stem}e")))
    };
    is_listed(word) || ["e", "ed", "ing"].into_iter().any(is_stem)
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
