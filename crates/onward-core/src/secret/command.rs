//! Passwords in the options and arguments of known programs: `curl -u user:…`, `mysql -p…`,
//! `vault kv put … name=…`.

use std::ops::Range;

use super::MASK;
use super::value::closing_quote;

/// How an option contains a password.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `user:password`, attached or as the next word.
    UserPassword,
    /// Attached (`-psecret`) only; the next word is not a password.
    Attached,
    /// Attached or the next word.
    Word,
    /// The next word; other options begin with the same letter.
    Next,
    /// `name=password`.
    Pair,
    /// `user%password`.
    UserPercent,
}

use Form::{Attached, Next, Pair, UserPassword, UserPercent, Word};

/// Programs, their option, and how it contains a password.
const OPTIONS: &[(&[&str], &str, Form)] = &[
    (&["curl", "curlie"], "-u", UserPassword),
    (&["curl", "curlie"], "-U", UserPassword),
    (&["curl", "curlie"], "--user", UserPassword),
    (&["curl", "curlie"], "--proxy-user", UserPassword),
    (&["http", "https", "xh", "xhs"], "-a", UserPassword),
    (&["http", "https", "xh", "xhs"], "--auth", UserPassword),
    (
        &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mysqlimport",
            "mariadb",
            "mariadb-dump",
        ],
        "-p",
        Attached,
    ),
    (&["7z", "7za"], "-p", Attached),
    (&["sshpass"], "-p", Word),
    (&["login"], "-p", Word),
    (&["redis-cli"], "-a", Word),
    (
        &[
            "mongo",
            "mongosh",
            "mongodump",
            "mongorestore",
            "mongoexport",
            "mongoimport",
        ],
        "-p",
        Word,
    ),
    (
        &[
            "ldapsearch",
            "ldapadd",
            "ldapmodify",
            "ldapwhoami",
            "ldapdelete",
        ],
        "-w",
        Word,
    ),
    (&["sqlcmd", "bcp", "zip", "unzip"], "-P", Word),
    (&["smbclient", "rpcclient"], "-U", UserPercent),
    (&["openssl"], "-k", Next),
    (&["openssl"], "-K", Next),
    // `kubectl create secret generic NAME --from-literal=key=value`.
    (&["secret"], "--from-literal", Pair),
];
/// Commands of `vault` whose arguments `name=value` are secrets.
const VAULT_COMMANDS: [&str; 3] = ["put", "patch", "write"];

/// Adds the passwords in options.
pub(super) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    let is_vault = text.contains("vault");
    if !has_option(text) && !is_vault {
        return;
    }
    let mentioned = OPTIONS
        .iter()
        .flat_map(|(programs, ..)| programs.iter())
        .any(|program| text.contains(program));
    if mentioned || is_vault || text.contains("htpasswd") {
        let mut from = 0;
        for line in text.split_inclusive('\n') {
            find_in(text, from..from + line.len(), 2, spans);
            from += line.len();
        }
    }
}

/// Whether a word other than the first one begins with `-`.
fn has_option(text: &str) -> bool {
    let (before, after) = (text.as_bytes().iter(), text.as_bytes().iter().skip(1));
    before
        .zip(after)
        .any(|(before, byte)| *byte == b'-' && !before.is_ascii_alphanumeric())
}

/// Adds the passwords of one line. A quoted word may be a command line itself.
fn find_in(text: &str, line: Range<usize>, depth: usize, spans: &mut Vec<Range<usize>>) {
    let words = words(text, line);
    let mut program_words: Vec<&str> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let content = &text[word.clone()];
        if matches!(content, "|" | "||" | "&&" | ";" | "&") {
            program_words.clear();
            continue;
        }
        if content.contains([' ', '"', '\'']) && depth > 0 {
            find_in(text, word.clone(), depth - 1, spans);
        }
        for (programs, option, form) in OPTIONS {
            let is_used = program_words.iter().any(|word| programs.contains(word));
            if is_used && content.starts_with(option) {
                let next = words.get(index + 1).cloned();
                spans.extend(argument(text, word.clone(), option, next, *form));
            }
        }
        if program_words.contains(&"htpasswd") && content.starts_with('-') && content.contains('b')
        {
            spans.extend(words.get(index + 3).or(words.get(index + 2)).cloned());
        }
        let is_vault = program_words.contains(&"vault")
            && VAULT_COMMANDS
                .iter()
                .any(|command| program_words.contains(command));
        if is_vault
            && !content.starts_with('-')
            && let Some(equals) = content.find('=')
        {
            let value = match word.start + equals + 1 {
                // `name='value'`
                start if start == word.end => words.get(index + 1).cloned(),
                start => Some(start..word.end),
            };
            // `name=@file` names a file.
            let value = value.filter(|value| !text[value.clone()].starts_with('@'));
            spans.extend(value.filter(|value| is_secret(&text[value.clone()])));
        }
        if !content.starts_with('-') {
            program_words.push(content.rsplit('/').next().unwrap_or(content));
        }
    }
}

/// The password of an option.
fn argument(
    text: &str,
    word: Range<usize>,
    option: &str,
    next: Option<Range<usize>>,
    form: Form,
) -> Option<Range<usize>> {
    let attached = word.start + option.len()..word.end;
    let is_long = option.starts_with("--");
    let value = match &text[attached.clone()] {
        "" => next.filter(|_| form != Attached)?,
        _ if form == Next => return None,
        rest if rest.starts_with('=') => attached.start + 1..attached.end,
        _ if is_long => return None,
        _ => attached,
    };
    let content = &text[value.clone()];
    let start = match form {
        UserPassword => value.start + content.find(':')? + 1,
        UserPercent => value.start + content.find('%')? + 1,
        Pair => value.start + content.find('=')? + 1,
        Attached | Next | Word => value.start,
    };
    let start = start + usize::from(text[start..].starts_with(['"', '\'']));
    let password = text.get(start..value.end)?;
    is_secret(password).then_some(start..value.end)
}

/// Whether an argument is neither a reference nor an option.
fn is_secret(password: &str) -> bool {
    let is_reference = password.starts_with(['$', '<', '{']);
    !password.is_empty() && !is_reference && !password.starts_with('-') && password != MASK
}

/// The words of a command line or of a list of arguments. A quoted text is one word.
fn words(text: &str, line: Range<usize>) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut at = line.start;
    let is_between = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}' | '\\');
    while let Some(found) = text[at..line.end].find(|c| !is_between(c)) {
        let masked = text[at..line.end]
            .find(MASK)
            .filter(|masked| *masked < found);
        let start = at + masked.unwrap_or(found);
        let rest = &text[start..line.end];
        if masked.is_some() {
            words.push(start..start + MASK.len());
            at = start + MASK.len();
            continue;
        }
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        if let Some(quote) = quote {
            let inner = &rest[1..];
            let is_escaped = text[..start].ends_with('\\');
            let length = closing_quote(inner, quote, is_escaped).unwrap_or(inner.len());
            let content = inner[..length].trim_end_matches('\\').len();
            words.push(start + 1..start + 1 + content);
            let closing = inner[length..].find(quote).map_or(0, |slashes| slashes + 1);
            at = start + 1 + length + closing;
        } else {
            // The quotes of `-p'secret'` and `--user="a:b"` belong to the word.
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\'));
            let length = end.unwrap_or(rest.len());
            let after = &rest[length..];
            let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''));
            match quote.and_then(|quote| Some((quote, after[1..].find(quote)?))) {
                Some((_, inner)) if rest.starts_with('-') => {
                    words.push(start..start + length + 1 + inner);
                    at = start + length + inner + 2;
                }
                _ => {
                    words.push(start..start + length);
                    at = start + length.max(1);
                }
            }
        }
    }
    words
}
