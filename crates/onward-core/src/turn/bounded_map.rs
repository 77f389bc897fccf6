//! A map with a maximum size that evicts its oldest entries.
//!
//! Only new entries evict others, and new content is progress: a turn in a loop evicts nothing.

use std::collections::{BTreeMap, VecDeque};

/// At most `CAPACITY` entries, in insertion order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BoundedMap<K, V, const CAPACITY: usize> {
    order: VecDeque<K>,
    entries: BTreeMap<K, V>,
}

impl<K: Copy + Ord, V: Copy, const CAPACITY: usize> BoundedMap<K, V, CAPACITY> {
    /// Restores the output of [`to_vec`](Self::to_vec). Drops duplicates and surplus entries.
    pub(crate) fn from_vec(entries: Vec<(K, V)>) -> Self {
        let mut map = BoundedMap {
            order: VecDeque::new(),
            entries: BTreeMap::new(),
        };
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }

    /// All entries, oldest first.
    pub(crate) fn to_vec(&self) -> Vec<(K, V)> {
        self.order
            .iter()
            .filter_map(|key| Some((*key, *self.entries.get(key)?)))
            .collect()
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: K) -> Option<V> {
        self.entries.get(&key).copied()
    }

    /// All values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.values()
    }

    /// Removes a key and returns its value.
    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let value = self.entries.remove(&key)?;
        self.order.retain(|other| *other != key);
        Some(value)
    }

    /// Inserts a value and returns the previous one.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let before = self.entries.insert(key, value);
        if before.is_none() {
            self.order.push_back(key);
            if self.order.len() > CAPACITY
                && let Some(oldest) = self.order.pop_front()
            {
                self.entries.remove(&oldest);
            }
        }
        before
    }
}
