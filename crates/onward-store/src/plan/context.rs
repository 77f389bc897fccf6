//! Context for an agent that resumes a plan or a step: rows with the sizes of their texts, and the
//! texts that the caller requests.
//!
//! The caller selects the texts that fit its size budget, so no text is read and then discarded
//! because of its length.

use onward_core::branch::Branch;
use onward_core::id::{ArtifactId, SessionId};
use onward_core::step::{Evidence, FailReason};
use onward_core::{Json, PlanId, Step, StepId, StepStatus, StepType, Timestamp};

use crate::error::Error;
use crate::query::Query;
use crate::row::event::{self, Entry};
use crate::row::{branch, step};
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Cells, Row, first, params};

/// A step without the texts of its result.
#[derive(Debug, Clone, PartialEq)]
pub struct StepBrief {
    /// Step id.
    pub id: StepId,
    /// Position in the plan.
    pub order: u32,
    /// Kind of work.
    pub step_type: StepType,
    /// Short title.
    pub title: Option<String>,
    /// Status.
    pub status: StepStatus,
    /// Current attempt number.
    pub attempt: u32,
    /// Reason of the failure.
    pub failure: Option<FailReason>,
    /// Confidence of the agent in the result.
    pub confidence: Option<f64>,
    /// Length of the result summary, in bytes.
    pub summary_bytes: Option<u64>,
    /// Length of the structured result, in bytes.
    pub data_bytes: Option<u64>,
    /// Length of the evidence, in bytes.
    pub evidence_bytes: Option<u64>,
}

/// Selection and direction of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Briefs {
    /// Steps before an order, nearest first.
    Below(PlanId, u32),
    /// Steps from an order on, in order.
    From(PlanId, u32),
    /// Completed steps before an order, nearest first.
    CompletedBelow(PlanId, u32),
    /// Completed dependencies of a step before an order, last first.
    CompletedNeeded(StepId, u32),
}

/// The beginning of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Artifact id.
    pub id: ArtifactId,
    /// Step that it belongs to.
    pub step: Option<StepId>,
    /// `note`, `late_result`, ….
    pub kind: String,
    /// Title.
    pub title: String,
    /// First characters of the content.
    pub excerpt: String,
    /// Whether the content is longer.
    pub is_truncated: bool,
    /// When it was stored.
    pub created_at: Timestamp,
}

/// An audit trail entry, with its details if they are short.
#[derive(Debug, Clone, PartialEq)]
pub struct Recent {
    /// Sequence number in the plan.
    pub seq: u64,
    /// Time of the event.
    pub at: Timestamp,
    /// Who caused it.
    pub actor: String,
    /// Session of the agent.
    pub session: Option<SessionId>,
    /// Name of the event.
    pub name: String,
    /// Step that it concerns.
    pub step: Option<StepId>,
    /// Details, if they are short.
    pub details: Option<Json>,
}

/// An audit trail entry that matters to a new session, with the step's current order.
#[derive(Debug, Clone, PartialEq)]
pub struct Significant {
    /// The entry.
    pub entry: Recent,
    /// The order of its step, if the step exists.
    pub order: Option<u32>,
}

/// The texts of a step, of any length.
#[derive(Debug, Clone, PartialEq)]
pub struct StepTexts {
    /// Plan of the step.
    pub plan: PlanId,
    /// Instructions.
    pub instructions: String,
    /// Result summary.
    pub result_summary: Option<String>,
    /// Structured result, as stored.
    pub result: Option<String>,
    /// Execution report, as stored.
    pub report: Option<String>,
    /// Formatting notes for the output.
    pub notes: Option<String>,
    /// Evidence, as stored.
    pub evidence: Option<String>,
    /// Open review request, as stored.
    pub review: Option<String>,
}

/// The execution report of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// Step id.
    pub step: StepId,
    /// Length in bytes.
    pub bytes: u64,
    /// The report, if it is short enough.
    pub report: Option<Json>,
}

/// The result of a completed step.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedResult {
    /// Step id.
    pub step: StepId,
    /// Confidence of the agent in the result.
    pub confidence: Option<f64>,
    /// Summary.
    pub summary: String,
    /// Structured result.
    pub data: Option<Json>,
}

/// Reads of bounded context: steps with text sizes, and the requested texts.
pub struct Contexts<'t>(pub &'t mut Tx);

impl Contexts<'_> {
    /// Steps of a plan, without the texts of their results.
    pub async fn briefs(&mut self, which: Briefs, limit: u32) -> Result<Vec<StepBrief>, Error> {
        let (name, params) = match which {
            Briefs::Below(plan, order) => {
                (Query::BriefsBelow, params![plan.as_uuid(), order, limit])
            }
            Briefs::From(plan, order) => (Query::BriefsFrom, params![plan.as_uuid(), order, limit]),
            Briefs::CompletedBelow(plan, order) => (
                Query::BriefsCompletedBelow,
                params![plan.as_uuid(), order, limit],
            ),
            Briefs::CompletedNeeded(step, order) => (
                Query::BriefsCompletedNeeded,
                params![step.as_uuid(), order, limit],
            ),
        };
        let rows = self.0.rows(name, params).await?;
        rows.into_iter().map(brief).collect()
    }

    /// The summaries of these steps' results, in the same order.
    pub async fn summaries(&mut self, ids: &[StepId]) -> Result<Vec<Option<String>>, Error> {
        let questions = ids
            .iter()
            .map(|id| Statement::new(Query::StepSummary, params![id.as_uuid()]))
            .collect();
        let answers = self.0.query(questions).await?.into_iter();
        let read = |row: Row| {
            let mut cells = row.cells("steps");
            cells.id("step_id")?;
            cells.maybe_string("result_summary")
        };
        answers
            .map(|rows| Ok(first(Some(rows), read)?.flatten()))
            .collect()
    }

    /// The structured results of these steps, in the same order.
    pub async fn data(&mut self, ids: &[StepId]) -> Result<Vec<Option<Json>>, Error> {
        let questions = ids
            .iter()
            .map(|id| Statement::new(Query::StepData, params![id.as_uuid()]))
            .collect();
        let answers = self.0.query(questions).await?.into_iter();
        let read = |row: Row| {
            let mut cells = row.cells("steps");
            cells.id("step_id")?;
            cells.maybe_json("result")
        };
        answers
            .map(|rows| Ok(first(Some(rows), read)?.flatten()))
            .collect()
    }

    /// The evidence of these steps' results, in the same order.
    pub async fn evidence(&mut self, ids: &[StepId]) -> Result<Vec<Vec<Evidence>>, Error> {
        let questions = ids
            .iter()
            .map(|id| Statement::new(Query::StepEvidence, params![id.as_uuid()]))
            .collect();
        let answers = self.0.query(questions).await?.into_iter();
        let read = |row: Row| {
            let mut cells = row.cells("steps");
            cells.id("step_id")?;
            step::evidence_of(&mut cells)
        };
        answers
            .map(|rows| Ok(first(Some(rows), read)?.unwrap_or_default()))
            .collect()
    }

    /// The beginnings of the artifacts of a plan: those of the given step first, then the newest.
    pub async fn excerpts(
        &mut self,
        plan: PlanId,
        step: Option<StepId>,
        limit: u32,
    ) -> Result<Vec<Excerpt>, Error> {
        let step = step.map(|step| *step.as_uuid());
        let params = params![plan.as_uuid(), step, limit];
        let rows = self.0.rows(Query::ArtifactExcerpts, params).await?;
        rows.into_iter().map(excerpt).collect()
    }

    /// Excerpts of the artifacts of all plans, newest first.
    pub async fn latest_artifacts(
        &mut self,
        limit: u32,
    ) -> Result<Vec<(Option<PlanId>, Excerpt)>, Error> {
        let rows = self.0.rows(Query::ArtifactsLatest, params![limit]).await?;
        let artifacts = rows.into_iter().map(|row| {
            let mut cells = row.cells("artifacts");
            let plan = cells.maybe_id("plan_id")?.map(PlanId::new);
            Ok((plan, read_excerpt(&mut cells)?))
        });
        artifacts.collect()
    }

    /// The latest entries of the audit trail, newest first.
    pub async fn recent(&mut self, plan: PlanId, limit: u32) -> Result<Vec<Recent>, Error> {
        let params = params![plan.as_uuid(), limit];
        let rows = self.0.rows(Query::EventsRecent, params).await?;
        rows.into_iter().map(recent).collect()
    }

    /// The attempts and the rejected results of a step, newest first.
    pub async fn attempts(
        &mut self,
        plan: PlanId,
        step: StepId,
        limit: u32,
    ) -> Result<Vec<Recent>, Error> {
        let params = params![plan.as_uuid(), step.as_uuid(), limit];
        let rows = self.0.rows(Query::EventsOfStep, params).await?;
        rows.into_iter().map(recent).collect()
    }

    /// The entries after `seq` that matter to a new session, newest first: all but claims,
    /// completions, resumed sessions and skills.
    pub async fn significant(
        &mut self,
        plan: PlanId,
        seq: u64,
        limit: u32,
    ) -> Result<Vec<Significant>, Error> {
        let params = params![plan.as_uuid(), seq, limit];
        let rows = self.0.rows(Query::EventsSignificant, params).await?;
        rows.into_iter().map(significant).collect()
    }

    /// The texts of a step.
    pub async fn step_texts(&mut self, step: StepId) -> Result<Option<StepTexts>, Error> {
        let rows = self
            .0
            .rows(Query::StepTexts, params![step.as_uuid()])
            .await?;
        first(Some(rows), step_texts)
    }

    /// The execution reports of the steps between two orders, and those of at most this many bytes
    /// with their content.
    pub async fn reports(
        &mut self,
        plan: PlanId,
        (from, to): (u32, u32),
        bytes: u32,
    ) -> Result<Vec<StepReport>, Error> {
        let params = params![plan.as_uuid(), from, to, bytes];
        let rows = self.0.rows(Query::StepReports, params).await?;
        rows.into_iter().map(step_report).collect()
    }

    /// The results of these steps that are completed, unless their data is too long for a condition.
    pub async fn results(&mut self, steps: &[StepId]) -> Result<Vec<CompletedResult>, Error> {
        let ask = |step: &StepId| Statement::new(Query::StepResult, params![step.as_uuid()]);
        let questions = steps.iter().map(ask).collect();
        let rows = self.0.query(questions).await?.into_iter().flatten();
        rows.map(completed_result).collect()
    }

    /// Steps in progress that a session holds, lowest order first.
    pub async fn held_steps(
        &mut self,
        plan: PlanId,
        session: &SessionId,
        limit: u32,
    ) -> Result<Vec<Step>, Error> {
        let params = params![plan.as_uuid(), session.as_str(), limit];
        step::steps(self.0.rows(Query::StepsHeld, params).await?)
    }

    /// Pending steps from an order on.
    pub async fn pending_from(
        &mut self,
        plan: PlanId,
        order: u32,
        limit: u32,
    ) -> Result<Vec<Step>, Error> {
        let params = params![plan.as_uuid(), order, limit];
        step::steps(self.0.rows(Query::StepsPendingFrom, params).await?)
    }

    /// The branches of a step, in evaluation order.
    pub async fn branches_after(&mut self, step: StepId) -> Result<Vec<Branch>, Error> {
        let params = params![step.as_uuid()];
        let rows = self.0.rows(Query::BranchesAfterStep, params).await?;
        rows.into_iter().map(branch::branch).collect()
    }

    /// Review requests and decisions of a plan, newest first.
    pub async fn reviews_of_plan(&mut self, plan: PlanId, limit: u32) -> Result<Vec<Entry>, Error> {
        let params = params![plan.as_uuid(), limit];
        let rows = self.0.rows(Query::EventsOfPlanReviews, params).await?;
        rows.into_iter().map(event::entry).collect()
    }

    /// [`Self::reviews_of`] for several steps, in one round trip.
    pub async fn reviews_of_all(
        &mut self,
        steps: &[(PlanId, StepId)],
        limit: u32,
    ) -> Result<Vec<Vec<Entry>>, Error> {
        let question = |(plan, step): &(PlanId, StepId)| {
            let params = params![plan.as_uuid(), step.as_uuid(), limit];
            Statement::new(Query::EventsOfReviews, params)
        };
        let answers = self.0.query(steps.iter().map(question).collect()).await?;
        let entries = |rows: Vec<Row>| rows.into_iter().map(event::entry).collect();
        answers.into_iter().map(entries).collect()
    }

    /// Review requests and decisions about a step, newest first.
    pub async fn reviews_of(
        &mut self,
        plan: PlanId,
        step: StepId,
        limit: u32,
    ) -> Result<Vec<Entry>, Error> {
        let params = params![plan.as_uuid(), step.as_uuid(), limit];
        let rows = self.0.rows(Query::EventsOfReviews, params).await?;
        rows.into_iter().map(event::entry).collect()
    }
}

fn brief(row: Row) -> Result<StepBrief, Error> {
    let mut cells = row.cells("steps");
    Ok(StepBrief {
        id: StepId::new(cells.id("step_id")?),
        order: cells.u32("step_order")?,
        step_type: cells.word("step_type")?,
        title: cells.maybe_string("title")?,
        status: cells.word("status")?,
        attempt: cells.u32("attempt")?,
        failure: step::failure(&mut cells)?,
        confidence: cells.maybe_real("result_confidence")?,
        summary_bytes: cells.maybe_u64("summary_bytes")?,
        data_bytes: cells.maybe_u64("data_bytes")?,
        evidence_bytes: cells.maybe_u64("evidence_bytes")?,
    })
}

fn excerpt(row: Row) -> Result<Excerpt, Error> {
    read_excerpt(&mut row.cells("artifacts"))
}

fn read_excerpt(cells: &mut Cells) -> Result<Excerpt, Error> {
    let id = ArtifactId::new(cells.id("artifact_id")?);
    let step = cells.maybe_id("step_id")?.map(StepId::new);
    let kind = cells.string("artifact_type")?;
    let title = cells.string("title")?;
    let excerpt = cells.string("excerpt")?;
    let bytes = u64::try_from(excerpt.len()).unwrap_or(u64::MAX);
    Ok(Excerpt {
        id,
        step,
        kind,
        title,
        excerpt,
        is_truncated: cells.u64("content_bytes")? > bytes,
        created_at: cells.at("created_at")?,
    })
}

fn recent(row: Row) -> Result<Recent, Error> {
    read_recent(&mut row.cells("events"))
}

fn significant(row: Row) -> Result<Significant, Error> {
    let mut cells = row.cells("events");
    Ok(Significant {
        entry: read_recent(&mut cells)?,
        order: cells
            .maybe_u64("step_order")?
            .and_then(|order| u32::try_from(order).ok()),
    })
}

fn step_texts(row: Row) -> Result<StepTexts, Error> {
    let mut cells = row.cells("steps");
    cells.id("step_id")?;
    Ok(StepTexts {
        plan: PlanId::new(cells.id("plan_id")?),
        instructions: cells.string("instructions")?,
        review: cells.maybe_string("review")?,
        result_summary: cells.maybe_string("result_summary")?,
        result: cells.maybe_string("result")?,
        report: cells.maybe_string("result_report")?,
        notes: cells.maybe_string("result_notes")?,
        evidence: cells.maybe_string("result_evidence")?,
    })
}

fn completed_result(row: Row) -> Result<CompletedResult, Error> {
    let mut cells = row.cells("steps");
    Ok(CompletedResult {
        step: StepId::new(cells.id("step_id")?),
        confidence: cells.maybe_real("result_confidence")?,
        summary: cells.string("result_summary")?,
        data: cells.maybe_json("result")?,
    })
}

fn step_report(row: Row) -> Result<StepReport, Error> {
    let mut cells = row.cells("steps");
    Ok(StepReport {
        step: StepId::new(cells.id("step_id")?),
        bytes: cells.u64("report_bytes")?,
        report: cells.maybe_json("result_report")?,
    })
}

fn read_recent(cells: &mut Cells) -> Result<Recent, Error> {
    Ok(Recent {
        seq: cells.u64("seq")?,
        at: cells.at("at")?,
        actor: cells.string("actor")?,
        session: cells.maybe_text("session")?.map(SessionId::new),
        name: cells.string("name")?,
        step: cells.maybe_id("step_id")?.map(StepId::new),
        details: cells.maybe_json("details")?,
    })
}
