//! What somebody says about a plan as a whole, be it over or not: a rating, a comment, or both.
//!
//! It changes nothing about the plan, so its trail does not hold it; and it goes when the plan goes.
//! A person's words about one step are a review's, in `step.rs`.

use onward_core::PlanId;
use onward_core::id::{FeedbackId, OutputId};
use onward_core::policy::MAX_REMARK;
use onward_core::refusal::{Issue, Refusal};
use onward_core::role::Permission;
use onward_store::{Feedback, Tx};

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;

/// The ratings that there are.
const RATINGS: std::ops::RangeInclusive<u32> = 1..=5;

/// What somebody says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opinion {
    /// About which plan.
    pub plan: PlanId,
    /// 1 to 5.
    pub rating: Option<u32>,
    /// In their words.
    pub comment: Option<String>,
    /// About which of the plan's outputs, as the caller names it.
    pub output: Option<String>,
}

impl Engine {
    /// Keeps what somebody says about a plan.
    pub async fn submit_feedback(
        &self,
        caller: &Caller,
        opinion: Opinion,
    ) -> Result<FeedbackId, Error> {
        caller.allow(Permission::Work)?;
        let Opinion {
            plan,
            rating,
            mut comment,
            output,
        } = opinion;
        clean::maybe(&mut comment);
        let comment = comment.filter(|words| !words.trim().is_empty());
        check(rating, comment.as_deref())?;
        let now = self.now();
        let feedback = Feedback {
            id: FeedbackId::new(self.fresh.timely_id(now)),
            plan,
            rating,
            comment,
            output: None,
            actor: caller.signature(),
            created_at: now,
        };
        let id = feedback.id;
        let kept = self.store.write(&caller.tenant, move |tx| {
            let (mut feedback, output) = (feedback.clone(), output.clone());
            Box::pin(async move {
                // Held until the commit, so that nobody deletes it meanwhile.
                let found = tx.plan(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                if let Some(name) = output {
                    feedback.output = Some(output_of(tx, plan, name).await?);
                }
                tx.add_feedback(&feedback);
                Ok::<(), Error>(())
            })
        });
        kept.await?;
        Ok(id)
    }
}

/// The output of this plan that is named. One of another plan is as unknown as none.
async fn output_of(tx: &mut Tx, plan: PlanId, name: String) -> Result<OutputId, Error> {
    if let Ok(id) = name.parse()
        && tx.plan_of_output(id).await? == Some(plan)
    {
        return Ok(id);
    }
    let what = "output";
    Err(Error::NotFound { what, name })
}

/// Whether it says something, and not too much.
pub(crate) fn check(rating: Option<u32>, comment: Option<&str>) -> Result<(), Refusal> {
    let mut issues = Vec::new();
    let mut issue = |path: &str, message: String| {
        let path = path.to_owned();
        issues.push(Issue { path, message });
    };
    if rating.is_some_and(|rating| !RATINGS.contains(&rating)) {
        issue("rating", "must be 1 to 5".to_owned());
    }
    let characters = comment.map_or(0, |comment| comment.chars().count());
    if characters > MAX_REMARK {
        let message = format!("has {characters} characters, at most {MAX_REMARK} are allowed");
        issue("comment", message);
    }
    if rating.is_none() && comment.is_none() {
        issue("rating", "is missing, and so is `comment`".to_owned());
    }
    match issues.is_empty() {
        true => Ok(()),
        false => Err(Refusal::InvalidInput(issues)),
    }
}
