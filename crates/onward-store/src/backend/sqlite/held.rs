//! Signs that were read are held, so that the next search need not read them all again. The file says
//! whether they are still the same: it counts every change of a tenant's signs.
//!
//! What is held is bounded, whatever the file holds: where it does not fit, every search reads. It is never
//! written to; a change means that it is read anew.

use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes that are held, of all tenants together: some 130,000 chunks of 768 numbers.
const ROOM: usize = 16 << 20;

/// The signs that one model gave the chunks of a tenant, one behind the other.
pub(super) struct Signs {
    tenant: String,
    model: String,
    /// The state of the file that they were read from.
    changes: i64,
    /// How many numbers of 64 bits a sign has.
    width: usize,
    bits: Vec<u64>,
    /// The source of each, and the how many-th of its chunks.
    places: Vec<([u8; 16], i64)>,
}

impl Signs {
    /// None yet, of a model whose signs have so many bytes.
    pub(super) fn none(tenant: &str, model: &str, changes: i64, bytes: usize) -> Self {
        Self {
            tenant: tenant.to_owned(),
            model: model.to_owned(),
            changes,
            width: bytes.div_ceil(8),
            bits: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Adds one, which has as many bytes as were named; false where there is no room left.
    pub(super) fn add(&mut self, place: ([u8; 16], i64), sign: &[u8]) -> bool {
        if self.bytes() + self.width * 8 + size_of::<([u8; 16], i64)>() > ROOM {
            return false;
        }
        self.bits.extend(wide(sign));
        self.places.push(place);
        true
    }

    /// How far each is from this one, with its place.
    pub(super) fn apart(&self, sign: &[u8]) -> impl Iterator<Item = (u32, ([u8; 16], i64))> {
        let sign: Vec<u64> = wide(sign).collect();
        let far = move |other: &[u64]| -> u32 {
            let both = sign.iter().zip(other);
            both.map(|(one, other)| (one ^ other).count_ones()).sum()
        };
        let all = self.bits.chunks_exact(self.width.max(1)).map(far);
        all.zip(self.places.iter().copied())
    }

    fn bytes(&self) -> usize {
        self.bits.len() * 8 + self.places.len() * size_of::<([u8; 16], i64)>()
    }

    fn is_of(&self, tenant: &str, model: &str) -> bool {
        self.tenant == tenant && self.model == model
    }
}

/// Bytes as numbers of 64 bits, the last one filled up with zeros.
fn wide(sign: &[u8]) -> impl Iterator<Item = u64> {
    sign.chunks(8).map(|part| {
        let mut eight = [0; 8];
        let place = eight.iter_mut().zip(part);
        place.for_each(|(byte, from)| *byte = *from);
        u64::from_ne_bytes(eight)
    })
}

/// What is held by all readers of a file together, what was asked for last at the end.
#[derive(Clone, Default)]
pub(crate) struct Held(Arc<Mutex<Vec<Arc<Signs>>>>);

impl Held {
    /// Those of this state of the file, if they are held.
    pub(super) fn get(&self, tenant: &str, model: &str, changes: i64) -> Option<Arc<Signs>> {
        let mut all = self.lock();
        let place = all.iter().position(|held| held.is_of(tenant, model))?;
        let held = all.remove(place);
        all.push(Arc::clone(&held));
        (held.changes == changes).then_some(held)
    }

    /// Holds these, and lets go of what was asked for longest ago, where that is needed. Older ones do not
    /// take the place of newer ones.
    pub(super) fn put(&self, signs: Signs) {
        let mut all = self.lock();
        let known = all
            .iter()
            .position(|it| it.is_of(&signs.tenant, &signs.model));
        if let Some(place) = known {
            if all.get(place).is_some_and(|it| it.changes > signs.changes) {
                return;
            }
            all.remove(place);
        }
        all.push(Arc::new(signs));
        while all.iter().map(|held| held.bytes()).sum::<usize>() > ROOM {
            all.remove(0);
        }
    }

    /// Lets go of everything.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Signs>>> {
        // Whoever panicked held the list for a push or a removal: it is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(tenant: &str, changes: i64, many: usize) -> Signs {
        let mut signs = Signs::none(tenant, "model", changes, 96);
        for ordinal in 0..many {
            let ordinal = i64::try_from(ordinal).unwrap();
            assert!(signs.add(([1; 16], ordinal), &[0b1010_1010; 96]));
        }
        signs
    }

    #[test]
    fn signs_of_any_length_are_apart_where_they_differ() {
        for bytes in [1, 7, 8, 9, 96] {
            let mut signs = Signs::none("t", "m", 1, bytes);
            let mut other = vec![0b1111_0000; bytes];
            assert!(signs.add(([1; 16], 0), &other));
            *other.last_mut().unwrap() ^= 0b11;
            assert!(signs.add(([1; 16], 1), &other));
            let apart: Vec<_> = signs.apart(&vec![0b1111_0000; bytes]).collect();
            assert_eq!(apart, [(0, ([1; 16], 0)), (2, ([1; 16], 1))], "{bytes}");
        }
    }

    #[test]
    fn only_the_state_of_the_file_that_is_asked_about_is_given() {
        let held = Held::default();
        held.put(signs("one", 3, 2));
        assert!(held.get("one", "model", 3).is_some());
        assert!(held.get("one", "model", 4).is_none());
        assert!(held.get("one", "another", 3).is_none());
        assert!(held.get("other", "model", 3).is_none());
        held.put(signs("one", 2, 1));
        assert!(held.get("one", "model", 3).is_some(), "older ones stay out");
        held.put(signs("one", 4, 1));
        assert!(held.get("one", "model", 4).is_some());
    }

    #[test]
    fn no_more_is_held_than_there_is_room_for() {
        let mut full = Signs::none("full", "model", 1, 96);
        while full.add(([1; 16], 0), &[0; 96]) {}
        assert!(full.bytes() <= ROOM && full.bytes() > ROOM - 200);
        let held = Held::default();
        let half = ROOM / 2 / 120;
        for tenant in ["one", "two"] {
            held.put(signs(tenant, 1, half));
        }
        assert!(held.get("one", "model", 1).is_some());
        held.put(signs("three", 1, half));
        let there = |tenant| held.get(tenant, "model", 1).is_some();
        assert!(there("one") && there("three") && !there("two"));
        held.put(full);
        assert!(there("full") && !there("one") && !there("three"));
        held.clear();
        assert!(!there("full"));
    }
}
