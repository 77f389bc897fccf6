//! What the engine answers, and what the model says that it should: in the same words, so that the
//! two can be laid side by side.
//!
//! What nobody can foretell is taken out: the words of an error in a condition, and when a line was
//! last touched.

use std::sync::Arc;

use onward_core::id::{ArtifactId, ClaimToken, ReviewId};
use onward_core::{Code, PlanHead, PlanId, PlanStatus, Timestamp};
use onward_engine::Error;
use onward_engine::create::NewPlan;
use onward_engine::modify::Modified;
use onward_engine::next::Next;
use onward_engine::step::{Asked, Progressed, Reviewed};
use onward_engine::submit::Submitted;
use onward_store::StepLine;

/// A plan of a tenant.
pub(crate) type Key = (Arc<str>, PlanId);

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    Created(PlanId),
    Next(Box<Next>),
    Submitted(Box<Submitted>),
    Progressed(Progressed),
    Asked(Asked),
    Reviewed(Reviewed),
    Modified(Box<PlanHead>, Vec<StepLine>),
    /// Where a plan stands.
    Stands(PlanStatus),
    /// There is nothing to say.
    Done,
    Deleted(Box<PlanHead>),
    Moved(PlanId),
    Swept {
        /// In the order of their ids.
        acted_on: Vec<Key>,
        next_at: Option<Timestamp>,
    },
    Refused(Code, Option<ArtifactId>),
    /// Nobody knows whether it was done.
    Unavailable(String),
}

impl Said {
    pub(crate) fn of<T>(answer: Result<T, Error>, words: impl FnOnce(T) -> Said) -> Said {
        match answer {
            Ok(answer) => words(answer),
            Err(why) => Said::refused(&why),
        }
    }

    pub(crate) fn refused(why: &Error) -> Said {
        match why.code() {
            Code::Unavailable => Said::Unavailable(why.to_string()),
            code => Said::Refused(code, why.kept()),
        }
    }

    pub(crate) fn created(answer: Result<NewPlan, Error>) -> Said {
        Said::of(answer, |created| Said::Created(created.created.plan))
    }

    pub(crate) fn submitted(answer: Result<Submitted, Error>) -> Said {
        Said::of(answer, |mut submitted| {
            for verdict in &mut submitted.verdicts {
                // Whether there is one can be foretold, its words cannot.
                verdict.error = verdict.error.as_ref().map(|_| String::new());
            }
            Said::Submitted(Box::new(submitted))
        })
    }

    pub(crate) fn modified(answer: Result<Modified, Error>) -> Said {
        Said::of(answer, |modified| {
            let steps = modified.steps.into_iter().map(plain).collect();
            Said::Modified(Box::new(modified.head), steps)
        })
    }

    pub(crate) fn swept(mut acted_on: Vec<Key>, next_at: Option<Timestamp>) -> Said {
        acted_on.sort();
        Said::Swept { acted_on, next_at }
    }

    /// The token that was given out.
    pub(crate) fn token(&self) -> Option<&ClaimToken> {
        let next = match self {
            Said::Next(next) => next.as_ref(),
            Said::Submitted(submitted) => submitted.next_step.as_ref()?,
            _ => return None,
        };
        match next {
            Next::Started(handed) => Some(&handed.token),
            _ => None,
        }
    }

    /// The review that was begun.
    pub(crate) fn review(&self) -> Option<ReviewId> {
        match self {
            Said::Asked(asked) => Some(asked.review),
            _ => None,
        }
    }

    /// Where a refused result is kept.
    pub(crate) fn kept(&self) -> Option<ArtifactId> {
        match self {
            Said::Refused(_, kept) => *kept,
            _ => None,
        }
    }

    /// The same answer, but for what was read after the commit: beside others who change the plan,
    /// that may be newer than the commit.
    pub(crate) fn without_lines(mut self) -> Said {
        if let Said::Modified(_, lines) = &mut self {
            lines.clear();
        }
        self
    }
}

/// A line without what cannot be foretold.
pub(crate) fn plain(mut line: StepLine) -> StepLine {
    line.updated_at = Timestamp::MIN;
    line
}
