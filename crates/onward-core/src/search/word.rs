//! Tokenizes a text into words: runs of letters and digits, lower case, without the accents of
//! Latin, Greek and Cyrillic, independent of the Unicode normalization form.
//!
//! There is no stemming: texts are in many languages, and many queries are names and numbers.
//! Scripts without spaces between words (Han, Kana) give one word per character.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// The maximum length of a word. Longer words are truncated.
pub const MAX_WORD_CHARS: usize = 64;

/// A word with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The normalized text.
    pub text: String,
    /// The byte offset of its start.
    pub start: usize,
    /// The byte offset after its end.
    pub end: usize,
}

/// The words of a text, in order.
pub fn words(text: &str) -> impl Iterator<Item = Word> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let (start, end) = next_run(text, from)?;
            from = end;
            let run = text.get(start..end)?;
            let normalized = match run.chars().next() {
                Some(first) if is_single_char_word(first) => normalize_char(run),
                Some(_) | None => normalize_run(run),
            };
            if !normalized.is_empty() {
                return Some(Word {
                    text: normalized,
                    start,
                    end,
                });
            }
        }
    })
}

/// The next run of word characters.
fn next_run(text: &str, from: usize) -> Option<(usize, usize)> {
    let mut rest = text.get(from..)?.char_indices();
    let (skipped, first) = rest.find(|(_, char)| is_word_char(*char))?;
    let start = from + skipped;
    if is_single_char_word(first) {
        let mark = rest.next().filter(|(_, next)| is_voicing_mark(*next));
        let end = start + first.len_utf8();
        return Some((start, mark.map_or(end, |(_, mark)| end + mark.len_utf8())));
    }
    let end = rest.find(|(_, char)| !is_word_char(*char) || is_single_char_word(*char));
    Some((start, end.map_or(text.len(), |(place, _)| from + place)))
}

fn is_word_char(char: char) -> bool {
    char.is_alphanumeric() || (!char.is_ascii() && is_combining_mark(char))
}

/// Voicing marks (か to が, は to ぱ), which belong to the preceding Kana.
fn is_voicing_mark(char: char) -> bool {
    matches!(char, '\u{3099}' | '\u{309A}')
}

/// Whether a character, or its compatibility decomposition, is a complete word.
fn is_single_char_word(char: char) -> bool {
    if char < '\u{2E80}' {
        return false;
    }
    let mut alone = false;
    decompose_compatible(char, |part| {
        alone |= !is_voicing_mark(part)
            && matches!(part,
            '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}');
    });
    alone
}

/// A single-character word in its NFKC form if that is one character, otherwise in NFC, so that
/// normalizing it again gives the same result.
fn normalize_char(run: &str) -> String {
    let usual: String = run.nfkc().collect();
    match usual.chars().count() {
        1 => usual,
        _ => run.nfc().collect(),
    }
}

/// Normalizes a run.
fn normalize_run(run: &str) -> String {
    if run.is_ascii() {
        return run
            .get(..MAX_WORD_CHARS)
            .unwrap_or(run)
            .to_ascii_lowercase();
    }
    let accent = |char: &char| matches!(char, '\u{300}'..='\u{36F}');
    // Filter twice, because lower-casing may produce a combining mark.
    let lower = run.nfkd().filter(|char| !accent(char));
    let lower = lower.flat_map(char::to_lowercase);
    let kept = lower.filter(|char| !accent(char) && is_word_char(*char));
    kept.take(MAX_WORD_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word_texts(text: &str) -> Vec<String> {
        words(text).map(|word| word.text).collect()
    }

    #[test]
    fn words_are_letters_and_digits_in_lower_case() {
        assert_eq!(
            word_texts("Ebb-tide: 3.5 m, O'Neil_42!"),
            ["ebb", "tide", "3", "5", "m", "o", "neil", "42"]
        );
        assert_eq!(word_texts(" \0\u{FFFD}*\"():^-+"), [""; 0]);
    }

    #[test]
    fn ignores_accents_and_unicode_normalization_forms() {
        assert_eq!(
            word_texts("Zürich Zu\u{308}rich ZÜRICH zurich"),
            ["zurich"; 4]
        );
        assert_eq!(word_texts("ﬁsh Ｆｉｓｈ İ"), ["fish", "fish", "i"]);
        assert_eq!(
            word_texts("हिन्दी"),
            ["हिन्दी"],
            "a vowel sign is not an accent"
        );
    }

    #[test]
    fn scripts_without_spaces_give_one_word_per_character() {
        assert_eq!(word_texts("潮汐は2回"), ["潮", "汐", "は", "2", "回"]);
        assert_eq!(word_texts("ぞ そ\u{3099} ｱ"), ["ぞ", "ぞ", "ア"]);
    }

    #[test]
    fn truncates_long_words() {
        let long = "é".repeat(MAX_WORD_CHARS + 9);
        assert_eq!(word_texts(&long), ["e".repeat(MAX_WORD_CHARS)]);
        assert_eq!(
            word_texts(&"x".repeat(MAX_WORD_CHARS + 9)),
            ["x".repeat(MAX_WORD_CHARS)]
        );
    }

    #[test]
    fn a_word_has_its_byte_range() {
        let text = "… Über, Kiel";
        let found: Vec<&str> = words(text)
            .map(|word| &text[word.start..word.end])
            .collect();
        assert_eq!(found, ["Über", "Kiel"]);
    }
}
