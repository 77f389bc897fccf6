//! Removes secrets from texts and data before they are stored in previews and logs. Hooks, the
//! proxy, the call log, the request log and transcripts use this module.
//!
//! Each file finds one kind of secret: `assignment` the value of a secret-like name
//! (`DB_PASS=…`, `--token …`, `"secret": "…"`, headers), `format` words with a known format
//! (`ghp_…`, JSON web tokens), `url` passwords in URLs, `command` options of known programs
//! (`curl -u user:…`), `pem` private keys.
//!
//! When in doubt, it masks. A secret without a name, a context or a known format cannot be
//! recognized.

mod assignment;
mod command;
mod format;
mod name;
mod pem;
#[cfg(test)]
mod tests;
mod url;
mod value;

use std::ops::Range;

pub use name::is_secret_name;

/// The replacement for a secret.
pub const MASK: &str = "[secret]";

/// Prefix of a text that a preview is made from, in bytes. Longer than any preview, so that a
/// secret at the end of a preview is seen as a whole.
const PREVIEW_WINDOW: usize = 1024;

/// Length of a word that shows its format, in bytes.
const LONG_WORD: usize = 256;

/// The text with its secrets masked.
pub fn mask(text: &str) -> String {
    let mut spans = Vec::new();
    pem::find(text, &mut spans);
    assignment::find(text, &mut spans);
    format::find(text, &mut spans);
    url::find(text, &mut spans);
    command::find(text, &mut spans);
    replace(text, spans)
}

/// The beginning of a text on one line, with secrets masked. Masks before truncating: half a
/// secret is still a secret.
pub fn preview(text: &str, max_chars: usize) -> String {
    let masked = mask(beginning(
        text.trim_start(),
        PREVIEW_WINDOW.max(8 * max_chars),
    ));
    let mut line = String::new();
    // Counted in bytes: at most `max_chars` characters more than needed.
    for word in masked.split_whitespace() {
        if line.len() > 4 * max_chars {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if let Some((end, _)) = line.char_indices().nth(max_chars) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// The words of a text within its first `bytes` bytes.
fn beginning(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let window = &text[..text.floor_char_boundary(bytes)];
    // A word that is cut may be a secret that its beginning does not show, unless that is long.
    let end = window.rfind(char::is_whitespace);
    let end = end.filter(|end| window.len() - end < LONG_WORD);
    end.map_or(window, |end| &window[..end])
}

/// Replaces the spans, which may overlap, by the mask.
fn replace(text: &str, mut spans: Vec<Range<usize>>) -> String {
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut masked = String::with_capacity(text.len());
    let mut end = 0;
    for span in spans {
        if span.start >= end {
            masked.push_str(&text[end..span.start]);
            masked.push_str(MASK);
        }
        end = end.max(span.end);
    }
    masked.push_str(&text[end..]);
    masked
}
