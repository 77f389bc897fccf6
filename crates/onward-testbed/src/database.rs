//! Databases for tests: a new file, or a new database on a PostgreSQL server.

use crate::{Cluster, TestDir};

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// A file.
    Sqlite,
    /// A database on the testbed's server.
    Postgres,
}

/// A database for one test. A file is removed on drop.
#[derive(Debug)]
pub enum Database {
    /// `onward.db` in this directory. The file does not exist until it is opened.
    File(TestDir),
    /// The URL of a PostgreSQL database.
    Server(String),
}

impl Database {
    /// Creates an empty database.
    pub fn create(backend: Backend) -> Self {
        match backend {
            Backend::Sqlite => Self::File(TestDir::new("database")),
            Backend::Postgres => Self::create_on(Cluster::shared()),
        }
    }

    /// Creates an empty database on a server.
    pub fn create_on(cluster: &Cluster) -> Self {
        Self::Server(cluster.database())
    }

    /// The kind of this database.
    pub fn backend(&self) -> Backend {
        match self {
            Self::File(_) => Backend::Sqlite,
            Self::Server(_) => Backend::Postgres,
        }
    }

    /// The address as for `--database`: a path or a URL.
    pub fn address(&self) -> String {
        match self {
            Self::File(dir) => dir.join("onward.db").display().to_string(),
            Self::Server(url) => url.clone(),
        }
    }
}
