//! Versions of the programs that use a database.

use super::{Backend, Store};
use crate::backend::sqlite;
use crate::error::Error;

impl Store {
    /// Announces that a server of this version uses the database, until the store is dropped. On
    /// PostgreSQL, each connection has the version in its name.
    pub fn announce_version(&self) {
        if let Backend::Sqlite { path, .. } = &self.backend
            && let Some(file) = sqlite::announce(path, env!("CARGO_PKG_VERSION"))
        {
            // A second announcement is not needed.
            drop(self.presence.set(file));
        }
    }

    /// Versions of the programs that use the database: of this one, of the servers on an SQLite file
    /// that have announced it, and of all connections to PostgreSQL.
    pub async fn versions(&self) -> Result<Vec<String>, Error> {
        let mut versions = match &self.backend {
            Backend::Sqlite { path, .. } => sqlite::versions(path),
            Backend::Postgres { postgres, .. } => postgres.get().await?.versions().await?,
        };
        versions.push(env!("CARGO_PKG_VERSION").to_owned());
        versions.sort();
        versions.dedup();
        Ok(versions)
    }
}
