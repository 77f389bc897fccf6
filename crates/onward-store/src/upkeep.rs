//! Maintenance: due plans, the request log, and integrity checks.

use std::sync::Arc;

use onward_core::{PlanId, Timestamp};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::error::Error;
use crate::facts::first;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Value, params};

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

/// A plan that the sweep must check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePlan {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The plan id.
    pub plan: PlanId,
    /// Due time.
    pub at: Timestamp,
}

impl Tx {
    /// Next due time of the sweep, over all tenants.
    pub async fn first_due(&mut self) -> Result<Option<Timestamp>, Error> {
        let question = Statement::without_tenant(Query::DueFirst, params![]);
        let rows = self.ask(vec![question]).await?.pop();
        Ok(first(rows, |row| row.cells("due").maybe_at("at"))?.flatten())
    }

    /// Plans of all tenants that are due by this instant, longest due first.
    pub async fn due_until(&mut self, at: Timestamp, limit: u32) -> Result<Vec<DuePlan>, Error> {
        let question = Statement::without_tenant(Query::DueUntil, params![at, limit]);
        let rows = self.ask(vec![question]).await?.pop().unwrap_or_default();
        rows.into_iter()
            .map(|row| {
                let mut cells = row.cells("due");
                Ok(DuePlan {
                    tenant: cells.text("tenant_id")?,
                    plan: PlanId::new(cells.id("plan_id")?),
                    at: cells.at("at")?,
                })
            })
            .collect()
    }

    /// Adds a call to the log.
    pub fn log_call(&mut self, call: &WrittenCall) {
        self.queue(self.statement(Query::ToolCallInsert, call.0.clone()));
    }

    /// The latest calls, newest first.
    pub async fn calls(&mut self, limit: u32) -> Result<Vec<ToolCall>, Error> {
        let rows = self.rows(Query::ToolCallsLatest, params![limit]).await?;
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

    /// Deletes calls from before this instant; returns their number.
    pub async fn forget_calls(&mut self, before: Timestamp) -> Result<u64, Error> {
        let rows = self
            .rows(Query::ToolCallsCountBefore, params![before])
            .await?;
        self.queue(self.statement(Query::ToolCallsDeleteBefore, params![before]));
        Ok(first(Some(rows), |row| row.cells("tool_calls").u64("calls"))?.unwrap_or(0))
    }

    /// Number of chunks, and inconsistencies of the search index with their counts.
    pub async fn index_faults(&mut self) -> Result<(u64, Vec<(Arc<str>, u64)>), Error> {
        let (mut chunks, mut faults) = (0, Vec::new());
        for row in self.rows(Query::IndexFaults, params![]).await? {
            let mut cells = row.cells("chunks");
            let (what, many) = (cells.text("what")?, cells.u64("many")?);
            match &*what {
                "chunks" => chunks = many,
                _ if many > 0 => faults.push((what, many)),
                _ => {}
            }
        }
        Ok((chunks, faults))
    }

    /// Integrity errors of the database file; empty if it is intact.
    pub async fn file_faults(&mut self) -> Result<Vec<String>, Error> {
        let questions = [Query::QuickCheckBegin, Query::QuickCheck];
        let questions = questions.map(|name| Statement::without_tenant(name, params![]));
        let rows = self.ask(questions.into()).await?.pop().unwrap_or_default();
        let mut faults = Vec::new();
        for row in rows {
            let line = row.cells("(file)").string("quick_check")?;
            if line != "ok" {
                faults.push(line);
            }
        }
        Ok(faults)
    }
}
