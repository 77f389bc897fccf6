//! Removes secrets from texts and data before they are stored in previews and logs: values after a
//! secret-like name (`password=…`, `--token …`, `Authorization: Bearer …`), passwords in URLs,
//! private keys in PEM format, and words with a known secret format (`sk-…`, `ghp_…`, `AKIA…`, JSON
//! web tokens, Onward's own `onw_…`).
//!
//! When in doubt, it masks. A secret without a name or a known format cannot be recognized.

use std::borrow::Cow;

/// The replacement for a secret.
pub const MASK: &str = "[secret]";

/// Parts of names with secret values.
const NAMES: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "private_key",
    "credential",
    "authorization",
];

/// Prefixes of secret words, with the minimum length of the word.
const FORMATS: [(&str, usize); 20] = [
    ("sk-", 16),
    ("pk-", 16),
    ("rk_", 16),
    ("sk_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("ghu_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xox", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 20),
    ("eyJ", 24),
    ("hf_", 20),
    ("npm_", 20),
    ("pypi-", 20),
    ("ya29.", 20),
    ("onw_", 12),
];

/// The start and the end of a private key in PEM format. The type of the key precedes `KEY`.
const PEM_BEGIN: &str = "-----BEGIN ";
const PEM_PRIVATE: &str = "PRIVATE KEY";
const PEM_END: &str = "-----END ";

/// Authentication schemes between a name and its secret.
const SCHEMES: [&str; 3] = ["bearer", "basic", "token"];

/// The text with its secrets masked.
pub fn mask(text: &str) -> String {
    mask_words(&without_private_keys(text))
}

/// Whether the value of a field with this name is a secret.
pub fn is_secret_name(name: &str) -> bool {
    // `apiKey` and `access-key` are spellings of `api_key` and `access_key`.
    let letters = |text: &str| -> String {
        let letters = text.chars().filter(|c| !matches!(c, '_' | '-'));
        letters.flat_map(char::to_lowercase).collect()
    };
    let name = letters(name);
    NAMES.iter().any(|part| name.contains(&letters(part)))
}

/// The text without the content of its private keys. A key whose end is missing extends to the end
/// of the text.
fn without_private_keys(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, label, after)) = find_private_key(rest) {
        kept.push_str(before);
        kept.push_str(PEM_BEGIN);
        kept.push_str(label);
        kept.push_str("-----");
        kept.push_str(MASK);
        rest = after.find(PEM_END).map_or("", |end| &after[end..]);
    }
    if kept.is_empty() {
        Cow::Borrowed(text)
    } else {
        kept.push_str(rest);
        Cow::Owned(kept)
    }
}

/// The text before the first private key, the key's label, and the text after the label.
fn find_private_key(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices(PEM_BEGIN).find_map(|(start, begin)| {
        let (label, after) = text[start + begin.len()..].split_once("-----")?;
        let is_private = label.contains(PEM_PRIVATE) && !after.starts_with(MASK);
        is_private.then(|| (&text[..start], label, after))
    })
}

fn mask_words(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    // Whether the next word is a secret, whatever its format.
    let mut next = false;
    let mut rest = text;
    while !rest.is_empty() {
        let start = rest.find(is_word).unwrap_or(rest.len());
        let (between, from) = rest.split_at(start);
        masked.push_str(between);
        let end = from.find(|c| !is_word(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        rest = after;
        if word.is_empty() {
            continue;
        }
        let scheme = SCHEMES.contains(&word.to_ascii_lowercase().as_str());
        // Punctuation and schemes may separate a name from its value.
        if next && (scheme || !word.contains(char::is_alphanumeric)) {
            masked.push_str(word);
            continue;
        }
        if next {
            masked.push_str(MASK);
            next = false;
        } else if let Some(hidden) = without_password(word) {
            masked.push_str(&hidden);
        } else if let Some(name) = assigned_name(word) {
            masked.push_str(name);
            masked.push(':');
            masked.push_str(MASK);
        } else {
            push_without_formats(&mut masked, word);
        }
        next |= scheme && after.starts_with(' ') && word != "token";
        next |= is_secret_name(word) && assigns(word, after);
    }
    masked
}

/// Whether a character is part of a word. Separators of names and values are not.
fn is_word(c: char) -> bool {
    !c.is_whitespace()
        && !matches!(
            c,
            '=' | '"' | '\'' | '`' | ',' | ';' | '{' | '}' | '&' | '?'
        )
}

/// Appends a word with the parts masked that have a known secret format.
fn push_without_formats(masked: &mut String, word: &str) {
    let mut rest = word;
    while !rest.is_empty() {
        let start = rest.find(is_part).unwrap_or(rest.len());
        let (between, from) = rest.split_at(start);
        let (part, after) = from.split_at(from.find(|c| !is_part(c)).unwrap_or(from.len()));
        masked.push_str(between);
        masked.push_str(if looks_secret(part) { MASK } else { part });
        rest = after;
    }
}

/// Whether a character can be part of a secret with a known format.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn looks_secret(part: &str) -> bool {
    FORMATS
        .iter()
        .any(|(beginning, least)| part.starts_with(beginning) && part.len() >= *least)
}

/// The name in `name:value` without a space, if its value is a secret. A path with a line number
/// (`src/token.rs:12`) is not a name.
fn assigned_name(word: &str) -> Option<&str> {
    let (name, value) = word.split_once(':')?;
    let is_name = name
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let is_value = value.contains(char::is_alphanumeric) && value != MASK;
    (is_name && is_value && is_secret_name(name)).then_some(name)
}

/// Whether a value follows a name: after `=` or `:`, or as the next word after an option.
fn assigns(word: &str, after: &str) -> bool {
    let unquoted = after.trim_start_matches(['"', '\'']);
    word.ends_with(':')
        || unquoted.starts_with('=')
        || unquoted.starts_with(':')
        || (word.starts_with("--") && after.starts_with(' '))
}

/// A URL with its password masked, if it has one.
fn without_password(word: &str) -> Option<String> {
    let (scheme, rest) = word.split_once("://")?;
    let (userinfo, host) = rest.rsplit_once('@')?;
    let (user, _) = userinfo.split_once(':')?;
    Some(format!("{scheme}://{user}:{MASK}@{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_secrets() {
        for (text, masked) in [
            ("ls -la src", "ls -la src"),
            ("PASSWORD=hunter2 make", "PASSWORD=[secret] make"),
            ("export API_KEY='abc def'", "export API_KEY='[secret] def'"),
            (
                "curl -H 'Authorization: Bearer abc.def' https://x.org",
                "curl -H 'Authorization: Bearer [secret]' https://x.org",
            ),
            ("gh --token abc pr", "gh --token [secret] pr"),
            (r#"{"password":"hunter2"}"#, r#"{"password":"[secret]"}"#),
            (r#"{"password": "hunter2"}"#, r#"{"password": "[secret]"}"#),
            (
                "psql postgres://me:hunter2@db/x",
                "psql postgres://me:[secret]@db/x",
            ),
            ("echo ghp_0123456789abcdefghij", "echo [secret]"),
            ("sk-0123456789abcdefghij", "[secret]"),
            ("(key:sk-0123456789abcdefghij)", "(key:[secret])"),
            ("password:hunter2 x", "password:[secret] x"),
            ("X-Api-Key:abc", "X-Api-Key:[secret]"),
            ("apiKey=abc", "apiKey=[secret]"),
            ("see src/token.rs:12 first", "see src/token.rs:12 first"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nx",
                "-----BEGIN RSA PRIVATE KEY-----[secret]-----END RSA PRIVATE KEY-----\nx",
            ),
            (
                "a -----BEGIN PRIVATE KEY----- MIIE",
                "a -----BEGIN PRIVATE KEY-----[secret]",
            ),
            (
                "-----BEGIN PUBLIC KEY-----\nMIIE",
                "-----BEGIN PUBLIC KEY-----\nMIIE",
            ),
            ("grep -rn token src/", "grep -rn token src/"),
            ("cat token.rs", "cat token.rs"),
            ("a sk-12 in the air", "a sk-12 in the air"),
        ] {
            assert_eq!(mask(text), masked);
        }
    }

    #[test]
    fn masking_is_idempotent() {
        for text in [
            "PASSWORD=x make",
            "a: Bearer b",
            "",
            " ",
            "é=token:ü",
            "secret:a:b",
            "-----BEGIN EC PRIVATE KEY-----abc",
        ] {
            let once = mask(text);
            assert_eq!(mask(&once), once, "{text}");
        }
    }
}
