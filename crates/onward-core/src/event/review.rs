//! Review requests and decisions.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::id::{ReviewId, SessionId};
use crate::json::Json;
use crate::policy::{UnknownVariant, parse_variant};
use crate::step::{OnDeadline, ReviewBy, ReviewOptions, ReviewScope, StepResult};

/// A reviewer's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The summary becomes the result, or the plan starts.
    Approve,
    /// The plan fails.
    Reject,
    /// The agent continues with the feedback.
    Modify,
    /// The step is skipped.
    Skip,
}

impl Decision {
    /// All decisions.
    pub const ALL: [Decision; 4] = [
        Decision::Approve,
        Decision::Reject,
        Decision::Modify,
        Decision::Skip,
    ];

    /// The decisions on a review of this scope.
    pub const fn on(scope: ReviewScope) -> &'static [Decision] {
        match scope {
            ReviewScope::Plan | ReviewScope::Step => &Self::ALL,
            ReviewScope::Start => &[Decision::Approve, Decision::Reject],
        }
    }

    /// The decision that this action makes at a deadline.
    pub const fn at_deadline(action: OnDeadline) -> Option<Decision> {
        match action {
            OnDeadline::Remind => None,
            OnDeadline::Approve => Some(Decision::Approve),
            OnDeadline::Skip => Some(Decision::Skip),
            OnDeadline::Reject => Some(Decision::Reject),
        }
    }

    /// The value in the API and in the audit trail.
    pub const fn as_str(self) -> &'static str {
        match self {
            Decision::Approve => "approve",
            Decision::Reject => "reject",
            Decision::Modify => "modify",
            Decision::Skip => "skip",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Decision {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// A review request or a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum ReviewAction {
    /// An agent requests a review, submits a result that must be reviewed, or creates a plan that
    /// must be approved.
    Requested {
        /// The text under review.
        summary: String,
        /// The agent's questions.
        questions: Vec<String>,
        /// The requesting session, if reported.
        session: Option<SessionId>,
        /// What waits for the decision.
        scope: ReviewScope,
        /// Who must decide, if the review is a gate.
        by: Option<ReviewBy>,
        /// The result under review, if one was submitted.
        result: Option<Arc<StepResult>>,
        /// The optional parts of the request.
        options: ReviewOptions,
    },
    /// A reviewer decides.
    Decided {
        /// The decision.
        decision: Decision,
        /// The reviewer's feedback.
        feedback: Option<String>,
        /// The answers to the typed questions: a JSON object. With `approve`, including defaults.
        answers: Option<Json>,
        /// How it was decided.
        by: DecidedBy,
    },
}

/// The answers as the last line of the feedback of `modify`.
pub(crate) fn answers_line(answers: &impl fmt::Display) -> String {
    format!("Answers: {answers}")
}

/// How a review was decided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DecidedBy {
    /// By the author of the event.
    #[default]
    Reviewer,
    /// By the policy of the review, at its deadline.
    Policy,
    /// With a decision link, which names its recipient. The holder of the link was not
    /// authenticated.
    Link {
        /// The recipient of the link.
        recipient: String,
    },
}

/// A reviewer's decision on a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The review.
    pub review: ReviewId,
    /// The decision.
    pub decision: Decision,
    /// The reviewer's feedback.
    pub feedback: Option<String>,
    /// The answers to the typed questions.
    pub answers: Option<Json>,
}

impl Decided {
    /// The feedback without the answers, which the feedback of `modify` repeats.
    pub fn remark(&self) -> Option<&str> {
        let feedback = self.feedback.as_deref()?;
        let Some(answers) = self
            .answers
            .as_ref()
            .filter(|_| self.decision == Decision::Modify)
        else {
            return Some(feedback);
        };
        let remark = feedback
            .strip_suffix(&answers_line(answers))
            .unwrap_or(feedback);
        Some(remark.trim_end()).filter(|remark| !remark.is_empty())
    }

    /// Whether the agent that continues needs it: a plain approval has no information.
    pub(crate) fn is_informative(&self) -> bool {
        self.decision != Decision::Approve || self.feedback.is_some() || self.answers.is_some()
    }

    /// `None` for a review request.
    pub fn from_action(review: ReviewId, action: &ReviewAction) -> Option<Self> {
        match action {
            ReviewAction::Requested { .. } => None,
            ReviewAction::Decided {
                decision,
                feedback,
                answers,
                ..
            } => Some(Self {
                review,
                decision: *decision,
                feedback: feedback.clone(),
                answers: answers.clone(),
            }),
        }
    }
}
