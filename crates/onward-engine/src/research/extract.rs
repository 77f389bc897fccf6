//! Stores structured data that models extract from texts, with the schema it was extracted for. The
//! model is called elsewhere; this module loads artifacts and stores extractions.

use onward_core::id::{ArtifactId, ExtractionId};
use onward_core::refusal::Issue;
use onward_core::role::Permission;
use onward_core::{PlanId, Timestamp};
use onward_store::{Artifact, Artifacts, Extraction, Extractions, Plans};
use serde_json::Value;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::{Error, ObjectKind};
use crate::sanitize;

/// Data extracted from a text.
#[derive(Debug, Clone, PartialEq)]
pub struct NewExtraction {
    /// The source artifact; `None` if the text was part of the request.
    pub artifact: Option<ArtifactId>,
    /// The requested JSON Schema.
    pub schema: Value,
    /// Additional instructions for the model.
    pub instructions: Option<String>,
    /// The extracted data.
    pub data: Value,
    /// Where the data does not match the schema.
    pub issues: Vec<Issue>,
    /// The model.
    pub model: String,
}

impl Engine {
    /// An artifact.
    pub async fn artifact(&self, caller: &Caller, id: ArtifactId) -> Result<Artifact, Error> {
        caller.allow(Permission::Read)?;
        let artifact = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Artifacts(tx).artifact(id).await })
        });
        artifact.await?.ok_or_else(|| artifact_not_found(id))
    }

    /// Whether the caller may extract data, which incurs model costs.
    pub fn may_extract(&self, caller: &Caller) -> Result<(), Error> {
        Ok(caller.allow(Permission::Work)?)
    }

    /// Stores extracted data.
    pub async fn store_extraction(
        &self,
        caller: &Caller,
        mut extracted: NewExtraction,
    ) -> Result<Extraction, Error> {
        caller.allow(Permission::Work)?;
        sanitize::optional_text(&mut extracted.instructions);
        sanitize::text(&mut extracted.model);
        let now: Timestamp = self.now();
        let mut extraction = Extraction {
            id: ExtractionId::new(self.ids.ordered_id(now)),
            artifact: extracted.artifact,
            schema: extracted.schema,
            instructions: extracted.instructions,
            data: extracted.data,
            issues: extracted.issues,
            model: extracted.model,
            actor: caller.actor(),
            created_at: now,
        };
        sanitize::value(&mut extraction.schema);
        sanitize::value(&mut extraction.data);
        for issue in &mut extraction.issues {
            sanitize::text(&mut issue.path);
            sanitize::text(&mut issue.message);
        }
        let record = extraction.clone();
        let stored = self.store.write(&caller.tenant, move |tx| {
            let record = record.clone();
            Box::pin(async move {
                if let Some(id) = record.artifact {
                    let found = Artifacts(tx).artifact(id).await?;
                    found.ok_or_else(|| artifact_not_found(id))?;
                }
                Extractions(tx).add_extraction(&record);
                Ok::<(), Error>(())
            })
        });
        stored.await?;
        Ok(extraction)
    }

    /// Extractions from a plan's artifacts, oldest first.
    pub async fn extractions(
        &self,
        caller: &Caller,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<Extraction>, Error> {
        caller.allow(Permission::Read)?;
        let found = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = Plans(tx).sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<_, Error>(Extractions(tx).extractions_of(plan, limit, 0).await?)
            })
        });
        found.await
    }
}

fn artifact_not_found(id: ArtifactId) -> Error {
    Error::NotFound {
        kind: ObjectKind::Artifact,
        name: id.to_string(),
    }
}
