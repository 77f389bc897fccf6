//! How a run ended, as a number that scripts can rely on.
//!
//! The numbers are a contract: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused by a rule, 5
//! database unavailable, 10 a check found something. Which error ends how stands here and nowhere
//! else.

use std::process::ExitCode;

use onward_core::{Code, Refusal};
use onward_engine::store;

use crate::transcript;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for is done.
    Done,
    /// It was attempted, and failed.
    Failed,
    /// It was not attempted: the command line makes no sense.
    Usage,
    /// What it is about does not exist.
    NotFound,
    /// A rule forbids it.
    Refused,
    /// The database cannot be used: it is away, busy, too new, or no database.
    Unavailable,
    /// A check found something to do.
    Found,
}

impl From<&transcript::Error> for Exit {
    fn from(error: &transcript::Error) -> Self {
        match error {
            transcript::Error::NotFound { .. } => Exit::NotFound,
            transcript::Error::Folder { .. }
            | transcript::Error::Unreadable { .. }
            | transcript::Error::NotJson { .. }
            | transcript::Error::Misshapen { .. }
            | transcript::Error::NoMessages { .. }
            | transcript::Error::NotRepairable { .. }
            | transcript::Error::UnknownFormat { .. } => Exit::Failed,
        }
    }
}

impl From<&onward_engine::Error> for Exit {
    fn from(error: &onward_engine::Error) -> Self {
        use onward_engine::Error;
        match error {
            Error::PlanNotFound(_) | Error::StepNotFound { .. } | Error::NotFound { .. } => {
                Exit::NotFound
            }
            Error::Refused { refusal, .. } => Exit::from(refusal),
            // What was typed fits more than one thing.
            Error::Ambiguous(_) => Exit::Usage,
            Error::Store(why) => Exit::from(why),
            Error::Conflict { .. } | Error::Unauthorized(_) | _ => Exit::Refused,
        }
    }
}

impl From<&Refusal> for Exit {
    fn from(refusal: &Refusal) -> Self {
        if refusal.code() == Code::StepNotFound {
            Exit::NotFound
        } else {
            Exit::Refused
        }
    }
}

impl From<&store::Error> for Exit {
    fn from(error: &store::Error) -> Self {
        match error {
            store::Error::Unavailable { .. }
            | store::Error::Newer { .. }
            | store::Error::Older { .. }
            | store::Error::LostRace
            | store::Error::Address { .. } => Exit::Unavailable,
            // The database answers; what it holds, or what it was asked, is wrong.
            store::Error::Corrupt(_) | store::Error::Refused(_) | _ => Exit::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::NotFound => 3,
            Exit::Refused => 4,
            Exit::Unavailable => 5,
            Exit::Found => 10,
        })
    }
}
