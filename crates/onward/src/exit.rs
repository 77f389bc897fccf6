//! How a run ended, as a number that scripts can rely on.
//!
//! The numbers are a contract: 0 done, 1 failed, 2 wrong usage, 3 not found. The others of the
//! contract (4 refused by a rule, 5 database unavailable, 10 a check found something) come with the
//! first command that can end that way. Which error ends how stands here and nowhere else.

use std::process::ExitCode;

use crate::transcript;

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Exit {
    /// What was asked for is done.
    Done,
    /// It was attempted, and failed.
    Failed,
    /// It was not attempted: the command line makes no sense.
    Usage,
    /// What it is about does not exist.
    NotFound,
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
            | transcript::Error::UnknownFormat { .. } => Exit::Failed,
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
        })
    }
}
