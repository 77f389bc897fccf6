//! Private keys in PEM format: with their header, without it, or cut at the end.

use std::ops::Range;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";
const PRIVATE: &str = "PRIVATE KEY";
/// Beginnings of unencrypted private keys in Base64: OpenSSH, PKCS#1, PKCS#8, EC.
const BODY_STARTS: [&str; 7] = [
    "b3BlbnNzaC1rZXktdjE",
    "MIIEpAIBAAKC",
    "MIIEowIBAAKC",
    "MIIJKAIBAAKC",
    "MIIEvQIBADAN",
    "MIIEvgIBADAN",
    "MHcCAQEE",
];
/// Length of a line of Base64 in a PEM file, of which the body without a header consists.
const LINE: usize = 64;
/// Length of a word of Base64 that may begin a body.
const LONG_WORD: usize = 32;

/// Adds the bodies of private keys.
pub(super) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    if text.len() < LONG_WORD && !text.contains(DASHES) {
        return;
    }
    let mut at = 0;
    // Where the text since the last block begins.
    let mut outside = 0;
    while let Some(found) = text[at..].find(DASHES) {
        let start = at + found;
        if let Some((label, after)) = label(text, start, BEGIN) {
            let end = text[after..]
                .find(END)
                .map_or(text.len(), |end| after + end);
            find_bare(text, outside..start, spans);
            if label.contains(PRIVATE) {
                push(text, after..end, spans);
            }
            at = end;
            outside = end;
        } else if let Some((label, after)) = label(text, start, END) {
            if label.contains(PRIVATE) && outside < start {
                // The header is missing: the lines of Base64 before the footer are the key.
                let bodies = words_of_base64(text, outside..start);
                bodies.into_iter().for_each(|body| push(text, body, spans));
            }
            at = after;
            outside = after;
        } else {
            at = start + DASHES.len();
        }
    }
    find_bare(text, outside..text.len(), spans);
}

/// The label and the end of a header or footer that begins at `start`.
fn label<'a>(text: &'a str, start: usize, kind: &str) -> Option<(&'a str, usize)> {
    let rest = text[start..].strip_prefix(kind)?;
    let length = rest.find(DASHES)?;
    let is_label = !rest[..length].contains('\n');
    is_label.then(|| (&rest[..length], start + kind.len() + length + DASHES.len()))
}

/// Adds bodies without header and footer.
fn find_bare(text: &str, range: Range<usize>, spans: &mut Vec<Range<usize>>) {
    for body in words_of_base64(text, range) {
        let first = &text[body.clone()];
        let lines = first.split(|c: char| c.is_whitespace() || c == '\\');
        let lines = lines.map(|line| line.trim_start_matches('n'));
        let lines = lines.filter(|line| line.len() == LINE);
        let is_key = BODY_STARTS.iter().any(|start| first.starts_with(start));
        if is_key || lines.count() >= 2 {
            push(text, body, spans);
        }
    }
}

/// Runs of consecutive words of Base64, each run as one range. A short word ends a run. The words
/// are separated by whitespace, or by `\n` in a JSON string.
fn words_of_base64(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut is_open = false;
    let mut at = range.start;
    while let Some(found) = text[at..range.end].find(is_base64) {
        let mut start = at + found;
        let length = text[start..range.end].find(|c| !is_base64(c));
        let end = length.map_or(range.end, |length| start + length);
        let is_break = text[..start].ends_with('\\') && text[start..].starts_with(['n', 'r']);
        start += usize::from(is_break);
        let gap = &text[at.min(start)..start];
        let is_joined = gap.chars().all(|c| c.is_whitespace() || "\\nr".contains(c));
        let is_long = end - start >= LONG_WORD;
        match runs.last_mut().filter(|_| is_open && is_joined) {
            Some(run) => run.end = end,
            None if is_long => runs.push(start..end),
            None => {}
        }
        is_open = is_long || (is_open && is_joined && start == end);
        at = end;
    }
    runs
}

fn push(text: &str, span: Range<usize>, spans: &mut Vec<Range<usize>>) {
    let body = text[span.clone()].trim();
    if !body.is_empty() && body != super::MASK {
        spans.push(span);
    }
}
