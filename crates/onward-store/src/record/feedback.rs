//! User feedback about plans. It is deleted with its plan.

use onward_core::id::{FeedbackId, OutputId};
use onward_core::{PlanId, Timestamp};
use uuid::Uuid;

use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, params};

/// Feedback about a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// Feedback id.
    pub id: FeedbackId,
    /// The plan.
    pub plan: PlanId,
    /// 1 to 5. A rating or a comment is always present.
    pub rating: Option<u32>,
    /// Free text.
    pub comment: Option<String>,
    /// The output it concerns, if it concerns one.
    pub output: Option<OutputId>,
    /// Who gave it.
    pub actor: String,
    /// Time of the feedback.
    pub created_at: Timestamp,
}

/// Feedback of users.
pub struct UserFeedback<'t>(pub &'t mut Tx);

impl UserFeedback<'_> {
    /// Stores feedback, unless it is already stored.
    pub fn add_feedback(&mut self, feedback: &Feedback) {
        let params = params![
            feedback.id.as_uuid(),
            feedback.plan.as_uuid(),
            feedback.rating,
            feedback.comment.as_deref(),
            feedback.output.map(|id| *id.as_uuid()),
            &feedback.actor,
            feedback.created_at,
        ];
        self.0.queue(Statement::new(Query::FeedbackInsert, params));
    }

    /// Feedback about a plan, newest first.
    pub async fn feedback_of(&mut self, plan: PlanId, limit: u32) -> Result<Vec<Feedback>, Error> {
        let params = params![plan.as_uuid(), limit];
        let rows = self.0.rows(Query::FeedbackOfPlan, params).await?;
        rows.into_iter().map(feedback).collect()
    }

    /// Reads a page of all feedback, in the order of ids. Returns the last id, if any.
    pub async fn feedback_page(
        &mut self,
        behind: Option<FeedbackId>,
        limit: u32,
    ) -> Result<Option<FeedbackId>, Error> {
        let behind = behind.map_or(Uuid::nil(), |id| *id.as_uuid());
        let rows = self
            .0
            .rows(Query::FeedbackPage, params![behind, limit])
            .await?;
        let mut last = None;
        for row in rows {
            last = Some(feedback(row)?.id);
        }
        Ok(last)
    }
}

fn feedback(row: Row) -> Result<Feedback, Error> {
    let mut cells = row.cells("feedback");
    Ok(Feedback {
        id: FeedbackId::new(cells.id("feedback_id")?),
        plan: PlanId::new(cells.id("plan_id")?),
        rating: cells.maybe_u32("rating")?,
        comment: cells.maybe_string("comment")?,
        output: cells.maybe_id("output_id")?.map(OutputId::new),
        actor: cells.string("actor")?,
        created_at: cells.at("created_at")?,
    })
}
