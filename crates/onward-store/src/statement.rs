//! A statement with its parameters, and the number of rows that it must affect.

use crate::error::Error;
use crate::query::Query;
use crate::value::Value;

/// A statement with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) query: Query,
    pub(crate) params: Vec<Value>,
    pub(crate) expect: Expect,
}

/// Number of rows that a statement must affect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Expect {
    /// Not checked.
    Any,
    /// Exactly this many. Any other number is a bug in this program.
    Rows(u64),
    /// One row, found by its key and version. No row means that the version has changed.
    Version,
}

impl Expect {
    /// The number of rows, if it is checked.
    pub(crate) fn rows(self) -> Option<u64> {
        match self {
            Expect::Any => None,
            Expect::Rows(rows) => Some(rows),
            Expect::Version => Some(1),
        }
    }
}

impl Statement {
    /// A statement without a tenant: for the tables outside row security and for maintenance.
    pub(crate) fn without_tenant(query: Query, params: Vec<Value>) -> Self {
        Self {
            query,
            params,
            expect: Expect::Any,
        }
    }

    /// Requires that the statement affects exactly `rows` rows; otherwise the transaction fails.
    pub(crate) fn expecting(mut self, rows: u64) -> Self {
        self.expect = Expect::Rows(rows);
        self
    }

    /// Requires that the row still has the version among the parameters; otherwise the transaction
    /// fails with [`Error::LostRace`].
    pub(crate) fn checking_version(mut self) -> Self {
        self.expect = Expect::Version;
        self
    }

    /// Whether it checks a version.
    pub(crate) fn checks_version(&self) -> bool {
        self.expect == Expect::Version
    }

    /// Fails if the statement affected another number of rows than required.
    pub(crate) fn check(&self, affected: u64) -> Result<(), Error> {
        match (self.expect.rows(), self.expect) {
            (Some(expected), Expect::Version) if expected != affected => Err(Error::LostRace),
            (Some(expected), _) if expected != affected => Err(Error::Refused(format!(
                "`{}` affected {affected} rows, expected {expected}",
                self.query.name()
            ))),
            (Some(_) | None, _) => Ok(()),
        }
    }
}
