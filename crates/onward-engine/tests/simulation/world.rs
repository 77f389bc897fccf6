//! The world of the simulation: a clock that moves only when it is told to, and dice with a seed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward_core::Timestamp;
use onward_engine::world::World;

use crate::dice::Dice;

/// 2026-07-28, a morning.
const BEGIN: i64 = 1_785_225_600_000;

/// The world, shared by all engines of a run.
#[derive(Debug, Clone)]
pub(crate) struct Stage(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    now: Timestamp,
    dice: Dice,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let now = Timestamp::from_millis(BEGIN);
        let dice = Dice::new(0);
        Stage(Arc::new(Mutex::new(State { now, dice })))
    }

    /// Everything begins anew, for another seed.
    pub(crate) fn reset(&self, seed: u64) {
        self.with(|state| {
            state.now = Timestamp::from_millis(BEGIN);
            state.dice = Dice::new(seed ^ 0xD1CE);
        });
    }

    /// Time passes.
    pub(crate) fn pass(&self, span: Duration) {
        self.with(|state| {
            state.now = state.now.checked_add(span).unwrap_or(state.now);
        });
    }

    /// The clock is set.
    pub(crate) fn set(&self, now: Timestamp) {
        self.with(|state| state.now = now);
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl World for Stage {
    fn now(&self) -> Timestamp {
        self.with(|state| state.now)
    }

    fn dice(&self, bytes: &mut [u8]) {
        self.with(|state| {
            for piece in bytes.chunks_mut(8) {
                let roll = state.dice.next().to_le_bytes();
                let length = piece.len();
                piece.copy_from_slice(&roll[..length]);
            }
        });
    }
}
