//! Takes secrets out of a text before it is kept: what follows a telling name (`password=…`,
//! `--token …`, `Authorization: Bearer …`), what a URL holds between `:` and `@`, and words that are
//! secrets by their own looks (`sk-…`, `ghp_…`, `AKIA…`, a JSON web token, our own `onw_…`).
//!
//! It errs on the side of hiding. What has no name and no looks cannot be told from any other word.

/// What stands in place of a secret.
pub const MASK: &str = "[secret]";

/// Parts of names whose values are secret.
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

/// Beginnings of words that are secret, and how long such a word is at least.
const LOOKS: [(&str, usize); 16] = [
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

/// Schemes that stand between a name and its secret.
const SCHEMES: [&str; 3] = ["bearer", "basic", "token"];

/// The text without its secrets.
pub fn mask(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    // Whether the next word is a secret, whatever it looks like.
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
        // Signs and schemes may stand between a name and its value.
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
        next |= is_telling(word) && assigns(word, after);
    }
    masked
}

/// What belongs to one word. The signs that separate a name from its value do not.
fn is_word(c: char) -> bool {
    !c.is_whitespace()
        && !matches!(
            c,
            '=' | '"' | '\'' | '`' | ',' | ';' | '{' | '}' | '&' | '?'
        )
}

fn looks_secret(word: &str) -> bool {
    LOOKS
        .iter()
        .any(|(beginning, least)| word.starts_with(beginning) && word.len() >= *least)
}

fn is_telling(word: &str) -> bool {
    let name = word.to_ascii_lowercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// Whether a value follows a name: behind `=` or `:`, or as the next word behind an option.
fn assigns(word: &str, after: &str) -> bool {
    let unquoted = after.trim_start_matches(['"', '\'']);
    word.ends_with(':')
        || unquoted.starts_with('=')
        || unquoted.starts_with(':')
        || (word.starts_with("--") && after.starts_with(' '))
}

/// A URL without its password, where it has one.
fn without_password(word: &str) -> Option<String> {
    let (scheme, rest) = word.split_once("://")?;
    let (who, place) = rest.rsplit_once('@')?;
    let (user, _) = who.split_once(':')?;
    Some(format!("{scheme}://{user}:{MASK}@{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out() {
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
    fn a_masked_text_stays_as_it_is() {
        for text in ["PASSWORD=x make", "a: Bearer b", "", " ", "é=token:ü"] {
            let once = mask(text);
            assert_eq!(mask(&once), once, "{text}");
        }
    }
}
