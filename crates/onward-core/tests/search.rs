//! Properties of chunks, words, queries and snippets, for arbitrary texts.

use onward_core::search::{
    MAX_CHUNK_CHARS, MAX_CHUNK_OVERLAP, MAX_SNIPPET_CHARS, MAX_WORD_CHARS, MAX_WORDS, Query,
    chunks, index_text, snippet, words,
};
use proptest::prelude::*;

/// Texts with paragraphs, sentences, long words, no words, and characters of every width.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Zäß]{1,12}",
        2 => Just(" ".to_owned()),
        1 => prop_oneof![Just(". "), Just("\n"), Just("\n\n"), Just(" \n\t\n "), Just("。")]
            .prop_map(str::to_owned),
        1 => prop_oneof![Just("\u{308}"), Just("潮汐"), Just("🌊"), Just("\0"), Just("\"*:^-()")]
            .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    let long =
        (0usize..6_000, any::<char>()).prop_map(|(times, char)| char.to_string().repeat(times));
    prop_oneof![
        8 => (prop::collection::vec(piece, 0..200), 1usize..9)
            .prop_map(|(pieces, times)| pieces.concat().repeat(times)),
        1 => long,
    ]
}

proptest! {
    #[test]
    fn chunks_cover_the_text_in_order_with_some_overlap(text in text()) {
        let chars: Vec<char> = text.chars().collect();
        let (mut covered, mut last_start) = (0, None);
        for chunk in chunks(&text) {
            let chunk_chars: Vec<char> = chunk.text.chars().collect();
            prop_assert_eq!(&chars[chunk.start..chunk.start + chunk.characters], &chunk_chars[..]);
            prop_assert!(chunk.characters > 0 && chunk.characters <= MAX_CHUNK_CHARS);
            prop_assert!(last_start < Some(chunk.start) || last_start.is_none());
            if last_start.is_some() {
                prop_assert!(chunk.start < covered, "no overlap");
                prop_assert!(covered - chunk.start <= MAX_CHUNK_OVERLAP, "too much overlap");
            } else {
                prop_assert_eq!(chunk.start, 0);
            }
            covered = chunk.start + chunk.characters;
            last_start = Some(chunk.start);
        }
        prop_assert_eq!(covered, chars.len());
    }

    #[test]
    fn a_chunk_splits_a_word_only_if_its_second_half_has_no_break(text in text()) {
        let chars: Vec<char> = text.chars().collect();
        let all = chunks(&text);
        for chunk in all.iter().take(all.len().saturating_sub(1)) {
            let end = chunk.start + chunk.characters;
            let is_boundary = chars[end - 1].is_whitespace() || "。！？".contains(chars[end - 1]);
            // A chunk may end inside a run of whitespace.
            let half = &chars[chunk.start + MAX_CHUNK_CHARS / 2 + 1..=chunk.start + MAX_CHUNK_CHARS];
            let has_break = half.windows(2).any(|pair| {
                pair[0].is_whitespace() && !pair[1].is_whitespace()
            });
            prop_assert!(is_boundary || !has_break, "a word is split at {end}");
        }
    }

    #[test]
    fn words_are_normalized_and_stable(text in text()) {
        let mut end = 0;
        for word in words(&text) {
            prop_assert!(word.start >= end && word.end > word.start);
            prop_assert!(text.get(word.start..word.end).is_some(), "a character is split");
            let length = word.text.chars().count();
            prop_assert!((1..=MAX_WORD_CHARS).contains(&length));
            prop_assert!(!word.text.contains(|char: char| char.is_whitespace() || "\"'\0&|!:*()^".contains(char)));
            end = word.end;
        }
        // The indexed text gives the same words again, so that a text is found by any part of it.
        let indexed = index_text(&text);
        let again: Vec<String> = words(&indexed).map(|word| word.text).collect();
        prop_assert_eq!(again.join(" "), indexed);
    }

    #[test]
    fn a_query_has_a_limited_number_of_words(text in text()) {
        let query = Query::parse(&text);
        prop_assert!(query.words().len() <= MAX_WORDS);
        let all: Vec<String> = words(&text).map(|word| word.text).collect();
        prop_assert!(query.words().iter().all(|word| all.contains(word)));
        prop_assert_eq!(query.words().is_empty(), all.is_empty());
    }

    #[test]
    fn a_snippet_is_one_short_line_with_the_searched_word(text in text(), from in 0usize..500) {
        let searched = words(&text).nth(from).map_or(String::new(), |word| word.text);
        let snippet = snippet(&text, &Query::parse(&searched));
        prop_assert!(snippet.chars().count() <= MAX_SNIPPET_CHARS + 2);
        prop_assert!(!snippet.contains('\n'));
        let found = words(&snippet).any(|word| word.text == searched);
        prop_assert!(searched.is_empty() || found, "{searched:?} is not in {snippet:?}");
    }
}
