//! Store errors, grouped by the caller's next action.
//!
//! [`Error::Unavailable`] is transient, or ends when an operator frees disk space or starts the
//! server. Nothing acknowledged is lost, and the hint states whether the call can be retried.
//! [`Error::Overloaded`] ends when other calls complete.
//! [`Error::LostRace`] is retried inside the store, and reaches the caller only after 20 retries.
//! The other errors are permanent: the data, the schema or the program is wrong, and the message
//! names the location.

use std::fmt;
use std::sync::Arc;

/// Cause of an error. Shared, because all callers of a failed batch get the same error.
pub(crate) type Source = Arc<dyn std::error::Error + Send + Sync>;

/// Hint after a commit whose response was lost.
pub(crate) const OUTCOME_UNKNOWN: &str =
    "it is not known whether the change was made; check before you retry the call";

/// Hint after a commit that may not be on disk.
pub(crate) const MAYBE_NOT_SYNCED: &str =
    "check the disk, and check whether the change was made before you retry the call";

/// The next action after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    /// The action.
    pub text: &'static str,
    /// Whether it contains an `onward` command, which only an operator can run on the server.
    pub needs_operator: bool,
}

impl Hint {
    /// A hint with an `onward` command.
    pub const fn for_operator(text: &'static str) -> Self {
        Self {
            text,
            needs_operator: true,
        }
    }
}

impl From<&'static str> for Hint {
    /// A hint without an `onward` command.
    fn from(text: &'static str) -> Self {
        Self {
            text,
            needs_operator: false,
        }
    }
}

/// Reason why a store operation failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database is unreachable, busy for too long, or out of space.
    #[error("the database is unavailable: {why}")]
    Unavailable {
        /// What failed.
        why: String,
        /// The next action for the user.
        hint: Hint,
        /// Whether the change may have been made although the call failed.
        may_have_committed: bool,
        /// The error of the driver or the operating system.
        #[source]
        source: Option<Source>,
    },
    /// Too many concurrent calls. Nothing was changed.
    #[error("the database is overloaded: {0}")]
    Overloaded(String),
    /// A row that matches no valid state. The store does not guess its meaning.
    #[error("the database contains a corrupt row: {cell}")]
    Corrupt {
        /// Its location.
        cell: Corrupt,
        /// The error of the driver or the decoder.
        #[source]
        source: Option<Source>,
    },
    /// The schema is newer than this program supports.
    #[error(
        "the database has schema version {found}, but this program supports versions up to {known}"
    )]
    Newer {
        /// Version of the database.
        found: i64,
        /// Newest version that this program supports.
        known: i64,
    },
    /// The schema is older than this program requires, and this call may not migrate it.
    #[error("the database has schema version {found}, but this program requires version {known}")]
    Older {
        /// Version of the database.
        found: i64,
        /// Version that this program requires.
        known: i64,
    },
    /// Another caller changed the plan between load and commit.
    #[error("the plan was changed concurrently")]
    LostRace,
    /// The database rejected a constraint violation or an invalid statement: a bug in this program.
    #[error("the database rejected a statement: {why}")]
    Refused {
        /// What was rejected.
        why: String,
        /// The error of the driver.
        #[source]
        source: Option<Source>,
    },
    /// The database cannot be moved, or a move into it has not ended.
    #[error("{why}")]
    Move {
        /// The reason.
        why: String,
        /// The next action for the user.
        hint: Hint,
    },
    /// The address cannot be used as a database.
    #[error("cannot use database `{address}`: {why}")]
    Address {
        /// The address as given, without a password.
        address: String,
        /// The reason.
        why: String,
        /// The next action for the user.
        hint: Hint,
        /// The error of the driver or the operating system.
        #[source]
        source: Option<Source>,
    },
}

/// Location of a corrupt cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrupt {
    /// Table name.
    pub table: &'static str,
    /// Column name.
    pub column: &'static str,
    /// Key of the row.
    pub row: String,
    /// The problem with the value.
    pub why: String,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Corrupt {
            table,
            column,
            row,
            why,
        } = self;
        write!(f, "table `{table}`, column `{column}`, row `{row}`: {why}")
    }
}

impl From<Corrupt> for Error {
    fn from(cell: Corrupt) -> Self {
        Error::Corrupt { cell, source: None }
    }
}

impl Error {
    /// A transient error with its hint.
    pub fn unavailable(why: impl fmt::Display, hint: impl Into<Hint>) -> Self {
        Error::Unavailable {
            why: why.to_string(),
            hint: hint.into(),
            may_have_committed: false,
            source: None,
        }
    }

    /// A permanent error that is caused by a bug in this program.
    pub fn refused(why: impl Into<String>) -> Self {
        Error::Refused {
            why: why.into(),
            source: None,
        }
    }

    /// An address that cannot be used.
    pub(crate) fn address(
        address: impl fmt::Display,
        why: impl Into<String>,
        hint: impl Into<Hint>,
    ) -> Self {
        Error::Address {
            address: address.to_string(),
            why: why.into(),
            hint: hint.into(),
            source: None,
        }
    }

    /// The same error after a commit whose outcome is not known.
    pub(crate) fn after_commit(mut self) -> Self {
        if let Error::Unavailable {
            may_have_committed, ..
        } = &mut self
        {
            *may_have_committed = true;
        }
        self
    }

    /// The same error with the table of the rejected rows.
    pub(crate) fn in_table(mut self, table: &str) -> Self {
        if let Error::Refused { why, .. } = &mut self {
            *why = format!("table `{table}`: {why}");
        }
        self
    }

    /// The same error with its cause.
    pub(crate) fn caused_by(
        mut self,
        cause: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        if let Error::Unavailable { source, .. }
        | Error::Corrupt { source, .. }
        | Error::Refused { source, .. }
        | Error::Address { source, .. } = &mut self
        {
            *source = Some(Arc::new(cause));
        }
        self
    }

    /// Its cause, if that has this type. `source` returns the shared pointer, not the error in it.
    pub(crate) fn cause<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match self {
            Error::Unavailable { source, .. }
            | Error::Corrupt { source, .. }
            | Error::Refused { source, .. }
            | Error::Address { source, .. } => source.as_ref()?.downcast_ref(),
            Error::Overloaded(_)
            | Error::Newer { .. }
            | Error::Older { .. }
            | Error::LostRace
            | Error::Move { .. } => None,
        }
    }

    /// Whether the change may have been made although the call failed.
    pub fn may_have_committed(&self) -> bool {
        matches!(
            self,
            Error::Unavailable {
                may_have_committed: true,
                ..
            }
        )
    }

    /// The next action for the user.
    pub fn hint(&self) -> &'static str {
        self.next_action().text
    }

    /// Whether only an operator can follow the hint.
    pub fn needs_operator(&self) -> bool {
        self.next_action().needs_operator
    }

    fn next_action(&self) -> Hint {
        match self {
            Error::Unavailable { hint, .. }
            | Error::Move { hint, .. }
            | Error::Address { hint, .. } => *hint,
            Error::Overloaded(_) => "retry the call in a few seconds".into(),
            Error::Corrupt { .. } => {
                Hint::for_operator("run `onward doctor` to check the whole database")
            }
            Error::Newer { .. } => {
                "use the newer version of `onward` that created this database".into()
            }
            Error::Older { .. } => Hint::for_operator("run `onward migrate` to update the schema"),
            Error::LostRace => "retry the call".into(),
            Error::Refused { .. } => Hint::for_operator(
                "run `onward doctor` to check the database, and report this error",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_with_a_command_needs_an_operator() {
        let corrupt = Corrupt {
            table: "plans",
            column: "status",
            row: "1".to_owned(),
            why: "unknown".to_owned(),
        };
        let (found, known) = (1, 2);
        for error in [
            Error::unavailable("a", "retry the call"),
            Error::unavailable("a", Hint::for_operator("run `onward doctor`")),
            Error::Overloaded("a".to_owned()),
            Error::from(corrupt),
            Error::Newer { found, known },
            Error::Older { found, known },
            Error::LostRace,
            Error::refused("a"),
            Error::address("a", "b", "c"),
        ] {
            let names_command = error.hint().contains("`onward ");
            assert_eq!(error.needs_operator(), names_command, "{error}");
        }
    }
}
