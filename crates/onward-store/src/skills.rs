//! Executions of agents' skills. Whether a change of one is legal was decided before it got here.

use std::time::Duration;

use onward_core::id::{SessionId, SkillExecutionId};
use onward_core::skill::{SkillExecution, SkillStatus};
use onward_core::{PlanId, Timestamp};
use uuid::Uuid;

use crate::error::Error;
use crate::facts::first;
use crate::row::skill;
use crate::tx::Tx;
use crate::value::params;

/// Where a page of executions ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillCursor {
    /// When the last execution of the page started.
    pub started_at: Timestamp,
    /// Which one it was.
    pub execution: SkillExecutionId,
}

/// How many executions are in a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillCount {
    /// In which one.
    pub status: SkillStatus,
    /// How many.
    pub executions: u64,
    /// How long they took together; nothing where they go on.
    pub took: Duration,
}

impl Tx {
    /// An execution, as it is shown.
    pub async fn skill_seen(
        &mut self,
        id: SkillExecutionId,
    ) -> Result<Option<SkillExecution>, Error> {
        let rows = self.rows("skill_seen", params![id.as_uuid()]).await?;
        first(Some(rows), skill::skill)
    }

    /// Executions from the last one on that started, behind the cursor.
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
        let rows = self.rows("skills_listed", params).await?;
        rows.into_iter().map(skill::skill).collect()
    }

    /// How many executions are in each status; and how many have failed since an instant.
    pub async fn count_skills(
        &mut self,
        since: Timestamp,
    ) -> Result<(Vec<SkillCount>, u64), Error> {
        let questions = vec![
            self.statement("skills_by_status", params![]),
            self.statement("skills_failed_since", params![since]),
        ];
        let mut answers = self.ask(questions).await?.into_iter();
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

    /// An execution, held until the commit.
    pub async fn skill(&mut self, id: SkillExecutionId) -> Result<Option<SkillExecution>, Error> {
        let rows = self.rows("skill_locked", params![id.as_uuid()]).await?;
        first(Some(rows), skill::skill)
    }

    /// The execution of a session that started last of those that have only started and are linked
    /// to no plan. It is held until the commit.
    pub async fn free_skill(
        &mut self,
        session: &SessionId,
    ) -> Result<Option<SkillExecution>, Error> {
        let params = params![session.as_str()];
        let rows = self.rows("skill_free_locked", params).await?;
        first(Some(rows), skill::skill)
    }

    /// The executions that are linked to a plan, the last one first.
    pub async fn skills_of(
        &mut self,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<SkillExecution>, Error> {
        let params = params![plan.as_uuid(), limit];
        let rows = self.rows("skills_of_plan", params).await?;
        rows.into_iter().map(skill::skill).collect()
    }

    /// Reads a page of all executions, by their ids; the last id, if there was any.
    pub async fn skills_page(
        &mut self,
        behind: Option<SkillExecutionId>,
        limit: u32,
    ) -> Result<Option<SkillExecutionId>, Error> {
        let behind = behind.map_or(Uuid::nil(), |id| *id.as_uuid());
        let rows = self.rows("skills_page", params![behind, limit]).await?;
        let mut last = None;
        for row in rows {
            last = Some(skill::skill(row)?.id);
        }
        Ok(last)
    }

    /// Adds an execution.
    pub fn add_skill(&mut self, execution: &SkillExecution) {
        let mut row = skill::changing(execution);
        row.extend(skill::fixed(execution));
        self.queue(self.statement("skill_insert", row));
    }

    /// Writes an execution that is there already.
    pub fn change_skill(&mut self, execution: &SkillExecution) {
        let row = skill::changing(execution);
        self.queue(self.statement("skill_update", row).touching(1));
    }
}
