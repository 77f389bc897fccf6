//! What holds for every text: its chunks, its words, and the piece of it that is shown.

use onward_core::search::{
    CHUNK, MAX_WORD, MAX_WORDS, OVERLAP, Query, SNIPPET, chunks, snippet, spelled, words,
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
            let same: Vec<char> = chunk.text.chars().collect();
            prop_assert_eq!(&chars[chunk.start..chunk.start + chunk.characters], &same[..]);
            prop_assert!(chunk.characters > 0 && chunk.characters <= CHUNK);
            prop_assert!(last_start < Some(chunk.start) || last_start.is_none());
            if last_start.is_some() {
                prop_assert!(chunk.start < covered, "nothing in common");
                prop_assert!(covered - chunk.start <= OVERLAP, "too much in common");
            } else {
                prop_assert_eq!(chunk.start, 0);
            }
            covered = chunk.start + chunk.characters;
            last_start = Some(chunk.start);
        }
        prop_assert_eq!(covered, chars.len());
    }

    #[test]
    fn a_chunk_ends_within_a_word_only_where_its_second_half_has_no_blank(text in text()) {
        let chars: Vec<char> = text.chars().collect();
        let all = chunks(&text);
        for chunk in all.iter().take(all.len().saturating_sub(1)) {
            let end = chunk.start + chunk.characters;
            let after = chars[end - 1].is_whitespace() || "。！？".contains(chars[end - 1]);
            // One that ends in blanks which go on is no worse.
            let half = &chars[chunk.start + CHUNK / 2 + 1..=chunk.start + CHUNK];
            let breaks = half.windows(2).any(|pair| {
                pair[0].is_whitespace() && !pair[1].is_whitespace()
            });
            prop_assert!(after || !breaks, "a word is cut at {end}");
        }
    }

    #[test]
    fn words_are_plain_and_stay_what_they_are(text in text()) {
        let mut end = 0;
        for word in words(&text) {
            prop_assert!(word.start >= end && word.end > word.start);
            prop_assert!(text.get(word.start..word.end).is_some(), "a character is split");
            let length = word.text.chars().count();
            prop_assert!((1..=MAX_WORD).contains(&length));
            prop_assert!(!word.text.contains(|char: char| char.is_whitespace() || "\"'\0&|!:*()^".contains(char)));
            end = word.end;
        }
        // What is indexed gives the same words again, so a text is found by a piece of itself.
        let spelled = spelled(&text);
        let again: Vec<String> = words(&spelled).map(|word| word.text).collect();
        prop_assert_eq!(again.join(" "), spelled);
    }

    #[test]
    fn a_query_is_a_few_words_whatever_it_was(text in text()) {
        let query = Query::of(&text);
        prop_assert!(query.words().len() <= MAX_WORDS);
        let all: Vec<String> = words(&text).map(|word| word.text).collect();
        prop_assert!(query.words().iter().all(|word| all.contains(word)));
        prop_assert_eq!(query.words().is_empty(), all.is_empty());
    }

    #[test]
    fn a_snippet_is_a_short_line_of_the_text(text in text(), from in 0usize..500) {
        let asked = words(&text).nth(from).map_or(String::new(), |word| word.text);
        let shown = snippet(&text, &Query::of(&asked));
        prop_assert!(shown.chars().count() <= SNIPPET + 2);
        prop_assert!(!shown.contains('\n'));
        let found = words(&shown).any(|word| word.text == asked);
        prop_assert!(asked.is_empty() || found, "{asked:?} is not in {shown:?}");
    }
}
