//! Removes secrets from a text before it is stored: values after a secret-like name (`password=…`,
//! `--token …`, `Authorization: Bearer …`), passwords in URLs, and words with a known secret format
//! (`sk-…`, `ghp_…`, `AKIA…`, JSON web tokens, Onward's own `onw_…`).
//!
//! When in doubt, it masks. A secret without a name or a known format cannot be recognized.

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
const FORMATS: [(&str, usize); 16] = [
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
    ("onw_", 12),
];

/// Authentication schemes between a name and its secret.
const SCHEMES: [&str; 3] = ["bearer", "basic", "token"];

/// The text with its secrets masked.
pub fn mask(text: &str) -> String {
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
        if next || looks_secret(word) {
            masked.push_str(MASK);
            next = false;
        } else if let Some(hidden) = without_password(word) {
            masked.push_str(&hidden);
        } else {
            masked.push_str(word);
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

fn looks_secret(word: &str) -> bool {
    FORMATS
        .iter()
        .any(|(beginning, least)| word.starts_with(beginning) && word.len() >= *least)
}

fn is_secret_name(word: &str) -> bool {
    let name = word.to_ascii_lowercase();
    NAMES.iter().any(|part| name.contains(part))
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
            ("grep -rn token src/", "grep -rn token src/"),
            ("cat token.rs", "cat token.rs"),
            ("a sk-12 in the air", "a sk-12 in the air"),
        ] {
            assert_eq!(mask(text), masked);
        }
    }

    #[test]
    fn masking_is_idempotent() {
        for text in ["PASSWORD=x make", "a: Bearer b", "", " ", "é=token:ü"] {
            let once = mask(text);
            assert_eq!(mask(&once), once, "{text}");
        }
    }
}
