//! A cache of the recently used entries, in two generations. New entries are in the new one. When it
//! is full, it becomes the old one, and the entries of the previous old one are dropped. An entry that
//! is used again returns to the new one.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A cache of the recently used entries.
pub(crate) struct Recent<K, V> {
    new: HashMap<K, V>,
    old: HashMap<K, V>,
    /// Capacity of a generation.
    capacity: usize,
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// An empty cache for at most twice as many entries.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            new: HashMap::new(),
            old: HashMap::new(),
            capacity,
        }
    }

    /// An entry that was used so recently that it need not be moved.
    pub(crate) fn peek<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.new.get(key)
    }

    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        if !self.new.contains_key(key) {
            let (key, value) = self.old.remove_entry(key)?;
            self.insert(key, value);
        }
        self.new.get(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.new.len() >= self.capacity {
            self.old = std::mem::take(&mut self.new);
        }
        self.old.remove(&key);
        self.new.insert(key, value);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.new.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_used_and_drops_the_rest() {
        let mut recent = Recent::new(10);
        for number in 0..1_000 {
            recent.insert(number, number);
            assert_eq!(recent.get(&0), Some(&0), "{number}");
            assert!(recent.len() <= 20);
        }
        assert_eq!(recent.get(&500), None);
        assert_eq!(recent.get(&999), Some(&999));
        assert_eq!(recent.peek(&999), Some(&999));
    }
}
