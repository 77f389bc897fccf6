//! The payload of an output: the text without the lines that the agent's harness adds to it.
//!
//! Codex reports exit code, wall time and chunk id before the output, Gemini a process group after
//! it, Claude Code a sentence for an empty one. These lines differ from call to call without saying
//! anything about the call.

use std::borrow::Cow;

/// Labels of lines that a harness adds before or after an output.
const LABELS: [&str; 15] = [
    "exit code",
    "wall time",
    "chunk id",
    "original token count",
    "total output lines",
    "process exited with code",
    "process running with session id",
    "process group pgid",
    "background pids",
    "signal",
    "command",
    "directory",
    "duration_ms",
    "returncode",
    "wall_time",
];
/// Texts that stand for an empty output.
const EMPTY: [&str; 9] = [
    "(bash completed with no output)",
    "(empty)",
    "(no output)",
    "[no output]",
    "no output",
    "command executed successfully.",
    "command completed with no output.",
    "your command ran successfully and did not produce any output.",
    "tool ran without output or errors",
];
const REMINDER: (&str, &str) = ("<system-reminder>", "</system-reminder>");

/// The payload of an output, and the exit code that the harness reports.
pub(crate) struct Payload<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) exit_code: Option<i64>,
}

/// Removes what a harness adds to an output.
pub(crate) fn payload(output: &str) -> Payload<'_> {
    let mut exit_code = None;
    let text = match without_reminders(output) {
        Cow::Borrowed(text) => Cow::Borrowed(strip(text, &mut exit_code)),
        Cow::Owned(text) => Cow::Owned(strip(&text, &mut exit_code).to_owned()),
    };
    Payload { text, exit_code }
}

fn strip<'a>(text: &'a str, exit_code: &mut Option<i64>) -> &'a str {
    let head = head_len(text, exit_code);
    let tail = tail_len(text, head, exit_code);
    let kept = text.get(head..tail).unwrap_or_default().trim();
    let kept = kept.strip_prefix("Output: ").unwrap_or(kept).trim();
    if EMPTY.iter().any(|empty| kept.eq_ignore_ascii_case(empty)) {
        ""
    } else {
        kept
    }
}

/// The output without reminders to the model.
fn without_reminders(output: &str) -> Cow<'_, str> {
    if !output.contains(REMINDER.0) {
        return Cow::Borrowed(output);
    }
    let mut kept = String::with_capacity(output.len());
    let mut rest = output;
    while let Some((before, after)) = rest.split_once(REMINDER.0) {
        kept.push_str(before);
        rest = after.split_once(REMINDER.1).map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// The number of bytes before the payload.
fn head_len(text: &str, exit_code: &mut Option<i64>) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed == "Output:" {
            return length + line.len();
        }
        if !trimmed.is_empty() && !is_added(trimmed, exit_code) {
            break;
        }
        length += line.len();
    }
    length
}

/// The number of bytes up to the end of the payload.
fn tail_len(text: &str, head: usize, exit_code: &mut Option<i64>) -> usize {
    let mut end = text.len();
    while end > head {
        let rest = text.get(head..end).unwrap_or_default();
        let start = head + rest.trim_end().rfind('\n').map_or(0, |at| at + 1);
        let line = text.get(start..end).unwrap_or_default().trim();
        if !line.is_empty() && !is_added(line, exit_code) {
            break;
        }
        end = start;
    }
    end
}

/// Whether a line is one of the harness: a known label and a value, or Copilot's
/// `<shellId: 3 completed with exit code 0>`.
fn is_added(line: &str, exit_code: &mut Option<i64>) -> bool {
    let tag = line.strip_prefix('<').and_then(|tag| tag.strip_suffix('>'));
    if let Some((_, code)) = tag.and_then(|tag| tag.rsplit_once("exit code ")) {
        let code = code.parse::<i64>();
        if let Ok(code) = code {
            *exit_code = exit_code.or(Some(code));
        }
        return code.is_ok();
    }
    let lower = |label: &str| {
        line.get(..label.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(label))
    };
    let Some(label) = LABELS.iter().find(|label| lower(label)) else {
        return false;
    };
    let value = line.get(label.len()..).unwrap_or_default();
    let separated = value.starts_with([':', ' ', '=']);
    let value = value.trim_start_matches([':', ' ', '=']);
    if matches!(
        *label,
        "exit code" | "process exited with code" | "returncode"
    ) {
        let code = value.parse::<i64>();
        if let Ok(code) = code {
            *exit_code = exit_code.or(Some(code));
        }
        return separated && code.is_ok();
    }
    separated && (line.contains(':') || value.parse::<i64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_the_lines_of_harnesses() {
        for (output, text, exit_code) in [
            ("plain\ntext", "plain\ntext", None),
            (
                "Exit code: 0\nWall time: 0.3 seconds\nOutput:\n1411451102bf\n",
                "1411451102bf",
                Some(0),
            ),
            (
                "Exit code: 1\nWall time: 0.2 seconds\nOutput:\n",
                "",
                Some(1),
            ),
            ("Exit code 1\ndisabled", "disabled", Some(1)),
            ("Output: 2505\nProcess Group PGID: 5078", "2505", None),
            (
                "Output: FAIL\nExit Code: 1\nProcess Group PGID: 65176",
                "FAIL",
                Some(1),
            ),
            ("Output: (empty)\nProcess Group PGID: 5078", "", None),
            ("(Bash completed with no output)", "", None),
            (
                "Chunk ID: cf5f04\nWall time: 0.9735 seconds\nProcess exited with code 0\nOriginal token count: 12\nOutput:\nok\n",
                "ok",
                Some(0),
            ),
            ("ok\n<shellId: 7 completed with exit code 0>", "ok", Some(0)),
            ("<command exited with exit code 2>", "", Some(2)),
            ("<p>exit code</p>", "<p>exit code</p>", None),
            ("ok<system-reminder>be brief</system-reminder>", "ok", None),
            ("Command failed", "Command failed", None),
            ("Exit code", "Exit code", None),
            ("", "", None),
        ] {
            let found = payload(output);
            assert_eq!(
                (&*found.text, found.exit_code),
                (text, exit_code),
                "{output}"
            );
        }
    }
}
