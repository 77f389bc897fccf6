//! Token counts: of each session with its source, and the sums of steps and plans.
//!
//! A count is data about the work, like a tool call, and not part of the audit trail. A missing sum
//! means that no count is known.

use onward_core::usage::TokenUsage;
use onward_core::{PlanId, StepId};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{first, params};

/// Maximum number of transcripts of a session whose positions are stored: its own, and the last ones
/// of its subagents.
const MAX_FILES: usize = 16;

/// Token counts.
pub struct Usages<'t>(pub &'t mut Tx);

/// The source of a session's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// The API responses that the proxy relays.
    Proxy,
    /// The transcript of the agent.
    Transcript,
}

impl UsageSource {
    /// The value in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            UsageSource::Proxy => "proxy",
            UsageSource::Transcript => "transcript",
        }
    }
}

/// How far a transcript was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TranscriptPosition {
    /// The file.
    pub path: String,
    /// The number of bytes read, up to the end of a line.
    pub offset: u64,
    /// The last responses with their counts. A response has several lines.
    pub recent: Vec<(String, TokenUsage)>,
}

/// The tokens of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionUsage {
    /// The source that counts.
    pub source: UsageSource,
    /// The sum.
    pub tokens: TokenUsage,
    /// The positions in the session's transcripts.
    pub files: Vec<TranscriptPosition>,
}

impl SessionUsage {
    /// Replaces the position in a transcript.
    pub fn set_position(&mut self, position: TranscriptPosition) {
        self.files.retain(|file| file.path != position.path);
        self.files.push(position);
        let surplus = self.files.len().saturating_sub(MAX_FILES);
        self.files.drain(..surplus);
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokensJson {
    input: u64,
    cache_creation: u64,
    cache_read: u64,
    output: u64,
}

impl From<TokenUsage> for TokensJson {
    fn from(usage: TokenUsage) -> Self {
        Self {
            input: usage.input,
            cache_creation: usage.cache_creation,
            cache_read: usage.cache_read,
            output: usage.output,
        }
    }
}

impl From<TokensJson> for TokenUsage {
    fn from(json: TokensJson) -> Self {
        Self {
            input: json.input,
            cache_creation: json.cache_creation,
            cache_read: json.cache_read,
            output: json.output,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct FileJson {
    path: String,
    offset: u64,
    recent: Vec<(String, TokensJson)>,
}

#[derive(Serialize, Deserialize)]
struct UsageJson {
    source: UsageSource,
    tokens: TokensJson,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileJson>,
}

impl Usages<'_> {
    /// The tokens of a session.
    pub async fn of_session(&mut self, id: &str) -> Result<Option<SessionUsage>, Error> {
        let rows = self.0.rows(Query::SessionUsage, params![id]).await?;
        let text = first(Some(rows), |row| {
            row.cells("sessions").maybe_string("usage")
        })?;
        let Some(text) = text.flatten() else {
            return Ok(None);
        };
        let json: UsageJson = serde_json::from_str(&text).map_err(|error| {
            Error::refused(format!("sessions.usage of `{id}`: {error}")).caused_by(error)
        })?;
        let file = |file: FileJson| TranscriptPosition {
            path: file.path,
            offset: file.offset,
            recent: (file.recent.into_iter())
                .map(|(id, tokens)| (id, tokens.into()))
                .collect(),
        };
        Ok(Some(SessionUsage {
            source: json.source,
            tokens: json.tokens.into(),
            files: json.files.into_iter().map(file).collect(),
        }))
    }

    /// Stores the tokens of a session.
    pub fn keep(&mut self, id: &str, usage: &SessionUsage) -> Result<(), Error> {
        let file = |file: &TranscriptPosition| FileJson {
            path: file.path.clone(),
            offset: file.offset,
            recent: (file.recent.iter())
                .map(|(id, tokens)| (id.clone(), (*tokens).into()))
                .collect(),
        };
        let json = UsageJson {
            source: usage.source,
            tokens: usage.tokens.into(),
            files: usage.files.iter().map(file).collect(),
        };
        let text = serde_json::to_string(&json)
            .map_err(|error| Error::refused(error.to_string()).caused_by(error))?;
        let statement = Statement::new(Query::SessionUsageWrite, params![id, text]);
        self.0.queue(statement);
        Ok(())
    }

    /// Adds tokens to the sum of a step.
    pub fn add_to_step(&mut self, step: StepId, tokens: u64) {
        let params = params![step.as_uuid(), tokens];
        self.0.queue(Statement::new(Query::StepTokensAdd, params));
    }

    /// Adds tokens to the sum of a plan.
    pub fn add_to_plan(&mut self, plan: PlanId, tokens: u64) {
        let params = params![plan.as_uuid(), tokens];
        self.0.queue(Statement::new(Query::PlanTokensAdd, params));
    }

    /// The tokens of a plan, if a count is known.
    pub async fn of_plan(&mut self, plan: PlanId) -> Result<Option<u64>, Error> {
        let rows = self
            .0
            .rows(Query::PlanTokens, params![plan.as_uuid()])
            .await?;
        let tokens = first(Some(rows), |row| row.cells("plans").maybe_u64("tokens"))?;
        Ok(tokens.flatten())
    }

    /// The tokens of a step, if a count is known.
    pub async fn of_step(&mut self, step: StepId) -> Result<Option<u64>, Error> {
        let rows = self
            .0
            .rows(Query::StepTokens, params![step.as_uuid()])
            .await?;
        let tokens = first(Some(rows), |row| row.cells("steps").maybe_u64("tokens"))?;
        Ok(tokens.flatten())
    }

    /// The steps of a plan whose tokens are known, in order.
    pub async fn of_steps(&mut self, plan: PlanId) -> Result<Vec<(StepId, u64)>, Error> {
        let rows = self
            .0
            .rows(Query::StepTokensAll, params![plan.as_uuid()])
            .await?;
        let step = |row: crate::value::Row| {
            let mut cells = row.cells("steps");
            Ok((StepId::new(cells.id("step_id")?), cells.u64("tokens")?))
        };
        rows.into_iter().map(step).collect()
    }
}
