//! A step and all of its claims.

use std::sync::Arc;
use std::time::Duration;

use onward_core::event::Decision;
use onward_core::id::{ArtifactId, ClaimToken, SessionId};
use onward_core::step::{
    Claim, FailReason, NewStep, Review, SkipCause, StepResult, StepState, Undelivered, Work,
};
use onward_core::{StepId, StepStatus, Timestamp};
use onward_engine::next_step::NextStep;
use onward_engine::step::ReviewResponse;
use onward_engine::submit::SubmitResponse;
use onward_store::StepLine;

const DEFAULT_STALL_THRESHOLD: Duration = Duration::from_secs(30 * 60);

/// Token of a claim whose response was lost, until the rows are read.
pub(super) const UNKNOWN_TOKEN: &str = "unknown";

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) spec: NewStep,
    pub(crate) status: StepStatus,
    pub(crate) superseded_by: Option<StepId>,
    /// Oldest first.
    pub(crate) claims: Vec<ClaimRecord>,
    pub(crate) review: Option<Review>,
    pub(crate) result: Option<StepResult>,
    pub(crate) failure: Option<FailReason>,
    pub(crate) skipped_by: Option<SkipCause>,
    pub(crate) ended_at: Option<Timestamp>,
    /// Response to the submission that completed the step.
    pub(crate) response: Option<SubmitResponse>,
    /// The next step in that response, if it was requested, or why none was available.
    pub(crate) next: Option<NextStep>,
    /// The last decision on the step, and the response to it.
    pub(crate) decided: Option<(Decision, Option<String>, ReviewResponse)>,
}

#[derive(Debug, Clone)]
pub(crate) struct ClaimRecord {
    /// `None` until it is known from a response or the rows.
    pub(crate) token: Option<ClaimToken>,
    pub(crate) session: Option<SessionId>,
    pub(crate) started_at: Timestamp,
    pub(crate) last_activity: Option<Timestamp>,
    /// Whether events of the session were recorded as activity.
    pub(crate) monitored: bool,
    /// Start of the inactivity for which the plan was marked as stalled.
    pub(crate) stall_marked: Option<Timestamp>,
    /// A change of the instructions that the agent has not received.
    pub(crate) undelivered: Option<Undelivered>,
    /// The holder's last invalid input, until a result is accepted.
    pub(crate) draft: Option<(DraftKey, ArtifactId)>,
    pub(crate) released: bool,
}

/// The key of a stored input: tenant, step and content.
pub(crate) type DraftKey = (Arc<str>, StepId, String);

impl ClaimRecord {
    pub(crate) fn inactive_since(&self) -> Timestamp {
        self.last_activity
            .map_or(self.started_at, |last| last.max(self.started_at))
    }

    /// Keeps the later time if the clock was set back.
    pub(crate) fn record_activity(&mut self, now: Timestamp) {
        let last = self.last_activity.unwrap_or(now);
        self.last_activity = Some(last.max(now));
    }
}

impl Step {
    /// Whether a reviewer's feedback waits for this session, which holds the step.
    pub(crate) fn has_feedback_for(&self, session: Option<&SessionId>) -> bool {
        self.current_claim().is_some_and(|claim| {
            claim.undelivered == Some(Undelivered::Feedback) && claim.session.as_ref() == session
        })
    }

    pub(crate) fn new(spec: NewStep) -> Self {
        Self {
            spec,
            status: StepStatus::Pending,
            superseded_by: None,
            claims: Vec::new(),
            review: None,
            result: None,
            failure: None,
            skipped_by: None,
            ended_at: None,
            response: None,
            next: None,
            decided: None,
        }
    }

    /// The response while the step's review is pending.
    pub(crate) fn awaiting_review(&self) -> NextStep {
        NextStep::AwaitingReview {
            step: self.id(),
            review: self.review.clone().expect("step has a review"),
            held: Vec::new(),
        }
    }

    pub(crate) fn id(&self) -> StepId {
        self.spec.id
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(
            self.status,
            StepStatus::Completed | StepStatus::Skipped | StepStatus::Failed
        )
    }

    /// The active claim, or the one in which the step ended.
    pub(crate) fn current_claim(&self) -> Option<&ClaimRecord> {
        self.claims.last().filter(|claim| !claim.released)
    }

    /// Whether the caller with this token holds the step. A missing token counts as the current one.
    pub(crate) fn is_held_by(&self, token: Option<&ClaimToken>) -> bool {
        let is_held = matches!(
            self.status,
            StepStatus::InProgress | StepStatus::AwaitingInput
        );
        let claim = self.current_claim().filter(|_| is_held);
        claim.is_some_and(|claim| token.is_none() || claim.token.as_ref() == token)
    }

    pub(crate) fn take_draft(&mut self) -> Option<(DraftKey, ArtifactId)> {
        self.claims.last_mut()?.draft.take()
    }

    pub(crate) fn current_claim_mut(&mut self) -> &mut ClaimRecord {
        self.claims.last_mut().expect("step has a claim")
    }

    /// The current attempt number; for a pending step, the next one.
    pub(crate) fn attempt(&self) -> u32 {
        let claims = u32::try_from(self.claims.len()).expect("count fits u32");
        match self.status {
            StepStatus::Pending => claims + 1,
            // The start of the plan is under review.
            StepStatus::AwaitingInput if self.current_claim().is_none() => claims + 1,
            _ => claims,
        }
    }

    /// Whether this is the token of a released claim.
    pub(crate) fn had_token(&self, token: Option<&ClaimToken>) -> bool {
        let mut released = self.claims.iter().filter(|claim| claim.released);
        token.is_some() && released.any(|claim| claim.token.as_ref() == token)
    }

    /// The session of a call: the reported one, or that of the claim whose token it carries.
    pub(crate) fn calling_session(
        &self,
        token: Option<&ClaimToken>,
        reported: Option<&SessionId>,
    ) -> Option<SessionId> {
        let claim = self
            .current_claim()
            .filter(|_| self.status != StepStatus::Pending);
        let proven = claim.filter(|claim| token.is_some() && claim.token.as_ref() == token);
        let inferred = proven.and_then(|claim| claim.session.clone());
        reported.cloned().or(inferred)
    }

    pub(crate) fn threshold(&self, plan_threshold: Option<Duration>) -> Duration {
        self.spec
            .stall_threshold
            .or(plan_threshold)
            .unwrap_or(DEFAULT_STALL_THRESHOLD)
    }

    /// The threshold; of a monitored claim, a quarter more, because the last event of its session may
    /// not be recorded.
    fn silence_limit(&self, plan_threshold: Option<Duration>) -> Duration {
        let threshold = self.threshold(plan_threshold);
        let monitored = self.current_claim().is_some_and(|claim| claim.monitored);
        if monitored {
            threshold + (threshold / 4).max(Duration::from_millis(1))
        } else {
            threshold
        }
    }

    /// The last instant before the step stalls; `None` if it is not in progress.
    pub(crate) fn active_until(&self, plan_threshold: Option<Duration>) -> Option<Timestamp> {
        match self.status {
            StepStatus::InProgress => self
                .current_claim()?
                .inactive_since()
                .checked_add(self.silence_limit(plan_threshold)),
            _ => None,
        }
    }

    fn claim(&self) -> Option<Claim> {
        self.current_claim().map(|claim| Claim {
            attempt: self.attempt(),
            token: claim
                .token
                .clone()
                .unwrap_or(ClaimToken::new(UNKNOWN_TOKEN)),
            session: claim.session.clone(),
        })
    }

    /// The step in the form of the rows.
    pub(crate) fn row(&self, order: u32) -> onward_core::Step {
        let work = |claim: &ClaimRecord| Work {
            claim: self.claim().expect("step has a claim"),
            started_at: claim.started_at,
            last_progress_at: claim.last_activity,
            monitored: claim.monitored,
            stall_marked: claim.stall_marked,
            // The agents' sessions do not end.
            orphaned_at: None,
            undelivered: claim.undelivered,
            kept: claim.draft.as_ref().map(|(_, id)| *id),
        };
        let ended_at = || self.ended_at.expect("step has ended");
        let claim = || self.current_claim().expect("step has a claim");
        let state = match self.status {
            StepStatus::Pending => StepState::Pending {
                attempt: self.attempt(),
            },
            StepStatus::InProgress => StepState::InProgress(work(claim())),
            StepStatus::AwaitingInput => StepState::AwaitingInput {
                work: self.current_claim().map(work),
                review: self.review.clone().expect("step has a review"),
            },
            StepStatus::Completed => StepState::Completed {
                claim: self.claim().expect("completed step has a claim"),
                started_at: claim().started_at,
                ended_at: ended_at(),
                result: Arc::new(self.result.clone().expect("completed step has a result")),
            },
            StepStatus::Skipped => StepState::Skipped {
                by: self.skipped_by.expect("skipped step has a cause"),
                claim: self.claim(),
                ended_at: ended_at(),
            },
            StepStatus::Failed => StepState::Failed {
                reason: self.failure.clone().expect("failed step has a reason"),
                claim: self.claim(),
                ended_at: ended_at(),
            },
        };
        let released = self.claims.iter().filter(|claim| claim.released);
        onward_core::Step {
            spec: self.spec.clone(),
            order,
            state,
            superseded: released.filter_map(|claim| claim.token.clone()).collect(),
            superseded_by: self.superseded_by,
            updated_at: Timestamp::MIN,
        }
    }

    /// The step in the form of a list entry.
    pub(crate) fn line(&self, order: u32, plan_threshold: Option<Duration>) -> StepLine {
        let claim = self.current_claim();
        let open = matches!(
            self.status,
            StepStatus::InProgress | StepStatus::AwaitingInput
        );
        let started = claim.filter(|_| open || self.status == StepStatus::Completed);
        StepLine {
            id: self.id(),
            order,
            step_type: self.spec.step_type,
            title: self.spec.title.clone(),
            status: self.status,
            attempt: self.attempt(),
            session: claim.and_then(|claim| claim.session.clone()),
            started_at: started.map(|claim| claim.started_at),
            last_progress_at: claim.filter(|_| open).and_then(|claim| claim.last_activity),
            monitored: claim.filter(|_| open).is_some_and(|claim| claim.monitored),
            orphaned_at: None,
            stalls_at: self.active_until(plan_threshold),
            stall_threshold: self.spec.stall_threshold,
            ended_at: self.ended_at,
            result_summary: self.result.as_ref().map(|result| result.summary.clone()),
            failure: self.failure.clone(),
            updated_at: Timestamp::MIN,
            note: None,
            supersedes: self.spec.supersedes,
            superseded_by: self.superseded_by,
        }
    }
}
