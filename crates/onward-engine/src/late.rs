//! A refused result is kept, whatever the reason: as an artifact, named in the refusal, with an entry
//! in the plan's trail.
//!
//! The artifact's id is made of what it holds, so the same result refused twice is kept once, and the
//! refusal is the same both times.

use onward_core::command::{KeepLateResult, LateResult};
use onward_core::id::ArtifactId;
use onward_core::{Code, Command, StepId};
use onward_store::{Artifact, Tx};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::Builder;

use crate::error::Error;
use crate::run::{Moment, Outcome, Target, run};

/// Keeps what a refused command brought, where it brought anything, and says where.
pub(crate) async fn keep(
    tx: &mut Tx,
    command: &Command,
    plan: Option<onward_core::PlanId>,
    refused: Code,
    moment: &Moment,
    commit_seq: Option<u64>,
) -> Result<Option<ArtifactId>, Error> {
    let Some(late) = command.late_result() else {
        return Ok(None);
    };
    let content = content(&late);
    let id = name(late.step, &content);
    if tx.artifact(id).await?.is_some() {
        return Ok(Some(id));
    }
    tx.keep(&Artifact {
        id,
        plan,
        step: plan.map(|_| late.step),
        kind: "late_result".to_owned(),
        title: format!("Late result for step {}", late.step),
        content,
        source_url: None,
        metadata: json!({ "stepId": late.step.to_string(), "refused": refused.as_str() }),
        created_at: moment.now,
    });
    if let Some(plan) = plan {
        let kept = KeepLateResult {
            step: late.step,
            artifact: id,
            refused,
        };
        let kept = Command::from(kept);
        match run(tx, Target::Plan(plan), &kept, moment, commit_seq).await? {
            Outcome::Done(_) | Outcome::NotFound => {}
            Outcome::Refused { refusal, .. } => return Err(refusal.into()),
        }
    }
    Ok(Some(id))
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

fn name(step: StepId, content: &str) -> ArtifactId {
    let mut hash = Sha256::new();
    hash.update(step.as_uuid().as_bytes());
    hash.update(content.as_bytes());
    let mut bytes = [0; 16];
    for (byte, hashed) in bytes.iter_mut().zip(hash.finalize()) {
        *byte = hashed;
    }
    ArtifactId::new(Builder::from_custom_bytes(bytes).into_uuid())
}
