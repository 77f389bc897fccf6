//! Token counts from the transcript of Claude Code.
//!
//! A response is several lines with the same message id and the same usage, which counts once. The
//! file is read from the stored position, a limited number of bytes per hook, and only when the count
//! matters: before a call that claims or ends a step, and at the end of a turn or session. Errors are
//! ignored: the count is then lower, or unknown.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use onward_core::usage::TokenUsage;
use onward_engine::usage::UsageReport;
use onward_engine::{Caller, Engine, TranscriptPosition};
use serde::Deserialize;
use serde_json::Value;

use super::payload::text;
use super::{Agent, EventKind};

/// The maximum number of bytes that one hook reads.
const MAX_BYTES: u64 = 1 << 20;
/// The number of last responses whose counts are kept.
const MAX_RECENT: usize = 8;
/// Tools that claim or end a step.
const STEP_TOOLS: [&str; 3] = ["get_next_step", "submit_step_result", "request_user_review"];

#[derive(Deserialize)]
struct Line {
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    id: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    cache_creation_input_tokens: u64,
    #[serde(default)]
    cache_read_input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input_tokens,
            cache_creation: usage.cache_creation_input_tokens,
            cache_read: usage.cache_read_input_tokens,
            output: usage.output_tokens,
        }
    }
}

/// The transcript to read after an event, if its tokens are counted now.
pub(crate) fn transcript(agent: Agent, kind: &EventKind, payload: &Value) -> Option<String> {
    let is_due = match kind {
        EventKind::BeforeToolCall { call } => {
            STEP_TOOLS.iter().any(|tool| call.tool.ends_with(tool))
        }
        EventKind::TurnEnded { .. } | EventKind::SessionEnded => true,
        EventKind::SessionStarted { .. }
        | EventKind::Compacted
        | EventKind::TurnStarted
        | EventKind::TaskMessage { .. }
        | EventKind::BeforeModelRequest
        | EventKind::Permission { .. }
        | EventKind::ToolResults { .. } => false,
    };
    if agent != Agent::ClaudeCode || !is_due {
        return None;
    }
    // The end of a subagent names its own transcript.
    text(payload, "agent_transcript_path").or_else(|| text(payload, "transcript_path"))
}

/// Counts the tokens that a transcript contains since it was read last.
pub(crate) async fn count(engine: &Engine, caller: &Caller, session: &str, path: &str) {
    let position = engine.transcript_position(caller, session, path).await;
    let Some(position) = position.ok().flatten() else {
        return;
    };
    if let Some(report) = read(position) {
        drop(engine.record_usage(caller, session, report).await);
    }
}

/// The tokens after a position. `None` if there is nothing new to read.
fn read(mut position: TranscriptPosition) -> Option<UsageReport> {
    let mut file = File::open(&position.path).ok()?;
    let length = file.metadata().ok()?.len();
    let from = position.offset;
    let mut tokens = TokenUsage::default();
    if length < from {
        // The file was rewritten. Its lines may have been counted already.
        position.offset = length;
    } else {
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        let is_full = bytes.len() as u64 == MAX_BYTES;
        let complete = match end {
            Some(end) => end + 1,
            // One line that is too long to be read: the rest of it is skipped as well.
            None if is_full => bytes.len(),
            None => 0,
        };
        for line in bytes.get(..complete)?.split(|byte| *byte == b'\n') {
            tokens = tokens.plus(new_tokens(&mut position.recent, line));
        }
        position.offset = from + complete as u64;
    }
    (position.offset != from).then_some(UsageReport {
        tokens,
        transcript: Some((from, position)),
    })
}

/// The tokens of a line that were not counted with an earlier line of the same response.
fn new_tokens(recent: &mut Vec<(String, TokenUsage)>, line: &[u8]) -> TokenUsage {
    let has_usage = line.windows(7).any(|part| part == b"\"usage\"");
    let message = has_usage.then(|| serde_json::from_slice::<Line>(line).ok());
    let message = message.flatten().and_then(|line| line.message);
    let Some((id, usage)) = message.and_then(|message| message.id.zip(message.usage)) else {
        return TokenUsage::default();
    };
    let usage = TokenUsage::from(usage);
    if let Some((_, counted)) = recent.iter_mut().find(|(known, _)| *known == id) {
        let new = usage.beyond(*counted);
        *counted = counted.plus(new);
        return new;
    }
    recent.push((id, usage));
    let surplus = recent.len().saturating_sub(MAX_RECENT);
    recent.drain(..surplus);
    usage
}

#[cfg(test)]
mod tests;
