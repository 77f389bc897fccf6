//! What models take out of texts is kept with what they were asked for. Who is asked, and how, is not
//! known here: this gives the text of an artifact, and takes in what came of it.

use onward_core::id::{ArtifactId, ExtractionId};
use onward_core::refusal::Issue;
use onward_core::role::Permission;
use onward_core::{PlanId, Timestamp};
use onward_store::{Artifact, Extraction};
use serde_json::Value;

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;

/// What a model took out of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Extracted {
    /// Out of which artifact; nothing where the text came with the call.
    pub artifact: Option<ArtifactId>,
    /// What was asked for, as JSON Schema.
    pub schema: Value,
    /// What the model was told beside that.
    pub instructions: Option<String>,
    /// What it found.
    pub data: Value,
    /// Where that does not fit what was asked for.
    pub issues: Vec<Issue>,
    /// Which model.
    pub model: String,
}

impl Engine {
    /// Something that was found or made.
    pub async fn artifact(&self, caller: &Caller, id: ArtifactId) -> Result<Artifact, Error> {
        caller.allow(Permission::Read)?;
        let artifact = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.artifact(id).await })
        });
        artifact.await?.ok_or_else(|| no_artifact(id))
    }

    /// Whether the caller may have something extracted: it costs what a model costs.
    pub fn may_extract(&self, caller: &Caller) -> Result<(), Error> {
        Ok(caller.allow(Permission::Work)?)
    }

    /// Keeps what a model took out of a text.
    pub async fn store_extraction(
        &self,
        caller: &Caller,
        mut extracted: Extracted,
    ) -> Result<Extraction, Error> {
        caller.allow(Permission::Work)?;
        clean::maybe(&mut extracted.instructions);
        clean::text(&mut extracted.model);
        let now: Timestamp = self.now();
        let mut extraction = Extraction {
            id: ExtractionId::new(self.fresh.timely_id(now)),
            artifact: extracted.artifact,
            schema: extracted.schema,
            instructions: extracted.instructions,
            data: extracted.data,
            issues: extracted.issues,
            model: extracted.model,
            actor: caller.signature(),
            created_at: now,
        };
        clean::value(&mut extraction.schema);
        clean::value(&mut extraction.data);
        for issue in &mut extraction.issues {
            clean::text(&mut issue.path);
            clean::text(&mut issue.message);
        }
        let kept = extraction.clone();
        let stored = self.store.write(&caller.tenant, move |tx| {
            let kept = kept.clone();
            Box::pin(async move {
                if let Some(id) = kept.artifact {
                    let known = tx.artifact(id).await?;
                    known.ok_or_else(|| no_artifact(id))?;
                }
                tx.add_extraction(&kept);
                Ok::<(), Error>(())
            })
        });
        stored.await?;
        Ok(extraction)
    }

    /// What was taken out of a plan's artifacts, the oldest first.
    pub async fn extractions(
        &self,
        caller: &Caller,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<Extraction>, Error> {
        caller.allow(Permission::Read)?;
        let found = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let known = tx.sheet(plan).await?;
                known.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<_, Error>(tx.extractions_of(plan, limit).await?)
            })
        });
        found.await
    }
}

fn no_artifact(id: ArtifactId) -> Error {
    Error::NotFound {
        what: "artifact",
        name: id.to_string(),
    }
}
