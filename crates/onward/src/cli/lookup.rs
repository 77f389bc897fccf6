//! Finds plans, steps and reviews from the user's input: a unique id prefix, the words of a plan's name,
//! `PLAN/ORDER`, or the id of a review.

use onward_core::{Code, PlanId, StepId};
use onward_engine::Error;
use onward_engine::error::{MAX_MATCHES, match_entry};
use onward_engine::list::{OpenReview, PlanQuery};

use super::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::format;
use crate::output::status::step_label;

/// Columns of a name in an error.
const MAX_NAME: usize = 25;
/// Reviews that are compared with an id.
const MAX_REVIEWS: u32 = 500;

impl Database {
    /// The plan with an id prefix, or the only plan whose name and question contain these words.
    pub(super) async fn find_plan(&self, text: &str) -> Result<PlanId> {
        match self.engine.find_plan(&self.caller, text).await {
            Err(Error::PlanNotFound(_)) => {}
            found => return Ok(found?),
        }
        let query = PlanQuery {
            limit: u32::try_from(MAX_MATCHES + 1).unwrap_or(u32::MAX),
            finished: true,
            text: Some(text.to_owned()),
            ..PlanQuery::default()
        };
        let plans = if text.trim().is_empty() {
            Vec::new()
        } else {
            self.engine.list_plans(&self.caller, query).await?.plans
        };
        let named = plans.iter().filter(|listed| {
            let name = listed.sheet.brief.name.to_lowercase();
            name == text.trim().to_lowercase()
        });
        // The complete name of one plan may be a part of other names.
        let candidates = match named.collect::<Vec<_>>() {
            named if named.len() == 1 => named,
            _ => plans.iter().collect(),
        };
        match candidates[..] {
            [listed] => Ok(listed.sheet.head.id),
            [] => Err(Error::PlanNotFound(text.to_owned()).into()),
            _ => Err(Error::Ambiguous {
                text: text.to_owned(),
                kind: "plans",
                matches: plans
                    .iter()
                    .map(|listed| match_entry(listed.sheet.head.id, Some(&listed.sheet.brief.name)))
                    .collect(),
            }
            .into()),
        }
    }

    /// The step `PLAN/ORDER`, or the step with an id prefix.
    pub(super) async fn find_step(&self, text: &str) -> Result<StepId> {
        let Some((plan, order)) = split_order(text) else {
            return Ok(self.engine.find_step(&self.caller, text).await?);
        };
        let plan = self.find_plan(plan).await?;
        let page = self
            .engine
            .list_steps(&self.caller, plan, None, order.saturating_sub(1), 1)
            .await?;
        let step = page.steps.first().filter(|line| line.order == order);
        let missing = || Error::StepNotFound {
            step: text.to_owned(),
            kept: None,
        };
        Ok(step.ok_or_else(missing)?.id)
    }

    /// The pending review with this id, or of this step or plan.
    pub(super) async fn find_review(&self, text: &str) -> Result<OpenReview> {
        let open = self.engine.open_reviews(&self.caller, MAX_REVIEWS).await?;
        let prefix = text.to_lowercase();
        let begins = |id: String| !prefix.is_empty() && id.starts_with(&prefix);
        let matching: Vec<&OpenReview> = open
            .iter()
            .filter(|review| {
                begins(review.id.to_string())
                    || begins(review.step.to_string())
                    || begins(review.plan.to_string())
            })
            .collect();
        if let [review] = matching[..] {
            // A prefix that other steps or plans share is too short for a decision.
            if begins(review.plan.to_string()) {
                self.engine.find_plan(&self.caller, text).await?;
            } else if begins(review.step.to_string()) {
                self.engine.find_step(&self.caller, text).await?;
            }
            return Ok(review.clone());
        }
        if !matching.is_empty() {
            return Err(self.ambiguous(text, matching).await?);
        }
        match self.find_step(text).await {
            Ok(step) => {
                let review = open.into_iter().find(|review| review.step == step);
                let (_, found) = self.engine.step(&self.caller, step).await?;
                let status = step_label(found.status());
                return review.ok_or_else(|| no_review(format!("step `{text}` is {status}")));
            }
            Err(failure) if failure.code == Code::StepNotFound => {}
            Err(failure) if failure.code == Code::PlanNotFound => {}
            Err(failure) => return Err(failure),
        }
        match self.find_plan(text).await {
            Ok(plan) => {
                let of_plan = open.iter().filter(|review| review.plan == plan);
                match of_plan.collect::<Vec<_>>()[..] {
                    [] => Err(no_review(format!("plan `{text}`"))),
                    [review] => Ok(review.clone()),
                    ref several => Err(self.ambiguous(text, several.to_vec()).await?),
                }
            }
            Err(failure) if failure.code == Code::PlanNotFound => Err(Failure::new(
                Exit::NotFound,
                Code::StepNotFound,
                format!("no plan, step or pending review matches `{text}`"),
                "list the pending reviews with `onward review list`",
            )),
            Err(failure) => Err(failure),
        }
    }

    /// The error for text that identifies several reviews.
    async fn ambiguous(&self, text: &str, mut matching: Vec<&OpenReview>) -> Result<Failure> {
        matching.truncate(MAX_MATCHES + 1);
        let mut matches = Vec::new();
        for review in matching {
            let sheet = self.engine.sheet(&self.caller, review.plan).await?;
            let step = format!("{}/{}", format::short_id(review.plan), review.order);
            let name = format::truncate(&sheet.brief.name, MAX_NAME);
            matches.push(format!("{step} {name}"));
        }
        Ok(Error::Ambiguous {
            text: text.to_owned(),
            kind: "reviews",
            matches,
        }
        .into())
    }

    /// The shortest id of a plan that commands accept: four characters if they are unique.
    pub(super) async fn short_plan(&self, plan: PlanId) -> Result<String> {
        let short = format::brief_id(plan);
        match self.engine.find_plan(&self.caller, &short).await {
            Ok(_) => Ok(short),
            Err(Error::Ambiguous { .. }) => Ok(format::short_id(plan)),
            Err(error) => Err(error.into()),
        }
    }
}

/// A plan and an order, if the text is `PLAN/ORDER`.
pub(super) fn split_order(text: &str) -> Option<(&str, u32)> {
    let (plan, order) = text.rsplit_once('/')?;
    Some((plan, order.parse().ok()?))
}

fn no_review(what: String) -> Failure {
    Failure::new(
        Exit::Rejected,
        Code::IllegalTransition,
        format!("no pending review: {what}"),
        "list the pending reviews with `onward review list`",
    )
}
