//! How many plans are where, of each tenant. Counting takes as long as there are plans; so where that is
//! noticed, what was counted is good for a while, and counting takes a small part of the time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use onward_engine::{Caller, Engine, Error, PlanCount};

/// What takes less is counted each time.
const NOTICED: Duration = Duration::from_millis(25);
/// What was counted is good for so many times as long as counting took.
const TIMES: u32 = 20;

/// What was counted last.
#[derive(Default)]
pub(crate) struct Tallies(Mutex<HashMap<Arc<str>, Tally>>);

struct Tally {
    good_until: Instant,
    counts: Vec<PlanCount>,
}

impl Tallies {
    pub(super) async fn count(
        &self,
        engine: &Engine,
        caller: &Caller,
    ) -> Result<Vec<PlanCount>, Error> {
        let began = Instant::now();
        if let Some(known) = self.known(&caller.tenant, began) {
            return Ok(known);
        }
        let counts = engine.count_plans(caller).await?;
        self.keep(&caller.tenant, began.elapsed(), &counts);
        Ok(counts)
    }

    fn known(&self, tenant: &Arc<str>, now: Instant) -> Option<Vec<PlanCount>> {
        // Whoever panicked while holding it left it whole.
        let tallies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = tallies.get(tenant).filter(|tally| now < tally.good_until)?;
        Some(tally.counts.clone())
    }

    fn keep(&self, tenant: &Arc<str>, took: Duration, counts: &[PlanCount]) {
        let mut tallies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if took < NOTICED {
            tallies.remove(tenant);
            return;
        }
        let tally = Tally {
            good_until: Instant::now() + took * TIMES,
            counts: counts.to_vec(),
        };
        tallies.insert(Arc::clone(tenant), tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_is_good_for_a_while_and_what_did_not_is_not() {
        let (tallies, tenant) = (Tallies::default(), Arc::from("acme"));
        let now = Instant::now();
        tallies.keep(&tenant, NOTICED / 2, &[]);
        assert_eq!(tallies.known(&tenant, now), None);
        tallies.keep(&tenant, NOTICED, &[]);
        assert_eq!(tallies.known(&tenant, now), Some(Vec::new()));
        assert_eq!(tallies.known(&Arc::from("local"), now), None);
        let later = Instant::now() + NOTICED * TIMES;
        assert_eq!(tallies.known(&tenant, later), None);
    }
}
