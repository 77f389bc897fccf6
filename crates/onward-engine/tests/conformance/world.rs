//! A clock that stands still until it is told to go on, dice that fall as their seed says, and a machine
//! with processes that live and die.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::Owner;
use onward_core::call::owner::{Process, Sight};
use onward_engine::world::World;

/// Where every test begins: 2026-09-21.
pub(crate) const BEGINNING: i64 = 1_790_000_000_000;

/// A world for tests.
pub(crate) struct Simulated {
    now: AtomicI64,
    dice: AtomicU64,
    machine: Mutex<Machine>,
}

/// A machine of its own for every test: others look at the same database.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) host: String,
    pub(crate) boot: String,
    /// Who lives, and since when.
    pub(crate) processes: BTreeMap<u32, u64>,
}

impl Machine {
    fn of(seed: &str) -> Self {
        Self {
            host: format!("host {:016x}", hash(seed)),
            boot: "first".to_owned(),
            processes: BTreeMap::new(),
        }
    }
}

impl Simulated {
    /// A world whose dice fall as this name says.
    pub(crate) fn of(seed: &str) -> Self {
        Self {
            now: AtomicI64::new(BEGINNING),
            dice: AtomicU64::new(hash(seed)),
            machine: Mutex::new(Machine::of(seed)),
        }
    }

    /// The machine, to be changed.
    pub(crate) fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().expect("no test panics here")
    }

    /// A process that lives, as an owner of calls.
    pub(crate) fn start(&self, process: u32, started: u64) -> Owner {
        let mut machine = self.machine();
        machine.processes.insert(process, started);
        Owner {
            host: machine.host.clone(),
            boot: Some(machine.boot.clone()),
            process,
            process_started: Some(started),
        }
    }

    /// The same as a new one.
    pub(crate) fn begin_anew(&self, seed: &str) {
        self.now.store(BEGINNING, Ordering::SeqCst);
        self.dice.store(hash(seed), Ordering::SeqCst);
        *self.machine() = Machine::of(seed);
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, span: Duration) {
        let millis = i64::try_from(span.as_millis()).expect("a span that a test can wait for");
        self.now.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets the clock, forward or back.
    pub(crate) fn set(&self, now: Timestamp) {
        self.now.store(now.as_millis(), Ordering::SeqCst);
    }

    /// A number below a bound.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.roll() % bound
    }

    /// A step of splitmix64.
    fn roll(&self) -> u64 {
        let state = self.dice.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A number that stands for a name: FNV-1a, the same on every machine.
pub(crate) fn hash(name: &str) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, hash)
}

impl World for Simulated {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::SeqCst))
    }

    fn dice(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let roll = self.roll().to_le_bytes();
            chunk.copy_from_slice(&roll[..chunk.len()]);
        }
    }

    fn look(&self, process: u32) -> Sight {
        let machine = self.machine();
        let lives = machine.processes.get(&process);
        Sight {
            host: machine.host.clone(),
            boot: Some(machine.boot.clone()),
            process: lives.map_or(Process::Gone, |started| Process::Started(Some(*started))),
        }
    }
}
