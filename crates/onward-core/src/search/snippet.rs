//! Snippets: one line of a text around the position with the most distinct query words.

use std::collections::BTreeSet;

use super::{Query, Word, words};

/// The maximum number of characters in a snippet, without ellipses.
pub const MAX_SNIPPET_CHARS: usize = 240;
/// The number of characters before the first match.
const LEAD: usize = 60;
/// The maximum distance that a cut is moved to a word boundary.
const MAX_SHIFT: usize = 24;

/// The best snippet of a text, on one line.
pub fn snippet(text: &str, query: &Query) -> String {
    let wanted: BTreeSet<&str> = query.words().iter().map(String::as_str).collect();
    let (bytes, chars): (Vec<usize>, Vec<char>) = text.char_indices().unzip();
    let hits: Vec<(usize, Word)> = words(text)
        .filter(|word| wanted.contains(word.text.as_str()))
        .map(|word| (bytes.partition_point(|byte| *byte < word.start), word))
        .collect();
    let from = best_start(&hits);
    let from = match from {
        0 => 0,
        from => (from..chars.len().min(from + MAX_SHIFT))
            .find(|offset| starts_word(&chars, *offset))
            .unwrap_or(from),
    };
    let most = chars.len().min(from + MAX_SNIPPET_CHARS);
    let to = if most == chars.len() {
        most
    } else {
        (most.saturating_sub(MAX_SHIFT).max(from + 1)..=most)
            .rev()
            .find(|offset| starts_word(&chars, *offset))
            .unwrap_or(most)
    };
    let piece: String = chars.get(from..to).unwrap_or_default().iter().collect();
    let piece: Vec<&str> = piece.split_whitespace().collect();
    let mut snippet_text = String::new();
    if from > 0 {
        snippet_text.push('…');
    }
    snippet_text.push_str(&piece.join(" "));
    if to < chars.len() {
        snippet_text.push('…');
    }
    snippet_text
}

/// The offset of the best snippet, in characters.
fn best_start(hits: &[(usize, Word)]) -> usize {
    let mut best = (0, 0);
    for (index, (at, _)) in hits.iter().enumerate() {
        let near = hits.iter().skip(index);
        let near = near.take_while(|(other, _)| other - at < MAX_SNIPPET_CHARS - LEAD);
        let distinct: BTreeSet<&str> = near.map(|(_, word)| word.text.as_str()).collect();
        if distinct.len() > best.0 {
            best = (distinct.len(), at.saturating_sub(LEAD));
        }
    }
    best.1
}

fn starts_word(chars: &[char], offset: usize) -> bool {
    let before = offset.checked_sub(1).and_then(|before| chars.get(before));
    let is_blank = |char: Option<&char>| char.is_none_or(|char| char.is_whitespace());
    is_blank(before) && !is_blank(chars.get(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snippet_for(text: &str, query: &str) -> String {
        snippet(text, &Query::parse(query))
    }

    #[test]
    fn a_short_text_is_returned_whole_on_one_line() {
        assert_eq!(
            snippet_for("Two tides\n\n a day.", "tides"),
            "Two tides a day."
        );
        assert_eq!(snippet_for("", "tides"), "");
    }

    #[test]
    fn selects_the_position_with_the_most_query_words() {
        let filler = "nothing here ".repeat(40);
        let text = format!("{filler}the Moon alone. {filler}the Moon makes tides. {filler}");
        let snippet_text = snippet_for(&text, "moon tides");
        assert!(
            snippet_text.contains("the Moon makes tides."),
            "{snippet_text}"
        );
        assert!(
            snippet_text.starts_with('…') && snippet_text.ends_with('…'),
            "{snippet_text}"
        );
        assert!(
            snippet_text.chars().count() <= MAX_SNIPPET_CHARS + 2,
            "{snippet_text}"
        );
        assert!(
            !snippet_text.contains("…othing"),
            "a word was cut: {snippet_text}"
        );
    }

    #[test]
    fn starts_at_the_beginning_without_a_match() {
        let snippet_text = snippet_for(&"ebb and flow ".repeat(50), "title");
        assert!(snippet_text.starts_with("ebb and flow"), "{snippet_text}");
        assert!(snippet_text.ends_with('…'), "{snippet_text}");
    }
}
