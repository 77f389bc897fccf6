//! What can go wrong with a database, sorted by what somebody can do about it.
//!
//! [`Error::Unavailable`] passes by itself, or when a person frees a disk or starts a server; nothing
//! was lost, and the same call may be sent again. [`Error::LostRace`] is retried in here and seen by
//! nobody but the tests. The others do not pass: the data, the schema or this program is wrong, and
//! the message names the place.

use std::fmt;

/// Why the store could not do it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database cannot be reached, is busy for too long, or has no room.
    #[error("the database is unavailable: {why}")]
    Unavailable {
        /// What stands in the way.
        why: String,
        /// What helps.
        hint: &'static str,
    },
    /// A row that fits no state. It is never guessed around.
    #[error("the database holds a row that fits no state: {0}")]
    Corrupt(Corrupt),
    /// The schema is newer than this program.
    #[error(
        "the database has schema version {found}, and this program knows versions up to {known}"
    )]
    Newer {
        /// What the database has.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// The schema is older than this program, and may not be changed by this call.
    #[error("the database has schema version {found}, and this program needs version {known}")]
    Older {
        /// What the database has.
        found: i64,
        /// What this program needs.
        known: i64,
    },
    /// Somebody else changed the plan between the facts and the commit.
    #[error("somebody else changed the plan meanwhile")]
    LostRace,
    /// The database refuses what the law forbids, or a statement is wrong: a fault of this program.
    #[error("the database refused a statement: {0}")]
    Refused(String),
    /// The address names no database.
    #[error("`{address}` names no database: {why}")]
    Address {
        /// What was given, without a password.
        address: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Where a row fits no state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrupt {
    /// Which table.
    pub table: &'static str,
    /// Which column.
    pub column: &'static str,
    /// Which row: its key.
    pub row: String,
    /// What does not fit.
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

impl Error {
    /// Something that passes, with what helps.
    pub(crate) fn unavailable(why: impl fmt::Display, hint: &'static str) -> Self {
        Error::Unavailable {
            why: why.to_string(),
            hint,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Unavailable { hint, .. } => hint,
            Error::Corrupt(_) => {
                "`onward doctor` checks the whole database and names every such row"
            }
            Error::Newer { .. } => "use the newer `onward` that made this database",
            Error::Older { .. } => "`onward migrate` brings the schema up to date",
            Error::LostRace => "send the call again",
            Error::Refused(_) => "`onward doctor` checks the database; please report this",
            Error::Address { .. } => {
                "give a path for SQLite, or `postgres://user@host/database` for PostgreSQL"
            }
        }
    }
}
