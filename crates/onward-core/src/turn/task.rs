//! Tasks in the background: which are known to run, as far as calls and their results say.
//!
//! Agents start them by a tool and say so in its result, each in words of its own; a later call that
//! asks for the task, or stops it, says how it stands. That one began or ended is a change of the world
//! outside. While one runs, waiting counts by the clock; that is in [`detector`](super::detector).
//!
//! Not every agent says that a task ended, and a server never ends. So a task is believed to run for as
//! long as one may wait for it, counted from the last word of it: [`WAIT_PER_STEP`] for each idle step of
//! the threshold, and without a clock twice as many steps as the threshold has, for waiting counts half
//! there. A word of it makes it believed again. Words are looked for only where agents put them, so
//! that a file which tells of a task is none.

use serde_json::Value;

use super::Call;
use super::hash::hash;
use super::memory::Memory;
use super::policy::{TurnPolicy, WAIT_PER_STEP};
use crate::time::Timestamp;

/// How many tasks are remembered.
const REMEMBERED: usize = 16;

/// How far into a result its own words are looked for: agents put them first.
const HEAD: usize = 12;

/// Fields of an input by which it asks for something in the background, and those that name it.
const SENT: [&str; 2] = ["run_in_background", "is_background"];
const NAMED: [&str; 6] = [
    "task_id",
    "bash_id",
    "shell_id",
    "session_id",
    "pid",
    "agentId",
];

/// Tools that stop a task.
const STOPS: [&str; 3] = ["KillBash", "KillShell", "TaskStop"];

/// The tasks of a turn, with the last word of each.
pub(crate) type Tasks = Memory<u64, Word, REMEMBERED>;

/// When a task was last heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word {
    /// In which step of the turn.
    pub(crate) step: u32,
    /// When, where the steps have a clock.
    pub(crate) at: Option<Timestamp>,
}

/// What a call says of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// It runs.
    Runs(u64),
    /// It is over.
    Over(u64),
}

/// What that is to whoever has heard of tasks before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// Nobody knew that it runs.
    Began,
    /// It runs as it did.
    Runs,
    /// It ran, and does no more.
    Ended,
}

impl Tasks {
    /// Takes in what a call says, and what of it is new.
    pub(crate) fn hear(&mut self, call: &Call<'_>, word: Word) -> Option<News> {
        match told(call)? {
            Told::Runs(task) => match self.put(task, word) {
                Some(_) => Some(News::Runs),
                None => Some(News::Began),
            },
            Told::Over(task) => self.remove(task).map(|_| News::Ended),
        }
    }

    /// A task is over, as somebody else says.
    pub(crate) fn end(&mut self, task: &str) {
        self.remove(key(task));
    }

    /// Whether any of them is believed to run.
    pub(crate) fn run(&self, now: Word, policy: &TurnPolicy) -> bool {
        let steps = policy.stall_threshold.max(1);
        let believed = |word: &Word| match (word.at, now.at) {
            (Some(heard), Some(at)) => at.since(heard) < WAIT_PER_STEP.saturating_mul(steps),
            (None, _) | (_, None) => now.step.saturating_sub(word.step) < steps.saturating_mul(2),
        };
        self.values().any(believed)
    }
}

/// The task that a notification says to be over: what Claude Code tells the model as if a person had
/// written it. None where it says something else of a task, or is no notification.
pub fn ended_task(text: &str) -> Option<&str> {
    let note = text.trim_start().strip_prefix("<task-notification>")?;
    let status = between(note, "<status>", "</status>")?;
    let task = between(note, "<task-id>", "</task-id>")?;
    (status != "running").then_some(task)
}

fn told(call: &Call<'_>) -> Option<Told> {
    if call.ok == Some(false) {
        return None;
    }
    let named = NAMED.iter().find_map(|field| name(call.input.get(field)?));
    if let Some(task) = &named {
        if STOPS.contains(&call.tool) {
            return Some(Told::Over(key(task)));
        }
        match status(call.output) {
            Some(true) => return Some(Told::Runs(key(task))),
            Some(false) => return Some(Told::Over(key(task))),
            None => {}
        }
    }
    if let Some(task) = started(call.output) {
        return Some(Told::Runs(key(task)));
    }
    let sent = |field: &&str| call.input.get(field) == Some(&Value::Bool(true));
    // Somebody asked for it and nobody says its name: the question is its name.
    let sent = SENT.iter().any(sent);
    sent.then(|| Told::Runs(hash(call.input.to_string().as_bytes())))
}

/// The name of a task in a result that says that it runs from here on.
fn started(output: &str) -> Option<&str> {
    let mut head = output.lines().take(HEAD);
    let first = head.next()?;
    if let Some(sent) = first.strip_prefix("Command ") {
        // Claude Code: `running in background with ID: b1`, and the same of one that took too long.
        let (before, after) = sent.split_once("with ID: ").or_else(|| {
            // Gemini: `moved to background (PID: 7)`.
            sent.split_once("(PID: ")
        })?;
        return before.contains("background").then(|| word(after)).flatten();
    }
    if first.starts_with("Async agent launched successfully") {
        return head.find_map(|line| word(line.strip_prefix("agentId: ")?));
    }
    if let Some(task) = first.strip_prefix("task_id: ") {
        // Kimi: a field per line.
        return (status(output) == Some(true)).then(|| word(task)).flatten();
    }
    let mut lines = std::iter::once(first).chain(head);
    lines.find_map(|line| word(line.strip_prefix(CODEX_RUNS)?))
}

/// How Codex says that a command was left running.
const CODEX_RUNS: &str = "Process running with session ID ";

/// Whether the task that was asked for runs, where the answer says so.
fn status(output: &str) -> Option<bool> {
    output.lines().take(HEAD).find_map(|line| {
        let line = line.trim();
        if line.starts_with(CODEX_RUNS) {
            return Some(true);
        }
        if line.starts_with("Process exited with code ") {
            return Some(false);
        }
        let status = between(line, "<status>", "</status>").or(line.strip_prefix("status: "))?;
        match status {
            "running" | "pending" | "starting" => Some(true),
            "completed" | "failed" | "killed" | "stopped" | "cancelled" | "timed_out" | "lost" => {
                Some(false)
            }
            _ => None,
        }
    })
}

fn between<'a>(text: &'a str, opening: &str, closing: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(opening)?;
    let (inner, _) = rest.split_once(closing)?;
    Some(inner.trim())
}

/// The word that a text begins with, as names of tasks are made.
fn word(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
    text.get(..end.unwrap_or(text.len()))
        .filter(|word| !word.is_empty())
}

/// The name of a task in an input: a text, or a number.
fn name(value: &Value) -> Option<String> {
    match value {
        Value::String(name) => Some(name.clone()),
        Value::Number(name) => Some(name.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn key(task: &str) -> u64 {
    hash(task.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn heard(tool: &str, input: &Value, output: &str) -> Option<Told> {
        let ok = Some(true);
        told(&Call {
            tool,
            input,
            ok,
            output,
        })
    }

    #[test]
    fn every_agents_words_for_a_task_are_known() {
        let command = json!({ "command": "make" });
        for (output, task) in [
            (
                "Command running in background with ID: b1. Output is being written to: x",
                "b1",
            ),
            ("Command running in background with ID: b0558b", "b0558b"),
            (
                "Command was manually backgrounded by user with ID: b1. Output is",
                "b1",
            ),
            (
                "Command timed out and was moved to background with ID: b-1",
                "b-1",
            ),
            (
                "Async agent launched successfully. (internal)\nagentId: agent-1 (internal ID",
                "agent-1",
            ),
            (
                "Command moved to background (PID: 4711). Output hidden.",
                "4711",
            ),
            (
                "task_id: bash-gx\npid: 8\ndescription: make\nstatus: running\n",
                "bash-gx",
            ),
            (
                "Chunk ID: a\nWall time: 1.0 seconds\nProcess running with session ID 42\nOutput:\nx",
                "42",
            ),
        ] {
            let expected = Some(Told::Runs(key(task)));
            assert_eq!(heard("Bash", &command, output), expected, "{output}");
        }
        for output in [
            "",
            "make: Nothing to be done for 'all'.",
            "Command failed with ID: 7",
            "the docs say:\nCommand running in background with ID: b1",
            "task_id: bash-gx\nstatus: completed",
            "a line\n<status>running</status>",
        ] {
            assert_eq!(heard("Bash", &command, output), None, "{output}");
        }
        let failed = Call {
            tool: "Bash",
            input: &json!({ "run_in_background": true }),
            ok: Some(false),
            output: "Exit code 1",
        };
        assert_eq!(told(&failed), None);
    }

    #[test]
    fn whoever_asks_for_a_task_is_told_how_it_stands() {
        let asked = json!({ "task_id": "b1", "block": true });
        let answer = |status: &str| {
            format!(
                "<retrieval_status>x</retrieval_status>\n\n<task_id>b1</task_id>\n\n<status>{status}</status>"
            )
        };
        let (runs, over) = (Some(Told::Runs(key("b1"))), Some(Told::Over(key("b1"))));
        assert_eq!(heard("TaskOutput", &asked, &answer("running")), runs);
        for status in ["completed", "failed", "killed"] {
            assert_eq!(
                heard("TaskOutput", &asked, &answer(status)),
                over,
                "{status}"
            );
        }
        assert_eq!(
            heard("TaskOutput", &asked, "task_id: b1\nstatus: completed"),
            over
        );
        assert_eq!(heard("TaskStop", &asked, "stopped"), over);
        assert_eq!(heard("KillShell", &json!({ "shell_id": "b1" }), ""), over);
        assert_eq!(heard("TaskOutput", &asked, "no such task"), None);

        let session = json!({ "session_id": 42, "chars": "" });
        let exited = "Wall time: 9.1 seconds\nProcess exited with code 0\nOutput:\n";
        assert_eq!(
            heard("write_stdin", &session, exited),
            Some(Told::Over(key("42")))
        );
    }

    #[test]
    fn a_task_without_a_name_is_known_by_its_question() {
        let one = json!({ "command": "make", "run_in_background": true });
        let other = json!({ "command": "make test", "run_in_background": true });
        assert!(matches!(heard("Bash", &one, ""), Some(Told::Runs(_))));
        assert_eq!(heard("Bash", &one, "x"), heard("Bash", &one, ""));
        assert_ne!(heard("Bash", &one, ""), heard("Bash", &other, ""));
        let no = json!({ "command": "make", "is_background": false });
        assert_eq!(heard("Bash", &no, ""), None);
    }

    #[test]
    fn a_notification_names_the_task_that_is_over() {
        let note = |status: &str| {
            format!("<task-notification>\n<task-id>b1</task-id>\n{status}</task-notification>")
        };
        assert_eq!(ended_task(&note("<status>completed</status>")), Some("b1"));
        assert_eq!(ended_task(&note("<status>running</status>")), None);
        assert_eq!(ended_task(&note("<event>a line</event>")), None);
        assert_eq!(ended_task("is <task-id>b1</task-id> done?"), None);
    }
}
