//! The engine's environment: the clock, the source of randomness, and process lookup.
//!
//! One trait provides all three, so that a test can simulate a year in a second and reproduce it
//! from a seed. `machine.rs` implements it for the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::owner::ProcessObservation;
use onward_core::id::ClaimToken;
use uuid::{Builder, Uuid};

/// Source of time and randomness.
pub trait Environment: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
    /// Time since some fixed instant, which neither a user nor time synchronization can adjust, and
    /// which includes the time that the machine slept. `None` if [`now`](Self::now) has this property.
    fn monotonic(&self) -> Option<Duration> {
        None
    }
    /// Fills the buffer with random bytes, unpredictable outside of tests.
    fn fill_random(&self, bytes: &mut [u8]);
    /// Whether [`now`](Self::now) is the wall clock. If so, the clock of a database shared by
    /// several machines takes precedence; a simulated clock is used as it is.
    fn is_wall_clock(&self) -> bool {
        false
    }
    /// The state of a process. An environment without processes returns no information.
    fn process_state(&self, _process: u32) -> ProcessObservation {
        ProcessObservation::unknown()
    }
}

/// Generates ids and tokens from an [`Environment`].
#[derive(Clone)]
pub(crate) struct IdGenerator {
    pub(crate) environment: Arc<dyn Environment>,
    /// Number of generated ids; orders ids of the same millisecond.
    count: Arc<AtomicU16>,
    /// The first 24 bits of the next step id. The first value is random.
    step_prefix: Arc<AtomicU32>,
}

impl IdGenerator {
    pub(crate) fn new(environment: Arc<dyn Environment>) -> Self {
        let mut first = [0; 4];
        environment.fill_random(&mut first);
        Self {
            environment,
            count: Arc::default(),
            step_prefix: Arc::new(AtomicU32::new(u32::from_be_bytes(first))),
        }
    }

    /// A random id. Its prefixes are distinctive, so users can type the first characters.
    pub(crate) fn random_id(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.environment.fill_random(&mut bytes);
        into_decimal(&mut bytes[4..]);
        bytes[8] &= VARIANT_DIGIT;
        Builder::from_random_bytes(bytes).into_uuid()
    }

    /// The id of a step. Users type its first six to eight characters, so these differ between all
    /// steps of a plan. They count upwards, so the ids of a plan stay adjacent in the index.
    pub(crate) fn step_id(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.environment.fill_random(&mut bytes);
        let [_, prefix @ ..] = self
            .step_prefix
            .fetch_add(1, Ordering::Relaxed)
            .to_be_bytes();
        bytes[..3].copy_from_slice(&prefix);
        into_decimal(&mut bytes[3..]);
        Builder::from_random_bytes(bytes).into_uuid()
    }

    /// A time-ordered id, which keeps indexes compact.
    pub(crate) fn ordered_id(&self, now: Timestamp) -> Uuid {
        let mut bytes = [0; 10];
        self.environment.fill_random(&mut bytes);
        into_decimal(&mut bytes);
        bytes[2] &= VARIANT_DIGIT;
        // The first twelve bits are the counter; the version overwrites the upper four.
        let count = self.count.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        bytes[..2].copy_from_slice(&count);
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid()
    }

    /// 16 random letters: 75 bits, in half as many model tokens as hexadecimal digits.
    pub(crate) fn claim_token(&self) -> ClaimToken {
        let mut bytes = [0; 32];
        self.environment.fill_random(&mut bytes);
        let letter = |pair: &[u8; 2]| {
            let number = u16::from_be_bytes(*pair) % 26;
            char::from(b'a' + u8::try_from(number).unwrap_or(0))
        };
        let (pairs, _) = bytes.as_chunks::<2>();
        ClaimToken::new(pairs.iter().map(letter).collect::<String>())
    }

    /// `BYTES` random bytes as hexadecimal text.
    pub(crate) fn hex<const BYTES: usize>(&self) -> String {
        let mut bytes = [0; BYTES];
        self.environment.fill_random(&mut bytes);
        hex(&bytes)
    }
}

/// Mask for the byte of the UUID variant, so that its digit is 8 or 9.
const VARIANT_DIGIT: u8 = 0x1f;

/// Reduces each hexadecimal digit to a decimal one. A model reads three decimal digits as one
/// token, so an id costs a third less; a random part of 15 or more digits stays unique.
pub(crate) fn into_decimal(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = (((*byte >> 4) % 10) << 4) | ((*byte & 15) % 10);
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
