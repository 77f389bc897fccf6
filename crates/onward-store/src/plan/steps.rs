//! Steps in lists: one line each, a page at a time, found by an index.

use std::collections::BTreeMap;

use onward_core::id::{ReviewId, SessionId};
use onward_core::{PlanId, Step, StepId, StepStatus, Timestamp};

use crate::error::Error;
use crate::query::Query;
use crate::row::step;
use crate::row::step_line::{self, StepLine};
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{first, params};

/// Selection of steps of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All steps.
    All,
    /// Steps in one status.
    In(StepStatus),
    /// Completed and skipped steps.
    Done,
    /// Steps past their own stall threshold at this instant.
    StalledAt(Timestamp),
}

/// The state of a step, without its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepMark {
    /// Step id.
    pub id: StepId,
    /// Position in the plan.
    pub order: u32,
    /// Status.
    pub status: StepStatus,
    /// When it exceeds its stall threshold, if it is in progress.
    pub stalls_at: Option<Timestamp>,
    /// Whether another step redoes it.
    pub is_superseded: bool,
}

/// Lists of steps.
pub struct Steps<'t>(pub &'t mut Tx);

impl Steps<'_> {
    /// The steps in progress, lowest order first.
    pub async fn in_progress(&mut self, plan: PlanId) -> Result<Vec<Step>, Error> {
        let rows = self
            .0
            .rows(Query::StepsInProgress, params![plan.as_uuid()])
            .await?;
        step::steps(rows)
    }

    /// Lines of steps after an order, in order.
    pub async fn step_lines(
        &mut self,
        plan: PlanId,
        which: Which,
        behind: u32,
        limit: u32,
    ) -> Result<Vec<StepLine>, Error> {
        let plan = plan.as_uuid();
        let statement = match which {
            Which::All => Statement::new(Query::StepLines, params![plan, behind, limit]),
            // Steps in these two statuses are few, and have separate indexes.
            Which::In(StepStatus::InProgress) => {
                Statement::new(Query::StepLinesInProgress, params![plan, behind, limit])
            }
            Which::In(StepStatus::AwaitingInput) => {
                Statement::new(Query::StepLinesAwaitingInput, params![plan, behind, limit])
            }
            Which::In(status) => Statement::new(
                Query::StepLinesOfStatus,
                params![plan, behind, limit, status.as_str()],
            ),
            Which::Done => Statement::new(Query::StepLinesDone, params![plan, behind, limit]),
            Which::StalledAt(now) => {
                Statement::new(Query::StepLinesStalled, params![plan, now, limit])
            }
        };
        let rows = self
            .0
            .query(vec![statement])
            .await?
            .pop()
            .unwrap_or_default();
        rows.into_iter().map(step_line::line).collect()
    }

    /// The step of a plan that was completed last.
    pub async fn last_completed(&mut self, plan: PlanId) -> Result<Option<StepLine>, Error> {
        let params = params![plan.as_uuid()];
        let rows = self.0.rows(Query::StepLineLastCompleted, params).await?;
        first(Some(rows), step_line::line)
    }

    /// Id, order and status of every step, and when it exceeds its stall threshold.
    pub async fn states(&mut self, plan: PlanId) -> Result<Vec<StepMark>, Error> {
        let params = params![plan.as_uuid()];
        let rows = self.0.rows(Query::StepStates, params).await?;
        let mark = |row: crate::value::Row| {
            let mut cells = row.cells("steps");
            Ok(StepMark {
                id: StepId::new(cells.id("step_id")?),
                order: cells.u32("step_order")?,
                status: cells.word("status")?,
                stalls_at: cells.maybe_at("stalls_at")?,
                is_superseded: cells.maybe_id("superseded_by")?.is_some(),
            })
        };
        rows.into_iter().map(mark).collect()
    }

    /// Lines of the given steps that exist, in order.
    pub async fn lines_of(&mut self, ids: &[StepId]) -> Result<Vec<StepLine>, Error> {
        let questions = ids
            .iter()
            .map(|id| Statement::new(Query::StepLine, params![id.as_uuid()]))
            .collect();
        let rows = self.0.query(questions).await?.into_iter().flatten();
        let lines: Result<Vec<StepLine>, Error> = rows.map(step_line::line).collect();
        let mut lines = lines?;
        lines.sort_by_key(|line| line.order);
        Ok(lines)
    }

    /// Lines of the steps in progress that a session has claimed, in all plans.
    pub async fn held_by(&mut self, session: &str, limit: u32) -> Result<Vec<StepLine>, Error> {
        let params = params![session, limit];
        let rows = self.0.rows(Query::StepLinesOfSession, params).await?;
        rows.into_iter().map(step_line::line).collect()
    }

    /// The steps that a session has claimed, in progress or under review, in all plans.
    pub async fn claimed_by(&mut self, session: &str, limit: u32) -> Result<Vec<StepId>, Error> {
        let params = params![session, limit];
        let rows = self.0.rows(Query::StepsClaimed, params).await?;
        let ids = rows.into_iter().map(|row| row.cells("steps").id("step_id"));
        ids.map(|id| Ok(StepId::new(id?))).collect()
    }

    /// For each of these lines with dependencies, the orders of the steps it depends on. The lines
    /// are sorted by order.
    pub async fn dependency_orders(
        &mut self,
        plan: PlanId,
        lines: &[StepLine],
    ) -> Result<BTreeMap<StepId, Vec<u32>>, Error> {
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
            return Ok(BTreeMap::new());
        };
        let params = params![plan.as_uuid(), first.order, last.order];
        let mut orders: BTreeMap<StepId, Vec<u32>> = BTreeMap::new();
        for row in self.0.rows(Query::DependencyOrders, params).await? {
            let mut cells = row.cells("steps");
            let step = StepId::new(cells.id("step_id")?);
            orders
                .entry(step)
                .or_default()
                .push(cells.u32("step_order")?);
        }
        Ok(orders)
    }

    /// The next step for a session: one that it holds, with undelivered feedback, or the first
    /// pending one without open dependencies. Does not lock it.
    pub async fn first_ready(
        &mut self,
        plan: PlanId,
        session: Option<&SessionId>,
    ) -> Result<Option<Step>, Error> {
        let session = session.map(SessionId::as_str);
        let questions = vec![
            Statement::new(Query::StepsUndelivered, params![plan.as_uuid(), session]),
            Statement::new(Query::StepsReady, params![plan.as_uuid()]),
        ];
        let mut rows = self.0.query(questions).await?.into_iter().flatten();
        let step = rows.next().map(step::step).transpose()?;
        Ok(step.map(|(_, step)| step))
    }

    /// Number of pending steps with open dependencies.
    pub async fn count_blocked(&mut self, plan: PlanId) -> Result<u32, Error> {
        let rows = self
            .0
            .rows(Query::StepsBlocked, params![plan.as_uuid()])
            .await?;
        let blocked = first(Some(rows), |row| row.cells("steps").u32("blocked"))?;
        Ok(blocked.unwrap_or(0))
    }

    /// The next instant, from `now` on, at which a step of the plan exceeds its own stall
    /// threshold.
    pub async fn next_stall_at(
        &mut self,
        plan: PlanId,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Error> {
        let params = params![plan.as_uuid(), now];
        let rows = self.0.rows(Query::StepNextStall, params).await?;
        let at = first(Some(rows), |row| row.cells("steps").maybe_at("stalls_at"))?;
        Ok(at.flatten())
    }

    /// Steps of a plan that are under review, lowest order first.
    pub async fn under_review(&mut self, plan: PlanId, limit: u32) -> Result<Vec<Step>, Error> {
        let params = params![plan.as_uuid(), limit];
        step::steps(self.0.rows(Query::StepsUnderReview, params).await?)
    }

    /// The step under this review, if the review is pending.
    pub async fn of_review(&mut self, review: ReviewId) -> Result<Option<StepId>, Error> {
        let params = params![review.to_string()];
        let steps = step::steps(self.0.rows(Query::StepsOfReview, params).await?)?;
        let is_same = |step: &&Step| step.open_review().is_some_and(|open| open.id == review);
        Ok(steps.iter().find(is_same).map(Step::id))
    }

    /// Pending reviews of all plans, oldest first.
    pub async fn open_reviews(&mut self, limit: u32) -> Result<Vec<(PlanId, Step)>, Error> {
        let params = params![Timestamp::MIN, limit];
        let rows = self.0.rows(Query::StepsReviewed, params).await?;
        rows.into_iter().map(step::step).collect()
    }
}
