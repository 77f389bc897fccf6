//! What agents tell through their hooks, and what they are answered: one file per agent.
//!
//! An agent's file reads its payloads into an [`Event`], and writes a [`Reply`] in the agent's own
//! format; what happens between the two is the same for all, and stands in `act`. An event that is of
//! no use here is passed over. What an agent's hooks cannot do (stop a turn, speak to the model) its
//! file leaves out, and `docs/hooks.md` says.

mod act;
mod claude_code;
mod codex;
mod cursor;
mod gemini;
mod kimi;
mod opencode;
mod payload;

use clap::ValueEnum;
use onward_engine::ledger::{Asked, Said};
use onward_engine::session::{Heard, SeenCall};
use serde_json::Value;

pub(crate) use act::act;

/// The agents whose hooks are understood.
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
    /// Its name, as the command line takes it.
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

    /// What a payload tells; nothing where it is of no use here.
    pub(crate) fn read(self, payload: &Value) -> Option<Event> {
        match self {
            Agent::ClaudeCode => claude_code::read(payload),
            Agent::Codex => codex::read(payload),
            Agent::Gemini => gemini::read(payload),
            Agent::Kimi => kimi::read(payload),
            Agent::Cursor => cursor::read(payload),
            Agent::Opencode => opencode::read(payload),
        }
    }

    /// A reply as the agent reads it; nothing where it cannot be told.
    pub(crate) fn write(self, event: &Event, reply: &Reply) -> Option<String> {
        match self {
            Agent::ClaudeCode => claude_code::write(event, reply),
            Agent::Codex => codex::write(event, reply),
            Agent::Gemini => gemini::write(event, reply),
            Agent::Kimi => kimi::write(event, reply),
            Agent::Cursor => cursor::write(event, reply),
            Agent::Opencode => opencode::write(event, reply),
        }
    }

    /// The tools that start a subagent, where the subagent's end is told as the agent's own.
    const fn subagent_tools(self) -> &'static [&'static str] {
        match self {
            Agent::Kimi => &["Agent", "AgentSwarm"],
            Agent::ClaudeCode | Agent::Codex | Agent::Gemini | Agent::Cursor | Agent::Opencode => {
                &[]
            }
        }
    }

    /// Whether its hooks can end a turn.
    const fn can_stop(self) -> bool {
        match self {
            Agent::ClaudeCode | Agent::Gemini | Agent::Opencode => true,
            Agent::Codex | Agent::Kimi | Agent::Cursor => false,
        }
    }
}

/// What an agent tells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// The agent's own name for it.
    pub(crate) name: String,
    /// Who tells.
    pub(crate) heard: Heard,
    /// What.
    pub(crate) what: What,
}

/// What an agent tells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    /// A session begins, or goes on.
    SessionStarted,
    /// A person has written, or a subagent was set its task: a turn begins.
    Prompted,
    /// The model is told of a background task in a message that nobody wrote.
    ToldOfTask {
        /// The task that is over, if one is.
        ended: Option<String>,
    },
    /// The model is about to be asked, and its tools can be taken away.
    AboutToAsk,
    /// A tool is about to be called.
    AboutToCall {
        /// Which call.
        call: Asked,
    },
    /// A person is asked whether a tool may be called, or has answered.
    Asked {
        /// Which call.
        call: Asked,
        /// What they said.
        said: Said,
    },
    /// Calls were answered.
    Stepped {
        /// Which.
        calls: Vec<SeenCall>,
        /// Whether these are all the calls of one model response.
        whole: bool,
    },
    /// The agent has answered: the turn is over.
    Answered,
    /// The session is over.
    SessionEnded,
}

/// What an agent is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Nothing: it goes on as it would.
    Nothing,
    /// Something for the model to know.
    Context(String),
    /// Something for the person to know.
    Warning(String),
    /// The model is asked without its tools.
    NoTools,
    /// The call is not made.
    Refused {
        /// Why, for the model.
        reason: String,
    },
    /// The call is not made, and the turn is over.
    Stopped {
        /// Why, for the model.
        reason: String,
        /// Why, for the person.
        to_person: String,
    },
}
