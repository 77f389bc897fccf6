//! Agent hooks: one file per agent.
//!
//! Each file parses the agent's payloads into an [`Event`] and renders a [`Reply`] in the agent's
//! format. `handle` maps events to replies, the same for all agents. Irrelevant events are skipped.
//! `docs/hooks.md` lists what each agent's hooks cannot do, such as stopping a turn.

mod claude_code;
mod codex;
mod cursor;
mod gemini;
mod handle;
mod kimi;
mod opencode;
mod payload;
mod tasks;
pub(crate) mod usage;

use clap::ValueEnum;
use onward_engine::session::{HookSource, ObservedCall};
use onward_engine::tool_calls::{Approval, CallRef};
use serde_json::Value;

pub(crate) use handle::{Settings, handle, start_fingerprint};

/// Supported agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Agent {
    /// Claude Code
    ClaudeCode,
    /// Codex CLI
    Codex,
    /// Gemini CLI
    Gemini,
    /// Kimi Code
    Kimi,
    /// Cursor
    Cursor,
    /// opencode
    Opencode,
}

impl Agent {
    /// The name on the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Agent::ClaudeCode => "claude-code",
            Agent::Codex => "codex",
            Agent::Gemini => "gemini",
            Agent::Kimi => "kimi",
            Agent::Cursor => "cursor",
            Agent::Opencode => "opencode",
        }
    }

    /// Parses a payload. `None` if the event is irrelevant.
    pub(crate) fn parse(self, payload: &Value) -> Option<Event> {
        match self {
            Agent::ClaudeCode => claude_code::parse(payload),
            Agent::Codex => codex::parse(payload),
            Agent::Gemini => gemini::parse(payload),
            Agent::Kimi => kimi::parse(payload),
            Agent::Cursor => cursor::parse(payload),
            Agent::Opencode => opencode::parse(payload),
        }
    }

    /// Renders a reply in the agent's format. `None` if there is nothing to print.
    pub(crate) fn render(self, event: &Event, reply: &Reply) -> Option<String> {
        match self {
            Agent::ClaudeCode => claude_code::render(event, reply),
            Agent::Codex => codex::render(event, reply),
            Agent::Gemini => gemini::render(event, reply),
            Agent::Kimi => kimi::render(event, reply),
            Agent::Cursor => cursor::render(event, reply),
            Agent::Opencode => opencode::render(event, reply),
        }
    }

    /// Tools that start a subagent, for agents that report the subagent's end as the agent's own.
    const fn subagent_tools(self) -> &'static [&'static str] {
        match self {
            Agent::Kimi => &["Agent", "AgentSwarm"],
            Agent::ClaudeCode | Agent::Codex | Agent::Gemini | Agent::Cursor | Agent::Opencode => {
                &[]
            }
        }
    }

    /// Whether its hooks can stop a turn.
    const fn can_stop(self) -> bool {
        match self {
            Agent::ClaudeCode | Agent::Gemini | Agent::Opencode => true,
            Agent::Codex | Agent::Kimi | Agent::Cursor => false,
        }
    }
}

/// A hook event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// The agent's name for the event.
    pub(crate) name: String,
    /// Session, agent and directory.
    pub(crate) source: HookSource,
    /// The kind, with its data.
    pub(crate) kind: EventKind,
}

/// The kinds of hook events.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum EventKind {
    /// A session starts or resumes, or its context was compacted.
    SessionStarted {
        /// The cause, such as `startup` or `compact`.
        cause: String,
    },
    /// The context was compacted, and the agent does not read the reply.
    Compacted,
    /// A user prompt, or the task of a subagent: a turn starts.
    TurnStarted,
    /// A message about a background task, written by the agent and not by the user.
    TaskMessage {
        /// The task that ended, if any.
        ended: Option<String>,
    },
    /// Before a model request; the tools can be disabled.
    BeforeModelRequest,
    /// Before a tool call.
    BeforeToolCall {
        /// The call.
        call: CallRef,
    },
    /// The user is asked for permission, or has decided.
    Permission {
        /// The call.
        call: CallRef,
        /// The state of the permission.
        approval: Approval,
    },
    /// Results of tool calls.
    ToolResults {
        /// The calls.
        calls: Vec<ObservedCall>,
        /// Whether these are all calls of one model response.
        is_batch: bool,
    },
    /// The agent has answered: the turn ends.
    TurnEnded {
        /// Whether the reply can make the agent continue.
        can_continue: bool,
    },
    /// The session ends.
    SessionEnded,
}

/// The reply to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// No effect.
    Nothing,
    /// Text for the model.
    Context(String),
    /// Text for the user.
    Warning(String),
    /// Continue the turn that the agent is about to end.
    Continue {
        /// The reason, for the model.
        reason: String,
    },
    /// Send the model request without tools.
    DisableTools,
    /// Reject the call.
    Reject {
        /// The reason, for the model.
        reason: String,
    },
    /// Reject the call and stop the turn.
    Stop {
        /// The reason, for the model.
        reason: String,
        /// The reason, for the user.
        to_user: String,
    },
}
