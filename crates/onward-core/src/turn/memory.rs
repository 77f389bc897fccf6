//! What was seen before in this turn: hashes, so many and no more, the oldest forgotten first.
//!
//! Only news pushes anything out, and news is progress: a turn that goes round in circles forgets
//! nothing. Tasks in the background are kept the same way, and go when they are over.

use std::collections::{BTreeMap, VecDeque};

/// Keys with a value each, in the order in which they came, at most `CAPACITY` of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Memory<K, V, const CAPACITY: usize> {
    order: VecDeque<K>,
    known: BTreeMap<K, V>,
}

impl<K: Copy + Ord, V: Copy, const CAPACITY: usize> Memory<K, V, CAPACITY> {
    /// Takes up what [`to_vec`](Self::to_vec) gave. What is there twice, or too much, is left out.
    pub(crate) fn from_vec(entries: Vec<(K, V)>) -> Self {
        let mut memory = Memory {
            order: VecDeque::new(),
            known: BTreeMap::new(),
        };
        for (key, value) in entries {
            memory.put(key, value);
        }
        memory
    }

    /// Everything, the oldest first.
    pub(crate) fn to_vec(&self) -> Vec<(K, V)> {
        self.order
            .iter()
            .filter_map(|key| Some((*key, *self.known.get(key)?)))
            .collect()
    }

    /// What is known of a key.
    pub(crate) fn get(&self, key: K) -> Option<V> {
        self.known.get(&key).copied()
    }

    /// What is known of every key.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.known.values()
    }

    /// Forgets a key; gives back what was known of it.
    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let known = self.known.remove(&key)?;
        self.order.retain(|other| *other != key);
        Some(known)
    }

    /// Remembers a value; gives back what was there.
    pub(crate) fn put(&mut self, key: K, value: V) -> Option<V> {
        let before = self.known.insert(key, value);
        if before.is_none() {
            self.order.push_back(key);
            if self.order.len() > CAPACITY
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
        before
    }
}
