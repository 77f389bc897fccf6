//! When a worker dies by its own hand, at an exact place instead of by chance: at the n-th question to
//! its clock or its dice, which the engine asks before each call; or at the n-th operation of its
//! store: a question, right before a commit, right after one. The last is the hard case, in which all
//! was done and nobody was told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onward_core::Timestamp;
use onward_engine::Faults;
use onward_engine::engine::Settings;
use onward_engine::world::{System, World};

use crate::dice::Dice;
use crate::history::{Told, What};

/// How a worker dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doom {
    /// Somebody else kills it.
    Killed,
    /// At this question to the clock or the dice.
    AtQuestion(u64),
    /// At this operation of the store, once it has opened the database.
    AtOperation(u32),
}

impl Doom {
    pub fn of_chance(dice: &mut Dice, round: u64) -> Self {
        match dice.below(4) {
            0 => Doom::AtQuestion(1 + dice.below(300)),
            // Each of the first operations comes up, and later ones by chance.
            1 => Doom::AtOperation(u32::try_from(round + dice.below(60)).unwrap_or(0)),
            _ => Doom::Killed,
        }
    }

    pub fn written(self) -> String {
        match self {
            Doom::Killed => String::new(),
            Doom::AtQuestion(number) => format!("question {number}"),
            Doom::AtOperation(number) => format!("operation {number}"),
        }
    }

    pub fn read(text: &str) -> Self {
        match text.split_once(' ') {
            Some(("question", number)) => Doom::AtQuestion(number.parse().unwrap()),
            Some(("operation", number)) => Doom::AtOperation(number.parse().unwrap()),
            _ => Doom::Killed,
        }
    }

    /// How to open a database for a worker with this doom.
    pub fn settings(self) -> Settings {
        let mut settings = Settings {
            faults: Faults::armed(),
            ..Settings::default()
        };
        if let Doom::AtQuestion(number) = self {
            settings.world = Arc::new(Doomed(AtomicU64::new(number)));
        }
        settings
    }
}

/// A world that ends the process.
struct Doomed(AtomicU64);

impl Doomed {
    fn count(&self) {
        if self.0.fetch_sub(1, Ordering::SeqCst) == 1 {
            die();
        }
    }
}

impl World for Doomed {
    fn now(&self) -> Timestamp {
        self.count();
        System.now()
    }

    fn dice(&self, bytes: &mut [u8]) {
        self.count();
        System.dice(bytes);
    }
}

/// Whether this is the fault that a worker is to die of, before anybody hears of it.
pub fn is_fatal(what: &What) -> bool {
    matches!(what, What::Told(Told::Trouble { words, .. }) if words.contains("a fault on purpose"))
}

/// Ends the process without any of the things that a process does at its end.
pub fn die() -> ! {
    std::process::abort()
}
