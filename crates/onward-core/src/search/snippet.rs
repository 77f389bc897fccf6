//! The piece of a text that shows why it was found: a line, around the place where the most of the
//! words stand together.

use std::collections::BTreeSet;

use super::{Query, Word, words};

/// The most characters of a snippet, without the signs that it was cut.
pub const SNIPPET: usize = 240;
/// How many characters are shown in front of the first word that was found.
const LEAD: usize = 60;
/// How far a cut is moved so that no word is cut apart.
const NEAR: usize = 24;

/// The best piece of a text, on one line.
pub fn snippet(text: &str, query: &Query) -> String {
    let looked_for: BTreeSet<&str> = query.words().iter().map(String::as_str).collect();
    let (bytes, chars): (Vec<usize>, Vec<char>) = text.char_indices().unzip();
    let hits: Vec<(usize, Word)> = words(text)
        .filter(|word| looked_for.contains(word.text.as_str()))
        .map(|word| (bytes.partition_point(|byte| *byte < word.start), word))
        .collect();
    let from = begin(&hits);
    let from = match from {
        0 => 0,
        from => (from..chars.len().min(from + NEAR))
            .find(|place| starts_word(&chars, *place))
            .unwrap_or(from),
    };
    let most = chars.len().min(from + SNIPPET);
    let to = match most == chars.len() {
        true => most,
        false => (most.saturating_sub(NEAR).max(from + 1)..=most)
            .rev()
            .find(|place| starts_word(&chars, *place))
            .unwrap_or(most),
    };
    let piece: String = chars.get(from..to).unwrap_or_default().iter().collect();
    let piece: Vec<&str> = piece.split_whitespace().collect();
    let mut shown = String::new();
    if from > 0 {
        shown.push('…');
    }
    shown.push_str(&piece.join(" "));
    if to < chars.len() {
        shown.push('…');
    }
    shown
}

/// The character at which the best piece begins.
fn begin(hits: &[(usize, Word)]) -> usize {
    let mut best = (0, 0);
    for (place, (at, _)) in hits.iter().enumerate() {
        let near = hits.iter().skip(place);
        let near = near.take_while(|(other, _)| other - at < SNIPPET - LEAD);
        let distinct: BTreeSet<&str> = near.map(|(_, word)| word.text.as_str()).collect();
        if distinct.len() > best.0 {
            best = (distinct.len(), at.saturating_sub(LEAD));
        }
    }
    best.1
}

fn starts_word(chars: &[char], place: usize) -> bool {
    let before = place.checked_sub(1).and_then(|before| chars.get(before));
    let is_blank = |char: Option<&char>| char.is_none_or(|char| char.is_whitespace());
    is_blank(before) && !is_blank(chars.get(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, query: &str) -> String {
        snippet(text, &Query::of(query))
    }

    #[test]
    fn a_short_text_is_shown_whole_on_one_line() {
        assert_eq!(of("Two tides\n\n a day.", "tides"), "Two tides a day.");
        assert_eq!(of("", "tides"), "");
    }

    #[test]
    fn the_place_where_most_words_are_is_shown() {
        let filler = "nothing here ".repeat(40);
        let text = format!("{filler}the Moon alone. {filler}the Moon makes tides. {filler}");
        let shown = of(&text, "moon tides");
        assert!(shown.contains("the Moon makes tides."), "{shown}");
        assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert!(shown.chars().count() <= SNIPPET + 2, "{shown}");
        assert!(!shown.contains("…othing"), "no word is cut apart: {shown}");
    }

    #[test]
    fn a_text_that_holds_none_of_the_words_is_shown_from_its_beginning() {
        let shown = of(&"ebb and flow ".repeat(50), "title");
        assert!(shown.starts_with("ebb and flow"), "{shown}");
        assert!(shown.ends_with('…'), "{shown}");
    }
}
