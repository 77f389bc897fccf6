//! Converts engine responses and errors to the responses of the recorded history.

use std::fmt::Debug;

use onward_core::PlanId;
use onward_engine::Error;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_store as store;

use crate::agents::history::{Claim, FailureKind, Response};

/// The assigned step, if any.
pub fn assigned_step(next: &NextStep) -> Option<&AssignedStep> {
    match next {
        NextStep::Started(assigned) => Some(assigned),
        NextStep::Complete(_)
        | NextStep::Failed { .. }
        | NextStep::AwaitingReview { .. }
        | NextStep::BudgetExhausted { .. }
        | NextStep::NoPendingSteps { .. } => None,
    }
}

/// The response to a request for the next step.
pub fn claim_response(plan: PlanId, next: &NextStep) -> Response {
    match assigned_step(next) {
        Some(assigned) => Response::Claimed {
            plan,
            claim: assigned.into(),
        },
        None => Response::NoChange {
            reason: "no step".to_owned(),
        },
    }
}

impl From<&AssignedStep> for Claim {
    fn from(assigned: &AssignedStep) -> Self {
        Self {
            step: assigned.step,
            attempt: assigned.attempt,
            token: assigned.token.as_str().to_owned(),
        }
    }
}

/// The response to a repeated call: a failure unless it equals the first response.
pub fn repeated_response<A: PartialEq + Debug>(first: &A, second: &A) -> Response {
    if first == second {
        Response::Repeated
    } else {
        Response::Failed {
            kind: FailureKind::ResponseChanged,
            hint: String::new(),
            message: format!("two responses to the same call: {first:?} and {second:?}"),
        }
    }
}

/// The response for an error. `text` is the content of the rejected call.
pub fn error_response(error: &Error, plan: PlanId, text: &str) -> Response {
    match error {
        Error::Rejected {
            kept: Some(artifact),
            ..
        } => Response::LateResultKept {
            plan,
            artifact: artifact.to_string(),
            text: text.to_owned(),
        },
        Error::Store(failure) => Response::Failed {
            kind: failure_kind(failure),
            hint: error.hint().to_owned(),
            message: error.to_string(),
        },
        rejected => Response::NoChange {
            reason: rejected.to_string(),
        },
    }
}

fn failure_kind(error: &store::Error) -> FailureKind {
    match error {
        error if error.may_have_committed() => FailureKind::OutcomeUnknown,
        store::Error::Unavailable { .. } | store::Error::Overloaded(_) => FailureKind::Unavailable,
        _ => FailureKind::OtherStoreError,
    }
}
