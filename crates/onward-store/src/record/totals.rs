//! Totals over all tenants, for the operator of the server.

use std::sync::Arc;

use onward_core::Timestamp;
use onward_core::attention::Facts;
use onward_core::id::PlanId;
use onward_core::plan::{PlanFailure, PlanHead, PlanState, PlanStatus};
use onward_core::policy::{OnDependencyFailure, OnStall};
use onward_core::progress::Counts;
use onward_core::routing::Routing;
use uuid::Uuid;

use crate::codec::budget::BudgetStateJson;
use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, Value, first, params};

/// Plans that do not differ in what their attention depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanGroup {
    /// A head with the same attention as those of the plans.
    pub head: PlanHead,
    /// Facts with the same attention as those of the plans.
    pub facts: Facts,
    /// Whether the plans are archived.
    pub archived: bool,
    /// Number of plans.
    pub plans: u64,
}

/// The times before which data expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutoffs {
    /// For ended plans.
    pub plans: Timestamp,
    /// For the request log, extractions and tasks.
    pub tool_calls: Timestamp,
    /// For agent sessions.
    pub sessions: Timestamp,
}

/// Totals over all tenants.
pub struct Totals<'t>(pub &'t mut Tx);

impl Totals<'_> {
    /// The plans of all tenants, grouped by the facts for their attention at `now`. No agent has
    /// worked since `idle_before` on an idle plan; captured plans without an action since
    /// `archived_before` are archived.
    pub async fn plan_groups(
        &mut self,
        now: Timestamp,
        idle_before: Timestamp,
        archived_before: Timestamp,
    ) -> Result<Vec<PlanGroup>, Error> {
        let params = params![now, idle_before, archived_before];
        let rows = self.rows(Query::PlanGroups, params).await?;
        rows.into_iter().map(|row| group(row, now)).collect()
    }

    /// The bytes of all tables and indexes.
    pub async fn bytes(&mut self) -> Result<u64, Error> {
        let rows = self.rows(Query::TotalBytes, params![]).await?;
        let bytes = first(Some(rows), |row| row.cells("(totals)").u64("bytes"))?;
        Ok(bytes.unwrap_or(0))
    }

    /// The tenants with expired data.
    pub async fn tenants_expired(&mut self, before: Cutoffs) -> Result<Vec<Arc<str>>, Error> {
        let params = params![before.plans, before.tool_calls, before.sessions];
        let rows = self.rows(Query::TenantsExpired, params).await?;
        let rows = rows.into_iter();
        rows.map(|row| row.cells("tenants").text("tenant_id"))
            .collect()
    }

    async fn rows(&mut self, query: Query, params: Vec<Value>) -> Result<Vec<Row>, Error> {
        let question = Statement::without_tenant(query, params);
        Ok(self
            .0
            .query(vec![question])
            .await?
            .pop()
            .unwrap_or_default())
    }
}

fn group(row: Row, now: Timestamp) -> Result<PlanGroup, Error> {
    let mut cells = row.cells("plans");
    let status = cells.word("status")?;
    let failure = cells.maybe_string("failure_kind")?;
    let failure = failure.and_then(|kind| PlanFailure::from_kind(&kind, None));
    let state = match status {
        PlanStatus::Planning => PlanState::Planning,
        PlanStatus::Executing => PlanState::Executing,
        PlanStatus::AwaitingReview => PlanState::AwaitingReview {
            reviews: Vec::new(),
        },
        PlanStatus::Stalled => PlanState::Stalled { marked_at: now },
        PlanStatus::Completed => PlanState::Completed { ended_at: now },
        PlanStatus::Failed => PlanState::Failed {
            reason: failure.unwrap_or(PlanFailure::Branch(None)),
            ended_at: now,
        },
    };
    let failed = cells.u32("failed")?;
    let origin = cells.word("origin")?;
    let archived = cells.flag("archived")?;
    let budget = cells.maybe_json::<BudgetStateJson>("budget")?;
    let counts = Counts {
        failed,
        pending: cells.u32("pending")?,
        in_progress: cells.u32("in_progress")?,
        awaiting_input: cells.u32("awaiting_input")?,
        ..Counts::default()
    };
    let worked_at = if cells.flag("idle")? {
        Timestamp::MIN
    } else {
        now
    };
    let facts = Facts {
        stuck_since: cells.flag("stuck")?.then_some(now),
        orphaned_at: cells.flag("orphaned")?.then_some(now),
        asked_at: None,
        has_ready_step: cells.flag("ready")?,
        created_at: now,
        worked_at,
    };
    let head = PlanHead {
        id: PlanId::new(Uuid::nil()),
        origin,
        state,
        counts,
        seq: 0,
        stall_threshold: None,
        on_stall: OnStall::default(),
        on_dependency_failure: OnDependencyFailure::default(),
        last_session: None,
        routing: Routing::default(),
        budget: budget.map(Into::into),
    };
    Ok(PlanGroup {
        head,
        facts,
        archived,
        plans: cells.u64("plans")?,
    })
}
