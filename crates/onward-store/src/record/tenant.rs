//! Tenants and the tenant log.

use std::str::FromStr;
use std::sync::Arc;

use onward_core::Timestamp;
use onward_core::policy::{UnknownVariant, parse_variant};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, first, params};

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Name, which is also the id.
    pub name: Arc<str>,
    /// Whether agents may decide reviews.
    pub agents_decide_reviews: bool,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// A reason why writes may block although the server responds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The kind.
    pub kind: ObstacleKind,
    /// The table, or the names of the standbys.
    pub subject: String,
}

/// The kind of an [`Obstacle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObstacleKind {
    /// Another session has locked the table.
    TableLocked,
    /// None of the synchronous standbys is connected.
    StandbyMissing,
}

impl ObstacleKind {
    const ALL: [Self; 2] = [Self::TableLocked, Self::StandbyMissing];

    /// The value in the database and in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TableLocked => "table_locked",
            Self::StandbyMissing => "standby_missing",
        }
    }
}

impl FromStr for ObstacleKind {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// An entry of the tenant log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// Entry id.
    pub id: Uuid,
    /// Time of the action.
    pub at: Timestamp,
    /// Who performed it.
    pub actor: String,
    /// The action.
    pub action: String,
    /// Details of the action: a JSON object.
    pub details: Json,
}

fn clock(row: Row) -> Result<Option<Timestamp>, Error> {
    row.cells("(clock)").maybe_at("at")
}

/// Tenants and the tenant log.
pub struct Tenants<'t>(pub &'t mut Tx);

impl Tenants<'_> {
    /// The tenant of this transaction, if it exists.
    pub async fn own_tenant(&mut self) -> Result<Option<Tenant>, Error> {
        let rows = self.0.rows(Query::Tenant, params![]).await?;
        first(Some(rows), tenant)
    }

    /// The tenant of this transaction and the time on the clock of the database, if it has one, in
    /// one round trip.
    pub async fn own_tenant_and_clock(
        &mut self,
    ) -> Result<(Option<Tenant>, Option<Timestamp>), Error> {
        let questions = vec![
            Statement::new(Query::Tenant, params![]),
            Statement::without_tenant(Query::Clock, params![]),
        ];
        let mut answers = self.0.query(questions).await?;
        let at = first(answers.pop(), clock)?.flatten();
        Ok((first(answers.pop(), tenant)?, at))
    }

    /// The time on the clock of the database, if it has one.
    pub async fn clock(&mut self) -> Result<Option<Timestamp>, Error> {
        let question = Statement::without_tenant(Query::Clock, params![]);
        let rows = self.0.query(vec![question]).await?.pop();
        Ok(first(rows, clock)?.flatten())
    }

    /// Creates the tenant of this transaction, unless it exists.
    pub fn make_tenant(&mut self, agents_decide_reviews: bool, at: Timestamp) {
        let params = params![agents_decide_reviews, at];
        self.0.queue(Statement::new(Query::TenantInsert, params));
    }

    /// Changes whether agents decide reviews in the tenant of this transaction.
    pub fn change_tenant(&mut self, agents_decide_reviews: bool) {
        let statement = Statement::new(Query::TenantUpdate, params![agents_decide_reviews]);
        self.0.queue(statement.expecting(1));
    }

    /// Records a check whether the database accepts writes, in the tenant of this transaction. Waits
    /// while a table of plans is locked.
    pub fn record_check(&mut self, at: Timestamp) {
        let statement = Statement::new(Query::TenantChecked, params![at]);
        self.0.queue(statement.expecting(1));
        for query in [
            Query::CheckPlans,
            Query::CheckSteps,
            Query::CheckEvents,
            Query::CheckDue,
        ] {
            let statement = Statement::new(query, params![uuid::Uuid::nil()]);
            self.0.queue(statement);
        }
    }

    /// The obstacles to writes.
    pub async fn obstacles(&mut self) -> Result<Vec<Obstacle>, Error> {
        let question = Statement::without_tenant(Query::Obstacles, params![]);
        let rows = self
            .0
            .query(vec![question])
            .await?
            .pop()
            .unwrap_or_default();
        let rows = rows.into_iter().map(|row| {
            let mut cells = row.cells("(obstacles)");
            Ok(Obstacle {
                kind: cells.word("obstacle")?,
                subject: cells.string("detail")?,
            })
        });
        rows.collect()
    }

    /// All tenants, for the operator of the server.
    pub async fn all_tenants(&mut self) -> Result<Vec<Tenant>, Error> {
        let question = Statement::without_tenant(Query::TenantsAll, params![self.0.node()]);
        let rows = self
            .0
            .query(vec![question])
            .await?
            .pop()
            .unwrap_or_default();
        rows.into_iter().map(tenant).collect()
    }

    /// Adds an entry to the tenant log.
    pub fn log_line(&mut self, line: &LogLine) {
        let params = params![line.id, line.at, &line.actor, &line.action, &line.details];
        self.0.queue(Statement::new(Query::TenantLogInsert, params));
    }

    /// The bytes of all texts of the tenant.
    pub async fn stored_bytes(&mut self) -> Result<u64, Error> {
        let rows = self.0.rows(Query::TenantBytes, params![]).await?;
        let bytes = first(Some(rows), |row| row.cells("tenants").u64("bytes"))?;
        Ok(bytes.unwrap_or(0))
    }

    /// The latest entries of the tenant log, newest first.
    pub async fn log_lines(&mut self, limit: u32) -> Result<Vec<LogLine>, Error> {
        let rows = self.0.rows(Query::TenantLogLatest, params![limit]).await?;
        rows.into_iter()
            .map(|row| {
                let mut cells = row.cells("tenant_log");
                Ok(LogLine {
                    id: cells.id("entry_id")?,
                    at: cells.at("at")?,
                    actor: cells.string("actor")?,
                    action: cells.string("action")?,
                    details: cells.json("details")?,
                })
            })
            .collect()
    }
}

fn tenant(row: Row) -> Result<Tenant, Error> {
    let mut cells = row.cells("tenants");
    Ok(Tenant {
        name: cells.text("tenant_id")?,
        agents_decide_reviews: cells.flag("agents_decide_reviews")?,
        created_at: cells.at("created_at")?,
    })
}
