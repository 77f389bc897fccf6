//! A hash that is the same in every process and every version: FNV-1a, 64 bits.
//!
//! The standard library's hasher is seeded, or may change between releases; what is remembered of a
//! turn outlives the process that saw it. Nothing here guards against somebody who looks for
//! collisions: the worst that he gains is a nudge.

/// The hash of some bytes.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Half of the hash of a text, where there are many and a collision does no harm.
pub(crate) fn key(text: &str) -> u32 {
    let hash = hash(text.as_bytes());
    u32::try_from((hash ^ (hash >> 32)) & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}
