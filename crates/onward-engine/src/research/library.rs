//! The library: outputs, artifacts and results of all plans, newest first. `search.rs` finds them by text.

use onward_core::PlanId;
use onward_core::role::Permission;
use onward_store::{Contexts, Excerpt, OutputExcerpt, Outputs, ResultExcerpt, Results};

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

    /// Excerpts of the results of all plans, newest first.
    pub async fn latest_results(
        &self,
        caller: &Caller,
        limit: u32,
    ) -> Result<Vec<ResultExcerpt>, Error> {
        caller.allow(Permission::Read)?;
        self.index_results(&caller.tenant).await?;
        let results = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Results(tx).latest(limit).await })
        });
        Ok(results.await?)
    }
}
