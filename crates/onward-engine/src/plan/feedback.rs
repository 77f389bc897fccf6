//! Feedback on a plan, finished or not: a rating, a comment, or both.
//!
//! Feedback does not change the plan and is not in its audit trail; it is deleted with the plan.
//! Feedback on a single step is part of a review, in `step.rs`.

use onward_core::PlanId;
use onward_core::id::{FeedbackId, OutputId};
use onward_core::policy::MAX_REMARK;
use onward_core::refusal::{Issue, Refusal};
use onward_core::role::Permission;
use onward_store::{Facts, Feedback, Outputs, Tx, UserFeedback};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::{Error, ObjectKind};
use crate::sanitize;

/// Valid ratings.
const RATINGS: std::ops::RangeInclusive<u32> = 1..=5;

/// Feedback on a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFeedback {
    /// The plan.
    pub plan: PlanId,
    /// 1 to 5.
    pub rating: Option<u32>,
    /// The comment.
    pub comment: Option<String>,
    /// The id of the plan output that the feedback is about, unvalidated.
    pub output: Option<String>,
}

impl Engine {
    /// Stores feedback on a plan.
    pub async fn submit_feedback(
        &self,
        caller: &Caller,
        new_feedback: NewFeedback,
    ) -> Result<FeedbackId, Error> {
        caller.allow(Permission::Work)?;
        let NewFeedback {
            plan,
            rating,
            mut comment,
            output,
        } = new_feedback;
        sanitize::optional_text(&mut comment);
        let comment = comment.filter(|comment| !comment.trim().is_empty());
        check(rating, comment.as_deref())?;
        let now = self.now();
        let feedback = Feedback {
            id: FeedbackId::new(self.ids.ordered_id(now)),
            plan,
            rating,
            comment,
            output: None,
            actor: caller.actor(),
            created_at: now,
        };
        let id = feedback.id;
        let stored = self.store.write(&caller.tenant, move |tx| {
            let (mut feedback, output) = (feedback.clone(), output.clone());
            Box::pin(async move {
                // Locks the plan, so that it is not deleted before the commit.
                let found = Facts(tx).plan(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                if let Some(name) = output {
                    feedback.output = Some(find_output(tx, plan, name).await?);
                }
                UserFeedback(tx).add_feedback(&feedback);
                Ok::<(), Error>(())
            })
        });
        stored.await?;
        Ok(id)
    }

    /// Feedback on a plan, newest first.
    pub async fn feedback(
        &self,
        caller: &Caller,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<Feedback>, Error> {
        caller.allow(Permission::Read)?;
        let feedback = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { UserFeedback(tx).feedback_of(plan, limit).await })
        });
        Ok(feedback.await?)
    }
}

/// Finds an output of this plan. An output of another plan counts as not found.
async fn find_output(tx: &mut Tx, plan: PlanId, name: String) -> Result<OutputId, Error> {
    if let Ok(id) = name.parse()
        && Outputs(tx).plan_of_output(id).await? == Some(plan)
    {
        return Ok(id);
    }
    let kind = ObjectKind::Output;
    Err(Error::NotFound { kind, name })
}

/// Validates feedback: a rating or a comment is required, within limits.
pub(crate) fn check(rating: Option<u32>, comment: Option<&str>) -> Result<(), Refusal> {
    let mut issues = Vec::new();
    let mut issue = |path: &str, message: String| {
        let path = path.to_owned();
        issues.push(Issue { path, message });
    };
    if rating.is_some_and(|rating| !RATINGS.contains(&rating)) {
        issue("rating", "must be between 1 and 5".to_owned());
    }
    let characters = comment.map_or(0, |comment| comment.chars().count());
    if characters > MAX_REMARK {
        let message = format!("has {characters} characters, at most {MAX_REMARK} are allowed");
        issue("comment", message);
    }
    if rating.is_none() && comment.is_none() {
        issue("rating", "is required if `comment` is missing".to_owned());
    }
    if issues.is_empty() {
        Ok(())
    } else {
        Err(Refusal::InvalidInput(issues))
    }
}
