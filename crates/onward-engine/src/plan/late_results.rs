//! Late results: a result whose command is rejected is stored as an artifact. The error names the
//! artifact, and the plan's audit trail records it.
//!
//! The artifact's id is a hash of its content. Submitting the same rejected result again stores
//! nothing and returns the same error.
//!
//! Invalid input is a draft: its sender corrects it and submits again. Its artifact belongs to no
//! plan and is not searchable, so that no other agent reads it, and the accepted result of the same
//! claim deletes it.

use onward_core::command::{KeepLateResult, LateResult};
use onward_core::decide::With;
use onward_core::decide::keep_late_result::correctable_attempt;
use onward_core::id::{ArtifactId, ClaimToken};
use onward_core::role::Permission;
use onward_core::step::Evidence;
use onward_core::{Code, Command, Json, PlanId, StepId};
use onward_store::{Artifact, Artifacts, Cached, Facts, Tx};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::Builder;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::environment::into_decimal;
use crate::error::Error;
use crate::run::{CommandContext, CommandOutcome, Target, run};
use crate::sanitize;

impl Engine {
    /// Stores a result that could not be parsed and returns its artifact. `step` is the id from the
    /// request and need not exist.
    pub async fn store_unparsed_result(
        &self,
        caller: &Caller,
        step: &str,
        token: Option<ClaimToken>,
        mut content: Value,
        refused: Code,
    ) -> Result<ArtifactId, Error> {
        caller.allow(Permission::Work)?;
        sanitize::value(&mut content);
        let mut requested = step.to_owned();
        sanitize::text(&mut requested);
        let (content, ctx) = (content.to_string(), self.command_context(caller, None));
        let kept = self.store.write(&caller.tenant, move |tx| {
            let (content, requested, ctx) = (content.clone(), requested.clone(), ctx.clone());
            let token = token.clone();
            Box::pin(async move {
                let (mut plan, step) = (None, requested.parse().ok());
                if let Some(step) = step {
                    plan = Cached(Facts(tx))
                        .step(step, With::Head)
                        .await?
                        .map(|facts| facts.head.id);
                }
                let late = LateArtifact {
                    id: artifact_id(step, &requested, &content),
                    plan: plan.zip(step),
                    requested,
                    content,
                    token,
                };
                store_artifact(tx, late, refused, &ctx, None).await
            })
        });
        kept.await
    }
}

/// A result to store.
struct LateArtifact {
    id: ArtifactId,
    /// The plan and step, if the step exists.
    plan: Option<(PlanId, StepId)>,
    /// The step id from the request.
    requested: String,
    content: String,
    /// The token of the claim, if the caller sent it.
    token: Option<ClaimToken>,
}

/// Stores the result of a rejected command, if it has one, and returns its artifact.
pub(crate) async fn store_rejected(
    tx: &mut Tx,
    command: &Command,
    plan: Option<PlanId>,
    refused: Code,
    ctx: &CommandContext,
    commit_seq: Option<u64>,
) -> Result<Option<ArtifactId>, Error> {
    let Some(late) = command.late_result() else {
        return Ok(None);
    };
    let (step, content) = (late.step, content(&late));
    let late = LateArtifact {
        id: artifact_id(Some(step), "", &content),
        plan: plan.map(|plan| (plan, step)),
        requested: step.to_string(),
        content,
        token: late.token,
    };
    store_artifact(tx, late, refused, ctx, commit_seq)
        .await
        .map(Some)
}

async fn store_artifact(
    tx: &mut Tx,
    late: LateArtifact,
    refused: Code,
    ctx: &CommandContext,
    commit_seq: Option<u64>,
) -> Result<ArtifactId, Error> {
    let LateArtifact {
        id,
        plan,
        requested,
        content,
        token,
    } = late;
    if Artifacts(tx).artifact(id).await?.is_some() {
        return Ok(id);
    }
    let is_draft = refused == Code::InvalidInput;
    let owner = plan.filter(|_| !is_draft);
    let artifact = Artifact {
        id,
        plan: owner.map(|(plan, _)| plan),
        step: owner.map(|(_, step)| step),
        kind: "late_result".to_owned(),
        title: format!("Late result for step {requested}"),
        content,
        source_url: None,
        metadata: json!({ "stepId": requested, "refused": refused.as_str() }),
        created_at: ctx.now,
    };
    if is_draft {
        Artifacts(tx).keep_unlisted(&artifact);
    } else {
        Artifacts(tx).keep(&artifact);
    }
    if let Some((plan, step)) = plan {
        let facts = Cached(Facts(tx)).step(step, With::Head).await?;
        let attempt =
            facts.and_then(|facts| correctable_attempt(&facts.step, token.as_ref(), refused));
        let kept = Command::from(KeepLateResult {
            step,
            artifact: id,
            rejection: refused,
            attempt,
        });
        match run(tx, Target::Plan(plan), &kept, ctx, commit_seq).await? {
            CommandOutcome::Applied(_) | CommandOutcome::NotFound => {}
            CommandOutcome::Rejected { refusal, .. } => return Err(refusal.into()),
        }
    }
    Ok(id)
}

fn content(late: &LateResult) -> String {
    let result = &late.content;
    let fields = [
        ("resultSummary", Some(Value::from(result.summary.clone()))),
        ("result", result.data.as_ref().and_then(Json::parse)),
        ("confidence", result.confidence.map(Value::from)),
        (
            "stepExecutionReport",
            result.report.as_ref().and_then(Json::parse),
        ),
        (
            "outputFormattingNotes",
            result.formatting_notes.clone().map(Value::from),
        ),
        (
            "evidence",
            (!result.evidence.is_empty()).then(|| evidence_json(&result.evidence)),
        ),
    ];
    let object: Map<String, Value> = fields
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect();
    Value::Object(object).to_string()
}

/// A list of evidence as JSON.
pub(crate) fn evidence_json(evidence: &[Evidence]) -> Value {
    let entries = evidence.iter().map(|entry| {
        json!({
            "criterion": entry.criterion,
            "kind": entry.kind.as_str(),
            "value": entry.value,
            "outcome": entry.outcome,
        })
    });
    entries.collect()
}

fn artifact_id(step: Option<StepId>, requested: &str, content: &str) -> ArtifactId {
    let mut hash = Sha256::new();
    match step {
        Some(step) => hash.update(step.as_uuid().as_bytes()),
        None => hash.update(requested.as_bytes()),
    }
    hash.update(content.as_bytes());
    let mut bytes = [0; 16];
    for (byte, hashed) in bytes.iter_mut().zip(hash.finalize()) {
        *byte = hashed;
    }
    into_decimal(&mut bytes);
    ArtifactId::new(Builder::from_custom_bytes(bytes).into_uuid())
}
