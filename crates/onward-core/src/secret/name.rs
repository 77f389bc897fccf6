//! Names of secrets: fields, variables, options and headers.

/// What a name implies about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    /// A password: every value is a secret.
    Password,
    /// A token or key.
    Token,
    /// A name that also has an everyday meaning (`pass`, `auth`, `tokens`): only values that look
    /// like secrets are.
    Ambiguous,
    /// A header whose value extends to the end of the line.
    Header,
}

/// Words that name a secret, wherever they are in a name.
const PASSWORDS: &[&str] = &[
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "passwort",
    "pwd",
    "mnemonic",
];
const TOKENS: &[&str] = &[
    "secret",
    "secrets",
    "token",
    "apikey",
    "credential",
    "credentials",
    "jwt",
    "otp",
    "totp",
    "bearer",
];
/// Words that name a secret together with a following `key`.
const KEYS: &[&str] = &[
    "api",
    "access",
    "private",
    "secret",
    "account",
    "encryption",
    "signing",
    "master",
    "subscription",
    "storage",
    "service",
    "session",
    "license",
    "auth",
    "deploy",
    "ssh",
    "functions",
    "app",
    "application",
    "webhook",
];
/// Words before `KEY` in variables with keys that are not secret.
const PUBLIC_KEYS: &[&str] = &[
    "public",
    "primary",
    "foreign",
    "sort",
    "partition",
    "cache",
    "host",
    "hash",
    "row",
];
/// Ends of names that are written as one word (`PGPASSWORD`, `authtoken`).
const ENDS: &[(&str, NameKind)] = &[
    ("password", NameKind::Password),
    ("passwd", NameKind::Password),
    ("passphrase", NameKind::Password),
    ("requirepass", NameKind::Password),
    ("secret", NameKind::Token),
    ("token", NameKind::Token),
    ("apikey", NameKind::Token),
    ("accesskey", NameKind::Token),
    ("secretkey", NameKind::Token),
    ("privatekey", NameKind::Token),
    ("accountkey", NameKind::Token),
];
/// Words that end in `pass` and do not name a password.
const NO_PASSWORDS: &[&str] = &[
    "bypass",
    "compass",
    "trespass",
    "surpass",
    "overpass",
    "underpass",
    "encompass",
    "sshpass",
];
/// Last words of names that describe a secret and do not contain it (`token_count`).
const DESCRIPTIONS: &[&str] = &[
    "count",
    "counts",
    "limit",
    "limits",
    "length",
    "len",
    "type",
    "types",
    "url",
    "uri",
    "endpoint",
    "endpoints",
    "file",
    "files",
    "path",
    "paths",
    "dir",
    "directory",
    "folder",
    "name",
    "names",
    "ref",
    "refs",
    "reference",
    "policy",
    "policies",
    "ttl",
    "expiry",
    "expires",
    "expired",
    "expiration",
    "exp",
    "in",
    "at",
    "timeout",
    "age",
    "size",
    "budget",
    "usage",
    "rotation",
    "enabled",
    "required",
    "manager",
    "store",
    "helper",
    "provider",
    "providers",
    "field",
    "fields",
    "index",
    "position",
    "kind",
    "env",
    "var",
    "stdin",
    "fd",
    "prompt",
    "reset",
    "strength",
    "version",
    "scope",
    "scopes",
    "issuer",
    "audience",
    "arn",
    "rate",
    "through",
    "engine",
    "mode",
    "method",
    "algorithm",
    "format",
    "level",
    "check",
    "validator",
    "validation",
    "rule",
    "rules",
    "form",
    "input",
    "label",
    "placeholder",
    "hint",
];
/// Words before `token` that make it a token of a text or a position in a list.
const TEXT_TOKENS: &[&str] = &[
    "next",
    "prev",
    "previous",
    "page",
    "continuation",
    "eos",
    "bos",
    "pad",
    "unk",
    "sep",
    "cls",
    "mask",
    "stop",
    "cancellation",
    "cancel",
    "special",
    "max",
    "min",
    "num",
    "total",
    "input",
    "output",
    "prompt",
    "completion",
    "cached",
    "reasoning",
    "current",
    "last",
    "first",
    "sync",
];
/// Words before `pass` that make it a run over something.
const RUNS: &[&str] = &[
    "first", "second", "third", "last", "next", "render", "single", "multi", "one", "two", "all",
    "by",
];

/// Whether the value of a field with this name is a secret.
pub fn is_secret_name(name: &str) -> bool {
    kind(name)
        .is_some_and(|kind| kind != NameKind::Ambiguous || !name.eq_ignore_ascii_case("tokens"))
}

/// What a name implies about its value. `None` if it does not name a secret.
pub(super) fn kind(name: &str) -> Option<NameKind> {
    // Only the last part of a path names the value: `spring.datasource.password`, not `token.rs`.
    let path = name;
    let name = name.rsplit('.').next().unwrap_or(name);
    if !may_be_secret(name) {
        return None;
    }
    let words = words(name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["authorization"] | ["proxy", "authorization"] | ["cookie"] | ["set", "cookie"] => {
            return Some(NameKind::Header);
        }
        ["pass"] if path.len() > name.len() => return Some(NameKind::Password),
        ["auth" | "pass" | "pw"] => return Some(NameKind::Ambiguous),
        ["key", "id"] | ["access", "key", "id"] | ["old", "pwd"] | [] => return None,
        [.., last] if DESCRIPTIONS.contains(last) => return None,
        _ => {}
    }
    let mut found = None;
    for (index, word) in words.iter().enumerate() {
        let before = index.checked_sub(1).map_or("", |index| words[index]);
        let kind = word_kind(before, word);
        found = match (found, kind) {
            (Some(NameKind::Password), _) | (_, Some(NameKind::Password)) => {
                Some(NameKind::Password)
            }
            (Some(NameKind::Token), _) | (_, Some(NameKind::Token)) => Some(NameKind::Token),
            (found, kind) => found.or(kind),
        };
    }
    // A variable such as `OPENAI_KEY`.
    let is_key = matches!(words.as_slice(), [.., before, "key"] if !PUBLIC_KEYS.contains(before));
    let is_variable = !name.bytes().any(|b| b.is_ascii_lowercase());
    found.or((is_key && is_variable).then_some(NameKind::Ambiguous))
}

fn word_kind(before: &str, word: &str) -> Option<NameKind> {
    match word {
        "token" if TEXT_TOKENS.contains(&before) => None,
        "tokens" if TEXT_TOKENS.contains(&before) => None,
        "tokens" => Some(NameKind::Ambiguous),
        "key" if KEYS.contains(&before) => Some(NameKind::Token),
        "pass" | "pw" if RUNS.contains(&before) => None,
        "pass" | "pw" => Some(NameKind::Password),
        "auth" => Some(NameKind::Token),
        word if PASSWORDS.contains(&word) => Some(NameKind::Password),
        word if TOKENS.contains(&word) => Some(NameKind::Token),
        word if word.ends_with("pwd") && word != "oldpwd" => Some(NameKind::Password),
        word if word.ends_with("pass") && !NO_PASSWORDS.contains(&word) => Some(NameKind::Password),
        word => ENDS
            .iter()
            .find_map(|(end, kind)| word.ends_with(end).then_some(*kind)),
    }
}

/// A fast check that rejects most names.
fn may_be_secret(name: &str) -> bool {
    const STEMS: [&[u8]; 12] = [
        b"pass",
        b"pwd",
        b"pw",
        b"secret",
        b"token",
        b"key",
        b"auth",
        b"credential",
        b"cookie",
        b"jwt",
        b"otp",
        b"mnemonic",
    ];
    let name = name.as_bytes();
    let mut ends = (0..name.len()).map(|at| &name[at..]);
    ends.any(|end| {
        STEMS.iter().any(|stem| {
            end[0].eq_ignore_ascii_case(&stem[0])
                && end.len() >= stem.len()
                && end[..stem.len()].eq_ignore_ascii_case(stem)
        })
    }) || name.eq_ignore_ascii_case(b"bearer")
}

/// The words of a name, in lower case: `apiKey`, `API_KEY` and `APIKey` are `api`, `key`.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let chars: Vec<char> = name.chars().collect();
    for (index, c) in chars.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| chars.get(index));
        let after = chars.get(index + 1);
        let begins = c.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase() || before.is_ascii_digit())
                || (before.is_some_and(|before| before.is_uppercase())
                    && after.is_some_and(|after| after.is_lowercase())));
        if (begins || !c.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}
