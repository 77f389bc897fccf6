//! The quota of stored bytes per tenant (`limits.tenant_stored_mib`), off by default.
//!
//! Stored bytes are measured at most once a minute, because counting reads the sizes of all texts.
//! A tenant can exceed its quota by the bytes that it stores within that minute.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onward_engine::{Caller, Engine, Error};

/// How long a measurement is valid.
const INTERVAL: Duration = Duration::from_secs(60);
/// A tenant without a measurement in this time is not active.
const ACTIVE: Duration = Duration::from_secs(3600);
const MIB: u64 = 1024 * 1024;
/// Tools that store nothing, remove something, or only continue stored work.
const ALWAYS_ALLOWED: [&str; 9] = [
    "abandon_plan",
    "change_call",
    "close_call",
    "delete_plan",
    "get_next_step",
    "get_research_context",
    "resume_plan",
    "revoke_token",
    "submit_user_decision",
];

/// The quota and the latest measurements.
pub(crate) struct Quota {
    max_bytes: u64,
    measured: Mutex<HashMap<Arc<str>, (Instant, u64)>>,
}

/// The stored bytes of a tenant and its quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) bytes: u64,
    pub(crate) max_bytes: u64,
}

impl Quota {
    pub(crate) fn new(mib: u32) -> Self {
        Self {
            max_bytes: u64::from(mib) * MIB,
            measured: Mutex::default(),
        }
    }

    /// The usage of the caller's tenant, at most a minute old.
    pub(crate) async fn usage(&self, engine: &Engine, caller: &Caller) -> Result<Usage, Error> {
        let known = self.lock().get(&caller.tenant).copied();
        let known = known.filter(|(at, _)| at.elapsed() < INTERVAL);
        let bytes = if let Some((_, bytes)) = known {
            bytes
        } else {
            let bytes = engine.stored_bytes(caller).await?;
            let tenant = Arc::clone(&caller.tenant);
            self.lock().insert(tenant, (Instant::now(), bytes));
            bytes
        };
        Ok(Usage {
            bytes,
            max_bytes: self.max_bytes,
        })
    }

    /// The usage of a tenant that may not store more with this tool.
    pub(crate) async fn exceeded(
        &self,
        engine: &Engine,
        caller: &Caller,
        tool: &str,
    ) -> Result<Option<Usage>, Error> {
        if ALWAYS_ALLOWED.contains(&tool) {
            return Ok(None);
        }
        let usage = self.usage(engine, caller).await?;
        Ok(Some(usage).filter(|usage| usage.bytes >= usage.max_bytes))
    }

    /// The largest usage that was measured in the last hour. A measurement of each active tenant is
    /// at most a minute old.
    pub(crate) fn largest(&self) -> Usage {
        let measured = self.lock();
        let recent = measured.values().filter(|(at, _)| at.elapsed() < ACTIVE);
        Usage {
            bytes: recent.map(|(_, bytes)| *bytes).max().unwrap_or(0),
            max_bytes: self.max_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, (Instant, u64)>> {
        // A poisoned map is consistent: every use is one operation.
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
