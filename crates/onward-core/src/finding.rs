//! What people are told of when nobody looks: a stall, a review that waits, a plan that failed.
//!
//! A finding has a key that is the same for whoever finds it, however often: it is told once. A step
//! that showed a sign of life and fell silent again is another finding, since it is silent from another
//! instant on. Who is told, and how, is decided elsewhere; nothing here changes a plan.

use std::fmt;
use std::str::FromStr;

use crate::event::{Event, ReviewAction};
use crate::id::StepId;
use crate::policy::{UnknownWord, from_word};
use crate::stall::Stall;
use crate::time::Timestamp;

/// What kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A step that nobody works on any more.
    Stall,
    /// A review that waits for a person.
    Review,
    /// A plan that failed.
    Failure,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 3] = [Kind::Stall, Kind::Review, Kind::Failure];

    /// The word for it, on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Stall => "stall",
            Kind::Review => "review",
            Kind::Failure => "failure",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &Self::ALL, Self::as_str)
    }
}

/// Something that people are told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// What tells it from every other finding about the same plan.
    pub key: String,
    /// The step that it is about, where it is about one.
    pub step: Option<StepId>,
    /// Which attempt at the step, where that matters.
    pub attempt: Option<u32>,
    /// Since when it is so.
    pub since: Timestamp,
    /// In the words of whoever asked or gave up.
    pub note: Option<String>,
}

impl Finding {
    /// A step that fell silent: one finding for each attempt and each silence.
    pub fn of_stall(stall: &Stall) -> Self {
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

    /// What an event means to people who are not looking; mostly nothing.
    pub fn of_event(event: &Event, at: Timestamp) -> Vec<Self> {
        match event {
            Event::PlanStalled { stalls } => stalls.iter().map(Self::of_stall).collect(),
            Event::UserReviewed {
                step,
                review,
                action: ReviewAction::Requested { summary, .. },
            } => vec![Self {
                kind: Kind::Review,
                key: format!("review/{review}"),
                step: Some(*step),
                attempt: None,
                since: at,
                note: Some(summary.clone()),
            }],
            Event::PlanFailed { reason } => vec![Self {
                kind: Kind::Failure,
                key: "failure".to_owned(),
                step: None,
                attempt: None,
                since: at,
                note: Some(reason.to_string()),
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
            | Event::BranchTaken { .. }
            | Event::SessionResumed { .. }
            | Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::PlanResumed { .. }
            | Event::PlanCompleted
            | Event::LateResultKept { .. } => Vec::new(),
        }
    }
}
