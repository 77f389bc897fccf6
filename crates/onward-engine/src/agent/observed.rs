//! Data that hooks report: the source of an event, and the steps and calls of an agent.

use onward_core::call::Owner;
use onward_core::turn::{Call, JudgedStep};
use onward_core::{PlanId, secret};
use onward_store::SeenClaim;
use serde_json::Value;

use crate::error::Error;
use crate::sanitize;

/// Maximum length of an id. Agents may send arbitrary values.
const MAX_ID_CHARS: usize = 200;
/// Maximum length of the stored beginning of a prompt.
const MAX_PROMPT_CHARS: usize = 200;
/// Maximum length of the stored beginning of a subagent's answer.
const MAX_ANSWER_CHARS: usize = 200;

/// The session, agent and turn that a hook event belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookSource {
    /// The session id assigned by the agent.
    pub session: String,
    /// The agent.
    pub agent: String,
    /// The working directory.
    pub directory: Option<String>,
    /// The project that the directory belongs to, if it is not the directory itself.
    pub project: Option<String>,
    /// The subagent; empty for the main agent.
    pub subagent: String,
    /// The agent's own id of the turn, if it has one.
    pub turn: Option<String>,
    /// The session that started this session as a subagent, if subagents are separate sessions.
    pub parent: Option<String>,
    /// The user's prompt, if the event is one. Only its beginning is stored, without secrets.
    pub prompt: Option<String>,
    /// The process of the agent, if it is known.
    pub process: Option<Owner>,
    /// The answer of a subagent, if the event is its end. Only its beginning is stored, without
    /// secrets.
    pub answer: Option<String>,
}

/// Fingerprint of the external state (the working tree), if it was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fingerprint {
    /// No fingerprint is available.
    Unavailable,
    /// Taking the fingerprint timed out.
    TimedOut,
    /// The fingerprint.
    Value(String),
}

/// The calls that a hook reports together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepReport {
    /// All calls of one model response.
    Batch,
    /// One call of an agent that reports each call separately.
    Call,
    /// One call of an agent that usually reports the batch as well.
    CallOfBatch,
}

/// A step reported by a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedStep {
    /// The step's tool calls.
    pub calls: Vec<ObservedCall>,
    /// What `calls` are.
    pub report: StepReport,
    /// Fingerprint of the external state after the step.
    pub fingerprint: Fingerprint,
    /// Plans that the calls refer to.
    pub plans: Vec<PlanId>,
    /// Claims in the results of the calls.
    pub claims: Vec<SeenClaim>,
    /// The caller's judgement. If `None`, the engine judges the step.
    pub judged: Option<JudgedStep>,
}

/// A tool call with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedCall {
    /// The id assigned by the agent.
    pub id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The tool's input.
    pub input: Value,
    /// Whether the call succeeded, if reported.
    pub ok: Option<bool>,
    /// The raw result.
    pub output: String,
}

impl HookSource {
    /// Whether the event belongs to a subagent.
    pub fn is_subagent(&self) -> bool {
        !self.subagent.is_empty() || self.parent.is_some()
    }

    /// The project, or the directory if it is not known.
    pub(super) fn project(&self) -> Option<&str> {
        self.project.as_deref().or(self.directory.as_deref())
    }

    /// Makes the texts storable.
    pub(crate) fn sanitized(mut self) -> Result<Self, Error> {
        for text in [&mut self.session, &mut self.agent, &mut self.subagent] {
            sanitize::text(text);
            truncate_id(text);
        }
        sanitize::optional_text(&mut self.directory);
        sanitize::optional_text(&mut self.project);
        sanitize::optional_text(&mut self.turn);
        self.turn.iter_mut().for_each(truncate_id);
        sanitize::optional_text(&mut self.parent);
        self.prompt = self
            .prompt
            .map(|prompt| secret::preview(&prompt, MAX_PROMPT_CHARS));
        sanitize::optional_text(&mut self.prompt);
        self.answer = self
            .answer
            .map(|answer| secret::preview(&answer, MAX_ANSWER_CHARS));
        sanitize::optional_text(&mut self.answer);
        if self.session.is_empty() {
            Err(Error::invalid("session", "must not be empty"))
        } else {
            Ok(self)
        }
    }
}

/// Cuts an id to the maximum length.
pub(super) fn truncate_id(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_ID_CHARS) {
        text.truncate(end);
    }
}

impl ObservedCall {
    /// The call as input of the judge.
    pub fn as_call(&self) -> Call<'_> {
        Call {
            tool: &self.tool,
            input: &self.input,
            ok: self.ok,
            output: &self.output,
        }
    }

    /// The command if the input has one, otherwise the whole input.
    pub(super) fn command_line(&self) -> String {
        let command = self
            .input
            .get("command")
            .and_then(|command| command.as_str());
        command.map_or_else(|| self.input.to_string(), str::to_owned)
    }
}
