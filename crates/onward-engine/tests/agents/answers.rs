//! What the engine's answers tell an agent, as its history has it.

use std::fmt::Debug;

use onward_core::PlanId;
use onward_engine::Error;
use onward_engine::next::{Handed, Next};

use crate::history::{Hold, Told};

/// The step that was handed out, if one was.
pub fn started(next: &Next) -> Option<&Handed> {
    match next {
        Next::Started(handed) => Some(handed),
        Next::Complete(_)
        | Next::Failed { .. }
        | Next::AwaitingReview { .. }
        | Next::NoPendingSteps { .. } => None,
    }
}

/// What a call for the next step tells an agent.
pub fn claimed(plan: PlanId, next: &Next) -> Told {
    match started(next) {
        Some(handed) => Told::Claimed {
            plan,
            hold: hold(handed),
        },
        None => Told::Nothing {
            why: "no step".to_owned(),
        },
    }
}

/// A claim, as it was handed out.
pub fn hold(handed: &Handed) -> Hold {
    Hold {
        step: handed.step,
        attempt: handed.attempt,
        token: handed.token.as_str().to_owned(),
    }
}

/// What the answer to the same call, a second time, tells an agent.
pub fn repeated<A: PartialEq + Debug>(first: &A, second: &A) -> Told {
    match first == second {
        true => Told::Repeated,
        false => Told::Trouble {
            code: "another_answer".to_owned(),
            hint: String::new(),
            words: format!("the same call twice had two answers: {first:?} and {second:?}"),
        },
    }
}

/// What an error tells an agent.
pub fn not_done(why: &Error, plan: PlanId, text: &str) -> Told {
    match why {
        Error::Refused {
            kept: Some(artifact),
            ..
        } => Told::Kept {
            plan,
            artifact: artifact.to_string(),
            text: text.to_owned(),
        },
        Error::Store(_) => Told::Trouble {
            code: why.code().as_str().to_owned(),
            hint: why.hint().to_owned(),
            words: why.to_string(),
        },
        refused => Told::Nothing {
            why: refused.to_string(),
        },
    }
}
