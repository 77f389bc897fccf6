//! Saved sessions of agents, read into turns: from bytes to steps, calls and results.
//!
//! Each format has its own file and knows nothing of the others; `detect` tells them apart by what
//! is inside, never by the name of the file. Turns are handed on one by one, as soon as each is
//! whole, so a long log is never held in memory.
//!
//! Nothing is judged here: that is `onward_core::turn`, and `cli/transcript/judge.rs` brings the
//! two together. `score` compares verdicts with labels.

mod anthropic;
mod claude_code;
mod detect;
mod draft;
mod error;
mod lines;
mod messages;
mod openai;
mod outside;
pub(crate) mod repair;
pub(crate) mod score;
mod swe_agent;
mod turns;

use std::ops::ControlFlow;
use std::path::Path;

use clap::ValueEnum;
use onward_core::Timestamp;
use onward_core::turn::Outside;
use serde_json::Value;

pub(crate) use error::Error;
pub(crate) use lines::Lines;

/// What an agent did between a person's message and its answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Turn {
    /// Unique among what is read: the file as it was named, and which turn of it.
    pub(crate) id: String,
    /// Where it is from, for the table: what the file says, or else the format's name.
    pub(crate) source: String,
    pub(crate) steps: Vec<Step>,
}

/// One model response, with all the calls of its batch. Without calls it is an answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub(crate) calls: Vec<Call>,
    pub(crate) outside: Outside,
    pub(crate) at: Option<Timestamp>,
    /// What the agent was told of background tasks before it: each time, which one is over, if one is.
    pub(crate) told: Vec<Option<String>>,
}

/// One call of a tool, with its result.
#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) input: Value,
    /// What the log says; none where it says nothing, or where there is no result.
    pub(crate) ok: Option<bool>,
    pub(crate) output: String,
}

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// JSON lines, one turn each: `{"id", "steps": [{"calls": […], "changed"}]}`
    Turns,
    /// Claude Code's session logs, JSON lines
    ClaudeCode,
    /// SWE-agent's `.traj`
    SweAgent,
    /// Messages of OpenAI's Chat Completions
    Openai,
    /// Messages of Anthropic's Messages API
    Anthropic,
}

impl Format {
    /// As it is written on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Turns => "turns",
            Format::ClaudeCode => "claude-code",
            Format::SweAgent => "swe-agent",
            Format::Openai => "openai",
            Format::Anthropic => "anthropic",
        }
    }
}

/// What a reader finds, in the order of the file.
pub(crate) enum Found {
    Turn(Turn),
    /// Something that was left out, and why.
    Warning(String),
}

/// Takes what is found; breaks off the reading where nobody wants more.
pub(crate) type Each<'a> = dyn FnMut(Found) -> ControlFlow<()> + 'a;

/// Reads a file from its beginning to its end, and hands on each turn as soon as it is whole.
pub(crate) fn read(path: &Path, format: Option<Format>, each: &mut Each<'_>) -> Result<(), Error> {
    let name = path.display().to_string();
    let mut lines = Lines::open(path)?;
    if lines.look(0)?.is_none() {
        // Breaking off after the last thing there was makes no difference.
        let _ = each(Found::Warning(format!("`{name}` is empty")));
        return Ok(());
    }
    let format = match format {
        Some(format) => format,
        None => detect::detect(&mut lines)?,
    };
    match format {
        Format::Turns => turns::read(lines, each),
        Format::ClaudeCode => claude_code::read(lines, each),
        Format::SweAgent => swe_agent::read(lines, each),
        Format::Openai => openai::read(lines, each),
        Format::Anthropic => anthropic::read(lines, each),
    }
}
