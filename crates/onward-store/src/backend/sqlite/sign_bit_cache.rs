//! Sign-bit cache: signs that a search has read stay in memory, so that the next search need not
//! read them again. The file counts every change to the signs of a tenant, and cached signs are
//! used only if that count is unchanged.
//!
//! The cache is bounded; signs that do not fit are read by every search. Entries are immutable:
//! after a change, the signs are read again.

use std::sync::{Arc, Mutex, PoisonError};

/// Maximum size in bytes, of all tenants together: about 130,000 chunks of 768 dimensions.
const CAPACITY: usize = 16 << 20;

/// Sign bits of a tenant's chunks for one model, concatenated.
pub(super) struct Signs {
    tenant: String,
    model: String,
    /// Change count of the snapshot from which they were read.
    changes: i64,
    /// Number of 64-bit words per sign.
    width: usize,
    bits: Vec<u64>,
    /// Source and ordinal of each chunk.
    places: Vec<([u8; 16], i64)>,
}

impl Signs {
    /// An empty list, for a model whose signs have this many bytes.
    pub(super) fn empty(tenant: &str, model: &str, changes: i64, bytes: usize) -> Self {
        Self {
            tenant: tenant.to_owned(),
            model: model.to_owned(),
            changes,
            width: bytes.div_ceil(8),
            bits: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Adds a sign of that length; returns false if there is no room left.
    pub(super) fn add(&mut self, place: ([u8; 16], i64), sign: &[u8]) -> bool {
        if self.bytes() + self.width * 8 + size_of::<([u8; 16], i64)>() > CAPACITY {
            return false;
        }
        self.bits.extend(wide(sign));
        self.places.push(place);
        true
    }

    /// Hamming distance of each sign to `sign`, with its chunk.
    pub(super) fn hamming_distances(
        &self,
        sign: &[u8],
    ) -> impl Iterator<Item = (u32, ([u8; 16], i64))> {
        let sign: Vec<u64> = wide(sign).collect();
        let distance = move |other: &[u64]| -> u32 {
            let both = sign.iter().zip(other);
            both.map(|(one, other)| (one ^ other).count_ones()).sum()
        };
        let all = self.bits.chunks_exact(self.width.max(1)).map(distance);
        all.zip(self.places.iter().copied())
    }

    fn bytes(&self) -> usize {
        self.bits.len() * 8 + self.places.len() * size_of::<([u8; 16], i64)>()
    }

    fn is_of(&self, tenant: &str, model: &str) -> bool {
        self.tenant == tenant && self.model == model
    }
}

/// The bytes as 64-bit words, the last one padded with zeros.
fn wide(sign: &[u8]) -> impl Iterator<Item = u64> {
    sign.chunks(8).map(|part| {
        let mut eight = [0; 8];
        let place = eight.iter_mut().zip(part);
        place.for_each(|(byte, from)| *byte = *from);
        u64::from_ne_bytes(eight)
    })
}

/// Sign-bit cache shared by all readers of a file, most recently used entry last.
#[derive(Clone, Default)]
pub(crate) struct SignBitCache(Arc<Mutex<Vec<Arc<Signs>>>>);

impl SignBitCache {
    /// The signs with this change count, if cached.
    pub(super) fn get(&self, tenant: &str, model: &str, changes: i64) -> Option<Arc<Signs>> {
        let mut all = self.lock();
        let place = all.iter().position(|cached| cached.is_of(tenant, model))?;
        let cached = all.remove(place);
        all.push(Arc::clone(&cached));
        (cached.changes == changes).then_some(cached)
    }

    /// Caches signs, and evicts the least recently used ones if there is no room. Older signs
    /// do not replace newer ones.
    pub(super) fn put(&self, signs: Signs) {
        let mut all = self.lock();
        let known = all
            .iter()
            .position(|cached| cached.is_of(&signs.tenant, &signs.model));
        if let Some(place) = known {
            if all
                .get(place)
                .is_some_and(|cached| cached.changes > signs.changes)
            {
                return;
            }
            all.remove(place);
        }
        all.push(Arc::new(signs));
        while all.iter().map(|cached| cached.bytes()).sum::<usize>() > CAPACITY {
            all.remove(0);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Signs>>> {
        // A panic during a push or a removal leaves the list valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(tenant: &str, changes: i64, many: usize) -> Signs {
        let mut signs = Signs::empty(tenant, "model", changes, 96);
        for ordinal in 0..many {
            let ordinal = i64::try_from(ordinal).unwrap();
            assert!(signs.add(([1; 16], ordinal), &[0b1010_1010; 96]));
        }
        signs
    }

    #[test]
    fn computes_the_hamming_distance_of_signs_of_any_length() {
        for bytes in [1, 7, 8, 9, 96] {
            let mut signs = Signs::empty("t", "m", 1, bytes);
            let mut other = vec![0b1111_0000; bytes];
            assert!(signs.add(([1; 16], 0), &other));
            *other.last_mut().unwrap() ^= 0b11;
            assert!(signs.add(([1; 16], 1), &other));
            let apart: Vec<_> = signs.hamming_distances(&vec![0b1111_0000; bytes]).collect();
            assert_eq!(apart, [(0, ([1; 16], 0)), (2, ([1; 16], 1))], "{bytes}");
        }
    }

    #[test]
    fn returns_signs_only_for_the_same_change_count() {
        let cache = SignBitCache::default();
        cache.put(signs("one", 3, 2));
        assert!(cache.get("one", "model", 3).is_some());
        assert!(cache.get("one", "model", 4).is_none());
        assert!(cache.get("one", "another", 3).is_none());
        assert!(cache.get("other", "model", 3).is_none());
        cache.put(signs("one", 2, 1));
        assert!(
            cache.get("one", "model", 3).is_some(),
            "older signs are ignored"
        );
        cache.put(signs("one", 4, 1));
        assert!(cache.get("one", "model", 4).is_some());
    }

    #[test]
    fn evicts_the_least_recently_used_signs_when_full() {
        let mut full = Signs::empty("full", "model", 1, 96);
        while full.add(([1; 16], 0), &[0; 96]) {}
        assert!(full.bytes() <= CAPACITY && full.bytes() > CAPACITY - 200);
        let cache = SignBitCache::default();
        let half = CAPACITY / 2 / 120;
        for tenant in ["one", "two"] {
            cache.put(signs(tenant, 1, half));
        }
        assert!(cache.get("one", "model", 1).is_some());
        cache.put(signs("three", 1, half));
        let is_cached = |tenant| cache.get(tenant, "model", 1).is_some();
        assert!(is_cached("one") && is_cached("three") && !is_cached("two"));
        cache.put(full);
        assert!(is_cached("full") && !is_cached("one") && !is_cached("three"));
    }
}
