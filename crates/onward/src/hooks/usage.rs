//! Token counts from the transcript of Claude Code.
//!
//! The file is read from the stored position, a limited number of bytes per hook, and only when the
//! count matters: before a call that claims or ends a step, and at the end of a turn or session.
//! Errors are ignored: the count is then lower, or unknown.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use onward_core::usage::{TokenUsage, read_transcript};
use onward_engine::usage::UsageReport;
use onward_engine::{Caller, Engine, TranscriptPosition};
use serde_json::Value;

use super::payload::text;
use super::{Agent, EventKind};
use crate::regular_file;

/// The maximum number of bytes that one hook reads.
const MAX_BYTES: u64 = 1 << 20;
/// Tools that claim or end a step.
const STEP_TOOLS: [&str; 3] = ["get_next_step", "submit_step_result", "request_user_review"];

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
    let report = UsageReport::Transcript {
        path: path.to_owned(),
        read: Arc::new(read),
    };
    drop(engine.record_usage(caller, session, report).await);
}

/// Reads the tokens after a position, and moves it. `None` if there is nothing new to read.
fn read(position: &mut TranscriptPosition) -> Option<TokenUsage> {
    let mut file = regular_file::open(Path::new(&position.path)).ok()?;
    let length = file.metadata().ok()?.len();
    let from = position.offset;
    if length < from {
        // The file was rewritten. Its lines may have been counted already.
        position.offset = length;
        return Some(TokenUsage::default());
    }
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let part = read_transcript(&mut position.recent, &bytes);
    // One line that is too long to be read: the rest of it is skipped as well.
    let is_skipped = part.length == 0 && bytes.len() as u64 == MAX_BYTES;
    let length = if is_skipped { bytes.len() } else { part.length };
    position.offset = from + length as u64;
    (length > 0).then_some(part.tokens)
}

#[cfg(test)]
mod tests;
