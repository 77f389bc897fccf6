//! Lists of plans by status and by full-text search, and plan counts.
//!
//! One index has the order of the lists and another one the words, so only displayed plans are
//! read. The core splits a plan's text into words.

use onward_core::attention::Facts;
use onward_core::{PlanId, PlanStatus, Timestamp};
use uuid::Uuid;

use crate::backend::Syntax;
use crate::error::Error;
use crate::query::Query;
use crate::row::plan::{self, OpenPlan, Sheet};
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, Value, first, params};

/// End of a page of plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanCursor {
    /// Last action on the last plan of the page.
    pub acted_at: Timestamp,
    /// Id of that plan.
    pub plan: PlanId,
}

/// Number of plans in a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanCount {
    /// The status.
    pub status: PlanStatus,
    /// Number of plans.
    pub plans: u64,
    /// Total number of their steps.
    pub steps: u64,
}

/// A plan in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The plan.
    pub sheet: Sheet,
    /// The facts that determine its state for users.
    pub facts: Facts,
}

/// Number of ended plans with the same outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeCount {
    /// `completed` or `failed`.
    pub status: PlanStatus,
    /// Whether at least one step failed.
    pub has_failures: bool,
    /// Whether a user cancelled the plan.
    pub cancelled: bool,
    /// Number of plans.
    pub plans: u64,
}

/// Lists of plans.
pub struct PlanLists<'t>(pub &'t mut Tx);

impl PlanLists<'_> {
    /// Plans in these statuses, of a project if given, after the cursor, most recent change first.
    /// Without open captured plans that have no action since `archived_before`.
    pub async fn list_plans(
        &mut self,
        statuses: &[PlanStatus],
        project: Option<&str>,
        behind: Option<PlanCursor>,
        (now, archived_before): (Timestamp, Timestamp),
        limit: u32,
    ) -> Result<Vec<Listed>, Error> {
        let (at, id) = place(behind);
        let query = |status: &PlanStatus| {
            let archived_before = if status.is_terminal() {
                Timestamp::MIN
            } else {
                archived_before
            };
            let mut params = params![now, at, id, limit, status.as_str(), archived_before];
            let query = match project {
                None => Query::PlansIn,
                Some(key) => {
                    params.extend(params![key]);
                    Query::PlansInProject
                }
            };
            Statement::new(query, params)
        };
        let queries = statuses.iter().map(query).collect();
        let rows = self.0.query(queries).await?.into_iter().flatten();
        let plans: Result<Vec<Listed>, Error> = rows.map(listed).collect();
        let mut plans = plans?;
        plans.sort_by(|one, other| {
            let key = |listed: &Listed| (listed.sheet.acted_at, listed.sheet.head.id);
            key(other).cmp(&key(one))
        });
        plans.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(plans)
    }

    /// Open captured plans after the cursor, most recent change first.
    pub async fn captured_plans(
        &mut self,
        behind: PlanCursor,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Listed>, Error> {
        let params = params![now, behind.acted_at, behind.plan.as_uuid(), limit];
        let rows = self.0.rows(Query::PlansArchived, params).await?;
        rows.into_iter().map(listed).collect()
    }

    /// Number of open captured plans without an action since this time.
    pub async fn count_archived(&mut self, archived_before: Timestamp) -> Result<u64, Error> {
        let params = params![archived_before];
        let rows = self.0.rows(Query::PlansArchivedCount, params).await?;
        let count = first(Some(rows), |row| row.cells("plans").u64("plans"))?;
        Ok(count.unwrap_or(0))
    }

    /// Plans in these statuses after the cursor whose name and question contain all these words,
    /// most recent change first. Reads all plans that contain the words, so the caller must know
    /// that there are few.
    pub async fn plans_with(
        &mut self,
        words: &[String],
        statuses: &[PlanStatus],
        behind: Option<PlanCursor>,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Listed>, Error> {
        let (at, id) = place(behind);
        let statuses: Vec<&str> = statuses.iter().map(|status| status.as_str()).collect();
        let (statuses, prefixes) = (statuses.join(" "), self.beginnings(words));
        let params = params![at, id, limit, statuses, prefixes];
        let found = self.0.rows(Query::PlansFound, params).await?;
        let query = |row: Row| {
            let id = row.cells("plan_words").id("plan_id")?;
            Ok(Statement::new(Query::PlanListed, params![now, id]))
        };
        let queries: Result<_, Error> = found.into_iter().map(query).collect();
        let rows = self.0.query(queries?).await?.into_iter().flatten();
        rows.map(listed).collect()
    }

    /// Number of plans that contain all these words, counted up to `most`.
    pub async fn count_plans_with(&mut self, words: &[String], most: u32) -> Result<u64, Error> {
        let prefixes = self.beginnings(words);
        let rows = self
            .0
            .rows(Query::PlansWithWords, params![prefixes, most])
            .await?;
        let count = first(Some(rows), |row| row.cells("plan_words").u64("plans"))?;
        Ok(count.unwrap_or(0))
    }

    /// The words as a full-text query for this database: all of them, each as a prefix. A word
    /// contains only letters, digits and marks, so it cannot contain a quote.
    fn beginnings(&self, words: &[String]) -> String {
        let Syntax {
            quote, prefix, and, ..
        } = self.0.syntax();
        let word = |word: &String| format!("{quote}{word}{quote}{prefix}");
        words.iter().map(word).collect::<Vec<_>>().join(and)
    }

    /// Number of plans in each status.
    pub async fn count_plans(&mut self) -> Result<Vec<PlanCount>, Error> {
        let rows = self.0.rows(Query::PlansByStatus, params![]).await?;
        rows.into_iter()
            .map(|row| {
                let mut cells = row.cells("plans");
                Ok(PlanCount {
                    status: cells.word("status")?,
                    plans: cells.u64("plans")?,
                    steps: cells.u64("steps")?,
                })
            })
            .collect()
    }

    /// A plan with the facts that determine its state for users.
    pub async fn listed(&mut self, plan: PlanId, now: Timestamp) -> Result<Option<Listed>, Error> {
        let params = params![now, plan.as_uuid()];
        let rows = self.0.rows(Query::PlanListed, params).await?;
        first(Some(rows), listed)
    }

    /// Open plans with the facts that determine their state for users, the longest without an
    /// action first; at most `limit` per status. Without captured plans that have no action since
    /// `archived_before`.
    pub async fn open_plans(
        &mut self,
        now: Timestamp,
        archived_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<OpenPlan>, Error> {
        let params = |status: PlanStatus| params![now, status.as_str(), limit, archived_before];
        self.open_plans_by(Query::PlansOpen, params).await
    }

    /// The open plans that can be stuck: those with a step past its limit or with a budget.
    pub async fn maybe_stuck_plans(
        &mut self,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<OpenPlan>, Error> {
        let params = |status: PlanStatus| params![now, status.as_str(), limit];
        self.open_plans_by(Query::PlansMaybeStuck, params).await
    }

    async fn open_plans_by(
        &mut self,
        text: Query,
        params: impl Fn(PlanStatus) -> Vec<Value>,
    ) -> Result<Vec<OpenPlan>, Error> {
        let open = PlanStatus::ALL
            .into_iter()
            .filter(|status| !status.is_terminal());
        let query = |status: PlanStatus| Statement::new(text, params(status));
        let rows = self.0.query(open.map(query).collect()).await?;
        rows.into_iter().flatten().map(plan::open_plan).collect()
    }

    /// Number of ended plans by outcome.
    pub async fn count_outcomes(&mut self) -> Result<Vec<OutcomeCount>, Error> {
        let rows = self.0.rows(Query::PlansByOutcome, params![]).await?;
        rows.into_iter()
            .map(|row| {
                let mut cells = row.cells("plans");
                Ok(OutcomeCount {
                    status: cells.word("status")?,
                    has_failures: cells.u64("failed")? > 0,
                    cancelled: cells.maybe_text("failure_kind")?.as_deref() == Some("abandoned"),
                    plans: cells.u64("plans")?,
                })
            })
            .collect()
    }

    /// Plans that ended before this instant, oldest first.
    pub async fn plans_ended_before(
        &mut self,
        at: Timestamp,
        limit: u32,
    ) -> Result<Vec<PlanId>, Error> {
        let over = PlanStatus::ALL
            .into_iter()
            .filter(|status| status.is_terminal());
        let query = |status: PlanStatus| {
            Statement::new(Query::PlansEndedBefore, params![at, limit, status.as_str()])
        };
        let queries = over.map(query).collect();
        let read = |row: Row| {
            let mut cells = row.cells("plans");
            let id = PlanId::new(cells.id("plan_id")?);
            Ok((cells.at("updated_at")?, id))
        };
        let rows = self.0.query(queries).await?.into_iter().flatten();
        let plans: Result<Vec<(Timestamp, PlanId)>, Error> = rows.map(read).collect();
        let mut plans = plans?;
        plans.sort();
        plans.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(plans.into_iter().map(|(_, id)| id).collect())
    }
}

/// Start of a page.
fn place(behind: Option<PlanCursor>) -> (Timestamp, Uuid) {
    behind.map_or((Timestamp::MAX, Uuid::max()), |cursor| {
        (cursor.acted_at, *cursor.plan.as_uuid())
    })
}

fn listed(row: Row) -> Result<Listed, Error> {
    let (sheet, facts) = plan::sheet_and_facts(row)?;
    Ok(Listed { sheet, facts })
}
