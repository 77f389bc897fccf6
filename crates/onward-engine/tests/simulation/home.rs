//! Where a test lives: a database, and the engines that are open on it.

use std::path::PathBuf;
use std::sync::Arc;

use onward_engine::engine::Settings;
use onward_engine::{Address, Engine, Faults};
use onward_testbed::Cluster;

use crate::world::Stage;

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Database {
    Sqlite,
    Postgres,
}

pub(crate) struct Home {
    pub(crate) stage: Stage,
    pub(crate) faults: Faults,
    pub(crate) engines: Vec<Engine>,
    file: Option<PathBuf>,
}

impl Home {
    /// So many engines on one new database, each opened for itself.
    pub(crate) async fn open(database: Database, test: &str, engines: usize) -> Self {
        let (stage, faults) = (Stage::new(), Faults::armed());
        let (address, file) = match database {
            Database::Postgres => (Address::Server(Cluster::shared().database()), None),
            Database::Sqlite => {
                let file = directory().join(format!("onward-{}-{test}.db", std::process::id()));
                (Address::File(file.clone()), Some(file))
            }
        };
        let mut home = Self {
            stage,
            faults,
            engines: Vec::new(),
            file,
        };
        home.sweep_up();
        for _ in 0..engines {
            let settings = Settings {
                world: Arc::new(home.stage.clone()),
                faults: home.faults.clone(),
                keep_schema: false,
                in_place: false,
            };
            let engine = Engine::open(&address, settings).await;
            home.engines.push(engine.expect("a database can be opened"));
        }
        home
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.engines.first().expect("there is an engine")
    }

    fn sweep_up(&self) {
        let Some(file) = &self.file else { return };
        for end in ["", "-wal", "-shm", ".lock", "-lock"] {
            let mut name = file.clone().into_os_string();
            name.push(end);
            // Most of them are not there.
            let _ = std::fs::remove_file(name);
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.engines.clear();
        self.sweep_up();
    }
}

/// In memory, where that can be had: what is tested here is not the disk.
fn directory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    match memory.is_dir() {
        true => memory,
        false => std::env::temp_dir(),
    }
}
