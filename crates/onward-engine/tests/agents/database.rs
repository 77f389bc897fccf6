//! Test databases: a new file, or a new database on a PostgreSQL server.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use onward_engine::{Address, Engine, distribute, engine};
use onward_testbed::Cluster;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

/// A database for one test. A file is removed on drop.
#[derive(Debug)]
pub struct TestDatabase {
    pub address: Address,
    _dir: Option<TestDir>,
}

impl TestDatabase {
    pub fn create(backend: Backend) -> Self {
        match backend {
            Backend::Sqlite => {
                let dir = TestDir::new();
                Self {
                    address: Address::File(dir.0.join("onward.db")),
                    _dir: Some(dir),
                }
            }
            Backend::Postgres => match Cluster::distributed() {
                Some(cluster) => Self::create_distributed(cluster),
                None => Self::create_on(Cluster::shared()),
            },
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
        Self {
            address: Address::Server(cluster.database()),
            _dir: None,
        }
    }

    /// The address as text, for worker processes and `psql`.
    pub fn address_text(&self) -> String {
        match &self.address {
            Address::File(path) => path.display().to_string(),
            Address::Server(url) => url.clone(),
        }
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

/// An empty directory. It is removed on drop, unless the test failed.
#[derive(Debug)]
pub struct TestDir(pub PathBuf);

impl TestDir {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        // A failed test of an earlier process with the same id may have left files.
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).expect("temporary directory was created");
        Self(path)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }
}
