//! A simulated environment: a clock that only moves when a test advances it, a seeded random number
//! generator, and a host with processes that start and exit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::Owner;
use onward_core::call::owner::{ProcessObservation, ProcessState};
use onward_engine::environment::Environment;
use onward_testbed::Rng;

/// Start time of every test: 2026-09-21.
const START_MILLIS: i64 = 1_790_000_000_000;

pub(crate) struct SimulatedEnvironment {
    now: AtomicI64,
    /// Milliseconds by which the wall clock is wrong.
    wrong_by: AtomicI64,
    rng: Mutex<Rng>,
    machine: Mutex<Machine>,
}

/// The simulated host. Each test has a different one, because tests share a database.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) host: String,
    pub(crate) boot: String,
    /// Running processes: process id and start time.
    pub(crate) processes: BTreeMap<u32, u64>,
}

impl Machine {
    fn new(seed: &str) -> Self {
        Self {
            host: format!("host {:016x}", fnv1a(seed)),
            boot: "first".to_owned(),
            processes: BTreeMap::new(),
        }
    }
}

impl SimulatedEnvironment {
    pub(crate) fn new(seed: &str) -> Self {
        Self {
            now: AtomicI64::new(START_MILLIS),
            wrong_by: AtomicI64::new(0),
            rng: Mutex::new(Rng::new(fnv1a(seed))),
            machine: Mutex::new(Machine::new(seed)),
        }
    }

    pub(crate) fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().expect("machine lock is not poisoned")
    }

    /// Starts a process and returns it as the owner of tool calls.
    pub(crate) fn start_process(&self, process: u32, started: u64) -> Owner {
        let mut machine = self.machine();
        machine.processes.insert(process, started);
        Owner {
            host: machine.host.clone(),
            boot: Some(machine.boot.clone()),
            process,
            process_started: Some(started),
        }
    }

    /// Restores the initial state.
    pub(crate) fn reset(&self, seed: &str) {
        self.now.store(START_MILLIS, Ordering::SeqCst);
        self.misset_by(0);
        *self.rng() = Rng::new(fnv1a(seed));
        *self.machine() = Machine::new(seed);
    }

    /// Advances the clock.
    pub(crate) fn advance(&self, span: Duration) {
        let millis = i64::try_from(span.as_millis()).expect("duration fits i64 milliseconds");
        self.now.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets the clock, forward or back.
    pub(crate) fn set(&self, now: Timestamp) {
        self.now.store(now.as_millis(), Ordering::SeqCst);
    }

    /// Makes the wall clock wrong by this many milliseconds; the monotonic clock stays right.
    pub(crate) fn misset_by(&self, millis: i64) {
        self.wrong_by.store(millis, Ordering::SeqCst);
    }

    /// A random number below `bound`.
    pub(crate) fn random_below(&self, bound: u64) -> u64 {
        self.rng().below(bound)
    }

    fn rng(&self) -> MutexGuard<'_, Rng> {
        self.rng.lock().expect("rng lock is not poisoned")
    }
}

/// FNV-1a: the same on every machine.
pub(crate) fn fnv1a(text: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

impl Environment for SimulatedEnvironment {
    fn now(&self) -> Timestamp {
        let wrong_by = self.wrong_by.load(Ordering::SeqCst);
        Timestamp::from_millis(self.now.load(Ordering::SeqCst) + wrong_by)
    }

    fn monotonic(&self) -> Option<Duration> {
        let now = u64::try_from(self.now.load(Ordering::SeqCst)).unwrap_or(0);
        Some(Duration::from_millis(now))
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.rng().fill(bytes);
    }

    fn process_state(&self, process: u32) -> ProcessObservation {
        let machine = self.machine();
        let started = machine.processes.get(&process);
        ProcessObservation {
            host: machine.host.clone(),
            boot: Some(machine.boot.clone()),
            process: started.map_or(ProcessState::Missing, |started| {
                ProcessState::Running(Some(*started))
            }),
        }
    }
}
