//! Which tenants' results are being added to search.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The tenants whose results are being added: of concurrent searches, one does it for all.
#[derive(Debug, Default)]
pub(crate) struct Indexing(Mutex<HashMap<Arc<str>, Arc<tokio::sync::Mutex<()>>>>);

impl Indexing {
    /// The turn to add the results of a tenant.
    pub(crate) fn of(&self, tenant: &Arc<str>) -> Arc<tokio::sync::Mutex<()>> {
        // A panic leaves a map of whole entries.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, used| Arc::strong_count(used) > 1);
        Arc::clone(all.entry(Arc::clone(tenant)).or_default())
    }
}
