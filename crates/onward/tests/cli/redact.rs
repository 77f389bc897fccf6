//! Replaces values that differ between runs: times, ids, tokens, durations.
//!
//! In tables, a replacement has the width of the value, so that columns stay aligned.

/// Patterns and their replacements. `d` is a digit, `h` a hexadecimal digit, `?` a lower-case
/// letter.
const TEMPLATES: [(&str, &str); 14] = [
    (
        "onw_hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh",
        "onw_<forty hexadecimal characters>",
    ),
    ("onw_hhhhhhhh", "onw_????????"),
    ("  claim    ????????????????", "  claim    <claim token>"),
    (
        "\"claimToken\":\"????????????????\"",
        "\"claimToken\":\"<claim token>\"",
    ),
    // A UUID of version 7, which begins with its creation time.
    (
        "hhhhhhhh-hhhh-7hhh-hhhh-hhhhhhhhhhhh",
        "<id------------------------------->",
    ),
    // A random UUID.
    (
        "hhhhhhhh-hhhh-4hhh-hhhh-hhhhhhhhhhhh",
        "<random id------------------------>",
    ),
    ("dddd-dd-ddTdd:dd:dd.dddZ", "<instant>"),
    ("dddd-dd-dd dd:dd:ddZ", "YYYY-MM-DD hh:mm:ssZ"),
    ("dddd-dd-dd dd:dd:dd", "YYYY-MM-DD hh:mm:ss"),
    // The date is omitted if it is today.
    ("dddd-dd-dd dd:dd", "<time>"),
    (" dd:dd ", " <time> "),
    (" dd:dd:", " <time>:"),
    (" dd:dd\n", " <time>\n"),
    ("dddd-dd-dd", "YYYY-MM-DD"),
];

/// JSON keys whose numbers differ between runs.
const NUMBERS: [&str; 2] = ["\"elapsedMs\":", "\"bytes\":"];

pub(crate) fn redact(text: &str) -> String {
    let mut redacted = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some((length, replacement)) = find(rest) {
            redacted.push_str(replacement);
            rest = &rest[length..];
        } else if let Some(name) = NUMBERS.iter().find(|name| rest.starts_with(**name)) {
            redacted.push_str(name);
            redacted.push_str("<number>");
            rest = rest[name.len()..].trim_start_matches(|char: char| char.is_ascii_digit());
        } else if let Some(remainder) = after_kibibytes(rest) {
            redacted.push_str("<number> KiB");
            rest = remainder;
        } else {
            redacted.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    redacted
}

/// The text after a size in KiB, which grows with the schema.
fn after_kibibytes(text: &str) -> Option<&str> {
    let remainder = text.trim_start_matches(|char: char| char.is_ascii_digit());
    remainder
        .strip_prefix(" KiB")
        .filter(|_| !text.starts_with(' '))
}

fn find(text: &str) -> Option<(usize, &'static str)> {
    let matches = |template: &str| {
        let mut bytes = text.bytes();
        template.bytes().all(|expected| {
            bytes.next().is_some_and(|byte| match expected {
                b'd' => byte.is_ascii_digit(),
                b'h' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
                b'?' => byte.is_ascii_lowercase(),
                expected => byte == expected,
            })
        })
    };
    let (template, replacement) = TEMPLATES.iter().find(|(template, _)| matches(template))?;
    Some((template.len(), replacement))
}

#[test]
fn redacts_only_values_that_differ_between_runs() {
    assert_eq!(
        redact("at 2026-07-28T09:30:00.000Z, onw_0123abcd, 12 min ago, abc"),
        "at <instant>, onw_????????, 12 min ago, abc"
    );
    assert_eq!(
        redact("{\"elapsedMs\":123,\"a\":4}"),
        "{\"elapsedMs\":<number>,\"a\":4}"
    );
}
