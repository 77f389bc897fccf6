//! A step: what it is, the states that it can be in with what belongs to each, and the one table of
//! moves between them.
//!
//! [`StepStatus::after`] is the law: a move that it does not name is refused, with the state and what
//! was asked. Here nothing is decided: who asks for a move, and what follows, stands in
//! [`decide`](mod@crate::decide). How an event changes a step stands in `step/apply.rs`.

mod apply;

pub use apply::StepMisfit;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::id::{BranchId, ClaimToken, ReviewId, SessionId, StepId};
use crate::policy::{UnknownWord, from_word};
use crate::time::Timestamp;

/// What kind of work a step is. It informs the agent; all kinds are treated alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepType {
    /// Look for sources.
    Search,
    /// Take data out of sources.
    Extract,
    /// Draw conclusions.
    Analyze,
    /// Look for what is wrong.
    Critique,
    /// Put together.
    Synthesize,
    /// Stop and take stock.
    Checkpoint,
    /// Anything else.
    Custom,
}

impl StepType {
    /// Every kind.
    pub const ALL: [StepType; 7] = [
        StepType::Search,
        StepType::Extract,
        StepType::Analyze,
        StepType::Critique,
        StepType::Synthesize,
        StepType::Checkpoint,
        StepType::Custom,
    ];

    /// The word for it, on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            StepType::Search => "search",
            StepType::Extract => "extract",
            StepType::Analyze => "analyze",
            StepType::Critique => "critique",
            StepType::Synthesize => "synthesize",
            StepType::Checkpoint => "checkpoint",
            StepType::Custom => "custom",
        }
    }
}

impl fmt::Display for StepType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for StepType {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &Self::ALL, Self::as_str)
    }
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepStatus {
    /// Not handed out.
    Pending,
    /// Claimed by an agent.
    InProgress,
    /// Waiting for a person.
    AwaitingInput,
    /// Done, with a result. Terminal.
    Completed,
    /// Passed over. Terminal.
    Skipped,
    /// Given up. Terminal.
    Failed,
}

/// Why a step moves from one status to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepCause {
    /// An agent takes the step on.
    Claim,
    /// A branch's `skip_to` passes over it.
    PassOver,
    /// `modify_plan: fail_step`.
    FailByHand,
    /// The sweep's policy `fail`.
    FailByPolicy,
    /// It was handed back as often as it may be.
    UseUp,
    /// It goes back to be handed out again.
    HandBack,
    /// A result is submitted.
    Complete,
    /// The agent asks a person.
    AskReview,
    /// The person approves.
    Approve,
    /// The person rejects.
    Reject,
    /// The person wants it changed.
    Revise,
    /// The person wants it skipped.
    Skip,
}

/// A move that the law of the steps does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a step that is `{from}` {}", asked.refused())]
pub struct IllegalStepMove {
    /// Where the step stands.
    pub from: StepStatus,
    /// What was asked of it.
    pub asked: StepCause,
}

impl StepStatus {
    /// Every status.
    pub const ALL: [StepStatus; 6] = [
        StepStatus::Pending,
        StepStatus::InProgress,
        StepStatus::AwaitingInput,
        StepStatus::Completed,
        StepStatus::Skipped,
        StepStatus::Failed,
    ];

    /// The word for it, on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            StepStatus::Pending => "pending",
            StepStatus::InProgress => "in_progress",
            StepStatus::AwaitingInput => "awaiting_input",
            StepStatus::Completed => "completed",
            StepStatus::Skipped => "skipped",
            StepStatus::Failed => "failed",
        }
    }

    /// Whether nothing can move it any more.
    pub const fn is_terminal(self) -> bool {
        match self {
            StepStatus::Pending | StepStatus::InProgress | StepStatus::AwaitingInput => false,
            StepStatus::Completed | StepStatus::Skipped | StepStatus::Failed => true,
        }
    }

    /// The table of moves: where this cause leads from here, if it leads anywhere.
    pub const fn after(self, cause: StepCause) -> Result<StepStatus, IllegalStepMove> {
        use StepCause as C;
        use StepStatus as S;
        match (self, cause) {
            (S::Pending, C::Claim) => Ok(S::InProgress),
            (S::Pending, C::PassOver) => Ok(S::Skipped),
            (S::Pending, C::FailByHand) => Ok(S::Failed),
            (S::InProgress, C::Complete) => Ok(S::Completed),
            (S::InProgress, C::AskReview) => Ok(S::AwaitingInput),
            (S::InProgress, C::HandBack) => Ok(S::Pending),
            (S::InProgress, C::FailByHand | C::FailByPolicy | C::UseUp) => Ok(S::Failed),
            (S::AwaitingInput, C::Approve) => Ok(S::Completed),
            (S::AwaitingInput, C::Reject) => Ok(S::Failed),
            (S::AwaitingInput, C::Revise) => Ok(S::InProgress),
            (S::AwaitingInput, C::Skip) => Ok(S::Skipped),

            (S::Pending, C::FailByPolicy | C::UseUp | C::HandBack | C::Complete | C::AskReview)
            | (S::Pending | S::InProgress, C::Approve | C::Reject | C::Revise | C::Skip)
            | (S::InProgress, C::Claim | C::PassOver)
            | (S::AwaitingInput, C::Claim | C::PassOver | C::FailByHand | C::FailByPolicy)
            | (S::AwaitingInput, C::UseUp | C::HandBack | C::Complete | C::AskReview)
            | (S::Completed | S::Skipped | S::Failed, C::Claim | C::PassOver | C::FailByHand)
            | (S::Completed | S::Skipped | S::Failed, C::FailByPolicy | C::UseUp | C::HandBack)
            | (S::Completed | S::Skipped | S::Failed, C::Complete | C::AskReview | C::Approve)
            | (S::Completed | S::Skipped | S::Failed, C::Reject | C::Revise | C::Skip) => {
                Err(IllegalStepMove {
                    from: self,
                    asked: cause,
                })
            }
        }
    }
}

impl fmt::Display for StepStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for StepStatus {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &Self::ALL, Self::as_str)
    }
}

impl StepCause {
    /// Every cause.
    pub const ALL: [StepCause; 12] = [
        StepCause::Claim,
        StepCause::PassOver,
        StepCause::FailByHand,
        StepCause::FailByPolicy,
        StepCause::UseUp,
        StepCause::HandBack,
        StepCause::Complete,
        StepCause::AskReview,
        StepCause::Approve,
        StepCause::Reject,
        StepCause::Revise,
        StepCause::Skip,
    ];

    /// What is asked, as the docs' tables name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            StepCause::Claim => "an agent claims it",
            StepCause::PassOver => "a branch's `skip_to` passes over it",
            StepCause::FailByHand => "`fail_step`",
            StepCause::FailByPolicy => "the policy `fail`",
            StepCause::UseUp => "its attempts are used up",
            StepCause::HandBack => "it is handed back",
            StepCause::Complete => "a result is submitted",
            StepCause::AskReview => "a review is requested",
            StepCause::Approve => "`approve`",
            StepCause::Reject => "`reject`",
            StepCause::Revise => "`modify`",
            StepCause::Skip => "`skip`",
        }
    }

    const fn refused(self) -> &'static str {
        match self {
            StepCause::Claim => "cannot be claimed",
            StepCause::PassOver => "cannot be passed over",
            StepCause::FailByHand | StepCause::FailByPolicy | StepCause::UseUp => {
                "cannot be failed"
            }
            StepCause::HandBack => "cannot be handed back",
            StepCause::Complete => "takes no result",
            StepCause::AskReview => "cannot be put up for review",
            StepCause::Approve | StepCause::Reject | StepCause::Revise | StepCause::Skip => {
                "has no open review to decide"
            }
        }
    }
}

/// One agent's hold on a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// 1 for the first agent that took the step on, 2 for the next one, and so on.
    pub attempt: u32,
    /// What proves it.
    pub token: ClaimToken,
    /// The session that holds it, where the agent named one.
    pub session: Option<SessionId>,
}

/// A step that somebody works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Whose work it is.
    pub claim: Claim,
    /// When this claim began.
    pub started_at: Timestamp,
    /// The last sign of life since then.
    pub last_progress_at: Option<Timestamp>,
    /// The reference instant of the stall that the plan was marked for. One stall marks once.
    pub stall_marked: Option<Timestamp>,
    /// A person changed the instructions, and no agent has been told yet.
    pub undelivered: bool,
}

/// A question to a person that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// Which review.
    pub id: ReviewId,
    /// What the person reads; on approval it becomes the step's result.
    pub summary: String,
    /// What the agent wants to know.
    pub questions: Vec<String>,
    /// Since when it waits.
    pub requested_at: Timestamp,
}

/// What a step found out or made.
#[derive(Debug, Clone, PartialEq)]
pub struct StepResult {
    /// In words.
    pub summary: String,
    /// As data: a JSON object. Branches look at it.
    pub data: Option<Value>,
    /// 0 to 1.
    pub confidence: Option<f64>,
    /// How it was done.
    pub report: Option<Value>,
    /// How the output should show it.
    pub formatting_notes: Option<String>,
}

impl StepResult {
    /// A result that is words only.
    pub fn of_summary(summary: impl Into<String>) -> Self {
        Self {
            summary: summary.into(),
            data: None,
            confidence: None,
            report: None,
            formatting_notes: None,
        }
    }
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailReason {
    /// Somebody failed it, and may have said why.
    ByHand(Option<String>),
    /// It stalled, and the plan's policy is `fail`.
    Stalled,
    /// It was handed back as often as it may be.
    AttemptsUsedUp,
    /// A person rejected it.
    Rejected(Option<String>),
}

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailReason::ByHand(Some(reason)) | FailReason::Rejected(Some(reason)) => {
                f.write_str(reason)
            }
            FailReason::ByHand(None) => f.write_str("failed by hand"),
            FailReason::Stalled => f.write_str("stalled"),
            FailReason::AttemptsUsedUp => f.write_str("attempts used up"),
            FailReason::Rejected(None) => f.write_str("rejected"),
        }
    }
}

/// Who passed over a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipCause {
    /// A branch's `skip_to`.
    Branch(BranchId),
    /// A person, in a review.
    Review(ReviewId),
}

/// A step's state, with what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub enum StepState {
    /// Not handed out.
    Pending {
        /// The attempt that the next claim is.
        attempt: u32,
    },
    /// Claimed.
    InProgress(Work),
    /// Waiting for a person. No clock runs.
    AwaitingInput {
        /// What the agent goes on with after `modify`.
        work: Work,
        /// What the person is asked.
        review: Review,
    },
    /// Done.
    Completed {
        /// Who did it.
        claim: Claim,
        /// When that claim began.
        started_at: Timestamp,
        /// When it was done.
        ended_at: Timestamp,
        /// What came out.
        result: Arc<StepResult>,
    },
    /// Passed over.
    Skipped {
        /// Who passed over it.
        by: SkipCause,
        /// Who had it, if anybody.
        claim: Option<Claim>,
        /// When.
        ended_at: Timestamp,
    },
    /// Given up.
    Failed {
        /// Why.
        reason: FailReason,
        /// Who had it, if anybody.
        claim: Option<Claim>,
        /// When.
        ended_at: Timestamp,
    },
}

/// A step as it comes into a plan: everything about it that does not change by working on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStep {
    /// Which step.
    pub id: StepId,
    /// What kind of work.
    pub step_type: StepType,
    /// A short name for people.
    pub title: Option<String>,
    /// What the agent is to do.
    pub instructions: String,
    /// Steps that must be terminal before this one is handed out. No step twice.
    pub depends_on: Vec<StepId>,
    /// This step's own threshold.
    pub stall_threshold: Option<Duration>,
    /// How often it is handed out at most.
    pub max_attempts: u32,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it is.
    pub spec: NewStep,
    /// Its place: 1-based, gapless.
    pub order: u32,
    /// Where it stands.
    pub state: StepState,
    /// The tokens of the claims that were handed back, oldest first.
    pub superseded: Vec<ClaimToken>,
    /// When anything about it last changed, but for its place.
    pub updated_at: Timestamp,
}

/// What stands between a step's instructions and the words of a person who wants it changed.
const FEEDBACK: &str = "\n\n---\n\nUser feedback: ";

impl Step {
    /// A step that nobody has touched.
    pub fn new(spec: NewStep, order: u32, at: Timestamp) -> Self {
        Self {
            spec,
            order,
            state: StepState::Pending { attempt: 1 },
            superseded: Vec::new(),
            updated_at: at,
        }
    }

    /// Whether its instructions hold the words of a person who wanted it changed.
    pub fn carries_feedback(&self) -> bool {
        self.spec.instructions.contains(FEEDBACK)
    }

    /// Which step.
    pub fn id(&self) -> StepId {
        self.spec.id
    }

    /// Where it stands, without what belongs to it.
    pub fn status(&self) -> StepStatus {
        match &self.state {
            StepState::Pending { .. } => StepStatus::Pending,
            StepState::InProgress(_) => StepStatus::InProgress,
            StepState::AwaitingInput { .. } => StepStatus::AwaitingInput,
            StepState::Completed { .. } => StepStatus::Completed,
            StepState::Skipped { .. } => StepStatus::Skipped,
            StepState::Failed { .. } => StepStatus::Failed,
        }
    }

    /// The last claim on it; none while it waits to be handed out, or if it never was.
    pub fn claim(&self) -> Option<&Claim> {
        match &self.state {
            StepState::Pending { .. } => None,
            StepState::InProgress(work) | StepState::AwaitingInput { work, .. } => {
                Some(&work.claim)
            }
            StepState::Completed { claim, .. } => Some(claim),
            StepState::Skipped { claim, .. } | StepState::Failed { claim, .. } => claim.as_ref(),
        }
    }

    /// The attempt that it is in or ended in, or, while pending, that comes next. 0 where it ended
    /// without ever having been handed out.
    pub fn attempt(&self) -> u32 {
        let handed_back = u32::try_from(self.superseded.len()).unwrap_or(u32::MAX);
        match &self.state {
            StepState::Pending { attempt } => *attempt,
            StepState::InProgress(_)
            | StepState::AwaitingInput { .. }
            | StepState::Completed { .. }
            | StepState::Skipped { .. }
            | StepState::Failed { .. } => self.claim().map_or(handed_back, |claim| claim.attempt),
        }
    }

    /// The work in progress, if there is any.
    pub fn work(&self) -> Option<&Work> {
        match &self.state {
            StepState::InProgress(work) => Some(work),
            StepState::Pending { .. }
            | StepState::AwaitingInput { .. }
            | StepState::Completed { .. }
            | StepState::Skipped { .. }
            | StepState::Failed { .. } => None,
        }
    }
}
