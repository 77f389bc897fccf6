//! The outcome of a call: an answer, nothing, or a refusal.
//!
//! A tool that finds nothing or refuses often reports success, or no flag at all. An answer to
//! another question is information, even if it is the same answer; a refusal of another attempt is
//! not. So short texts are searched for the words of refusals and empty results. An exit code
//! alone is not an error: `systemctl is-enabled` prints `disabled` and exits with 1.

use serde_json::Value;

use super::Call;
use super::intent::input_texts;
use super::payload::Payload;

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A result.
    Answer,
    /// No output.
    Silent,
    /// No result: nothing matches, or the object does not exist.
    Nothing,
    /// A refusal in a text without an error flag.
    Refused,
    /// An error.
    Failed,
}

impl Outcome {
    /// Whether the call failed, was refused or found nothing.
    pub(crate) fn is_negative(self) -> bool {
        matches!(self, Outcome::Nothing | Outcome::Refused | Outcome::Failed)
    }
}

/// The maximum number of bytes of a text that is searched, and of its first line if it is longer.
const MAX_SEARCHED: usize = 400;
/// The maximum number of words and characters in a verdict of a failed command.
const MAX_VERDICT: (usize, usize) = (3, 24);

/// Phrases of empty results.
const NOTHING: [&str; 29] = [
    "no match",
    "no matches",
    "no matching",
    "no result",
    "no results",
    "no hits",
    "no files",
    "no file",
    "no entries",
    "no records",
    "no occurrences",
    "no such",
    "no data",
    "not found",
    "nothing found",
    "nothing matched",
    "none found",
    "0 matches",
    "0 results",
    "0 hits",
    "does not exist",
    "doesn t exist",
    "do not exist",
    "cannot find",
    "can t find",
    "could not find",
    "couldn t find",
    "unable to find",
    "did not match",
];
/// Phrases of refusals.
const REFUSED: [&str; 66] = [
    "error",
    "errors",
    "exception",
    "fatal",
    "failed",
    "failure",
    "denied",
    "forbidden",
    "unauthorized",
    "blocked",
    "refused",
    "rejected",
    "prohibited",
    "invalid",
    "cannot",
    "can not",
    "can t",
    "could not",
    "couldn t",
    "unable to",
    "not allowed",
    "not permitted",
    "not available",
    "not supported",
    "not valid",
    "not possible",
    "isn t allowed",
    "is disabled",
    "are disabled",
    "reading disabled",
    "writing disabled",
    "tools disabled",
    "tool disabled",
    "access disabled",
    "unavailable",
    "unsupported",
    "unknown command",
    "unknown option",
    "unrecognized",
    "malformed",
    "timed out",
    "read only mode",
    "plan mode",
    "in this mode",
    "please provide",
    "please specify",
    "please use",
    "please try",
    "you must",
    "must be",
    "must provide",
    "exactly one",
    "wasted call",
    "unchanged since",
    "try again",
    "please narrow",
    "narrow your",
    "more specific",
    "too many",
    "do not",
    "sorry",
    "ok false",
    "success false",
    "isn t possible",
    "exhausted",
    "is required",
];
/// Parts of the names of fields that describe a response, not its content.
const FRAME: [&str; 6] = ["req", "trace", "pag", "cursor", "limit", "took"];
/// Phrases of missing permissions.
const NO_PERMISSION: [&str; 13] = [
    "permission denied",
    "access denied",
    "not permitted",
    "not authorized",
    "unauthorized",
    "forbidden",
    "authentication failure",
    "authentication required",
    "password is required",
    "superuser privilege",
    "are you root",
    "must be root",
    "insufficient permissions",
];
/// Phrases of a full disk.
const NO_SPACE: [&str; 3] = ["no space left", "disk is full", "disk quota exceeded"];
/// Phrases of an untrusted certificate.
const NO_TRUST: [&str; 5] = [
    "certificate problem",
    "certificate verify failed",
    "self signed certificate",
    "invalid peer certificate",
    "local issuer certificate",
];
/// Phrases of a missing network.
const NO_NETWORK: [&str; 9] = [
    "could not resolve",
    "couldn t resolve",
    "name resolution",
    "failed to resolve",
    "network is unreachable",
    "no route to host",
    "name or service not known",
    "getaddrinfo",
    "nodename nor servname",
];
/// Words of acknowledgements.
const ACKNOWLEDGED: [&str; 3] = ["successfully", "successful", "success"];
/// Words of a completed change: `File written (not found before).`
const CHANGED: [&str; 4] = ["written", "created", "updated", "saved"];
const AFFIRMED: [&str; 7] = [
    "ok",
    "pass",
    "passed",
    "success",
    "successfully",
    "clean",
    "valid",
];
/// Words that negate the next one: `0 errors`.
const NEGATIONS: [&str; 5] = ["no", "0", "zero", "without", "not"];
/// Words that a number counts: `"errors": 3` and `2 failed` are results, not refusals.
const COUNTED: [&str; 6] = [
    "errors", "failed", "failures", "rejected", "blocked", "invalid",
];
/// Words that negate the previous word: `"errors": 0`.
const ABSENT: [&str; 5] = ["0", "null", "none", "false", "nil"];

/// The outcome of a call. `searches` is false if the words of refusals are not searched.
pub(crate) fn outcome(call: &Call<'_>, payload: &Payload<'_>, searches: bool) -> Outcome {
    let failed = match call.ok {
        Some(ok) => !ok,
        None => payload.exit_code.is_some_and(|code| code != 0),
    };
    if !searches {
        return match (failed, payload.text.is_empty()) {
            (true, _) => Outcome::Failed,
            (false, true) => Outcome::Silent,
            (false, false) => Outcome::Answer,
        };
    }
    let words = words(&payload.text);
    let negative = negative(&words, call);
    if failed {
        let is_verdict = (1..=MAX_VERDICT.0).contains(&words.len())
            && payload.text.len() <= MAX_VERDICT.1
            && negative.is_none();
        return if is_verdict {
            Outcome::Answer
        } else {
            Outcome::Failed
        };
    }
    if payload.text.is_empty() {
        Outcome::Silent
    } else if is_empty_value(&payload.text, call) {
        Outcome::Nothing
    } else {
        negative.unwrap_or(Outcome::Answer)
    }
}

/// The cause of errors that have many wordings: every means to do it fails for the same reason.
pub(crate) fn cause(text: &str) -> Option<&'static str> {
    let words = words(text);
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| contains(&words, phrase));
    if has(&NO_PERMISSION) {
        Some("permission")
    } else if has(&NO_NETWORK) {
        Some("network")
    } else if has(&NO_TRUST) {
        Some("certificate")
    } else if has(&NO_SPACE) {
        Some("disk")
    } else {
        None
    }
}

/// Whether a short text is affirmative, such as `ok` or `passed`.
pub(crate) fn affirms(text: &str) -> bool {
    let has = |list: &[&str]| {
        let words = words(text);
        words.iter().any(|word| list.contains(&word.as_str()))
    };
    text.len() <= MAX_SEARCHED && has(&AFFIRMED) && !has(&["fail", "failures"])
}

/// Whether a text is a JSON value without content: `[]`, `{"total": 0, "items": []}`. The words of
/// the input, acknowledgements, request ids and the description of a page are not content.
fn is_empty_value(text: &str, call: &Call<'_>) -> bool {
    let is_value = text.len() <= MAX_SEARCHED && text.starts_with(['[', '{']);
    let value = is_value.then(|| serde_json::from_str::<Value>(text));
    let Some(Ok(value)) = value else {
        return false;
    };
    let is_input = |text: &str| input_texts(call.input).any(|input| input == text);
    is_empty(&value) || (has_empty_list(&value) && is_frame(&value, &is_input))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(is_empty),
        Value::Object(fields) => fields.values().all(is_empty),
    }
}

/// Whether an object has a list without items, also in an object inside it.
fn has_empty_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().any(has_empty_list),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether an object has no content beside its frame: flags, the input, request ids, pages.
fn is_frame(value: &Value, is_input: &impl Fn(&str) -> bool) -> bool {
    let Value::Object(fields) = value else {
        return is_empty(value);
    };
    fields.iter().all(|(name, field)| {
        let name = name.to_lowercase();
        let is_part = FRAME.iter().any(|part| name.contains(part));
        is_part
            || match field {
                Value::Bool(_) => true,
                Value::String(text) => text.is_empty() || is_input(text),
                Value::Object(_) => is_frame(field, is_input),
                Value::Null | Value::Number(_) | Value::Array(_) => is_empty(field),
            }
    })
}

/// The words of a text, or of its first line if it is long.
fn words(text: &str) -> Vec<String> {
    let text = if text.len() > MAX_SEARCHED {
        text.lines().next().unwrap_or_default()
    } else {
        text
    };
    let end = text.floor_char_boundary(MAX_SEARCHED.min(text.len()));
    split_words(text.get(..end).unwrap_or_default()).collect()
}

/// The words of a text, in lower case.
pub(crate) fn split_words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// The negative outcome that the words of a text indicate. Words of the input are ignored.
fn negative(words: &[String], call: &Call<'_>) -> Option<Outcome> {
    let from_input =
        |phrase: &str| input_texts(call.input).any(|text| text.to_lowercase().contains(phrase));
    let found = |phrases: &[&str]| {
        phrases
            .iter()
            .any(|phrase| contains(words, phrase) && !from_input(phrase))
    };
    let acknowledges = |word: &String| ACKNOWLEDGED.contains(&word.as_str());
    let changed = |word: &String| CHANGED.contains(&word.as_str());
    if found(&NOTHING) {
        (call.ok != Some(true) || !words.iter().any(changed)).then_some(Outcome::Nothing)
    } else if words.first().is_some_and(|word| word == "usage")
        || (found(&REFUSED) && !words.iter().any(acknowledges))
    {
        Some(Outcome::Refused)
    } else {
        None
    }
}

/// Whether the words contain a phrase that is not negated.
fn contains(words: &[String], phrase: &str) -> bool {
    let length = phrase.split(' ').count();
    let at = |start: usize| start.checked_sub(1).and_then(|at| words.get(at));
    words.windows(length).enumerate().any(|(start, window)| {
        let same = window.iter().map(String::as_str).eq(phrase.split(' '));
        let negates = |word: &String, list: &[&str]| list.contains(&word.as_str());
        let is_number = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
        let (before, after) = (at(start), words.get(start + 1));
        let is_counted =
            COUNTED.contains(&phrase) && before.into_iter().chain(after).any(is_number);
        same && (length > 1
            || (!is_counted
                && !before.is_some_and(|word| negates(word, &NEGATIONS))
                && !after.is_some_and(|word| negates(word, &ABSENT))))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::turn::payload::payload;

    fn found(ok: Option<bool>, output: &str) -> Outcome {
        let call = Call {
            tool: "Bash",
            input: &Value::Null,
            ok,
            output,
        };
        outcome(&call, &payload(output), true)
    }

    #[test]
    fn recognizes_refusals_without_an_error_flag() {
        for output in [
            "BLOCKED: writing outside of the workspace",
            "Reading disabled for this directory.",
            "This tool is not allowed in this mode.",
            "Please provide exactly one action.",
            "{\"ok\": false, \"message\": \"quota exhausted\"}",
            "Usage: edit START:END",
            "Operation not permitted",
            "Error 403",
            "File unchanged since last read.",
        ] {
            assert_eq!(found(Some(true), output), Outcome::Refused, "{output}");
            assert_eq!(found(None, output), Outcome::Refused, "{output}");
        }
    }

    #[test]
    fn recognizes_empty_results() {
        for output in [
            "No matches found",
            "No files found",
            "cat: a.ts: No such file or directory",
            "0 results for \"tide\"",
            "[]",
            "{\"total\": 0, \"items\": []}",
            "{\"nodes\": [], \"pageInfo\": {\"pages\": 1}, \"requestId\": \"54022446\"}",
            "{\"ok\": true, \"messages\": {\"total\": 0, \"matches\": []}, \"req\": \"ec705839\"}",
        ] {
            assert_eq!(found(Some(true), output), Outcome::Nothing, "{output}");
        }
        assert_eq!(found(Some(true), "(no output)"), Outcome::Silent);
    }

    #[test]
    fn an_answer_is_neither() {
        for output in [
            "Found 0 errors.",
            "{\"success\": true, \"error\": null}",
            "test result: ok. 4 passed; 0 failed",
            "Success: no issues found in 9 source files",
            "UPDATE 1",
            "200",
            "disabled",
            "{\"ok\": true, \"errors\": 0}",
            "{\"latency\": 0.4, \"count\": 31, \"errors\": 2}",
            "19 passed, 2 failed",
            "{\"ok\": true, \"id\": \"m-17\", \"warnings\": []}",
        ] {
            assert_eq!(found(Some(true), output), Outcome::Answer, "{output}");
        }
    }

    #[test]
    fn a_short_verdict_of_a_failed_command_is_an_answer() {
        for output in ["Exit code 1\ndisabled", "FAIL", "DIFFERENT"] {
            assert_eq!(found(Some(false), output), Outcome::Answer, "{output}");
        }
        for output in ["Exit code 1", "", "not found", "make: *** [all] Stop 2 3 4"] {
            assert_eq!(found(Some(false), output), Outcome::Failed, "{output}");
        }
        assert_eq!(
            found(None, "Exit code: 2\nOutput:\na b c d e f g"),
            Outcome::Failed
        );
    }
}
