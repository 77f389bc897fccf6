//! Specific words: those that identify what a text is about, and texts with the same specific words.

use std::collections::BTreeSet;

use super::words;

/// Words of English tasks and questions that do not identify them, in the singular. In other
/// languages, all words count as specific.
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

/// The word in the singular. `None` if it is generic.
pub fn specific_word(word: String) -> Option<String> {
    let word = singular(word);
    (!is_generic(&word)).then_some(word)
}

/// The specific words of a text.
pub fn specific_words(text: &str) -> BTreeSet<String> {
    let words = words(text).map(|word| word.text);
    words.filter_map(specific_word).collect()
}

/// How much two sets of specific words have in common, up to 1. `None` if the texts are about
/// different subjects: fewer than half of the words of the shorter one are common, or only one word is.
pub fn similarity(one: &BTreeSet<String>, other: &BTreeSet<String>) -> Option<f64> {
    let common = one.intersection(other).count();
    let shorter = one.len().min(other.len());
    let is_similar = common > 0 && ((common >= 2 && 2 * common >= shorter) || one == other);
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let all = one.len() + other.len() - common;
    is_similar.then(|| count(common) / count(all))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn are_similar(one: &str, other: &str) -> bool {
        similarity(&specific_words(one), &specific_words(other)).is_some()
    }

    #[test]
    fn generic_words_in_any_form_are_not_specific() {
        let found =
            specific_words("Exploring the modules, fixed the tests; tidied Zürich's branches");
        let expected = ["tidied", "zurich"].map(str::to_owned);
        assert!(
            expected.iter().all(|word| found.contains(word)),
            "{found:?}"
        );
        assert!(
            !found.contains("module") && !found.contains("branche"),
            "{found:?}"
        );
    }

    #[test]
    fn questions_about_the_same_subject_are_similar() {
        for (one, other) in [
            (
                "Which heat pump fits a flat of 1965?",
                "Find the best heat pump for an old flat",
            ),
            ("Tides", "tides?"),
            ("潮汐的原因是什么", "潮汐的原因"),
        ] {
            assert!(are_similar(one, other), "{one} / {other}");
        }
    }

    #[test]
    fn questions_about_other_subjects_are_not_similar() {
        for (one, other) in [
            (
                "Which heat pump fits a flat of 1965?",
                "Which laptop fits a student of law?",
            ),
            ("Research the best option", "Research the best option"),
            ("Compare tide tables", "Compare railway timetables"),
            ("", ""),
        ] {
            assert!(!are_similar(one, other), "{one} / {other}");
        }
    }
}
