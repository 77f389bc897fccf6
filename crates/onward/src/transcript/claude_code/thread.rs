//! One conversation of a Claude Code log, the session's own or a subagent's: its turn so far.
//!
//! What a step did to the world outside is told from its calls when the turn ends, for only then
//! every result is there. What calls say of tasks in the background the detector reads itself; what the
//! harness says of them between two steps is put before the later one.

use std::collections::HashSet;

use onward_core::Timestamp;
use onward_core::turn::Outside;
use serde_json::Value;

use super::super::draft::Draft;
use super::super::outside::{self, Edits};
use super::super::{Call, Format, Turn, anthropic};

/// Tools that write a file.
const EDITS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// Tools that read, ask, or keep lists of the agent's own.
const READS: [&str; 24] = [
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
];

/// One conversation.
pub(super) struct Thread {
    /// What its turns' ids carry between the file and the number.
    suffix: String,
    /// Turns that were handed on.
    ended: u32,
    draft: Draft,
    /// For each step the `message.id`, where there is one.
    rows: Vec<Option<String>>,
    /// Calls by id, so that a block that is written twice is one call.
    calls: HashSet<String>,
    /// What the harness told of background tasks, before which step: each time, which one is over.
    told: Vec<(usize, Option<String>)>,
    /// When the model last spoke, in lines of the log.
    spoke: u64,
}

impl Thread {
    pub(super) fn new(suffix: String) -> Self {
        Thread {
            suffix,
            ended: 0,
            draft: Draft::default(),
            rows: Vec::new(),
            calls: HashSet::new(),
            told: Vec::new(),
            spoke: 0,
        }
    }

    /// Takes a line of a model response: a new step, or more of one.
    pub(super) fn respond(&mut self, message: &mut Value, at: Option<Timestamp>, line: u64) {
        self.spoke = line;
        let id = message["id"].as_str().map(str::to_owned);
        let known = id
            .is_some()
            .then(|| self.rows.iter().rposition(|row| *row == id));
        let step = known.flatten().unwrap_or_else(|| {
            self.rows.push(id);
            self.draft.begin_step()
        });
        if let Some(blocks) = message.get_mut("content").and_then(Value::as_array_mut) {
            blocks.retain(|block| match block["id"].as_str() {
                Some(id) => self.calls.insert(id.to_owned()),
                None => true,
            });
        }
        anthropic::calls(&mut self.draft, step, message);
        if let Some(step) = self.draft.steps.get_mut(step) {
            step.at = step.at.max(at);
        }
    }

    /// Gives a call its result, if the call was made here; says whether it was.
    pub(super) fn answer(
        &mut self,
        id: &str,
        ok: Option<bool>,
        output: &mut Option<String>,
        at: Option<Timestamp>,
    ) -> bool {
        if !self.calls.contains(id) {
            return false;
        }
        let output = output.take().unwrap_or_default();
        let step = self.draft.answer(id, ok, output);
        if let Some(step) = step.and_then(|step| self.draft.steps.get_mut(step)) {
            step.at = step.at.max(at);
        }
        true
    }

    /// Takes note that the agent was told of a background task, and which one is over, if one is.
    pub(super) fn hear_of_task(&mut self, ended: Option<&str>) {
        self.told.push((self.rows.len(), ended.map(str::to_owned)));
    }

    /// Whether the last thing was an answer in text, and before the given line.
    pub(super) fn has_answered_before(&self, line: u64) -> bool {
        let last = self.draft.steps.last();
        self.spoke < line && last.is_some_and(|step| step.calls.is_empty())
    }

    /// The turn that was being read. A prompt that nobody answered is none.
    pub(super) fn end_turn(&mut self, name: &str) -> Option<Turn> {
        self.rows.clear();
        self.calls.clear();
        let told = std::mem::take(&mut self.told);
        let mut steps = std::mem::take(&mut self.draft).steps;
        if steps.is_empty() {
            return None;
        }
        let mut edits = Edits::default();
        for (before, ended) in told {
            // After the last step there is nobody left to know.
            if let Some(step) = steps.get_mut(before) {
                step.told.push(ended);
            }
        }
        for step in &mut steps {
            let calls = step.calls.iter();
            step.outside = outside::of_calls(calls.map(|call| outside_of(call, &mut edits)));
        }
        let turn = Turn {
            id: format!("{name}{}#{}", self.suffix, self.ended),
            source: Format::ClaudeCode.name().to_owned(),
            steps,
        };
        self.ended += 1;
        Some(turn)
    }
}

/// What a call says about the outside.
fn outside_of(call: &Call, edits: &mut Edits) -> Outside {
    let Some(ok) = call.ok else {
        return Outside::Unknown;
    };
    let tool = call.tool.as_str();
    if EDITS.contains(&tool) {
        return if ok {
            edits.accepted(call)
        } else {
            Outside::Same
        };
    }
    if READS.contains(&tool) {
        return Outside::Same;
    }
    // Nobody knows how far a command has come that goes on.
    if tool != "Bash" || call.input["run_in_background"] == true {
        return Outside::Unknown;
    }
    let command = call.input["command"].as_str().unwrap_or_default();
    if ok && outside::surely_changes(command) {
        return edits.accepted(call);
    }
    outside::of_command(command)
}
