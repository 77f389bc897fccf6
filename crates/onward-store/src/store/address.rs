//! Location of a database, and the operations on a database that is not open.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

use crate::backend::postgres::{self, Postgres, displayed};
use crate::backend::relocation::Endpoint;
use crate::backend::sqlite;
use crate::error::{Error, Hint};
use crate::host::Hosts;
use crate::interrupt::gone;

/// Location of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL database, as `postgres://…`.
    Server(String),
}

impl Address {
    /// Parses an address: `postgres://…` and `postgresql://…` are servers; `sqlite:PATH` and
    /// everything else are file paths.
    pub fn parse(address: &str) -> Result<Self, Error> {
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            return Ok(Address::Server(address.to_owned()));
        }
        let path = address
            .strip_prefix("sqlite://")
            .or_else(|| address.strip_prefix("sqlite:"))
            .unwrap_or(address);
        if path.is_empty() || path.contains("://") {
            return Err(Error::address(
                address,
                "neither a path nor a `postgres://…` URL",
                "use a path for SQLite, or `postgres://user@host/database` for PostgreSQL",
            ));
        }
        Ok(Address::File(PathBuf::from(path)))
    }

    /// The address in the form that [`Address::parse`] accepts.
    pub fn as_os_str(&self) -> &OsStr {
        match self {
            Address::File(path) => path.as_os_str(),
            Address::Server(url) => OsStr::new(url),
        }
    }

    /// Whether a server stores the database.
    pub fn is_server(&self) -> bool {
        matches!(self, Address::Server(_))
    }

    /// The files of the database, of which some may not exist; empty if a server stores it.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Address::File(path) => sqlite::files(path),
            Address::Server(_) => Vec::new(),
        }
    }

    /// The database as the source of a move; it cannot be changed meanwhile.
    pub(crate) async fn open_source(&self) -> Result<Box<dyn Endpoint>, Error> {
        match self {
            Address::File(path) => sqlite::open_source(path),
            Address::Server(url) => postgres::open_source(url).await,
        }
    }

    /// The database as the target of a move.
    pub(crate) async fn open_target(&self) -> Result<Box<dyn Endpoint>, Error> {
        match self {
            Address::File(path) => sqlite::open_target(path),
            Address::Server(url) => postgres::open_target(url).await,
        }
    }
}

impl fmt::Display for Address {
    /// The address without its password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::File(path) => path.display().fmt(f),
            Address::Server(url) => f.write_str(&displayed(url)),
        }
    }
}

/// Schema version of a database, and the version that this program requires. Changes nothing. A
/// missing file has version 0.
pub async fn schema(address: &Address) -> Result<(i64, i64), Error> {
    match address {
        Address::File(path) if !path.exists() => Ok((0, sqlite::VERSION)),
        Address::File(path) => {
            let connection = sqlite::File::open_to_read(path)?;
            Ok((sqlite::version(&connection)?, sqlite::VERSION))
        }
        Address::Server(url) => Postgres::schema(url).await,
    }
}

/// The hosts of a PostgreSQL address; `None` for an SQLite file.
pub async fn hosts(address: &Address) -> Result<Option<Hosts>, Error> {
    match address {
        Address::File(_) => Ok(None),
        Address::Server(url) => Postgres::hosts(url).await.map(Some),
    }
}

/// Replaces an SQLite database with a backup. Other processes that use the database open the
/// restored one with their next call. Returns the new path of the previous database, if there was
/// one; `stamp` is part of it.
pub async fn restore(
    address: &Address,
    from: PathBuf,
    stamp: String,
) -> Result<Option<PathBuf>, Error> {
    let Address::File(path) = address.clone() else {
        return Err(Error::address(
            address,
            "only an SQLite file can be restored from a copy",
            "restore a PostgreSQL database with its own tools, such as `pg_restore`",
        ));
    };
    let restoring = tokio::task::spawn_blocking(move || sqlite::restore(&path, &from, &stamp));
    restoring.await.unwrap_or_else(|_| Err(gone()))
}

/// Distributes a PostgreSQL database with Citus over its nodes, by tenant. Returns the number of
/// tables that were not distributed before. Servers that use the database must be restarted.
pub async fn distribute(address: &Address) -> Result<u64, Error> {
    match address {
        Address::File(path) => Err(Error::address(
            path.display(),
            "only a PostgreSQL server with Citus can be distributed",
            Hint::for_operator("move the database to PostgreSQL first, with `onward move`"),
        )),
        Address::Server(url) => Postgres::distribute(url).await,
    }
}
