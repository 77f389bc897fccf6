//! Where a test keeps its database: a file of its own, or a database of its own on a real server.
//! Both databases stand here beside each other, so that every test runs on both.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use onward_engine::{Address, Engine, engine};
use onward_testbed::Cluster;

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
}

/// A database that nobody else is given. A file is gone when this is.
#[derive(Debug)]
pub struct Place {
    pub address: Address,
    _folder: Option<Folder>,
}

impl Place {
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Sqlite => {
                let folder = Folder::new();
                let address = Address::File(folder.0.join("onward.db"));
                let _folder = Some(folder);
                Self { address, _folder }
            }
            Kind::Postgres => Self::on(Cluster::shared()),
        }
    }

    /// A database on this server.
    pub fn on(cluster: &Cluster) -> Self {
        Self {
            address: Address::Server(cluster.database()),
            _folder: None,
        }
    }

    /// The address in words, for another process.
    pub fn written(&self) -> String {
        match &self.address {
            Address::File(path) => path.display().to_string(),
            Address::Server(url) => url.clone(),
        }
    }

    /// An engine of this process on it.
    pub async fn open(&self) -> Engine {
        let opened = Engine::open(&self.address, engine::Settings::default()).await;
        opened.unwrap_or_else(|why| panic!("{}: {why} ({})", self.written(), why.hint()))
    }
}

/// An empty folder of this test, gone when this is.
#[derive(Debug)]
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        // Process ids come again.
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).expect("a folder for a test can be made");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What a failed test leaves behind is looked at by whoever repeats it.
        if !std::thread::panicking() {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }
}
