//! Makes what changes from run to run the same: instants, ids, tokens, spans.
//!
//! What replaces something is as wide as it, so that tables stay aligned.

/// What is found, and what stands there instead. `d` is a digit, `h` a hexadecimal one.
const TEMPLATES: [(&str, &str); 8] = [
    (
        "onw_hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh",
        "onw_<forty hexadecimal characters>",
    ),
    ("onw_hhhhhhhh", "onw_????????"),
    ("hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh", "<claim token>"),
    // An id that begins with the time at which it was made.
    (
        "hhhhhhhh-hhhh-7hhh-hhhh-hhhhhhhhhhhh",
        "<id------------------------------->",
    ),
    // An id that is random throughout.
    (
        "hhhhhhhh-hhhh-4hhh-hhhh-hhhhhhhhhhhh",
        "<random id------------------------>",
    ),
    ("dddd-dd-ddTdd:dd:dd.dddZ", "<instant>"),
    ("dddd-dd-dd dd:dd:ddZ", "YYYY-MM-DD hh:mm:ssZ"),
    ("dddd-dd-dd", "YYYY-MM-DD"),
];

/// Numbers that follow these are spans that pass while a test runs.
const SPANS: [&str; 2] = ["\"elapsedMs\":", "\"bytes\":"];

pub(crate) fn redact(text: &str) -> String {
    let mut redacted = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some((length, instead)) = found(rest) {
            redacted.push_str(instead);
            rest = &rest[length..];
        } else if let Some(name) = SPANS.iter().find(|name| rest.starts_with(**name)) {
            redacted.push_str(name);
            redacted.push_str("<number>");
            rest = rest[name.len()..].trim_start_matches(|char: char| char.is_ascii_digit());
        } else if let Some(behind) = kibibytes(rest) {
            redacted.push_str("<number> KiB");
            rest = behind;
        } else {
            redacted.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    redacted
}

/// What stands behind a number of KiB, which grows with the schema.
fn kibibytes(text: &str) -> Option<&str> {
    let behind = text.trim_start_matches(|char: char| char.is_ascii_digit());
    behind
        .strip_prefix(" KiB")
        .filter(|_| !text.starts_with(' '))
}

fn found(text: &str) -> Option<(usize, &'static str)> {
    let fits = |template: &str| {
        let mut bytes = text.bytes();
        template.bytes().all(|wanted| {
            bytes.next().is_some_and(|byte| match wanted {
                b'd' => byte.is_ascii_digit(),
                b'h' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
                wanted => byte == wanted,
            })
        })
    };
    let (template, instead) = TEMPLATES.iter().find(|(template, _)| fits(template))?;
    Some((template.len(), instead))
}

#[test]
fn only_what_changes_is_redacted() {
    assert_eq!(
        redact("at 2026-07-28T09:30:00.000Z, onw_0123abcd, 12 min ago, abc"),
        "at <instant>, onw_????????, 12 min ago, abc"
    );
    assert_eq!(
        redact("{\"elapsedMs\":123,\"a\":4}"),
        "{\"elapsedMs\":<number>,\"a\":4}"
    );
}
