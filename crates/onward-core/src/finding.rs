//! Findings that trigger notifications: stalls, pending reviews, failed plans, exhausted budgets, plans
//! without an agent, and blocked plans.
//!
//! Every process derives the same key for the same finding, so only one notification is sent. A
//! step that resumes and stalls again is a new finding, because its inactivity starts at another
//! time. Recipients and channels are decided elsewhere.

use std::fmt;
use std::str::FromStr;

use crate::event::{Event, ReviewAction};
use crate::id::{ReviewId, StepId};
use crate::plan::Origin;
use crate::policy::{UnknownVariant, parse_variant};
use crate::stall::Stall;
use crate::step::Review;
use crate::time::Timestamp;

/// The start of the key of a review.
const REVIEW: &str = "review/";
/// The end of the key of a reminder.
const DUE: &str = "/due";

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A stalled step.
    Stall,
    /// A pending review.
    Review,
    /// A failed plan.
    Failure,
    /// A plan with a ready step on which no agent works.
    NoAgent,
    /// A plan with an exhausted budget.
    Budget,
    /// A plan whose remaining steps wait for failed ones.
    Blocked,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 6] = [
        Kind::Stall,
        Kind::Review,
        Kind::Failure,
        Kind::NoAgent,
        Kind::Budget,
        Kind::Blocked,
    ];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Stall => "stall",
            Kind::Review => "review",
            Kind::Failure => "failure",
            Kind::NoAgent => "no_agent",
            Kind::Budget => "budget",
            Kind::Blocked => "blocked",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub kind: Kind,
    /// The deduplication key, unique within the plan.
    pub key: String,
    /// The step, if the finding concerns one.
    pub step: Option<StepId>,
    /// The attempt number, for stalls.
    pub attempt: Option<u32>,
    /// The start of the condition.
    pub since: Timestamp,
    /// The review's summary, the reason of the failure or the exhausted limit.
    pub note: Option<String>,
}

impl Finding {
    /// The finding for a stall: one per attempt and start of inactivity.
    pub fn from_stall(stall: &Stall) -> Self {
        let Stall {
            step,
            attempt,
            since,
        } = *stall;
        Self {
            kind: Kind::Stall,
            key: format!("stall/{step}/{attempt}/{}", since.as_millis()),
            step: Some(step),
            attempt: Some(attempt),
            since,
            note: None,
        }
    }

    /// The finding for a review without a decision at its deadline: one per review.
    pub fn review_due(step: StepId, review: &Review) -> Self {
        Self {
            kind: Kind::Review,
            key: format!("{REVIEW}{}{DUE}", review.id),
            step: Some(step),
            attempt: None,
            since: review.requested_at,
            note: Some(review.summary.clone()),
        }
    }

    /// The review, if the finding concerns one.
    pub fn review(&self) -> Option<ReviewId> {
        let id = self.key.strip_prefix(REVIEW)?;
        id.strip_suffix(DUE).unwrap_or(id).parse().ok()
    }

    /// Whether the finding is the second one of a review: its decision is due.
    pub fn is_reminder(&self) -> bool {
        self.kind == Kind::Review && self.key.ends_with(DUE)
    }

    /// The finding for a plan without an agent: one per period without agent activity.
    pub fn no_agent(since: Timestamp) -> Self {
        Self {
            kind: Kind::NoAgent,
            key: format!("no_agent/{}", since.as_millis()),
            step: None,
            attempt: None,
            since,
            note: None,
        }
    }

    /// The finding for a plan whose remaining steps wait for failed ones: one per period without
    /// agent activity.
    pub fn blocked(since: Timestamp) -> Self {
        Self {
            kind: Kind::Blocked,
            key: format!("blocked/{}", since.as_millis()),
            ..Self::no_agent(since)
        }
    }

    /// The findings of an event of a plan with this origin. Most events have none. Of a captured plan,
    /// only reviews are findings: an agent asks a person.
    pub fn from_event(event: &Event, origin: Origin, at: Timestamp) -> Vec<Self> {
        let mut findings = Self::of_event(event, at);
        findings.retain(|finding| origin.reports_inactivity() || finding.kind == Kind::Review);
        findings
    }

    fn of_event(event: &Event, at: Timestamp) -> Vec<Self> {
        match event {
            Event::PlanStalled { stalls } => stalls.iter().map(Self::from_stall).collect(),
            Event::UserReviewed {
                step,
                review,
                action: ReviewAction::Requested { summary, .. },
            } => vec![Self {
                kind: Kind::Review,
                key: format!("{REVIEW}{review}"),
                step: Some(*step),
                attempt: None,
                since: at,
                note: Some(summary.clone()),
            }],
            Event::PlanFailed { reason, .. } => vec![Self {
                kind: Kind::Failure,
                key: "failure".to_owned(),
                step: None,
                attempt: None,
                since: at,
                note: Some(reason.to_string()),
            }],
            Event::BudgetExhausted { exhausted } => vec![Self {
                kind: Kind::Budget,
                key: format!("budget/{}", at.as_millis()),
                step: None,
                attempt: None,
                since: at,
                note: Some(exhausted.to_string()),
            }],
            Event::UserReviewed {
                action: ReviewAction::Decided { .. },
                ..
            }
            | Event::PlanModified { .. }
            | Event::StepStarted { .. }
            | Event::StepCompleted { .. }
            | Event::StepFailed { .. }
            | Event::StepSkipped { .. }
            | Event::StepRequeued { .. }
            | Event::StepProgressed { .. }
            | Event::FeedbackDelivered { .. }
            | Event::StepOrphaned { .. }
            | Event::BranchTaken { .. }
            | Event::SessionResumed { .. }
            | Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::PlanResumed { .. }
            | Event::PlanCompleted
            | Event::PlanStatusChanged { .. }
            | Event::LateResultKept { .. } => Vec::new(),
        }
    }
}
