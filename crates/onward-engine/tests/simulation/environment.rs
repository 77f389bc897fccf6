//! The simulated environment: a clock that only moves when a test moves it, and seeded random
//! bytes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward_core::Timestamp;
use onward_engine::environment::Environment;
use onward_testbed::Rng;

/// Start time of every run: 2026-07-28 08:00 UTC.
const START_MILLIS: i64 = 1_785_225_600_000;

/// Shared by all engines of a run.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedEnvironment(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    now: Timestamp,
    rng: Rng,
}

impl SimulatedEnvironment {
    pub(crate) fn new() -> Self {
        let now = Timestamp::from_millis(START_MILLIS);
        let rng = Rng::new(0);
        SimulatedEnvironment(Arc::new(Mutex::new(State { now, rng })))
    }

    /// Restores the initial state for another seed.
    pub(crate) fn reset(&self, seed: u64) {
        self.with(|state| {
            state.now = Timestamp::from_millis(START_MILLIS);
            state.rng = Rng::new(seed ^ 0xD1CE);
        });
    }

    pub(crate) fn advance(&self, span: Duration) {
        self.with(|state| {
            state.now = state.now.checked_add(span).unwrap_or(state.now);
        });
    }

    /// Sets the clock, forward or back.
    pub(crate) fn set(&self, now: Timestamp) {
        self.with(|state| state.now = now);
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Environment for SimulatedEnvironment {
    fn now(&self) -> Timestamp {
        self.with(|state| state.now)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.with(|state| state.rng.fill(bytes));
    }
}
