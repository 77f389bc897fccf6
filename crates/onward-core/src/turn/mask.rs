//! Masks variable content: times, durations, process ids, counters, addresses, temporary paths.
//!
//! Only this module defines the masked content; lines are compared afterwards. Masking works word
//! by word and never across lines; unrecognized words are kept. Lines are then compared as they are
//! ([`masked`]), or without all numbers ([`without_numbers`](super::clean::without_numbers)).

/// Words before a number that mark it as a process id or a counter.
const COUNTER_LABELS: [&str; 16] = [
    "pid",
    "process",
    "line",
    "attempt",
    "try",
    "retry",
    "iteration",
    "round",
    "request",
    "id",
    "seq",
    "sequence",
    "step",
    "job",
    "thread",
    "port",
];
/// Units of time.
const UNITS: [&str; 24] = [
    "ns", "us", "µs", "μs", "ms", "msec", "msecs", "s", "sec", "secs", "second", "seconds", "m",
    "min", "mins", "minute", "minutes", "h", "hr", "hrs", "hour", "hours", "d", "days",
];
/// Names of durations.
const SPANS: [&str; 6] = ["uptime", "elapsed", "duration", "latency", "took", "age"];
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const TEMPORARY: [&str; 4] = ["/tmp/", "/var/tmp/", "/var/folders/", "/private/"];

/// The extent of masking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything that can vary between two outputs of the same call.
    Variable,
    /// Times and durations only, for the outputs of two different calls: an address or a
    /// measurement may be the answer to a question.
    Times,
}

/// A line with variable content masked and whitespace normalized.
pub(crate) fn masked(line: &str, extent: Extent) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    // Fast path: most lines contain nothing to mask.
    if !line.contains(|c: char| c.is_ascii_digit()) && !line.contains("/tmp") {
        return words.join(" ");
    }
    let process_row = is_process_row(&words);
    let mut out = String::with_capacity(line.len());
    let mut before = "";
    for (at, word) in words.iter().enumerate() {
        if !out.is_empty() {
            out.push(' ');
        }
        let next = words.get(at + 1).copied().unwrap_or("");
        if process_row && trim_punctuation(word).starts_with(|c: char| c.is_ascii_digit()) {
            out.push('#');
        } else {
            mask_word(word, before, next, extent, &mut out);
        }
        before = word;
    }
    out
}

/// A row of `ps`: it contains a terminal and a time.
fn is_process_row(words: &[&str]) -> bool {
    let terminal =
        |word: &&str| *word == "?" || word.starts_with("pts/") || word.starts_with("tty");
    words.iter().any(terminal) && words.iter().any(|word| is_clock(word))
}

/// Punctuation that separates values in compact JSON and in queries.
const SEPARATORS: [char; 7] = ['"', '{', '}', ',', '=', '&', ';'];

/// Masks a word, or each value in a word of several values.
fn mask_word(word: &str, before: &str, next: &str, extent: Extent, out: &mut String) {
    if !trim_punctuation(word).contains(SEPARATORS) {
        return mask_value(word, before, next, extent, out);
    }
    let mut name = before;
    for part in word.split_inclusive(SEPARATORS) {
        let value = part.trim_end_matches(SEPARATORS);
        mask_value(value, name, "", extent, out);
        out.push_str(part.get(value.len()..).unwrap_or_default());
        if !trim_punctuation(value).is_empty() {
            name = value;
        }
    }
}

fn mask_value(word: &str, before: &str, next: &str, extent: Extent, out: &mut String) {
    let core = trim_punctuation(word);
    let (lead, tail) = around(word, core);
    let kind = if core.is_empty() {
        None
    } else if is_clock(core) || is_epoch(core) || is_calendar(core, before, next) {
        Some("<time>")
    } else if is_duration(core) || is_span(core, before, next) || is_named_span(core, before) {
        Some("<span>")
    } else if extent == Extent::Times {
        None
    } else if is_address(core) {
        Some("<address>")
    } else if is_counted(core, before) {
        Some("<count>")
    } else {
        None
    };
    match kind {
        Some(kind) => {
            out.push_str(lead);
            out.push_str(kind);
            out.push_str(tail);
        }
        None if TEMPORARY.iter().any(|root| word.contains(root)) => mask_path(word, out),
        None => out.push_str(word),
    }
}

/// The word without surrounding punctuation.
fn trim_punctuation(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric() && c != '#')
}

/// The text before and after the core of a word.
fn around<'a>(word: &'a str, core: &str) -> (&'a str, &'a str) {
    match word.find(core) {
        Some(start) => (
            word.get(..start).unwrap_or(""),
            word.get(start + core.len()..).unwrap_or(""),
        ),
        None => ("", ""),
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | ','))
}

fn is_unit(word: &str) -> bool {
    UNITS.contains(&word)
}

/// `11:02`, `11:02:34.5`, `2026-07-28`, `2026-07-28T11:02:34Z`, `28/Jul/2026:11:02:34`.
fn is_clock(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let groups = word.split([':', '-', '/', 'T', 'Z', '.', ',', '+']);
    let twos = groups
        .clone()
        .filter(|group| matches!(group.len(), 1 | 2))
        .count();
    let all = groups
        .clone()
        .all(|group| group.chars().all(|c| c.is_ascii_digit()) || name_in(group, &MONTHS));
    let colon = word.contains(':') && twos >= 2 && groups.clone().skip(1).any(|g| g.len() == 2);
    let date = matches!(
        word.as_bytes(),
        [_, _, _, _, b'-' | b'/', _, _, b'-' | b'/', ..]
    );
    all && digits >= 3 && word.starts_with(|c: char| c.is_ascii_digit()) && (colon || date)
}

/// A month, a weekday, or the day or year next to a month.
fn is_calendar(core: &str, before: &str, next: &str) -> bool {
    let number = is_number(core) && core.len() <= 4;
    (name_in(core, &WEEKDAYS) && name_in(trim_punctuation(next), &MONTHS))
        || (name_in(core, &MONTHS)
            && trim_punctuation(next).starts_with(|c: char| c.is_ascii_digit()))
        || (number
            && (name_in(trim_punctuation(before), &MONTHS)
                || name_in(trim_punctuation(next), &MONTHS)))
}

/// A Unix time in seconds or milliseconds, from 2001 on.
fn is_epoch(word: &str) -> bool {
    matches!(word.len(), 10 | 13)
        && word.starts_with('1')
        && word.chars().all(|c| c.is_ascii_digit())
}

fn name_in(word: &str, names: &[&str]) -> bool {
    word.len() == 3 && names.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// `12s`, `350ms`, `1m20s`, `3h02m`: alternating numbers and units.
fn is_duration(word: &str) -> bool {
    let mut rest = word;
    let mut parts = 0;
    while !rest.is_empty() {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let unit_end = number
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(number.len());
        let (unit, after) = number.split_at(unit_end);
        if number.len() == rest.len() || !is_unit(unit) {
            return false;
        }
        rest = after;
        parts += 1;
    }
    parts > 0
}

/// Either word of `350 ms` or `3 seconds`.
fn is_span(core: &str, before: &str, next: &str) -> bool {
    (is_number(core) && is_unit(trim_punctuation(next)))
        || (is_unit(core) && is_number(trim_punctuation(before)))
}

/// The value of `"uptime_s": 7`, `elapsedMs=350`, `age: 12`.
fn is_named_span(core: &str, before: &str) -> bool {
    if !is_number(core) {
        return false;
    }
    let name = trim_punctuation(before);
    let is_boundary = |c: char| !c.is_ascii_alphanumeric() || c.is_ascii_uppercase();
    let last = name.rfind(is_boundary).map_or(name, |at| {
        name.get(at..).unwrap_or_default().trim_start_matches('_')
    });
    let is_qualified = last.len() < name.len();
    let (name, last) = (name.to_ascii_lowercase(), last.to_ascii_lowercase());
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    (is_qualified && is_unit(&last))
        || last == "seconds"
        || words.any(|word| SPANS.contains(&word))
        || SPANS
            .iter()
            .any(|span| span.len() > 3 && name.starts_with(span))
}

/// `0x7f…`, a UUID, or at least eight hexadecimal digits that include both letters and digits.
fn is_address(word: &str) -> bool {
    if let Some(hex) = word.strip_prefix("0x") {
        return !hex.is_empty() && hex.chars().all(|c| c.is_ascii_hexdigit());
    }
    let hex = word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    hex && word.len() >= 8
        && word.chars().any(|c| c.is_ascii_digit())
        && word.chars().any(|c| c.is_ascii_alphabetic())
}

/// `#12`, `pid 4711`, `line 30`, `attempt 3`, `Chunk ID: 03df`.
fn is_counted(core: &str, before: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if core.strip_prefix('#').is_some_and(digits) {
        return true;
    }
    let label = trim_punctuation(before).to_ascii_lowercase();
    if !COUNTER_LABELS.contains(&label.as_str()) {
        return false;
    }
    digits(core) || (label == "id" && core.chars().any(|c| c.is_ascii_digit()))
}

/// Masks the generated parts of a temporary path: those with a digit or the prefix `tmp`.
fn mask_path(word: &str, out: &mut String) {
    for (at, part) in word.split('/').enumerate() {
        if at > 0 {
            out.push('/');
        }
        let generated = part.contains(|c: char| c.is_ascii_digit())
            || (part.starts_with("tmp") && part.len() > 3);
        out.push_str(if generated { "<temporary>" } else { part });
    }
}
