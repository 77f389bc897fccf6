//! Responses of the engine and of the model in a common form, so that they can be compared.
//!
//! Values that the model does not predict are cleared: messages of condition errors, `updated_at`,
//! and the surroundings of the assigned step. The conformance suite tests these.

use std::sync::Arc;

use onward_core::id::{ArtifactId, ClaimToken, ReviewId};
use onward_core::{Code, PlanHead, PlanId, PlanStatus, Timestamp};
use onward_engine::Error;
use onward_engine::create::NewPlan;
use onward_engine::modify::Modified;
use onward_engine::next_step::{NextStep, Surroundings};
use onward_engine::step::{OpenedReview, ProgressResponse, ReviewResponse};
use onward_engine::submit::SubmitResponse;
use onward_store::StepLine;

/// The tenant and id of a plan.
pub(crate) type PlanKey = (Arc<str>, PlanId);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Response {
    Created(PlanId),
    Next(Box<NextStep>),
    Submitted(Box<SubmitResponse>),
    Progressed(ProgressResponse),
    ReviewRequested(OpenedReview),
    Reviewed(ReviewResponse),
    Modified(Box<PlanHead>),
    Status(PlanStatus),
    Done,
    Deleted(Box<PlanHead>),
    Copied(PlanId),
    Swept {
        /// Sorted.
        acted_on: Vec<PlanKey>,
        next_at: Option<Timestamp>,
    },
    Rejected(Code, Option<ArtifactId>),
    /// The outcome is unknown.
    Unavailable(String),
}

impl Response {
    pub(crate) fn from_result<T>(
        result: Result<T, Error>,
        convert: impl FnOnce(T) -> Response,
    ) -> Response {
        match result {
            Ok(value) => convert(value),
            Err(error) => Response::from_error(&error),
        }
    }

    pub(crate) fn from_error(error: &Error) -> Response {
        match error.code() {
            Code::Unavailable | Code::RateLimited => Response::Unavailable(error.to_string()),
            code => Response::Rejected(code, error.kept()),
        }
    }

    pub(crate) fn created(result: Result<NewPlan, Error>) -> Response {
        Response::from_result(result, |created| Response::Created(created.created.plan))
    }

    pub(crate) fn submitted(result: Result<SubmitResponse, Error>) -> Response {
        Response::from_result(result, |mut submitted| {
            for verdict in &mut submitted.verdicts {
                // The model predicts whether there is an error, but not its message.
                verdict.error = verdict.error.as_ref().map(|_| String::new());
            }
            if let Some(next) = &mut submitted.next_step {
                clear_surroundings(next);
            }
            Response::Submitted(Box::new(submitted))
        })
    }

    pub(crate) fn modified(result: Result<Modified, Error>) -> Response {
        Response::from_result(result, |modified| {
            Response::Modified(Box::new(modified.head))
        })
    }

    pub(crate) fn swept(mut acted_on: Vec<PlanKey>, next_at: Option<Timestamp>) -> Response {
        acted_on.sort();
        Response::Swept { acted_on, next_at }
    }

    /// The issued claim token.
    pub(crate) fn token(&self) -> Option<&ClaimToken> {
        let next = match self {
            Response::Next(next) => next.as_ref(),
            Response::Submitted(submitted) => submitted.next_step.as_ref()?,
            _ => return None,
        };
        match next {
            NextStep::Started(assigned) => Some(&assigned.token),
            _ => None,
        }
    }

    /// The requested review.
    pub(crate) fn review(&self) -> Option<ReviewId> {
        match self {
            Response::ReviewRequested(opened) => Some(opened.review),
            Response::Submitted(submitted) => submitted.review,
            _ => None,
        }
    }

    /// The artifact that contains a rejected result.
    pub(crate) fn kept(&self) -> Option<ArtifactId> {
        match self {
            Response::Rejected(_, kept) => *kept,
            _ => None,
        }
    }
}

/// Clears the surroundings of the assigned step.
pub(crate) fn clear_surroundings(next: &mut NextStep) {
    match next {
        NextStep::Started(assigned) => {
            assigned.surroundings = Surroundings::default();
            assigned.dependencies.clear();
            assigned.held.clear();
        }
        NextStep::AwaitingReview { held, .. }
        | NextStep::BudgetExhausted { held, .. }
        | NextStep::NoPendingSteps { held, .. } => {
            held.clear();
        }
        NextStep::Complete(_) | NextStep::Failed { .. } => {}
    }
}

pub(crate) fn without_updated_at(mut line: StepLine) -> StepLine {
    line.updated_at = Timestamp::MIN;
    line.note = None;
    line
}
