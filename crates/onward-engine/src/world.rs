//! The clock, the dice, and who lives: the only things that the engine takes from the world around it.
//!
//! They stand behind one trait, so that a test can run a year in a second and repeat it by its seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use onward_core::Timestamp;
use onward_core::call::owner::Sight;
use onward_core::id::ClaimToken;
use uuid::{Builder, Uuid};

use crate::machine;

/// Where time and chance come from.
pub trait World: Send + Sync {
    /// The instant that it is.
    fn now(&self) -> Timestamp;
    /// Bytes that nobody can guess.
    fn dice(&self, bytes: &mut [u8]);
    /// Whether its time is the one that everybody has. Then the clock of a database that several
    /// machines share counts more than the machine's own; a time that was made up is left alone.
    fn shares_time(&self) -> bool {
        false
    }
    /// What stands under a process id. A world without processes shows nothing.
    fn look(&self, _process: u32) -> Sight {
        machine::blind()
    }
}

/// The world that the machine is in.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl World for System {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.map_or(0, |since| since.as_millis());
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    fn dice(&self, bytes: &mut [u8]) {
        if getrandom::fill(bytes).is_err() {
            // A system without randomness cannot give out a claim that nobody can guess.
            std::process::abort();
        }
    }

    fn shares_time(&self) -> bool {
        true
    }

    fn look(&self, process: u32) -> Sight {
        machine::look(process)
    }
}

/// Fresh ids and tokens, made of what a [`World`] gives.
#[derive(Clone)]
pub(crate) struct Fresh {
    pub(crate) world: Arc<dyn World>,
    /// How many ids were made, so that those of one millisecond sort as they were made.
    made: Arc<AtomicU16>,
}

impl Fresh {
    pub(crate) fn of(world: Arc<dyn World>) -> Self {
        let made = Arc::default();
        Self { world, made }
    }

    /// An id without an order, short of which people can read the beginning alone.
    pub(crate) fn id(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.world.dice(&mut bytes);
        Builder::from_random_bytes(bytes).into_uuid()
    }

    /// An id that sorts by the time at which it was made, which keeps indexes small.
    pub(crate) fn timely_id(&self, now: Timestamp) -> Uuid {
        let mut bytes = [0; 10];
        self.world.dice(&mut bytes);
        // The first twelve bits are the counter: the version takes the upper four.
        let count = self.made.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        bytes[..2].copy_from_slice(&count);
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid()
    }

    pub(crate) fn claim_token(&self) -> ClaimToken {
        ClaimToken::new(self.hex::<16>())
    }

    /// So many random bytes, as hexadecimal text.
    pub(crate) fn hex<const BYTES: usize>(&self) -> String {
        let mut bytes = [0; BYTES];
        self.world.dice(&mut bytes);
        hex(&bytes)
    }
}

/// Bytes as hexadecimal text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}
