//! Test harness: a new database, and the engines that are open on it.

use std::path::PathBuf;
use std::sync::Arc;

use onward_engine::engine::Settings;
use onward_engine::{Address, Engine, Faults};
use onward_testbed::Cluster;

use crate::environment::SimulatedEnvironment;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

pub(crate) struct Harness {
    pub(crate) environment: SimulatedEnvironment,
    pub(crate) faults: Faults,
    pub(crate) engines: Vec<Engine>,
    file: Option<PathBuf>,
}

impl Harness {
    /// Opens this number of engines on one new database.
    pub(crate) async fn open(backend: Backend, test: &str, engines: usize) -> Self {
        let (environment, faults) = (SimulatedEnvironment::new(), Faults::armed());
        let (address, file) = match backend {
            Backend::Postgres => (Address::Server(Cluster::shared().database()), None),
            Backend::Sqlite => {
                let file = directory().join(format!("onward-{}-{test}.db", std::process::id()));
                (Address::File(file.clone()), Some(file))
            }
        };
        let mut harness = Self {
            environment,
            faults,
            engines: Vec::new(),
            file,
        };
        harness.remove_files();
        for _ in 0..engines {
            let settings = Settings {
                environment: Arc::new(harness.environment.clone()),
                faults: harness.faults.clone(),
                keep_schema: false,
                in_place: false,
                ..Settings::default()
            };
            let engine = Engine::open(&address, settings).await;
            harness.engines.push(engine.expect("engine was opened"));
        }
        harness
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.engines.first().expect("harness has an engine")
    }

    fn remove_files(&self) {
        let Some(file) = &self.file else { return };
        for suffix in ["", "-wal", "-shm", "-queue"] {
            let mut name = file.clone().into_os_string();
            name.push(suffix);
            // Not every file exists.
            let _ = std::fs::remove_file(name);
        }
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.engines.clear();
        self.remove_files();
    }
}

/// A directory in memory if possible, because durability is tested elsewhere.
fn directory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    }
}
