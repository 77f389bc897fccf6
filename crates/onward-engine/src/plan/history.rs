//! What happened to a step, a review and an output: attempts, the decision, the versions, and the
//! values that branch conditions have read. Queries for people; agents get their context from
//! `context.rs`.

use std::collections::HashMap;

use onward_core::branch::Branch;
use onward_core::condition::{PlanScope, Scope, StepScope, TestedValue};
use onward_core::event::{DecidedBy, Decision, ReviewAction};
use onward_core::id::{ArtifactId, BranchId, ReviewId, SessionId};
use onward_core::role::Permission;
use onward_core::{Event, Json, PlanId, StepId, Timestamp};
use onward_store::{AuditTrail, Author, Contexts, OutputVersion, Outputs, Recent, StepLine};
use serde_json::Value;
use uuid::Uuid;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// Maximum number of events of a step's attempts.
const MAX_ATTEMPT_EVENTS: u32 = 100;

/// A review that is no longer pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedReview {
    /// The plan.
    pub plan: PlanId,
    /// The step under review.
    pub step: StepId,
    /// The audit trail entry of the decision.
    pub seq: u64,
    /// The decision.
    pub decision: Decision,
    /// How it was decided.
    pub by: DecidedBy,
    /// Who decided.
    pub author: Author,
    /// When.
    pub at: Timestamp,
}

/// The attempts of a step, and its results that were rejected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepHistory {
    /// Attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// Rejected results, oldest first.
    pub late_results: Vec<LateResult>,
}

/// An attempt at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The attempt number, from 1.
    pub number: u32,
    /// Who claimed the step.
    pub author: String,
    /// The session of the claim.
    pub session: Option<SessionId>,
    /// When it was claimed.
    pub started_at: Timestamp,
    /// When and how the attempt ended, unless it continues.
    pub ended: Option<(Timestamp, AttemptEnd)>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// With a result.
    Completed,
    /// The step failed.
    Failed,
    /// The step was released or taken over.
    Released,
}

/// A rejected result, stored as an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateResult {
    /// The artifact with the result.
    pub artifact: ArtifactId,
    /// The code of the rejection.
    pub rejection: String,
    /// When it arrived.
    pub at: Timestamp,
}

impl StepHistory {
    fn add(&mut self, event: Recent) {
        let details = event
            .details
            .as_ref()
            .and_then(Json::parse)
            .unwrap_or_default();
        let text = |key: &str| details.get(key).and_then(Value::as_str);
        let end = match event.name.as_str() {
            "step_started" => {
                let number = details.get("attempt").and_then(Value::as_u64);
                let next = self.attempts.last().map_or(1, |last| last.number + 1);
                self.attempts.push(Attempt {
                    number: number
                        .and_then(|number| u32::try_from(number).ok())
                        .unwrap_or(next),
                    author: event.actor,
                    session: event.session,
                    started_at: event.at,
                    ended: None,
                });
                return;
            }
            "late_result_kept" => {
                let artifact = text("artifactId").and_then(|id| id.parse().ok());
                self.late_results
                    .extend(artifact.map(|artifact| LateResult {
                        artifact,
                        rejection: text("refused").unwrap_or_default().to_owned(),
                        at: event.at,
                    }));
                return;
            }
            "step_completed" => AttemptEnd::Completed,
            "step_failed" => AttemptEnd::Failed,
            _ => AttemptEnd::Released,
        };
        let open = self.attempts.last_mut().filter(|last| last.ended.is_none());
        if let Some(attempt) = open {
            attempt.ended = Some((event.at, end));
        }
    }
}

impl Engine {
    /// The values that the conditions of these branches read, each with the step before the branch.
    /// Branches of steps that are not completed are missing.
    pub async fn tested_values(
        &self,
        caller: &Caller,
        branches: &[(Branch, StepLine)],
    ) -> Result<HashMap<BranchId, Vec<TestedValue>>, Error> {
        caller.allow(Permission::Read)?;
        let mut steps: Vec<StepId> = branches.iter().map(|(_, step)| step.id).collect();
        steps.sort();
        steps.dedup();
        let results = self.store.read(&caller.tenant, move |tx| {
            let steps = steps.clone();
            Box::pin(async move { Contexts(tx).results(&steps).await })
        });
        let results = results.await?;
        let values = |(branch, step): &(Branch, StepLine)| {
            let result = results.iter().find(|result| result.step == step.id)?;
            let data = result.data.as_ref().and_then(Json::parse);
            let scope = Scope {
                confidence: result.confidence,
                result_summary: &result.summary,
                result: data.as_ref(),
                step: StepScope {
                    order: step.order,
                    step_type: step.step_type.as_str(),
                    attempt: step.attempt,
                },
                // Values of the plan are not listed.
                plan: PlanScope {
                    progress: 0,
                    completed: 0,
                    failed: 0,
                    pending: 0,
                },
            };
            Some((branch.id, branch.condition.tested_values(&scope)))
        };
        Ok(branches.iter().filter_map(values).collect())
    }

    /// The attempts of a step and its rejected results, oldest first.
    pub async fn step_history(
        &self,
        caller: &Caller,
        plan: PlanId,
        step: StepId,
    ) -> Result<StepHistory, Error> {
        caller.allow(Permission::Read)?;
        let events = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Contexts(tx).attempts(plan, step, MAX_ATTEMPT_EVENTS).await })
        });
        let mut history = StepHistory::default();
        for event in events.await?.into_iter().rev() {
            history.add(event);
        }
        Ok(history)
    }

    /// The decision of a review that is no longer pending; `None` if it is pending or unknown.
    pub async fn review_decision(
        &self,
        caller: &Caller,
        review: ReviewId,
    ) -> Result<Option<DecidedReview>, Error> {
        caller.allow(Permission::Read)?;
        let since = created_at(*review.as_uuid());
        let entries = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { AuditTrail(tx).review(review, since).await })
        });
        let decided = entries.await?.into_iter().find_map(|(plan, entry)| {
            let Event::UserReviewed {
                step,
                review: decided,
                action: ReviewAction::Decided { decision, by, .. },
            } = entry.event
            else {
                return None;
            };
            (decided == review).then_some(DecidedReview {
                plan,
                step,
                seq: entry.seq,
                decision,
                by,
                author: entry.author,
                at: entry.at,
            })
        });
        Ok(decided)
    }

    /// The versions of the output with this title, newest first.
    pub async fn output_versions(
        &self,
        caller: &Caller,
        plan: PlanId,
        title: &str,
        limit: u32,
    ) -> Result<Vec<OutputVersion>, Error> {
        caller.allow(Permission::Read)?;
        let title = title.to_owned();
        let versions = self.store.read(&caller.tenant, move |tx| {
            let title = title.clone();
            Box::pin(async move { Outputs(tx).output_versions(plan, &title, limit).await })
        });
        Ok(versions.await?)
    }
}

/// The time in an ordered id, in milliseconds since 1970 in its first six bytes. Ids that users have
/// made up can contain any time.
fn created_at(id: Uuid) -> Timestamp {
    let (millis, _) = id.as_u64_pair();
    Timestamp::from_millis(i64::try_from(millis >> 16).unwrap_or(0))
}
