//! The words of a text: runs of letters and digits, in lower case, without the accents of Latin,
//! Greek and Cyrillic, in whichever form of Unicode they were written.
//!
//! There is no stemming: texts come in every language, and half of what is looked for are names and
//! numbers. What is written without spaces between words (Han, Kana) is one word per character.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Characters that a word keeps; the rest of it is not looked at.
pub const MAX_WORD: usize = 64;

/// A word, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As it is compared.
    pub text: String,
    /// The byte of the text at which it begins.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
}

/// The words of a text, in their order.
pub fn words(text: &str) -> impl Iterator<Item = Word> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let (start, end) = next_run(text, from)?;
            from = end;
            let run = text.get(start..end)?;
            let plain = match run.chars().next() {
                Some(first) if stands_alone(first) => one_character(run),
                Some(_) | None => plain(run),
            };
            if !plain.is_empty() {
                return Some(Word {
                    text: plain,
                    start,
                    end,
                });
            }
        }
    })
}

/// The next run of characters that belong together.
fn next_run(text: &str, from: usize) -> Option<(usize, usize)> {
    let mut rest = text.get(from..)?.char_indices();
    let (skipped, first) = rest.find(|(_, char)| belongs(*char))?;
    let start = from + skipped;
    if stands_alone(first) {
        let voice = rest.next().filter(|(_, next)| is_voice(*next));
        let end = start + first.len_utf8();
        return Some((
            start,
            voice.map_or(end, |(_, voice)| end + voice.len_utf8()),
        ));
    }
    let end = rest.find(|(_, char)| !belongs(*char) || stands_alone(*char));
    Some((start, end.map_or(text.len(), |(place, _)| from + place)))
}

fn belongs(char: char) -> bool {
    char.is_alphanumeric() || (!char.is_ascii() && is_combining_mark(char))
}

/// The marks that make か into が and は into ぱ: part of the Kana before them.
fn is_voice(char: char) -> bool {
    matches!(char, '\u{3099}' | '\u{309A}')
}

/// Whether a character is a word of its own, also where it is another form of one that is.
fn stands_alone(char: char) -> bool {
    if char < '\u{2E80}' {
        return false;
    }
    let mut alone = false;
    decompose_compatible(char, |part| {
        alone |= !is_voice(part)
            && matches!(part,
            '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}');
    });
    alone
}

/// A character that stands alone, as it is compared: in its usual form where that is one character,
/// else as it is, so that reading it again gives the same.
fn one_character(run: &str) -> String {
    let usual: String = run.nfkc().collect();
    match usual.chars().count() {
        1 => usual,
        _ => run.nfc().collect(),
    }
}

/// A run as it is compared.
fn plain(run: &str) -> String {
    if run.is_ascii() {
        return run.get(..MAX_WORD).unwrap_or(run).to_ascii_lowercase();
    }
    let accent = |char: &char| matches!(char, '\u{300}'..='\u{36F}');
    // Twice, for a capital letter may become a letter with a mark of its own.
    let lower = run.nfkd().filter(|char| !accent(char));
    let lower = lower.flat_map(char::to_lowercase);
    let kept = lower.filter(|char| !accent(char) && belongs(*char));
    kept.take(MAX_WORD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        words(text).map(|word| word.text).collect()
    }

    #[test]
    fn words_are_letters_and_digits_in_lower_case() {
        assert_eq!(
            all("Ebb-tide: 3.5 m, O'Neil_42!"),
            ["ebb", "tide", "3", "5", "m", "o", "neil", "42"]
        );
        assert_eq!(all(" \0\u{FFFD}*\"():^-+"), [""; 0]);
    }

    #[test]
    fn accents_and_forms_of_unicode_make_no_difference() {
        assert_eq!(all("Zürich Zu\u{308}rich ZÜRICH zurich"), ["zurich"; 4]);
        assert_eq!(all("ﬁsh Ｆｉｓｈ İ"), ["fish", "fish", "i"]);
        assert_eq!(all("हिन्दी"), ["हिन्दी"], "a vowel sign is no accent");
    }

    #[test]
    fn what_has_no_spaces_is_one_word_per_character() {
        assert_eq!(all("潮汐は2回"), ["潮", "汐", "は", "2", "回"]);
        assert_eq!(all("ぞ そ\u{3099} ｱ"), ["ぞ", "ぞ", "ア"]);
    }

    #[test]
    fn a_long_word_is_known_by_its_beginning() {
        let long = "é".repeat(MAX_WORD + 9);
        assert_eq!(all(&long), ["e".repeat(MAX_WORD)]);
        assert_eq!(all(&"x".repeat(MAX_WORD + 9)), ["x".repeat(MAX_WORD)]);
    }

    #[test]
    fn a_word_says_where_it_stands() {
        let text = "… Über, Kiel";
        let found: Vec<&str> = words(text).map(|it| &text[it.start..it.end]).collect();
        assert_eq!(found, ["Über", "Kiel"]);
    }
}
