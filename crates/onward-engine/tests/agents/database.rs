//! A test database that is opened in this process and in worker processes.

use onward_engine::{Address, Engine, engine};
use onward_testbed::{Backend, Cluster, Database};

/// A database for one test.
#[derive(Debug)]
pub struct TestDatabase {
    pub address: Address,
    database: Database,
}

impl TestDatabase {
    pub fn create(backend: Backend) -> Self {
        Database::create(backend).into()
    }

    pub fn create_on(cluster: &Cluster) -> Self {
        Database::create_on(cluster).into()
    }

    /// The address as text, for worker processes and `psql`.
    pub fn address_text(&self) -> String {
        self.database.address()
    }

    /// Opens an engine in this process.
    pub async fn open(&self) -> Engine {
        let opened = Engine::open(&self.address, engine::Settings::default()).await;
        opened.unwrap_or_else(|error| {
            let address = self.address_text();
            panic!("cannot open `{address}`: {error} ({})", error.hint())
        })
    }
}

impl From<Database> for TestDatabase {
    fn from(database: Database) -> Self {
        let address = match &database {
            Database::File(_) => Address::File(database.address().into()),
            Database::Server(url) => Address::Server(url.clone()),
        };
        Self { address, database }
    }
}
