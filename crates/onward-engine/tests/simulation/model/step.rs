//! A step of the model: what it is, and everyone who ever had it.

use std::sync::Arc;
use std::time::Duration;

use onward_core::id::{ClaimToken, SessionId};
use onward_core::step::{
    Claim, FailReason, NewStep, Review, SkipCause, StepResult, StepState, Work,
};
use onward_core::{StepId, StepStatus, Timestamp};
use onward_engine::next::Handed;
use onward_engine::submit::Submitted;
use onward_store::StepLine;

/// 30 minutes, where nobody said otherwise.
const ORDINARY: Duration = Duration::from_secs(30 * 60);

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) spec: NewStep,
    pub(crate) status: StepStatus,
    /// Every claim that was given out, the first one first.
    pub(crate) claims: Vec<Held>,
    pub(crate) review: Option<Review>,
    pub(crate) result: Option<StepResult>,
    pub(crate) failure: Option<FailReason>,
    pub(crate) skipped_by: Option<SkipCause>,
    pub(crate) ended_at: Option<Timestamp>,
    /// What was answered to the result that completed it.
    pub(crate) answer: Option<Submitted>,
    /// What was handed out in the same breath.
    pub(crate) gave: Option<Handed>,
}

/// A claim.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// None where nobody was told, and the rows were not read yet.
    pub(crate) token: Option<ClaimToken>,
    pub(crate) session: Option<SessionId>,
    pub(crate) started_at: Timestamp,
    pub(crate) last_sign: Option<Timestamp>,
    /// The silence that the plan was marked for began here.
    pub(crate) marked: Option<Timestamp>,
    /// A person changed the instructions, and no agent was told.
    pub(crate) untold: bool,
    pub(crate) handed_back: bool,
}

impl Held {
    pub(crate) fn silent_since(&self) -> Timestamp {
        self.last_sign
            .map_or(self.started_at, |sign| sign.max(self.started_at))
    }

    /// A clock that was set back takes no sign away.
    pub(crate) fn alive(&mut self, now: Timestamp) {
        let before = self.last_sign.unwrap_or(now);
        self.last_sign = Some(before.max(now));
    }
}

impl Step {
    pub(crate) fn new(spec: NewStep) -> Self {
        Self {
            spec,
            status: StepStatus::Pending,
            claims: Vec::new(),
            review: None,
            result: None,
            failure: None,
            skipped_by: None,
            ended_at: None,
            answer: None,
            gave: None,
        }
    }

    pub(crate) fn id(&self) -> StepId {
        self.spec.id
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(
            self.status,
            StepStatus::Completed | StepStatus::Skipped | StepStatus::Failed
        )
    }

    /// The claim that it is in, or ended in.
    pub(crate) fn held(&self) -> Option<&Held> {
        self.claims.last().filter(|held| !held.handed_back)
    }

    pub(crate) fn held_mut(&mut self) -> &mut Held {
        self.claims.last_mut().expect("somebody has this step")
    }

    /// The attempt that it is in, or, while it is pending, that comes next.
    pub(crate) fn attempt(&self) -> u32 {
        let claims = u32::try_from(self.claims.len()).expect("few claims");
        match self.status {
            StepStatus::Pending => claims + 1,
            _ => claims,
        }
    }

    /// Whether this is a token of somebody who had it before.
    pub(crate) fn knows(&self, token: Option<&ClaimToken>) -> bool {
        let mut before = self.claims.iter().filter(|held| held.handed_back);
        token.is_some() && before.any(|held| held.token.as_ref() == token)
    }

    pub(crate) fn threshold(&self, of_plan: Option<Duration>) -> Duration {
        self.spec.stall_threshold.or(of_plan).unwrap_or(ORDINARY)
    }

    /// The last instant at which it is alive; none while nobody works on it.
    pub(crate) fn alive_until(&self, of_plan: Option<Duration>) -> Option<Timestamp> {
        match self.status {
            StepStatus::InProgress => self
                .held()?
                .silent_since()
                .checked_add(self.threshold(of_plan)),
            _ => None,
        }
    }

    fn claim(&self) -> Option<Claim> {
        self.held().map(|held| Claim {
            attempt: self.attempt(),
            token: held.token.clone().unwrap_or(ClaimToken::new("unseen")),
            session: held.session.clone(),
        })
    }

    /// The step as the rows must show it.
    pub(crate) fn row(&self, order: u32) -> onward_core::Step {
        let work = |held: &Held| Work {
            claim: self.claim().expect("it is held"),
            started_at: held.started_at,
            last_progress_at: held.last_sign,
            stall_marked: held.marked,
            undelivered: held.untold,
        };
        let over = || self.ended_at.expect("it has ended");
        let held = || self.held().expect("somebody has it");
        let state = match self.status {
            StepStatus::Pending => StepState::Pending {
                attempt: self.attempt(),
            },
            StepStatus::InProgress => StepState::InProgress(work(held())),
            StepStatus::AwaitingInput => StepState::AwaitingInput {
                work: work(held()),
                review: self.review.clone().expect("a person is asked"),
            },
            StepStatus::Completed => StepState::Completed {
                claim: self.claim().expect("somebody completed it"),
                started_at: held().started_at,
                ended_at: over(),
                result: Arc::new(self.result.clone().expect("it has a result")),
            },
            StepStatus::Skipped => StepState::Skipped {
                by: self.skipped_by.expect("somebody passed over it"),
                claim: self.claim(),
                ended_at: over(),
            },
            StepStatus::Failed => StepState::Failed {
                reason: self.failure.clone().expect("it failed for a reason"),
                claim: self.claim(),
                ended_at: over(),
            },
        };
        let before = self.claims.iter().filter(|held| held.handed_back);
        onward_core::Step {
            spec: self.spec.clone(),
            order,
            state,
            superseded: before.filter_map(|held| held.token.clone()).collect(),
            updated_at: Timestamp::MIN,
        }
    }

    /// The step as a list must show it.
    pub(crate) fn line(&self, order: u32, of_plan: Option<Duration>) -> StepLine {
        let held = self.held();
        let open = matches!(
            self.status,
            StepStatus::InProgress | StepStatus::AwaitingInput
        );
        let began = held.filter(|_| open || self.status == StepStatus::Completed);
        StepLine {
            id: self.id(),
            order,
            step_type: self.spec.step_type,
            title: self.spec.title.clone(),
            status: self.status,
            attempt: self.attempt(),
            session: held.and_then(|held| held.session.clone()),
            started_at: began.map(|held| held.started_at),
            last_progress_at: held.filter(|_| open).and_then(|held| held.last_sign),
            stalls_at: self.alive_until(of_plan),
            stall_threshold: self.spec.stall_threshold,
            ended_at: self.ended_at,
            result_summary: self.result.as_ref().map(|result| result.summary.clone()),
            failure: self.failure.clone(),
            updated_at: Timestamp::MIN,
        }
    }
}
