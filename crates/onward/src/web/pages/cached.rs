//! Cached results of slow counts, per tenant. A count takes time in proportion to the number of
//! plans or events, so a slow result is reused for a multiple of the time it took.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use onward_engine::Error;

/// Results that took less are not cached.
const MIN_COST: Duration = Duration::from_millis(25);
/// A result is cached for this multiple of its cost.
const LIFETIME_FACTOR: u32 = 20;

/// The cache.
pub(crate) struct Cached<T>(Mutex<HashMap<Arc<str>, Entry<T>>>);

struct Entry<T> {
    valid_until: Instant,
    value: T,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Cached<T> {
    /// The cached result, or that of `count`.
    pub(super) async fn get(
        &self,
        tenant: &Arc<str>,
        count: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let started = Instant::now();
        if let Some(value) = self.cached(tenant, started) {
            return Ok(value);
        }
        let value = count.await?;
        self.store(tenant, started.elapsed(), &value);
        Ok(value)
    }

    fn cached(&self, tenant: &Arc<str>, now: Instant) -> Option<T> {
        // A poisoned map is consistent: every use is one operation.
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = cache
            .get(tenant)
            .filter(|cached| now < cached.valid_until)?;
        Some(cached.value.clone())
    }

    fn store(&self, tenant: &Arc<str>, cost: Duration, value: &T) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cost < MIN_COST {
            cache.remove(tenant);
            return;
        }
        let cached = Entry {
            valid_until: Instant::now() + cost * LIFETIME_FACTOR,
            value: value.clone(),
        };
        cache.insert(Arc::clone(tenant), cached);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_slow_results_only_and_for_a_limited_time() {
        let (cache, tenant) = (Cached::<u32>::default(), Arc::from("acme"));
        let now = Instant::now();
        cache.store(&tenant, MIN_COST / 2, &7);
        assert_eq!(cache.cached(&tenant, now), None);
        cache.store(&tenant, MIN_COST, &7);
        assert_eq!(cache.cached(&tenant, now), Some(7));
        assert_eq!(cache.cached(&Arc::from("local"), now), None);
        let later = Instant::now() + MIN_COST * LIFETIME_FACTOR;
        assert_eq!(cache.cached(&tenant, later), None);
    }
}
