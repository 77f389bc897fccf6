//! Kill plan of a worker: SIGKILL from the test, or an abort at an exact point.
//!
//! The exact points are the n-th call to the environment (clock or random bytes), which the engine
//! makes before each operation, and the n-th store operation: a query, before a commit, or after
//! one. After a commit the change is stored, but no response was sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onward_core::Timestamp;
use onward_engine::Faults;
use onward_engine::engine::Settings;
use onward_engine::environment::Environment;
use onward_engine::machine::SystemEnvironment;
use onward_testbed::Rng;

/// How a worker is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillPlan {
    /// The test sends SIGKILL.
    Signal,
    /// The worker aborts at this call to its environment.
    AtEnvironmentCall(u64),
    /// The worker aborts at this store operation after it has opened the database.
    AtStoreOperation(u32),
}

impl KillPlan {
    pub fn random(rng: &mut Rng, round: u64) -> Self {
        match rng.below(4) {
            0 => KillPlan::AtEnvironmentCall(1 + rng.below(300)),
            // The lower bound increases with the rounds, so that later operations occur as well.
            1 => KillPlan::AtStoreOperation(u32::try_from(round + rng.below(60)).unwrap_or(0)),
            _ => KillPlan::Signal,
        }
    }

    /// The plan as the task of a worker.
    pub fn to_task(self) -> String {
        match self {
            KillPlan::Signal => String::new(),
            KillPlan::AtEnvironmentCall(number) => format!("environment-call {number}"),
            KillPlan::AtStoreOperation(number) => format!("store-operation {number}"),
        }
    }

    pub fn from_task(task: &str) -> Self {
        match task.split_once(' ') {
            Some(("environment-call", number)) => {
                KillPlan::AtEnvironmentCall(number.parse().unwrap())
            }
            Some(("store-operation", number)) => {
                KillPlan::AtStoreOperation(number.parse().unwrap())
            }
            _ => KillPlan::Signal,
        }
    }

    /// Settings for the worker's engine.
    pub fn settings(self) -> Settings {
        let mut settings = Settings {
            faults: Faults::armed(),
            ..Settings::default()
        };
        if let KillPlan::AtEnvironmentCall(number) = self {
            settings.environment = Arc::new(AbortingEnvironment(AtomicU64::new(number)));
        }
        settings
    }
}

/// The system environment, with a countdown of calls after which the process aborts.
struct AbortingEnvironment(AtomicU64);

impl AbortingEnvironment {
    fn count(&self) {
        if self.0.fetch_sub(1, Ordering::SeqCst) == 1 {
            abort();
        }
    }
}

impl Environment for AbortingEnvironment {
    fn now(&self) -> Timestamp {
        self.count();
        SystemEnvironment.now()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.count();
        SystemEnvironment.fill_random(bytes);
    }
}

/// Ends the process without running destructors or exit handlers.
pub fn abort() -> ! {
    std::process::abort()
}
