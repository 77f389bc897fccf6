//! Skill executions of agents. The caller has already decided that a change is valid.

use std::time::Duration;

use onward_core::id::{SessionId, SkillExecutionId};
use onward_core::skill::{SkillExecution, SkillStatus};
use onward_core::{PlanId, Timestamp};
use uuid::Uuid;

use crate::error::Error;
use crate::query::Query;
use crate::row::skill;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{first, params};

/// End of a page of executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillCursor {
    /// Start of the last execution on the page.
    pub started_at: Timestamp,
    /// Id of that execution.
    pub execution: SkillExecutionId,
}

/// Number of executions in a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillCount {
    /// The status.
    pub status: SkillStatus,
    /// Number of executions.
    pub executions: u64,
    /// Total duration; zero for executions that are still running.
    pub took: Duration,
}

/// Skill executions.
pub struct Skills<'t>(pub &'t mut Tx);

impl Skills<'_> {
    /// An execution, without locking it.
    pub async fn skill_seen(
        &mut self,
        id: SkillExecutionId,
    ) -> Result<Option<SkillExecution>, Error> {
        let rows = self.0.rows(Query::SkillSeen, params![id.as_uuid()]).await?;
        first(Some(rows), skill::skill)
    }

    /// Executions after the cursor, latest start first.
    pub async fn list_skills(
        &mut self,
        behind: Option<SkillCursor>,
        status: Option<SkillStatus>,
        name: Option<&str>,
        limit: u32,
    ) -> Result<Vec<SkillExecution>, Error> {
        let (at, id) = behind.map_or((Timestamp::MAX, Uuid::max()), |cursor| {
            (cursor.started_at, *cursor.execution.as_uuid())
        });
        let params = params![at, id, status.map(SkillStatus::as_str), name, limit];
        let rows = self.0.rows(Query::SkillsListed, params).await?;
        rows.into_iter().map(skill::skill).collect()
    }

    /// Number of executions in each status, and number of failures since an instant.
    pub async fn count_skills(
        &mut self,
        since: Timestamp,
    ) -> Result<(Vec<SkillCount>, u64), Error> {
        let questions = vec![
            Statement::new(Query::SkillsByStatus, params![]),
            Statement::new(Query::SkillsFailedSince, params![since]),
        ];
        let mut answers = self.0.query(questions).await?.into_iter();
        let counts = answers.next().unwrap_or_default().into_iter().map(|row| {
            let mut cells = row.cells("skill_executions");
            Ok(SkillCount {
                status: cells.word("status")?,
                executions: cells.u64("executions")?,
                took: cells.maybe_span("took")?.unwrap_or_default(),
            })
        });
        let counts: Result<Vec<SkillCount>, Error> = counts.collect();
        let failed = first(answers.next(), |row| {
            row.cells("skill_executions").u64("executions")
        });
        Ok((counts?, failed?.unwrap_or(0)))
    }

    /// An execution, locked until the commit.
    pub async fn skill(&mut self, id: SkillExecutionId) -> Result<Option<SkillExecution>, Error> {
        let rows = self
            .0
            .rows(Query::SkillLocked, params![id.as_uuid()])
            .await?;
        first(Some(rows), skill::skill)
    }

    /// The latest execution of a session in `started`, locked until the commit. It may be linked to a
    /// plan.
    pub async fn started_skill(
        &mut self,
        session: &SessionId,
    ) -> Result<Option<SkillExecution>, Error> {
        let params = params![session.as_str()];
        let rows = self.0.rows(Query::SkillStartedLocked, params).await?;
        first(Some(rows), skill::skill)
    }

    /// Executions linked to a plan, latest first.
    pub async fn skills_of(
        &mut self,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<SkillExecution>, Error> {
        let params = params![plan.as_uuid(), limit];
        let rows = self.0.rows(Query::SkillsOfPlan, params).await?;
        rows.into_iter().map(skill::skill).collect()
    }

    /// Reads a page of all executions, in the order of their ids. Returns the last id, if any.
    pub async fn skills_page(
        &mut self,
        behind: Option<SkillExecutionId>,
        limit: u32,
    ) -> Result<Option<SkillExecutionId>, Error> {
        let behind = behind.map_or(Uuid::nil(), |id| *id.as_uuid());
        let rows = self
            .0
            .rows(Query::SkillsPage, params![behind, limit])
            .await?;
        let mut last = None;
        for row in rows {
            last = Some(skill::skill(row)?.id);
        }
        Ok(last)
    }

    /// Inserts an execution.
    pub fn add_skill(&mut self, execution: &SkillExecution) {
        let mut row = skill::changing(execution);
        row.extend(skill::fixed(execution));
        self.0.queue(Statement::new(Query::SkillInsert, row));
    }

    /// Updates an existing execution.
    pub fn change_skill(&mut self, execution: &SkillExecution) {
        let row = skill::changing(execution);
        self.0
            .queue(Statement::new(Query::SkillUpdate, row).expecting(1));
    }
}
