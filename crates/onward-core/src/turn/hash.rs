//! A stable hash: FNV-1a, 64 bits.
//!
//! The state of a turn outlives the process, so the hash must not depend on a random seed or on the
//! version of the standard library. It is not collision-resistant: a forged collision causes at
//! most a nudge.

/// The hash of these bytes.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A 32-bit hash of a text, for large sets in which a collision is harmless.
pub(crate) fn key(text: &str) -> u32 {
    let hash = hash(text.as_bytes());
    u32::try_from((hash ^ (hash >> 32)) & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}
