//! A test database that is opened in this process and in worker processes.

use onward_engine::{Address, Engine, distribute, engine};
use onward_testbed::{Backend, Cluster, Database};

/// A database for one test.
#[derive(Debug)]
pub struct TestDatabase {
    pub address: Address,
    database: Database,
}

impl TestDatabase {
    pub fn create(backend: Backend) -> Self {
        match (backend, Cluster::distributed()) {
            (Backend::Postgres, Some(cluster)) => Self::create_distributed(cluster),
            (Backend::Postgres, None) | (Backend::Sqlite, _) => Database::create(backend).into(),
        }
    }

    /// A database with a schema, distributed over the nodes of a cluster.
    fn create_distributed(cluster: &Cluster) -> Self {
        let database = Self::create_on(cluster);
        let address = database.address.clone();
        // The caller may be asynchronous already.
        let distributing = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("runtime was started");
            runtime.block_on(async {
                let engine = Engine::open(&address, engine::Settings::default()).await;
                engine.expect("schema was created").close().await;
                distribute(&address).await.expect("tables were distributed");
            });
        });
        distributing.join().expect("database was distributed");
        database
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
