//! The agents' own plans: their tools for an approved plan and for a task list, and the tools that
//! resume a plan, read into a [`TaskReport`]. Nothing is asked of the model; `capture` in the engine mirrors the report into a
//! plan.

use onward_core::capture::{Task, TaskChange, TaskReport, TaskStatus};
use onward_engine::session::ObservedCall;
use serde_json::Value;

use super::Agent;
use super::payload::{self, text};

/// Onward's tools with which an agent resumes a plan, as the offer at the start of a session says.
const RESUMING_TOOLS: [&str; 2] = ["get_research_context", "get_next_step"];

/// The report in a call of one of the agent's tools. `None` for every other call, and for a failed
/// one.
pub(super) fn report(agent: Agent, call: &ObservedCall) -> Option<TaskReport> {
    if call.ok == Some(false) {
        return None;
    }
    let input = &call.input;
    if RESUMING_TOOLS.iter().any(|tool| call.tool.ends_with(tool)) {
        let plans = payload::plans(std::slice::from_ref(call));
        return plans.first().copied().map(TaskReport::TakenUp);
    }
    match (agent, call.tool.as_str()) {
        (Agent::ClaudeCode, "ExitPlanMode") => approved(call),
        (Agent::ClaudeCode, "TaskCreate") => {
            let task = Task::new(&text(input, "subject")?, TaskStatus::Pending)?;
            let task = task.with_details(text(input, "description").as_deref());
            Some(TaskReport::Created(task.with_key(Some(created_id(call)?))))
        }
        (Agent::ClaudeCode, "TaskUpdate") => {
            let new = text(input, "status");
            Some(TaskReport::Changed(TaskChange {
                key: text(input, "taskId")?,
                title: text(input, "subject"),
                details: text(input, "description"),
                is_removed: new.as_deref() == Some("deleted"),
                status: new.as_deref().and_then(status),
            }))
        }
        (Agent::ClaudeCode, "TodoWrite") | (Agent::Opencode, "todowrite") => {
            list(input, "todos", "content")
        }
        (Agent::Codex, "update_plan") => list(input, "plan", "step"),
        (Agent::Gemini, "write_todos") => list(input, "todos", "description"),
        (Agent::Kimi, "SetTodoList" | "TodoList") => list(input, "todos", "title"),
        (
            Agent::ClaudeCode
            | Agent::Codex
            | Agent::Gemini
            | Agent::Kimi
            | Agent::Cursor
            | Agent::Opencode,
            _,
        ) => None,
    }
}

/// The approved plan, from the input or from the result: Claude Code also keeps plans in files.
fn approved(call: &ObservedCall) -> Option<TaskReport> {
    let result: Option<Value> = serde_json::from_str(&call.output).ok();
    let in_result = result.and_then(|result| text(&result, "plan"));
    let plan = text(&call.input, "plan").or(in_result)?;
    Some(TaskReport::Approved(plan))
}

/// The id of a created task, from the structured result or from its text.
fn created_id(call: &ObservedCall) -> Option<String> {
    let result: Option<Value> = serde_json::from_str(&call.output).ok();
    if let Some(task) = result.as_ref().and_then(|result| result.get("task")) {
        return text(task, "id");
    }
    let (_, rest) = call.output.split_once('#')?;
    let end = rest.find(|char: char| !char.is_ascii_digit());
    let id = rest.get(..end.unwrap_or(rest.len()))?;
    (!id.is_empty()).then(|| id.to_owned())
}

/// A whole list. Cancelled tasks are not part of it.
fn list(input: &Value, key: &str, title: &str) -> Option<TaskReport> {
    let tasks = input.get(key)?.as_array()?.iter().filter_map(|item| {
        let status = match text(item, "status") {
            Some(word) => status(&word)?,
            None => TaskStatus::Pending,
        };
        let task = Task::new(&text(item, title)?, status)?;
        Some(task.with_key(text(item, "id")))
    });
    Some(TaskReport::List(tasks.collect()))
}

/// The status of a task. `None` if the task is cancelled.
fn status(word: &str) -> Option<TaskStatus> {
    match word {
        "completed" | "done" => Some(TaskStatus::Completed),
        "in_progress" => Some(TaskStatus::InProgress),
        "cancelled" | "canceled" | "deleted" => None,
        _ => Some(TaskStatus::Pending),
    }
}
