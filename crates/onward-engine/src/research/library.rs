//! The library: outputs and artifacts of all plans, newest first. `search.rs` finds them by text.

use onward_core::PlanId;
use onward_core::role::Permission;
use onward_store::{Contexts, Excerpt, OutputExcerpt, Outputs};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// Excerpts of the outputs of all plans, the latest version of each, newest first.
    pub async fn latest_outputs(
        &self,
        caller: &Caller,
        limit: u32,
    ) -> Result<Vec<(PlanId, OutputExcerpt)>, Error> {
        caller.allow(Permission::Read)?;
        let outputs = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Outputs(tx).latest_outputs(limit).await })
        });
        Ok(outputs.await?)
    }

    /// Excerpts of the artifacts of all plans, newest first.
    pub async fn latest_artifacts(
        &self,
        caller: &Caller,
        limit: u32,
    ) -> Result<Vec<(Option<PlanId>, Excerpt)>, Error> {
        caller.allow(Permission::Read)?;
        let artifacts = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Contexts(tx).latest_artifacts(limit).await })
        });
        Ok(artifacts.await?)
    }
}
