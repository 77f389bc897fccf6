//! Words with a known secret format.

use std::ops::Range;

/// The characters after the prefix of a format.
#[derive(Clone, Copy)]
enum Rest {
    /// Letters and digits, with at least one digit or a capital letter.
    Alphanumeric,
    /// Letters, digits, `_` and `-`, with at least one digit.
    Word,
    /// As `Word`, with several digits, because ordinary names have the prefix as well.
    Random,
    /// Letters, digits, `_`, `-` and `.`.
    Dotted,
    /// Capital letters and digits.
    Capital,
    /// Hexadecimal digits.
    Hex,
}

use Rest::{Alphanumeric, Capital, Dotted, Hex, Random, Word};

/// Prefixes of secret words, with the characters and the minimum length of the rest.
const FORMATS: &[(&str, Rest, usize)] = &[
    // Model providers.
    ("sk-ant-", Word, 12),
    ("sk-proj-", Word, 12),
    ("sk-or-", Word, 12),
    ("sk-", Random, 13),
    ("gsk_", Alphanumeric, 20),
    ("xai-", Alphanumeric, 20),
    ("pplx-", Alphanumeric, 20),
    ("nvapi-", Word, 20),
    ("r8_", Alphanumeric, 20),
    ("hf_", Alphanumeric, 17),
    // Payment.
    ("sk_live_", Alphanumeric, 8),
    ("sk_test_", Alphanumeric, 8),
    ("rk_live_", Alphanumeric, 8),
    ("rk_test_", Alphanumeric, 8),
    ("pk-", Random, 13),
    ("whsec_", Alphanumeric, 16),
    ("sq0atp-", Word, 16),
    ("sq0csp-", Word, 16),
    ("shpat_", Hex, 16),
    ("shpss_", Hex, 16),
    // Code hosts and registries.
    ("ghp_", Alphanumeric, 16),
    ("gho_", Alphanumeric, 16),
    ("ghs_", Alphanumeric, 16),
    ("ghu_", Alphanumeric, 16),
    ("ghr_", Alphanumeric, 16),
    ("github_pat_", Word, 16),
    ("glpat-", Word, 12),
    ("gldt-", Word, 12),
    ("glrt-", Word, 12),
    ("npm_", Alphanumeric, 20),
    ("pypi-", Word, 40),
    ("rubygems_", Hex, 20),
    ("dckr_pat_", Word, 12),
    ("ATATT3x", Word, 20),
    ("ATBB", Alphanumeric, 20),
    // Clouds.
    ("AKIA", Capital, 12),
    ("ASIA", Capital, 12),
    ("AIza", Word, 20),
    ("ya29.", Word, 12),
    ("GOCSPX-", Word, 12),
    ("dop_v1_", Hex, 20),
    ("hvs.", Word, 16),
    ("hvb.", Word, 16),
    ("dapi", Hex, 32),
    ("tskey-", Word, 12),
    ("pul-", Hex, 20),
    ("sbp_", Hex, 20),
    ("sb_secret_", Word, 12),
    ("pscale_tkn_", Word, 12),
    ("nfp_", Alphanumeric, 20),
    ("HRKU-", Word, 16),
    // Messaging, monitoring and others.
    ("xoxa-", Word, 10),
    ("xoxb-", Word, 10),
    ("xoxe.", Dotted, 10),
    ("xoxo-", Word, 10),
    ("xoxp-", Word, 10),
    ("xoxs-", Word, 10),
    ("xoxr-", Word, 10),
    ("xapp-", Word, 10),
    ("SG.", Dotted, 32),
    ("key-", Hex, 32),
    ("SK", Hex, 32),
    ("glsa_", Word, 20),
    ("NRAK-", Alphanumeric, 16),
    ("PMAK-", Word, 20),
    ("sntrys_", Dotted, 20),
    ("lin_api_", Alphanumeric, 16),
    ("figd_", Word, 16),
    ("ntn_", Alphanumeric, 20),
    ("AGE-SECRET-KEY-", Capital, 20),
    ("onw_", Dotted, 8),
];

/// Length of the shortest word with a known format. Most words are shorter.
const SHORTEST: usize = {
    let mut shortest = usize::MAX;
    let mut at = 0;
    while at < FORMATS.len() {
        let (prefix, _, least) = FORMATS[at];
        if prefix.len() + least < shortest {
            shortest = prefix.len() + least;
        }
        at += 1;
    }
    shortest
};

/// Adds the words with a known format.
pub(super) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while let Some(found) = text[at..].find(is_part) {
        let start = at + found;
        let length = text[start..].find(|c| !is_part(c));
        at = length.map_or(text.len(), |length| start + length);
        let part = text[start..at].trim_end_matches('.');
        if looks_secret(part) {
            spans.push(start..start + part.len());
        } else if is_telegram_bot(part, &text[at..]) {
            let token = &text[at + 1..];
            let length = token.find(|c| !is_part(c)).unwrap_or(token.len());
            at += 1 + length;
            spans.push(start..at);
        }
    }
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Whether a word has a known format.
pub(super) fn looks_secret(word: &str) -> bool {
    if word.len() < SHORTEST {
        return false;
    }
    let prefixed = FORMATS.iter().any(|(prefix, rest, least)| {
        word.strip_prefix(prefix)
            .is_some_and(|after| after.len() >= *least && rest.matches(after))
    });
    prefixed || is_json_web_token(word)
}

/// Whether the word is a JSON web token: Base64 of `{"`, and at least two parts or a long one.
fn is_json_web_token(word: &str) -> bool {
    let parts = word.matches('.').count();
    word.starts_with("eyJ")
        && Dotted.matches(word)
        && (word.len() >= 60 || parts >= 1)
        && word.len() >= 20
}

/// Whether `digits:rest` is the token of a Telegram bot.
fn is_telegram_bot(part: &str, after: &str) -> bool {
    let id = part.strip_prefix("bot").unwrap_or(part);
    (8..=10).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_digit())
        && after
            .strip_prefix(":AA")
            .is_some_and(|rest| rest.chars().take_while(|c| is_part(*c)).count() >= 30)
}

impl Rest {
    fn matches(self, text: &str) -> bool {
        let has_digit = || text.bytes().any(|b| b.is_ascii_digit());
        let has_capital = || text.bytes().any(|b| b.is_ascii_uppercase());
        match self {
            Alphanumeric => {
                text.bytes().all(|b| b.is_ascii_alphanumeric()) && (has_digit() || has_capital())
            }
            Word => {
                has_digit()
                    && text
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
            }
            Random => {
                let digits = text.bytes().filter(u8::is_ascii_digit).count();
                let capitals = text.bytes().filter(u8::is_ascii_uppercase).count();
                Word.matches(text) && digits >= 2 && digits + capitals >= 4
            }
            Dotted => text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')),
            Capital => text
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()),
            Hex => text.bytes().all(|b| b.is_ascii_hexdigit()),
        }
    }
}
