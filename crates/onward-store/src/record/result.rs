//! Results of ended steps, as search contains them: the summary or the reason of the failure, and the
//! reviews. A search first indexes the steps that ended since the last one; until then, `indexed` of
//! the step's row is 0.

use onward_core::{PlanId, StepId, Timestamp};

use super::search::SearchIndex;
use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, first, params};

/// An ended step that search does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnindexedResult {
    /// The plan.
    pub plan: PlanId,
    /// The step.
    pub step: StepId,
    /// Title of the step.
    pub title: Option<String>,
    /// First characters of its instructions.
    pub instructions: String,
    /// Summary of the result.
    pub summary: Option<String>,
    /// Reason of the failure.
    pub failure: Option<String>,
    /// Time of its end.
    pub ended_at: Timestamp,
    /// Whether search must not contain it: it was redone, or is contained in another plan.
    pub is_hidden: bool,
    /// Whether its plan mirrors an agent's task list.
    pub is_captured: bool,
}

/// The beginning of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultExcerpt {
    /// The plan.
    pub plan: PlanId,
    /// The step.
    pub step: StepId,
    /// Title of the step.
    pub title: String,
    /// First characters.
    pub excerpt: String,
    /// When the step ended.
    pub created_at: Timestamp,
}

/// Results of ended steps.
pub struct Results<'t>(pub &'t mut Tx);

impl Results<'_> {
    /// Whether search does not contain all ended steps.
    pub async fn are_waiting(&mut self) -> Result<bool, Error> {
        let rows = self.0.rows(Query::ResultsWaiting, params![]).await?;
        let waiting = first(Some(rows), |row| row.cells("steps").flag("waiting"))?;
        Ok(waiting.unwrap_or(false))
    }

    /// Ended steps that search does not contain, locked until the commit.
    pub async fn unindexed(&mut self, limit: u32) -> Result<Vec<UnindexedResult>, Error> {
        let rows = self.0.rows(Query::ResultsUnindexed, params![limit]).await?;
        rows.into_iter().map(unindexed).collect()
    }

    /// Replaces the text of an ended step in search. An empty text removes it.
    pub fn index(&mut self, result: &UnindexedResult, title: &str, content: &str) {
        let step = result.step.as_uuid();
        for query in [Query::ChunksDeleteOfSource, Query::ResultDelete] {
            self.0.queue(Statement::new(query, params![step]));
        }
        if !content.is_empty() {
            let plan = result.plan.as_uuid();
            let params = params![step, plan, title, content, result.ended_at];
            self.0.queue(Statement::new(Query::ResultInsert, params));
            SearchIndex(self.0).index(*step, title, content);
        }
        self.0
            .queue(Statement::new(Query::StepIndexed, params![step]));
    }

    /// The beginnings of the results of all plans, newest first.
    pub async fn latest(&mut self, limit: u32) -> Result<Vec<ResultExcerpt>, Error> {
        let rows = self.0.rows(Query::ResultsLatest, params![limit]).await?;
        let excerpts = rows.into_iter().map(|row| {
            let mut cells = row.cells("results");
            Ok(ResultExcerpt {
                plan: PlanId::new(cells.id("plan_id")?),
                step: StepId::new(cells.id("step_id")?),
                title: cells.string("title")?,
                excerpt: cells.string("excerpt")?,
                created_at: cells.at("created_at")?,
            })
        });
        excerpts.collect()
    }
}

fn unindexed(row: Row) -> Result<UnindexedResult, Error> {
    let mut cells = row.cells("steps");
    Ok(UnindexedResult {
        plan: PlanId::new(cells.id("plan_id")?),
        step: StepId::new(cells.id("step_id")?),
        title: cells.maybe_string("title")?,
        instructions: cells.string("instructions")?,
        summary: cells.maybe_string("result_summary")?,
        failure: cells.maybe_string("failure_words")?,
        ended_at: cells.at("ended_at")?,
        is_hidden: cells.flag("is_hidden")?,
        is_captured: cells.flag("is_captured")?,
    })
}
