//! Secrets in URLs and addresses: passwords, tokens in place of a user, signatures, and webhooks.

use std::ops::Range;

use super::MASK;

/// Parameters of a query that are secrets only there.
const PARAMETERS: &[&str] = &["sig", "signature", "x-amz-signature", "x-goog-signature"];
/// Paths of webhooks; the rest of the path is a secret.
const WEBHOOKS: &[&str] = &[
    "hooks.slack.com/services/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "outlook.office.com/webhook/",
];

/// Adds the secrets of URLs.
pub(super) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    for (at, mark) in text.match_indices("://") {
        let start = at + mark.len();
        let url = start..start + length(&text[start..]);
        spans.extend(user_info(text, url.clone()));
        spans.extend(webhook(text, url));
    }
    for (at, _) in text.match_indices(['?', '&']) {
        spans.extend(parameter(text, at + 1));
    }
    for (at, _) in text.match_indices('@') {
        spans.extend(address(text, at));
    }
}

/// The length of a URL or word.
fn length(rest: &str) -> usize {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '\\');
    rest.find(is_end).unwrap_or(rest.len())
}

/// The password of a URL, or a token in place of the user.
fn user_info(text: &str, url: Range<usize>) -> Option<Range<usize>> {
    let whole = &text[url.clone()];
    let authority = whole.find(['/', '?', '#']).unwrap_or(whole.len());
    let at = match whole[..authority].rfind('@') {
        // A password may have unescaped slashes and signs.
        Some(at) if whole[..at].contains(':') => whole.rfind('@').unwrap_or(at),
        Some(at) => at,
        None => {
            // An unescaped slash in a password, unless the text before it is a port.
            let at = whole.rfind('@')?;
            let (_, port) = whole[..authority].split_once(':')?;
            let is_port = port.bytes().all(|b| b.is_ascii_digit());
            (!is_port).then_some(at)?
        }
    };
    let user = &whole[..at];
    match user.split_once(':') {
        Some((_, password)) if is_secret(password) => {
            Some(url.start + at - password.len()..url.start + at)
        }
        None if user.len() >= 16 && user.bytes().any(|b| b.is_ascii_digit()) => {
            Some(url.start..url.start + at)
        }
        Some(_) | None => None,
    }
}

fn is_secret(password: &str) -> bool {
    let is_reference = ["$", "{", "<", "%("]
        .iter()
        .any(|begin| password.starts_with(begin));
    let is_filler = password.chars().all(|c| matches!(c, '*' | 'x' | '.' | '-'));
    !is_reference && !is_filler && password != MASK
}

fn webhook(text: &str, url: Range<usize>) -> Option<Range<usize>> {
    let whole = &text[url.clone()];
    let path = WEBHOOKS.iter().find(|path| whole.starts_with(*path))?;
    let rest = &whole[path.len()..];
    let is_secret = !rest.is_empty() && is_secret(rest);
    is_secret.then_some(url.start + path.len()..url.end)
}

/// The value of a secret parameter whose name begins at `at`.
fn parameter(text: &str, at: usize) -> Option<Range<usize>> {
    let (name, rest) = text[at..].split_once('=')?;
    if !PARAMETERS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
    {
        return None;
    }
    let length = length(rest).min(rest.find('&').unwrap_or(rest.len()));
    let start = text.len() - rest.len();
    let value = &text[start..start + length];
    (length >= 8 && is_secret(value)).then_some(start..start + length)
}

/// The password of `user:password@host:port` and `user:password@tcp(host)` without a scheme.
fn address(text: &str, at: usize) -> Option<Range<usize>> {
    let is_word = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\'' | '`' | '=' | '<' | '>');
    let before = &text[..at];
    let start = before.rfind(|c| !is_word(c)).map_or(0, |end| end + 1);
    let (start, word) = (start, before.get(start..)?);
    let (user, password) = word.split_once(':')?;
    let is_user = !user.is_empty()
        && user
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let after = &text[at + 1..];
    let host = &after[..after
        .find(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '-'))
        .unwrap_or(after.len())];
    let rest = &after[host.len()..];
    let has_port = rest
        .strip_prefix(':')
        .is_some_and(|port| port.starts_with(|c: char| c.is_ascii_digit()));
    let is_host = (has_port && !host.starts_with("sha") && !host.is_empty())
        || (matches!(host, "tcp" | "unix") && rest.starts_with('('));
    let found = is_user && is_host && !password.is_empty() && !password.starts_with("//");
    (found && is_secret(password)).then_some(start + user.len() + 1..at)
}
