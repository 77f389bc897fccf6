//! Background tasks, detected from calls and their results.
//!
//! Agents start tasks with a tool and report it in the result, each in its own format; a later call
//! that queries or stops the task reports its status. The start and end of a task are changes of
//! the external state. While a task runs, waiting is measured by time, in
//! [`detector`](super::detector).
//!
//! Not every agent reports the end of a task, and a server never ends. So a task counts as running
//! only for a limited time after its last report: [`WAIT_PER_STEP`] per idle step of the threshold,
//! or, without timestamps, twice as many steps as the threshold, because each wait then counts
//! half. Reports are recognized only where agents place them, so that a file that mentions a task
//! is not a report.

use serde_json::Value;

use super::Call;
use super::bounded_map::BoundedMap;
use super::hash::hash;
use super::policy::{TurnPolicy, WAIT_PER_STEP};
use crate::time::Timestamp;

/// The maximum number of stored tasks.
const MAX_TASKS: usize = 16;

/// The number of lines at the start of a result that may contain a report.
const REPORT_LINES: usize = 12;

/// Input fields that request background execution, and input fields that identify a task.
const BACKGROUND_FIELDS: [&str; 2] = ["run_in_background", "is_background"];
const ID_FIELDS: [&str; 6] = [
    "task_id",
    "bash_id",
    "shell_id",
    "session_id",
    "pid",
    "agentId",
];

/// Tools that stop a task.
const STOP_TOOLS: [&str; 3] = ["KillBash", "KillShell", "TaskStop"];

/// The running tasks of a turn, with the last report of each.
pub(crate) type Tasks = BoundedMap<u64, LastReport, MAX_TASKS>;

/// The last report of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastReport {
    /// The step of the turn.
    pub(crate) step: u32,
    /// The time, if steps have timestamps.
    pub(crate) at: Option<Timestamp>,
}

/// A call's report on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskReport {
    /// The task is running.
    Running(u64),
    /// The task has ended.
    Ended(u64),
}

/// The change of a task since its last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskChange {
    /// The task is new.
    Started,
    /// The task is still running.
    StillRunning,
    /// The task has ended.
    Ended,
}

impl Tasks {
    /// Records a call's report and returns the change.
    pub(crate) fn record(&mut self, call: &Call<'_>, last: LastReport) -> Option<TaskChange> {
        match parse_report(call)? {
            TaskReport::Running(task) => match self.insert(task, last) {
                Some(_) => Some(TaskChange::StillRunning),
                None => Some(TaskChange::Started),
            },
            TaskReport::Ended(task) => self.remove(task).map(|_| TaskChange::Ended),
        }
    }

    /// Removes a task that has ended.
    pub(crate) fn end(&mut self, task: &str) {
        self.remove(key(task));
    }

    /// Whether any task counts as running.
    pub(crate) fn any_running(&self, now: LastReport, policy: &TurnPolicy) -> bool {
        let steps = policy.stall_threshold.max(1);
        let counts_as_running = |last: &LastReport| match (last.at, now.at) {
            (Some(reported), Some(at)) => at.since(reported) < WAIT_PER_STEP.saturating_mul(steps),
            (None, _) | (_, None) => now.step.saturating_sub(last.step) < steps.saturating_mul(2),
        };
        self.values().any(counts_as_running)
    }
}

/// The task that a notification reports as ended. Claude Code sends such notifications as user
/// messages. `None` if the text is not a notification or reports something else.
pub fn ended_task(text: &str) -> Option<&str> {
    let note = text.trim_start().strip_prefix("<task-notification>")?;
    let status = between(note, "<status>", "</status>")?;
    let task = between(note, "<task-id>", "</task-id>")?;
    (status != "running").then_some(task)
}

fn parse_report(call: &Call<'_>) -> Option<TaskReport> {
    if call.ok == Some(false) {
        return None;
    }
    let task_id = ID_FIELDS
        .iter()
        .find_map(|field| name(call.input.get(field)?));
    if let Some(task) = &task_id {
        if STOP_TOOLS.contains(&call.tool) {
            return Some(TaskReport::Ended(key(task)));
        }
        match status(call.output) {
            Some(true) => return Some(TaskReport::Running(key(task))),
            Some(false) => return Some(TaskReport::Ended(key(task))),
            None => {}
        }
    }
    if let Some(task) = started(call.output) {
        return Some(TaskReport::Running(key(task)));
    }
    let sent = |field: &&str| call.input.get(field) == Some(&Value::Bool(true));
    // A background request without a reported id: the input identifies the task.
    let sent = BACKGROUND_FIELDS.iter().any(sent);
    sent.then(|| TaskReport::Running(hash(call.input.to_string().as_bytes())))
}

/// The id of a task in a result that reports its start.
fn started(output: &str) -> Option<&str> {
    let mut head = output.lines().take(REPORT_LINES);
    let first = head.next()?;
    if let Some(sent) = first.strip_prefix("Command ") {
        // Claude Code: `running in background with ID: b1`, even for a command that timed out.
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
        // Kimi: one field per line.
        return (status(output) == Some(true)).then(|| word(task)).flatten();
    }
    let mut lines = std::iter::once(first).chain(head);
    lines.find_map(|line| word(line.strip_prefix(CODEX_RUNS)?))
}

/// Codex's report of a command that is still running.
const CODEX_RUNS: &str = "Process running with session ID ";

/// Whether the queried task is running, if the output reports it.
fn status(output: &str) -> Option<bool> {
    output.lines().take(REPORT_LINES).find_map(|line| {
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

/// The task id at the start of a text.
fn word(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
    text.get(..end.unwrap_or(text.len()))
        .filter(|word| !word.is_empty())
}

/// A task id in an input: a string or a number.
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

    fn parse(tool: &str, input: &Value, output: &str) -> Option<TaskReport> {
        let ok = Some(true);
        parse_report(&Call {
            tool,
            input,
            ok,
            output,
        })
    }

    #[test]
    fn recognizes_the_start_reports_of_all_agents() {
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
            let expected = Some(TaskReport::Running(key(task)));
            assert_eq!(parse("Bash", &command, output), expected, "{output}");
        }
        for output in [
            "",
            "make: Nothing to be done for 'all'.",
            "Command failed with ID: 7",
            "the docs say:\nCommand running in background with ID: b1",
            "task_id: bash-gx\nstatus: completed",
            "a line\n<status>running</status>",
        ] {
            assert_eq!(parse("Bash", &command, output), None, "{output}");
        }
        let failed = Call {
            tool: "Bash",
            input: &json!({ "run_in_background": true }),
            ok: Some(false),
            output: "Exit code 1",
        };
        assert_eq!(parse_report(&failed), None);
    }

    #[test]
    fn recognizes_status_reports_of_queried_tasks() {
        let query = json!({ "task_id": "b1", "block": true });
        let task_output = |status: &str| {
            format!(
                "<retrieval_status>x</retrieval_status>\n\n<task_id>b1</task_id>\n\n<status>{status}</status>"
            )
        };
        let (runs, ended) = (
            Some(TaskReport::Running(key("b1"))),
            Some(TaskReport::Ended(key("b1"))),
        );
        assert_eq!(parse("TaskOutput", &query, &task_output("running")), runs);
        for status in ["completed", "failed", "killed"] {
            assert_eq!(
                parse("TaskOutput", &query, &task_output(status)),
                ended,
                "{status}"
            );
        }
        assert_eq!(
            parse("TaskOutput", &query, "task_id: b1\nstatus: completed"),
            ended
        );
        assert_eq!(parse("TaskStop", &query, "stopped"), ended);
        assert_eq!(parse("KillShell", &json!({ "shell_id": "b1" }), ""), ended);
        assert_eq!(parse("TaskOutput", &query, "no such task"), None);

        let session = json!({ "session_id": 42, "chars": "" });
        let exited = "Wall time: 9.1 seconds\nProcess exited with code 0\nOutput:\n";
        assert_eq!(
            parse("write_stdin", &session, exited),
            Some(TaskReport::Ended(key("42")))
        );
    }

    #[test]
    fn identifies_a_task_without_an_id_by_its_input() {
        let one = json!({ "command": "make", "run_in_background": true });
        let other = json!({ "command": "make test", "run_in_background": true });
        assert!(matches!(
            parse("Bash", &one, ""),
            Some(TaskReport::Running(_))
        ));
        assert_eq!(parse("Bash", &one, "x"), parse("Bash", &one, ""));
        assert_ne!(parse("Bash", &one, ""), parse("Bash", &other, ""));
        let no = json!({ "command": "make", "is_background": false });
        assert_eq!(parse("Bash", &no, ""), None);
    }

    #[test]
    fn parses_the_ended_task_of_a_notification() {
        let note = |status: &str| {
            format!("<task-notification>\n<task-id>b1</task-id>\n{status}</task-notification>")
        };
        assert_eq!(ended_task(&note("<status>completed</status>")), Some("b1"));
        assert_eq!(ended_task(&note("<status>running</status>")), None);
        assert_eq!(ended_task(&note("<event>a line</event>")), None);
        assert_eq!(ended_task("is <task-id>b1</task-id> done?"), None);
    }
}
