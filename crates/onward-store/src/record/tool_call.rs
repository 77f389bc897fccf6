//! The log of agents' tool calls, and the processes that run them. The caller has already decided
//! each transition.
//!
//! To change a call, the caller locks its session, and finally calls [`Tx::keep_calls_due`], which
//! rebuilds the table of due calls from the open calls of the session. There are few of them.

use std::sync::Arc;

use onward_core::Timestamp;
use onward_core::call::{CallPolicy, CallStatus, Owner};

use crate::error::Error;
use crate::query::Query;
use crate::row::call::{self, CallKey, CallRecord, of_call, of_key, of_state};
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{first, params};

/// Maximum number of calls with the same id that are read.
const SAME_ID: u32 = 64;

/// A session of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DueSession {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The session id.
    pub session: String,
}

/// Tool calls of agents.
pub struct ToolCalls<'t>(pub &'t mut Tx);

impl ToolCalls<'_> {
    /// Position of the last call of a turn; 0 if it has none.
    pub async fn last_position(
        &mut self,
        session: &str,
        agent: &str,
        turn: u32,
    ) -> Result<u32, Error> {
        let rows = self
            .0
            .rows(Query::CallLastPosition, params![session, agent, turn])
            .await?;
        let last = first(Some(rows), |row| row.cells("session_calls").u32("position"))?;
        Ok(last.unwrap_or(0))
    }

    /// Adds a call to the log.
    pub fn add_call(&mut self, record: &CallRecord, policy: CallPolicy) {
        let row = of_call(record, policy);
        self.0
            .queue(Statement::new(Query::CallInsert, row).expecting(1));
    }

    /// Updates the state of a call.
    pub fn keep_call(&mut self, record: &CallRecord, policy: CallPolicy) {
        let mut row = of_key(&record.key);
        row.extend(params![record.status().as_str()]);
        row.extend(of_state(record, policy));
        self.0
            .queue(Statement::new(Query::CallUpdate, row).expecting(1));
    }

    /// Rebuilds the due times and owners of the open calls of a session.
    pub fn keep_calls_due(&mut self, session: &str) {
        for name in [Query::DueCallsClear, Query::DueCallsFill] {
            self.0.queue(Statement::new(name, params![session]));
        }
    }

    /// Postpones the calls of a session that are due by now.
    pub fn postpone_calls(&mut self, session: &str, until: Timestamp, now: Timestamp) {
        self.0.queue(Statement::new(
            Query::DueCallsPutOff,
            params![session, until, now],
        ));
    }

    /// A call by its key.
    pub async fn call(&mut self, key: &CallKey) -> Result<Option<CallRecord>, Error> {
        let rows = self.0.rows(Query::Call, of_key(key)).await?;
        first(Some(rows), call::call)
    }

    /// Open calls of a session, in the order in which the model requested them.
    pub async fn open_calls(&mut self, session: &str) -> Result<Vec<CallRecord>, Error> {
        let rows = self.0.rows(Query::CallsOpen, params![session]).await?;
        rows.into_iter().map(call::call).collect()
    }

    /// Calls of an agent with this id, latest turn first.
    pub async fn calls_by_id(
        &mut self,
        session: &str,
        agent: &str,
        id: &str,
    ) -> Result<Vec<CallRecord>, Error> {
        let rows = self
            .0
            .rows(Query::CallsById, params![session, agent, id, SAME_ID])
            .await?;
        rows.into_iter().map(call::call).collect()
    }

    /// The latest interrupted call of an agent's tool with this input.
    pub async fn interrupted_call_by_input(
        &mut self,
        session: &str,
        agent: &str,
        tool: &str,
        digest: &str,
    ) -> Result<Option<CallRecord>, Error> {
        let input = params![session, agent, tool, digest];
        let rows = self.0.rows(Query::CallsInterruptedByInput, input).await?;
        first(Some(rows), call::call)
    }

    /// Interrupted calls of a session of which its agent was not notified.
    pub async fn unreported(
        &mut self,
        session: &str,
        limit: u32,
    ) -> Result<Vec<CallRecord>, Error> {
        let rows = self
            .0
            .rows(Query::CallsUnreported, params![session, limit])
            .await?;
        rows.into_iter().map(call::call).collect()
    }

    /// Records that the agent was notified of all of them.
    pub fn set_reported(&mut self, session: &str) {
        self.0
            .queue(Statement::new(Query::CallsSetReported, params![session]));
    }

    /// The latest calls of a session, in the order in which the model requested them.
    pub async fn calls_of_session(
        &mut self,
        session: &str,
        limit: u32,
    ) -> Result<Vec<CallRecord>, Error> {
        let rows = self
            .0
            .rows(Query::CallsLatest, params![session, limit])
            .await?;
        rows.into_iter().map(call::call).collect()
    }

    /// Number of calls of a session in each status.
    pub async fn count_calls(&mut self, session: &str) -> Result<Vec<(CallStatus, u64)>, Error> {
        let rows = self.0.rows(Query::CallsCount, params![session]).await?;
        let read = rows.into_iter().map(|row| {
            let mut cells = row.cells("session_calls");
            Ok((cells.word("status")?, cells.u64("calls")?))
        });
        read.collect()
    }

    /// Sessions of all tenants with calls that must be checked by this instant.
    pub async fn calls_due_until(
        &mut self,
        at: Timestamp,
        limit: u32,
    ) -> Result<Vec<DueSession>, Error> {
        let question =
            Statement::without_tenant(Query::DueCallsUntil, params![at, limit, self.0.node()]);
        let rows = self
            .0
            .query(vec![question])
            .await?
            .pop()
            .unwrap_or_default();
        let read = rows.into_iter().map(|row| {
            let mut cells = row.cells("due_calls");
            Ok(DueSession {
                tenant: cells.text("tenant_id")?,
                session: cells.string("session_id")?,
            })
        });
        read.collect()
    }

    /// The processes on a host that run calls, with their sessions and tenants.
    pub async fn owners_on(&mut self, host: &str) -> Result<Vec<(DueSession, Owner)>, Error> {
        let question =
            Statement::without_tenant(Query::DueCallsOfHost, params![host, self.0.node()]);
        let rows = self
            .0
            .query(vec![question])
            .await?
            .pop()
            .unwrap_or_default();
        let read = rows.into_iter().map(|row| {
            let mut cells = row.cells("due_calls");
            let due = DueSession {
                tenant: cells.text("tenant_id")?,
                session: cells.string("session_id")?,
            };
            let host = cells.string("host")?;
            let boot = Some(cells.string("boot")?).filter(|boot| !boot.is_empty());
            let process = cells.u32("process")?;
            let process_started = u64::try_from(cells.int("started")?).ok();
            let owner = Owner {
                host,
                boot,
                process,
                process_started,
            };
            Ok((due, owner))
        });
        read.collect()
    }
}
