//! A text in pieces that are small enough to be compared with a query: at most [`CHUNK`] characters,
//! each beginning with the end of the one before it, so that what stands at a cut is found in one
//! piece.
//!
//! A chunk ends where the text itself does: at the end of a paragraph, else of a sentence, else of a
//! word, and within a word only where there is nothing else in its second half.

/// The most characters of a chunk.
pub const CHUNK: usize = 2_048;
/// The most characters that a chunk has in common with the one before it.
pub const OVERLAP: usize = 200;

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'t> {
    /// The character of the text at which it begins, counted from 0.
    pub start: usize,
    /// How many characters it has.
    pub characters: usize,
    /// Those characters.
    pub text: &'t str,
}

/// How good a place is for a cut.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    InWord,
    Word,
    Sentence,
    Paragraph,
}

/// The chunks of a text, in their order. A text without a character has none.
pub fn chunks(text: &str) -> Vec<Chunk<'_>> {
    let (bytes, chars): (Vec<usize>, Vec<char>) = text.char_indices().unzip();
    let at = |place: usize| bytes.get(place).copied().unwrap_or(text.len());
    let mut found = Vec::new();
    let mut start = 0;
    while start < chars.len() {
        let end = end_of(&chars, start);
        found.push(Chunk {
            start,
            characters: end - start,
            text: text.get(at(start)..at(end)).unwrap_or_default(),
        });
        if end == chars.len() {
            break;
        }
        start = start_of_next(&chars, end);
    }
    found
}

/// Where the chunk that begins here ends: the last of the best places in its second half.
fn end_of(chars: &[char], start: usize) -> usize {
    let most = start + CHUNK;
    if most >= chars.len() {
        return chars.len();
    }
    let second_half = start + CHUNK / 2 + 1..=most;
    let best = second_half.max_by_key(|place| (kind(chars, *place), *place));
    best.unwrap_or(most)
}

/// Where the chunk behind this end begins: at the first word that is near enough to it.
fn start_of_next(chars: &[char], end: usize) -> usize {
    let first = end - OVERLAP;
    let word = (first..end).find(|place| kind(chars, *place) > Place::InWord);
    word.unwrap_or(first)
}

/// What a cut in front of this character would cut apart.
fn kind(chars: &[char], place: usize) -> Place {
    let before = |back: usize| {
        place
            .checked_sub(back)
            .and_then(|at| chars.get(at))
            .copied()
    };
    let (Some(last), Some(next)) = (before(1), chars.get(place).copied()) else {
        return Place::InWord;
    };
    if matches!(last, '。' | '！' | '？') {
        return Place::Sentence;
    }
    if !last.is_whitespace() || next.is_whitespace() {
        return Place::InWord;
    }
    let (mut lines, mut back) = (0u32, 1);
    let word = loop {
        match before(back) {
            Some('\n') => lines += 1,
            Some(blank) if blank.is_whitespace() => {}
            other => break other,
        }
        back += 1;
    };
    let closes = |char| matches!(char, '"' | '\'' | ')' | ']' | '”' | '’' | '»');
    let word = match word {
        Some(close) if closes(close) => before(back + 1),
        other => other,
    };
    match (lines, word) {
        (2.., _) => Place::Paragraph,
        (1, _) | (0, Some('.' | '!' | '?' | '…')) => Place::Sentence,
        (0, _) => Place::Word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many characters of short words, the last of them a letter.
    fn filler(characters: usize) -> String {
        let mut text = "abc ".repeat(characters / 4 + 1);
        text.truncate(characters - 1);
        text.push('z');
        text
    }

    fn texts(text: &str) -> Vec<&str> {
        chunks(text).into_iter().map(|chunk| chunk.text).collect()
    }

    #[test]
    fn a_short_text_is_one_chunk_and_none_is_none() {
        assert!(chunks("").is_empty());
        assert_eq!(texts("Tides."), ["Tides."]);
        assert_eq!(chunks(&filler(CHUNK)).len(), 1);
        assert_eq!(chunks(&filler(CHUNK + 1)).len(), 2);
    }

    #[test]
    fn a_paragraph_is_better_than_a_sentence_and_that_than_a_word() {
        let (early, late) = (filler(1_200), filler(600));
        for (first, second, expected) in [
            (".\n\n", ". ", 0),
            (". ", ". ", 1),
            (" \n \n", " ", 0),
            (".” ", ", ", 0),
            (" ", " ", 2),
        ] {
            let text = format!("{early}{first}{late}{second}{}", filler(900));
            let ends = [
                format!("{early}{first}").len(),
                format!("{early}{first}{late}{second}").len(),
                2_048 - 3,
            ];
            let found = chunks(&text)[0].characters;
            let near = found.abs_diff(ends[expected]) <= 4;
            assert!(near, "{first:?} {second:?}: {found} of {ends:?}");
        }
    }

    #[test]
    fn a_text_without_a_break_is_cut_at_the_bound() {
        let text = "é".repeat(5_000);
        let found: Vec<(usize, usize)> = chunks(&text)
            .iter()
            .map(|chunk| (chunk.start, chunk.characters))
            .collect();
        assert_eq!(found, [(0, 2_048), (1_848, 2_048), (3_696, 1_304)]);
    }

    #[test]
    fn a_chunk_begins_with_a_word() {
        for chunk in chunks(&"seven words ".repeat(1_000)).iter().skip(1) {
            assert!(chunk.text.starts_with("words") || chunk.text.starts_with("seven"));
        }
    }
}
