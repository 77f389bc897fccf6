//! Exit codes, and the mapping of errors to them.
//!
//! The codes are a contract with scripts: 0 done, 1 failed, 2 invalid usage, 3 not found, 4
//! rejected by a rule, 5 database unavailable, 10 a check found problems. `onward hook` always
//! exits with 0.

use std::process::ExitCode;

use onward_core::{Code, Refusal};
use onward_engine::store;

use crate::transcript;

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    /// Invalid arguments or configuration; nothing was attempted.
    Usage,
    NotFound,
    /// A rule forbids the command.
    Rejected,
    /// The database is unreachable, busy, of another schema version, or not a database.
    Unavailable,
    ProblemsFound,
}

impl From<&transcript::Error> for Exit {
    fn from(error: &transcript::Error) -> Self {
        match error {
            transcript::Error::NotFound { .. } => Exit::NotFound,
            transcript::Error::IsDirectory { .. }
            | transcript::Error::Unreadable { .. }
            | transcript::Error::NotJson { .. }
            | transcript::Error::InvalidShape { .. }
            | transcript::Error::NoMessages { .. }
            | transcript::Error::NotRepairable { .. }
            | transcript::Error::Store { .. }
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
            Error::Rejected { refusal, .. } => Exit::from(refusal),
            // The prefix matches several ids.
            Error::Ambiguous { .. } => Exit::Usage,
            Error::Store(error) => Exit::from(error),
            Error::Conflict { .. } | Error::Unauthorized(_) | _ => Exit::Rejected,
        }
    }
}

impl From<&Refusal> for Exit {
    fn from(refusal: &Refusal) -> Self {
        if refusal.code() == Code::StepNotFound {
            Exit::NotFound
        } else {
            Exit::Rejected
        }
    }
}

impl From<&store::Error> for Exit {
    fn from(error: &store::Error) -> Self {
        match error {
            store::Error::Unavailable { .. }
            | store::Error::Overloaded(_)
            | store::Error::Newer { .. }
            | store::Error::Older { .. }
            | store::Error::LostRace
            | store::Error::Address { .. } => Exit::Unavailable,
            store::Error::Move { .. } => Exit::Rejected,
            // The database is reachable; its content or the statement is invalid.
            store::Error::Corrupt { .. } | store::Error::Refused { .. } | _ => Exit::Failed,
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
            Exit::Rejected => 4,
            Exit::Unavailable => 5,
            Exit::ProblemsFound => 10,
        })
    }
}
