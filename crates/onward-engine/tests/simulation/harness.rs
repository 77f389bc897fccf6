//! Test harness: a new database, and the engines that are open on it.

use std::sync::Arc;

use onward_engine::engine::Settings;
use onward_engine::{Address, Engine, Faults};
use onward_testbed::{Backend, Database, TestDir};

use crate::environment::SimulatedEnvironment;

pub(crate) struct Harness {
    pub(crate) environment: SimulatedEnvironment,
    pub(crate) faults: Faults,
    pub(crate) engines: Vec<Engine>,
    _database: Database,
}

impl Harness {
    /// Opens this number of engines on one new database.
    pub(crate) async fn open(backend: Backend, test: &str, engines: usize) -> Self {
        let (environment, faults) = (SimulatedEnvironment::new(), Faults::armed());
        // In memory, because durability is tested elsewhere.
        let database = match backend {
            Backend::Postgres => Database::create(backend),
            Backend::Sqlite => Database::File(TestDir::in_memory(test)),
        };
        let address = Address::parse(&database.address()).expect("address is valid");
        let mut harness = Self {
            environment,
            faults,
            engines: Vec::new(),
            _database: database,
        };
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
}
