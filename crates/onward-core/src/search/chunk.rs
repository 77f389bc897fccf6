//! Splits a text into overlapping chunks of at most [`MAX_CHUNK_CHARS`] characters.
//!
//! Each chunk starts with the end of the previous one, so that a passage at a boundary is complete
//! in one of them. A chunk ends at a paragraph, otherwise at a sentence, otherwise at a word, and
//! inside a word only if its second half has no other boundary.

/// The maximum number of characters in a chunk.
pub const MAX_CHUNK_CHARS: usize = 2_048;
/// The maximum number of characters that a chunk shares with the previous one.
pub const MAX_CHUNK_OVERLAP: usize = 200;

/// A chunk of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'t> {
    /// The offset in characters, from 0.
    pub start: usize,
    /// The number of characters.
    pub characters: usize,
    /// The content.
    pub text: &'t str,
}

/// The kind of a boundary, worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Boundary {
    InWord,
    Word,
    Sentence,
    Paragraph,
}

/// The chunks of a text, in order. An empty text has none.
pub fn chunks(text: &str) -> Vec<Chunk<'_>> {
    let (bytes, chars): (Vec<usize>, Vec<char>) = text.char_indices().unzip();
    let at = |offset: usize| bytes.get(offset).copied().unwrap_or(text.len());
    let mut found = Vec::new();
    let mut start = 0;
    while start < chars.len() {
        let end = chunk_end(&chars, start);
        found.push(Chunk {
            start,
            characters: end - start,
            text: text.get(at(start)..at(end)).unwrap_or_default(),
        });
        if end == chars.len() {
            break;
        }
        start = next_start(&chars, end);
    }
    found
}

/// The end of the chunk that starts here: the last of the best boundaries in its second half.
fn chunk_end(chars: &[char], start: usize) -> usize {
    let most = start + MAX_CHUNK_CHARS;
    if most >= chars.len() {
        return chars.len();
    }
    let second_half = start + MAX_CHUNK_CHARS / 2 + 1..=most;
    let best = second_half.max_by_key(|offset| (boundary(chars, *offset), *offset));
    best.unwrap_or(most)
}

/// The start of the next chunk: the first word within the overlap.
fn next_start(chars: &[char], end: usize) -> usize {
    let first = end - MAX_CHUNK_OVERLAP;
    let word = (first..end).find(|offset| boundary(chars, *offset) > Boundary::InWord);
    word.unwrap_or(first)
}

/// The kind of the boundary before this character.
fn boundary(chars: &[char], offset: usize) -> Boundary {
    let before = |back: usize| {
        offset
            .checked_sub(back)
            .and_then(|at| chars.get(at))
            .copied()
    };
    let (Some(last), Some(next)) = (before(1), chars.get(offset).copied()) else {
        return Boundary::InWord;
    };
    if matches!(last, '。' | '！' | '？') {
        return Boundary::Sentence;
    }
    if !last.is_whitespace() || next.is_whitespace() {
        return Boundary::InWord;
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
        (2.., _) => Boundary::Paragraph,
        (1, _) | (0, Some('.' | '!' | '?' | '…')) => Boundary::Sentence,
        (0, _) => Boundary::Word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Short words with this many characters in total, ending with a letter.
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
    fn a_short_text_is_one_chunk_and_an_empty_text_has_none() {
        assert!(chunks("").is_empty());
        assert_eq!(texts("Tides."), ["Tides."]);
        assert_eq!(chunks(&filler(MAX_CHUNK_CHARS)).len(), 1);
        assert_eq!(chunks(&filler(MAX_CHUNK_CHARS + 1)).len(), 2);
    }

    #[test]
    fn prefers_paragraphs_to_sentences_and_sentences_to_words() {
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
    fn splits_a_text_without_boundaries_at_the_limit() {
        let text = "é".repeat(5_000);
        let found: Vec<(usize, usize)> = chunks(&text)
            .iter()
            .map(|chunk| (chunk.start, chunk.characters))
            .collect();
        assert_eq!(found, [(0, 2_048), (1_848, 2_048), (3_696, 1_304)]);
    }

    #[test]
    fn a_chunk_starts_with_a_whole_word() {
        for chunk in chunks(&"seven words ".repeat(1_000)).iter().skip(1) {
            assert!(chunk.text.starts_with("words") || chunk.text.starts_with("seven"));
        }
    }
}
