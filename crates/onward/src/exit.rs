//! How a run ended, as a number that scripts can rely on.
//!
//! The numbers are a contract: 0 done, 1 failed, 2 wrong usage. The others of the contract
//! (3 not found, 4 refused by a rule, 5 database unavailable, 10 a check found something) come
//! with the first command that can end that way.

use std::process::ExitCode;

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Exit {
    /// What was asked for is done.
    Done,
    /// It was attempted, and failed.
    Failed,
    /// It was not attempted: the command line makes no sense.
    Usage,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
        })
    }
}
