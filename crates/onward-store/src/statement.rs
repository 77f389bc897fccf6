//! A statement with its parameters, and the number of rows that it must affect.

use std::sync::Arc;

use crate::error::Error;
use crate::query::Query;
use crate::value::{IntoValue as _, Value};

/// A statement with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) query: Query,
    /// The parameters. The first one is the tenant, once the transaction has bound it.
    pub(crate) params: Vec<Value>,
    pub(crate) expect: Expect,
    scope: Scope,
}

/// Rows that a statement may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Those of a tenant that is not bound yet.
    Unbound,
    /// Those of the tenant that is the first parameter.
    Bound,
    /// Those of all tenants.
    Global,
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
    /// One new row. No row means that another transaction has inserted its key.
    NewKey,
}

impl Expect {
    /// The number of rows, if it is checked.
    pub(crate) fn rows(self) -> Option<u64> {
        match self {
            Expect::Any => None,
            Expect::Rows(rows) => Some(rows),
            Expect::Version | Expect::NewKey => Some(1),
        }
    }
}

impl Statement {
    /// A statement about rows of one tenant: `$1` is the tenant, which the transaction binds, and
    /// `$2` the first of `params`.
    pub(crate) fn new(query: Query, params: Vec<Value>) -> Self {
        Self {
            query,
            params,
            expect: Expect::Any,
            scope: Scope::Unbound,
        }
    }

    /// A statement without a tenant: for the tables outside row security and for maintenance.
    pub(crate) fn without_tenant(query: Query, params: Vec<Value>) -> Self {
        Self {
            scope: Scope::Global,
            ..Self::new(query, params)
        }
    }

    /// Binds the tenant, unless it is bound or the statement has none.
    pub(crate) fn bind(mut self, tenant: &Arc<str>) -> Self {
        if self.scope == Scope::Unbound {
            self.params.insert(0, tenant.into_value());
            self.scope = Scope::Bound;
        }
        self
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

    /// Requires that no other transaction has inserted the key of the new row; otherwise the
    /// transaction fails with [`Error::LostRace`].
    pub(crate) fn expecting_new_key(mut self) -> Self {
        self.expect = Expect::NewKey;
        self
    }

    /// Whether it may affect no row because of a concurrent change.
    pub(crate) fn may_lose_race(&self) -> bool {
        matches!(self.expect, Expect::Version | Expect::NewKey)
    }

    /// Fails if the statement affected another number of rows than required.
    pub(crate) fn check(&self, affected: u64) -> Result<(), Error> {
        match (self.expect.rows(), self.expect) {
            (Some(expected), Expect::Version | Expect::NewKey) if expected != affected => {
                Err(Error::LostRace)
            }
            (Some(expected), _) if expected != affected => Err(Error::refused(format!(
                "`{}` affected {affected} rows, expected {expected}",
                self.query.name()
            ))),
            (Some(_) | None, _) => Ok(()),
        }
    }
}
