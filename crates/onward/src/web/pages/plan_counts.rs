//! Cached numbers of plans by status, per tenant. Counting takes time in proportion to the number
//! of plans, so slow results are reused for a multiple of the time they took.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use onward_engine::{Caller, Engine, Error, PlanCount};

/// Results that took less are not cached.
const MIN_COST: Duration = Duration::from_millis(25);
/// A result is cached for this multiple of its cost.
const LIFETIME_FACTOR: u32 = 20;

/// The cache.
#[derive(Default)]
pub(crate) struct PlanCounts(Mutex<HashMap<Arc<str>, CachedCounts>>);

struct CachedCounts {
    valid_until: Instant,
    counts: Vec<PlanCount>,
}

impl PlanCounts {
    pub(super) async fn count(
        &self,
        engine: &Engine,
        caller: &Caller,
    ) -> Result<Vec<PlanCount>, Error> {
        let started = Instant::now();
        if let Some(counts) = self.cached(&caller.tenant, started) {
            return Ok(counts);
        }
        let counts = engine.count_plans(caller).await?;
        self.store(&caller.tenant, started.elapsed(), &counts);
        Ok(counts)
    }

    fn cached(&self, tenant: &Arc<str>, now: Instant) -> Option<Vec<PlanCount>> {
        // A poisoned map is consistent: every use is one operation.
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = cache
            .get(tenant)
            .filter(|cached| now < cached.valid_until)?;
        Some(cached.counts.clone())
    }

    fn store(&self, tenant: &Arc<str>, cost: Duration, counts: &[PlanCount]) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cost < MIN_COST {
            cache.remove(tenant);
            return;
        }
        let cached = CachedCounts {
            valid_until: Instant::now() + cost * LIFETIME_FACTOR,
            counts: counts.to_vec(),
        };
        cache.insert(Arc::clone(tenant), cached);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_slow_results_only_and_for_a_limited_time() {
        let (cache, tenant) = (PlanCounts::default(), Arc::from("acme"));
        let now = Instant::now();
        cache.store(&tenant, MIN_COST / 2, &[]);
        assert_eq!(cache.cached(&tenant, now), None);
        cache.store(&tenant, MIN_COST, &[]);
        assert_eq!(cache.cached(&tenant, now), Some(Vec::new()));
        assert_eq!(cache.cached(&Arc::from("local"), now), None);
        let later = Instant::now() + MIN_COST * LIFETIME_FACTOR;
        assert_eq!(cache.cached(&tenant, later), None);
    }
}
