//! One conversation thread of a Claude Code log, the main one or a subagent's, with its current
//! turn.
//!
//! The effect of each step is determined at the end of the turn, when all results are available.
//! Notifications about background tasks belong to the step that follows them.

use std::collections::HashSet;

use onward_core::Timestamp;
use serde_json::Value;

use super::super::external_change::AgentTools;
use super::super::turn_builder::TurnBuilder;
use super::super::{Format, Turn, anthropic};

/// The tools with a known effect.
const TOOLS: AgentTools = AgentTools {
    edit: &["Edit", "MultiEdit", "NotebookEdit", "Write"],
    read: &[
        "AskUserQuestion",
        "EnterPlanMode",
        "ExitPlanMode",
        "Glob",
        "Grep",
        "LS",
        "LSP",
        "ListMcpResourcesTool",
        "NotebookRead",
        "Read",
        "ReadMcpResourceTool",
        "Skill",
        "SlashCommand",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "TodoRead",
        "TodoWrite",
        "ToolSearch",
        "WebFetch",
        "WebSearch",
        "exit_plan_mode",
        "mcp__ide__getDiagnostics",
    ],
    shell: &["Bash"],
};

/// A conversation thread.
pub(super) struct Thread {
    /// The part of the turn ids between the file name and the number.
    suffix: String,
    /// The number of ended turns.
    ended_turns: u32,
    builder: TurnBuilder,
    /// The `message.id` of each step, if it has one.
    message_ids: Vec<Option<String>>,
    /// The ids of all calls, to skip repeated blocks.
    call_ids: HashSet<String>,
    /// Notifications about background tasks: the index of the next step, and the task that ended.
    task_notifications: Vec<(usize, Option<String>)>,
    /// The line of the last model response.
    last_response_line: u64,
}

impl Thread {
    pub(super) fn new(suffix: String) -> Self {
        Thread {
            suffix,
            ended_turns: 0,
            builder: TurnBuilder::default(),
            message_ids: Vec::new(),
            call_ids: HashSet::new(),
            task_notifications: Vec::new(),
            last_response_line: 0,
        }
    }

    /// Adds a line of a model response to its step, or starts a step.
    pub(super) fn add_response(&mut self, message: &mut Value, at: Option<Timestamp>, line: u64) {
        self.last_response_line = line;
        let id = message["id"].as_str().map(str::to_owned);
        let existing = id
            .is_some()
            .then(|| self.message_ids.iter().rposition(|other| *other == id));
        let step = existing.flatten().unwrap_or_else(|| {
            self.message_ids.push(id);
            self.builder.begin_step()
        });
        if let Some(blocks) = message.get_mut("content").and_then(Value::as_array_mut) {
            blocks.retain(|block| match block["id"].as_str() {
                Some(id) => self.call_ids.insert(id.to_owned()),
                None => true,
            });
        }
        anthropic::add_content(&mut self.builder, step, message);
        if let Some(step) = self.builder.steps.get_mut(step) {
            step.at = step.at.max(at);
        }
    }

    /// Adds the result of a call. Returns whether the call belongs to this thread.
    pub(super) fn add_result(
        &mut self,
        id: &str,
        ok: Option<bool>,
        output: &mut Option<String>,
        at: Option<Timestamp>,
    ) -> bool {
        if !self.call_ids.contains(id) {
            return false;
        }
        let output = output.take().unwrap_or_default();
        let step = self.builder.add_result(id, ok, output);
        if let Some(step) = step.and_then(|step| self.builder.steps.get_mut(step)) {
            step.at = step.at.max(at);
        }
        true
    }

    /// Adds a notification about a background task, with the id of the task if it ended.
    pub(super) fn add_task_notification(&mut self, ended: Option<&str>) {
        self.task_notifications
            .push((self.message_ids.len(), ended.map(str::to_owned)));
    }

    /// Whether the last step is a text answer and its line is before `line`.
    pub(super) fn answered_before(&self, line: u64) -> bool {
        let last = self.builder.steps.last();
        self.last_response_line < line && last.is_some_and(|step| step.calls.is_empty())
    }

    /// Ends the current turn. A prompt without a response is not a turn.
    pub(super) fn end_turn(&mut self, name: &str) -> Option<Turn> {
        self.message_ids.clear();
        self.call_ids.clear();
        let task_notifications = std::mem::take(&mut self.task_notifications);
        let mut steps = std::mem::take(&mut self.builder).steps;
        if steps.is_empty() {
            return None;
        }
        for (before, ended) in task_notifications {
            // A notification after the last step has no effect.
            if let Some(step) = steps.get_mut(before) {
                step.task_notifications.push(ended);
            }
        }
        TOOLS.set_effects(&mut steps);
        let turn = Turn {
            id: format!("{name}{}#{}", self.suffix, self.ended_turns),
            source: Format::ClaudeCode.name().to_owned(),
            steps,
        };
        self.ended_turns += 1;
        Some(turn)
    }
}
