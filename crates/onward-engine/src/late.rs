//! A refused result is kept, whatever the reason: as an artifact, named in the refusal, with an entry
//! in the plan's trail.
//!
//! The artifact's id is made of what it holds, so the same result refused twice is kept once, and the
//! refusal is the same both times.

use onward_core::command::{KeepLateResult, LateResult};
use onward_core::id::ArtifactId;
use onward_core::role::Permission;
use onward_core::{Code, Command, PlanId, StepId};
use onward_store::{Artifact, Tx, With};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::Builder;

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{Moment, Outcome, Target, run};

impl Engine {
    /// Keeps what was meant for a step but could not be read as what it should have been, and says
    /// where. The step is named as the caller named it: it need not exist.
    pub async fn keep_unread(
        &self,
        caller: &Caller,
        step: &str,
        mut content: Value,
        refused: Code,
    ) -> Result<ArtifactId, Error> {
        caller.allow(Permission::Work)?;
        clean::value(&mut content);
        let mut named = step.to_owned();
        clean::text(&mut named);
        let (content, moment) = (content.to_string(), self.moment(caller, None));
        let kept = self.store.write(&caller.tenant, move |tx| {
            let (content, named, moment) = (content.clone(), named.clone(), moment.clone());
            Box::pin(async move {
                let (mut plan, step) = (None, named.parse().ok());
                if let Some(step) = step {
                    plan = tx.step(step, With::Head).await?.map(|facts| facts.head.id);
                }
                let late = Late {
                    id: name(step, &named, &content),
                    plan: plan.zip(step),
                    named,
                    content,
                };
                put(tx, late, refused, &moment, None).await
            })
        });
        kept.await
    }
}

/// What is kept.
struct Late {
    id: ArtifactId,
    /// The plan and its step, where there is such a step.
    plan: Option<(PlanId, StepId)>,
    /// The step, as the caller named it.
    named: String,
    content: String,
}

/// Keeps what a refused command brought, where it brought anything, and says where.
pub(crate) async fn keep(
    tx: &mut Tx,
    command: &Command,
    plan: Option<PlanId>,
    refused: Code,
    moment: &Moment,
    commit_seq: Option<u64>,
) -> Result<Option<ArtifactId>, Error> {
    let Some(late) = command.late_result() else {
        return Ok(None);
    };
    let (step, content) = (late.step, content(&late));
    let late = Late {
        id: name(Some(step), "", &content),
        plan: plan.map(|plan| (plan, step)),
        named: step.to_string(),
        content,
    };
    put(tx, late, refused, moment, commit_seq).await.map(Some)
}

async fn put(
    tx: &mut Tx,
    late: Late,
    refused: Code,
    moment: &Moment,
    commit_seq: Option<u64>,
) -> Result<ArtifactId, Error> {
    let Late {
        id,
        plan,
        named,
        content,
    } = late;
    if tx.artifact(id).await?.is_some() {
        return Ok(id);
    }
    tx.keep(&Artifact {
        id,
        plan: plan.map(|(plan, _)| plan),
        step: plan.map(|(_, step)| step),
        kind: "late_result".to_owned(),
        title: format!("Late result for step {named}"),
        content,
        source_url: None,
        metadata: json!({ "stepId": named, "refused": refused.as_str() }),
        created_at: moment.now,
    });
    if let Some((plan, step)) = plan {
        let kept = KeepLateResult {
            step,
            artifact: id,
            refused,
        };
        let kept = Command::from(kept);
        match run(tx, Target::Plan(plan), &kept, moment, commit_seq).await? {
            Outcome::Done(_) | Outcome::NotFound => {}
            Outcome::Refused { refusal, .. } => return Err(refusal.into()),
        }
    }
    Ok(id)
}

fn content(late: &LateResult) -> String {
    let result = &late.content;
    let fields = [
        ("resultSummary", Some(Value::from(result.summary.clone()))),
        ("result", result.data.clone()),
        ("confidence", result.confidence.map(Value::from)),
        ("stepExecutionReport", result.report.clone()),
        (
            "outputFormattingNotes",
            result.formatting_notes.clone().map(Value::from),
        ),
    ];
    let object: Map<String, Value> = fields
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect();
    Value::Object(object).to_string()
}

fn name(step: Option<StepId>, named: &str, content: &str) -> ArtifactId {
    let mut hash = Sha256::new();
    match step {
        Some(step) => hash.update(step.as_uuid().as_bytes()),
        None => hash.update(named.as_bytes()),
    }
    hash.update(content.as_bytes());
    let mut bytes = [0; 16];
    for (byte, hashed) in bytes.iter_mut().zip(hash.finalize()) {
        *byte = hashed;
    }
    ArtifactId::new(Builder::from_custom_bytes(bytes).into_uuid())
}
