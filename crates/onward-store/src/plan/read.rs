//! Reading and deleting plans. Lists of plans are in `lists.rs`.
//!
//! Reads lock nothing and change nothing.

use onward_core::{PlanId, Step, StepId, Timestamp};
use uuid::Uuid;

use crate::change::Subject;
use crate::error::Error;
use crate::query::Query;
use crate::row::plan::{self, Sheet};
use crate::row::{branch, step};
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, first, ids, params};

/// All rows of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct WholePlan {
    /// The plan without its steps.
    pub sheet: Sheet,
    /// All steps, in order.
    pub steps: Vec<Step>,
    /// All branches, in evaluation order.
    pub branches: Vec<onward_core::branch::Branch>,
    /// Sessions that resumed the plan.
    pub resumed: Vec<String>,
    /// Derived columns of each step, in order.
    pub derived: Vec<Derived>,
}

/// Derived columns of a step, which serve an index or avoid a scan of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// Number of open dependencies.
    pub open_dependencies: u32,
    /// When the step exceeds its stall threshold.
    pub stalls_at: Option<Timestamp>,
    /// First event of the commit in which the step ended.
    pub ended_commit: Option<u64>,
    /// The project in whose queue the step is, if it is ready.
    pub project_key: Option<String>,
    /// The priority and the age of the plan in that queue.
    pub queue_position: Option<(u32, Timestamp)>,
}

/// Reads and deletions of plans.
pub struct Plans<'t>(pub &'t mut Tx);

impl Plans<'_> {
    /// A plan without its steps.
    pub async fn sheet(&mut self, id: PlanId) -> Result<Option<Sheet>, Error> {
        let rows = self.0.rows(Query::PlanSheet, params![id.as_uuid()]).await?;
        first(Some(rows), plan::sheet)
    }

    /// A step, and its plan without the other steps.
    pub async fn sheet_of_step(&mut self, id: StepId) -> Result<Option<(Sheet, Step)>, Error> {
        let questions = vec![
            Statement::new(Query::PlanSheetOfStep, params![id.as_uuid()]),
            Statement::new(Query::Step, params![id.as_uuid()]),
        ];
        let mut answers = self.0.query(questions).await?.into_iter();
        let sheet = first(answers.next(), plan::sheet)?;
        let step = first(answers.next(), step::step)?;
        Ok(sheet.zip(step).map(|(sheet, (_, step))| (sheet, step)))
    }

    /// The forks of a plan, oldest first.
    pub async fn forks_of(&mut self, id: PlanId, limit: u32) -> Result<Vec<PlanId>, Error> {
        let params = params![id.as_uuid(), limit];
        let rows = self.0.rows(Query::PlanForks, params).await?;
        Ok(ids(Some(rows), "plans", "plan_id")?
            .map(PlanId::new)
            .collect())
    }

    /// Branches of a plan, in evaluation order.
    pub async fn branches_of(
        &mut self,
        id: PlanId,
    ) -> Result<Vec<onward_core::branch::Branch>, Error> {
        let rows = self
            .0
            .rows(Query::BranchesAll, params![id.as_uuid()])
            .await?;
        rows.into_iter().map(branch::branch).collect()
    }

    /// Plans with ids in this range.
    pub async fn plans_between(
        &mut self,
        from: Uuid,
        to: Uuid,
        limit: u32,
    ) -> Result<Vec<PlanId>, Error> {
        let rows = self
            .0
            .rows(Query::PlansBetween, params![from, to, limit])
            .await?;
        Ok(ids(Some(rows), "plans", "plan_id")?
            .map(PlanId::new)
            .collect())
    }

    /// Steps with ids in this range.
    pub async fn steps_between(
        &mut self,
        from: Uuid,
        to: Uuid,
        limit: u32,
    ) -> Result<Vec<StepId>, Error> {
        let rows = self
            .0
            .rows(Query::StepsBetween, params![from, to, limit])
            .await?;
        Ok(ids(Some(rows), "steps", "step_id")?
            .map(StepId::new)
            .collect())
    }

    /// Plan ids after the given one, for iterating over all plans.
    pub async fn plans_page(
        &mut self,
        behind: Option<PlanId>,
        limit: u32,
    ) -> Result<Vec<PlanId>, Error> {
        let behind = behind.map_or(Uuid::nil(), |id| *id.as_uuid());
        let rows = self
            .0
            .rows(Query::PlansPage, params![behind, limit])
            .await?;
        Ok(ids(Some(rows), "plans", "plan_id")?
            .map(PlanId::new)
            .collect())
    }

    /// All rows of a plan.
    pub async fn whole_plan(&mut self, id: PlanId) -> Result<Option<WholePlan>, Error> {
        let by_plan = |query| Statement::new(query, params![id.as_uuid()]);
        let questions = vec![
            by_plan(Query::PlanSheet),
            by_plan(Query::StepsAll),
            by_plan(Query::BranchesAll),
            by_plan(Query::ResumedSessions),
            by_plan(Query::StepsDerived),
        ];
        let mut answers = self.0.query(questions).await?.into_iter();
        let Some(sheet) = first(answers.next(), plan::sheet)? else {
            return Ok(None);
        };
        let steps = step::steps(answers.next().unwrap_or_default())?;
        let branches = answers.next().unwrap_or_default();
        let branches: Result<Vec<_>, Error> = branches.into_iter().map(branch::branch).collect();
        let resumed = answers.next().unwrap_or_default();
        let resumed: Result<Vec<String>, Error> = resumed
            .into_iter()
            .map(|row| row.cells("resumed_sessions").string("session"))
            .collect();
        let derived = answers.next().unwrap_or_default();
        let derived: Result<Vec<Derived>, Error> = derived.into_iter().map(derive).collect();
        Ok(Some(WholePlan {
            sheet,
            steps,
            branches: branches?,
            resumed: resumed?,
            derived: derived?,
        }))
    }

    /// Steps after a position, with their results.
    pub async fn steps_page(
        &mut self,
        id: PlanId,
        behind: u32,
        limit: u32,
    ) -> Result<Vec<Step>, Error> {
        let params = params![id.as_uuid(), behind, limit];
        step::steps(self.0.rows(Query::StepsPage, params).await?)
    }

    /// The bytes of the texts of a plan: its audit trail, artifacts and outputs.
    pub async fn plan_bytes(&mut self, id: PlanId) -> Result<u64, Error> {
        let rows = self.0.rows(Query::PlanBytes, params![id.as_uuid()]).await?;
        let bytes = first(Some(rows), |row| row.cells("plans").u64("bytes"))?;
        Ok(bytes.unwrap_or(0))
    }

    /// Deletes a plan with its steps, branches, audit trail, outputs, feedback, tasks,
    /// notifications and ended skill executions. Its artifacts and running skill executions remain, without a plan.
    pub fn delete_plan(&mut self, id: PlanId) {
        // The plan first: events can be deleted only after their plan.
        self.0
            .queue(Statement::new(Query::PlanDelete, params![id.as_uuid()]).expecting(1));
        for name in [
            Query::EventsDelete,
            Query::StepsDelete,
            Query::DependenciesDelete,
            Query::BranchesDelete,
            Query::BranchNeedsDelete,
            Query::ResumedSessionsDelete,
            Query::IdempotencyKeysDelete,
            Query::FeedbackDelete,
            Query::TasksDelete,
            Query::StepsOfForksIndex,
            Query::ChunksDeleteOfResults,
            Query::ResultsDelete,
            Query::ChunksDeleteOfOutputs,
            Query::OutputsDelete,
            Query::ArtifactsOrphan,
            Query::SkillsDeleteEnded,
            Query::SkillsOrphan,
            Query::PlanWordsDelete,
            Query::DirectoryPlansDelete,
            Query::NoticesDelete,
            Query::DueClear,
        ] {
            self.0.queue(Statement::new(name, params![id.as_uuid()]));
        }
        self.0.record_change(Subject::Plan(id));
    }
}

fn derive(row: Row) -> Result<Derived, Error> {
    let mut cells = row.cells("steps");
    cells.id("step_id")?;
    Ok(Derived {
        open_dependencies: cells.u32("open_dependencies")?,
        stalls_at: cells.maybe_at("stalls_at")?,
        ended_commit: cells.maybe_u64("ended_commit")?,
        project_key: cells.maybe_string("project_key")?,
        queue_position: {
            let priority = cells.maybe_u32("plan_priority")?;
            priority.zip(cells.maybe_at("plan_created_at")?)
        },
    })
}
