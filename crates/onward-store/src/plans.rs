//! Reading and deleting plans. Lists of plans are in `lists.rs`.
//!
//! Reads lock nothing and change nothing.

use onward_core::id::ArtifactId;
use onward_core::{PlanId, Step, StepId, Timestamp};
use uuid::Uuid;

use crate::commit::Artifact;
use crate::error::Error;
use crate::facts::{all_ids, all_steps, first};
use crate::query::Query;
use crate::row::plan::{self, Sheet};
use crate::row::{branch, step};
use crate::tx::Tx;
use crate::value::{Row, params};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Derived {
    /// Number of open dependencies.
    pub open_dependencies: u32,
    /// When the step exceeds its stall threshold.
    pub stalls_at: Option<Timestamp>,
    /// First event of the commit in which the step ended.
    pub ended_commit: Option<u64>,
}

impl Tx {
    /// A plan without its steps.
    pub async fn sheet(&mut self, id: PlanId) -> Result<Option<Sheet>, Error> {
        let rows = self.rows(Query::PlanSheet, params![id.as_uuid()]).await?;
        first(Some(rows), plan::sheet)
    }

    /// A step, and its plan without the other steps.
    pub async fn sheet_of_step(&mut self, id: StepId) -> Result<Option<(Sheet, Step)>, Error> {
        let questions = vec![
            self.statement(Query::PlanSheetOfStep, params![id.as_uuid()]),
            self.statement(Query::Step, params![id.as_uuid()]),
        ];
        let mut answers = self.ask(questions).await?.into_iter();
        let sheet = first(answers.next(), plan::sheet)?;
        let step = first(answers.next(), step::step)?;
        Ok(sheet.zip(step).map(|(sheet, (_, step))| (sheet, step)))
    }

    /// Branches of a plan, in evaluation order.
    pub async fn branches_of(
        &mut self,
        id: PlanId,
    ) -> Result<Vec<onward_core::branch::Branch>, Error> {
        let rows = self.rows(Query::BranchesAll, params![id.as_uuid()]).await?;
        rows.into_iter().map(branch::branch).collect()
    }

    /// Plans with ids in this range; at most two.
    pub async fn plans_between(&mut self, from: Uuid, to: Uuid) -> Result<Vec<PlanId>, Error> {
        let rows = self.rows(Query::PlansBetween, params![from, to]).await?;
        Ok(all_ids(Some(rows), "plans", "plan_id")?
            .map(PlanId::new)
            .collect())
    }

    /// Steps with ids in this range; at most two.
    pub async fn steps_between(&mut self, from: Uuid, to: Uuid) -> Result<Vec<StepId>, Error> {
        let rows = self.rows(Query::StepsBetween, params![from, to]).await?;
        Ok(all_ids(Some(rows), "steps", "step_id")?
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
        let rows = self.rows(Query::PlansPage, params![behind, limit]).await?;
        Ok(all_ids(Some(rows), "plans", "plan_id")?
            .map(PlanId::new)
            .collect())
    }

    /// All rows of a plan.
    pub async fn whole_plan(&mut self, id: PlanId) -> Result<Option<WholePlan>, Error> {
        let by_plan = |tx: &Tx, name| tx.statement(name, params![id.as_uuid()]);
        let questions = vec![
            by_plan(self, Query::PlanSheet),
            by_plan(self, Query::StepsAll),
            by_plan(self, Query::BranchesAll),
            by_plan(self, Query::ResumedSessions),
            by_plan(self, Query::StepsDerived),
        ];
        let mut answers = self.ask(questions).await?.into_iter();
        let Some(sheet) = first(answers.next(), plan::sheet)? else {
            return Ok(None);
        };
        let steps = all_steps(answers.next().unwrap_or_default())?;
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

    /// Deletes a plan with its steps, branches, audit trail, outputs, feedback, notifications and
    /// ended skill executions. Its artifacts and running skill executions remain, without a plan.
    pub fn delete_plan(&mut self, id: PlanId) {
        // The plan first: events can be deleted only after their plan.
        self.queue(
            self.statement(Query::PlanDelete, params![id.as_uuid()])
                .expecting(1),
        );
        for name in [
            Query::EventsDelete,
            Query::StepsDelete,
            Query::DependenciesDelete,
            Query::BranchesDelete,
            Query::BranchNeedsDelete,
            Query::ResumedSessionsDelete,
            Query::IdempotencyKeysDelete,
            Query::FeedbackDelete,
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
            self.queue(self.statement(name, params![id.as_uuid()]));
        }
        self.note(id);
    }

    /// An artifact by its id.
    pub async fn artifact(&mut self, id: ArtifactId) -> Result<Option<Artifact>, Error> {
        let rows = self.rows(Query::Artifact, params![id.as_uuid()]).await?;
        first(Some(rows), artifact)
    }

    /// Reads a page of all artifacts, in the order of their ids. Returns the last id, if any.
    pub async fn artifacts_page(
        &mut self,
        behind: Option<ArtifactId>,
        limit: u32,
    ) -> Result<Option<ArtifactId>, Error> {
        let behind = behind.map_or(Uuid::nil(), |id| *id.as_uuid());
        let rows = self
            .rows(Query::ArtifactsPage, params![behind, limit])
            .await?;
        let mut last = None;
        for row in rows {
            last = Some(artifact(row)?.id);
        }
        Ok(last)
    }

    /// Artifacts of a plan, oldest first.
    pub async fn artifacts_of(&mut self, id: PlanId, limit: u32) -> Result<Vec<Artifact>, Error> {
        let rows = self
            .rows(Query::ArtifactsOfPlan, params![id.as_uuid(), limit])
            .await?;
        rows.into_iter().map(artifact).collect()
    }
}

fn derive(row: Row) -> Result<Derived, Error> {
    let mut cells = row.cells("steps");
    cells.id("step_id")?;
    Ok(Derived {
        open_dependencies: cells.u32("open_dependencies")?,
        stalls_at: cells.maybe_at("stalls_at")?,
        ended_commit: cells.maybe_u64("ended_commit")?,
    })
}

fn artifact(row: Row) -> Result<Artifact, Error> {
    let mut cells = row.cells("artifacts");
    Ok(Artifact {
        id: ArtifactId::new(cells.id("artifact_id")?),
        plan: cells.maybe_id("plan_id")?.map(PlanId::new),
        step: cells.maybe_id("step_id")?.map(StepId::new),
        kind: cells.string("artifact_type")?,
        title: cells.string("title")?,
        content: cells.string("content")?,
        source_url: cells.maybe_string("source_url")?,
        metadata: cells.json("metadata")?,
        created_at: cells.at("created_at")?,
    })
}
