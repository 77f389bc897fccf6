//! The log of MCP requests.

use std::ops::RangeInclusive;

use onward_core::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Value, first, params};

/// A tool call in the request log.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Entry id.
    pub id: Uuid,
    /// Time of the request.
    pub at: Timestamp,
    /// Tool name.
    pub tool: String,
    /// Who called it.
    pub actor: String,
    /// Session, if the agent named one.
    pub session: Option<String>,
    /// The request, with long texts truncated.
    pub request: Json,
    /// The response, with long texts truncated.
    pub response: Json,
    /// Duration.
    pub duration_us: u64,
    /// Whether it was rejected or failed.
    pub is_error: bool,
}

/// A tool call as statement parameters, created before the transaction begins, because other
/// callers wait for the transaction.
#[derive(Debug, Clone)]
pub struct WrittenCall(Vec<Value>);

impl ToolCall {
    /// The parameters of `tool_call_insert`.
    pub fn written(&self) -> WrittenCall {
        WrittenCall(params![
            self.id,
            self.at,
            &self.tool,
            &self.actor,
            self.session.as_deref(),
            &self.request,
            &self.response,
            self.duration_us,
            self.is_error,
        ])
    }
}

/// The log of MCP requests.
pub struct RequestLog<'t>(pub &'t mut Tx);

impl RequestLog<'_> {
    /// Adds a call to the log.
    pub fn log_call(&mut self, call: &WrittenCall) {
        self.0
            .queue(Statement::new(Query::ToolCallInsert, call.0.clone()));
    }

    /// The latest calls between two instants, newest first.
    pub async fn calls(
        &mut self,
        times: RangeInclusive<Timestamp>,
        limit: u32,
    ) -> Result<Vec<ToolCall>, Error> {
        let params = params![*times.start(), *times.end(), limit];
        let rows = self.0.rows(Query::ToolCallsLatest, params).await?;
        rows.into_iter()
            .map(|row| {
                let mut cells = row.cells("tool_calls");
                Ok(ToolCall {
                    id: cells.id("call_id")?,
                    at: cells.at("at")?,
                    tool: cells.string("tool")?,
                    actor: cells.string("actor")?,
                    session: cells.maybe_string("session")?,
                    request: cells.json("request")?,
                    response: cells.json("response")?,
                    duration_us: cells.u64("duration_us")?,
                    is_error: cells.flag("is_error")?,
                })
            })
            .collect()
    }

    /// Approximate size of the log in bytes. On PostgreSQL, it includes the calls of all tenants.
    pub async fn size(&mut self) -> Result<u64, Error> {
        let rows = self.0.rows(Query::ToolCallsBytes, params![]).await?;
        let bytes = first(Some(rows), |row| row.cells("tool_calls").u64("bytes"))?;
        Ok(bytes.unwrap_or(0))
    }

    /// Deletes the oldest calls from before this instant, at most `limit`; returns their number.
    pub async fn forget_calls(&mut self, before: Timestamp, limit: u32) -> Result<u64, Error> {
        let rows = self
            .0
            .rows(Query::ToolCallsCountBefore, params![before, limit])
            .await?;
        let calls = first(Some(rows), |row| row.cells("tool_calls").u64("calls"))?.unwrap_or(0);
        if calls > 0 {
            let params = params![before, limit];
            self.0
                .queue(Statement::new(Query::ToolCallsDeleteBefore, params));
        }
        Ok(calls)
    }
}
