//! Executions of agents' skills. Whether a change of one is legal was decided before it got here.

use onward_core::PlanId;
use onward_core::id::{SessionId, SkillExecutionId};
use onward_core::skill::SkillExecution;
use uuid::Uuid;

use crate::error::Error;
use crate::facts::first;
use crate::row::skill;
use crate::tx::Tx;
use crate::value::params;

impl Tx {
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
