//! A plan's attachments in its document: artifacts, extractions, outputs, skill executions and
//! feedback, as JSON and back.

use std::collections::BTreeSet;

use onward_core::id::{
    ArtifactId, ExtractionId, FeedbackId, OutputId, SessionId, SkillExecutionId,
};
use onward_core::refusal::Issue;
use onward_core::skill::{SkillExecution, SkillState, SkillStatus};
use onward_core::{PlanId, StepId, Timestamp};
use onward_store::{
    Artifact, Artifacts, Entry, Extraction, Extractions, Feedback, Output, Outputs, Skills, Tx,
    Usages, UserFeedback,
};
use serde_json::{Map, Value, json};

use super::document::{already_exists, field, nullable, parsed, text};
use crate::error::Error;
use crate::plan::feedback;
use crate::plan::skill;

/// A plan's attachments.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Attachments {
    artifacts: Vec<Artifact>,
    extractions: Vec<Extraction>,
    outputs: Vec<Output>,
    skills: Vec<SkillExecution>,
    feedback: Vec<Feedback>,
    /// The tokens of the plan and of its steps, if they are known.
    plan_tokens: Option<(PlanId, u64)>,
    tokens: Vec<(StepId, u64)>,
}

impl Attachments {
    /// Parses the attachments of a document. All lists except `artifacts` are optional, because
    /// documents of older versions do not contain them.
    pub(super) fn read(document: &Value, plan: PlanId, entries: &[Entry]) -> Result<Self, Error> {
        let list = |key: &'static str| match document.get(key) {
            Some(Value::Array(list)) => Ok(list.as_slice()),
            None if key != "artifacts" => Ok(&[][..]),
            Some(_) | None => Err(Error::invalid(key, "must be a list")),
        };
        let mut attachments = Attachments::default();
        for (index, artifact) in list("artifacts")?.iter().enumerate() {
            let path = format!("artifacts[{index}]");
            attachments
                .artifacts
                .push(read_artifact(artifact, plan, &path)?);
        }
        for (index, extraction) in list("extractions")?.iter().enumerate() {
            let path = format!("extractions[{index}]");
            let extraction = read_extraction(extraction, &path)?;
            let exists = |id| {
                attachments
                    .artifacts
                    .iter()
                    .any(|artifact| artifact.id == id)
            };
            if !extraction.artifact.is_some_and(exists) {
                let path = format!("{path}.artifactId");
                return Err(Error::invalid(
                    &path,
                    "must be the id of one of `artifacts`",
                ));
            }
            attachments.extractions.push(extraction);
        }
        attachments.outputs = read_outputs(list("outputs")?, plan)?;
        for (index, execution) in list("skillExecutions")?.iter().enumerate() {
            let path = format!("skillExecutions[{index}]");
            let execution = read_skill(execution, plan, &path)?;
            if let Some(reason) = skill::audit_mismatch(&execution, entries) {
                return Err(Error::invalid(&path, reason));
            }
            attachments.skills.push(execution);
        }
        for (index, entry) in list("feedback")?.iter().enumerate() {
            let path = format!("feedback[{index}]");
            let entry = read_feedback(entry, plan, &path)?;
            let exists = |id| attachments.outputs.iter().any(|output| output.id == id);
            if entry.output.is_some_and(|id| !exists(id)) {
                let path = format!("{path}.outputId");
                return Err(Error::invalid(&path, "must be the id of one of `outputs`"));
            }
            attachments.feedback.push(entry);
        }
        let tokens = document.pointer("/plan/tokens").and_then(Value::as_u64);
        attachments.plan_tokens = tokens.map(|tokens| (plan, tokens));
        for (index, entry) in list("tokens")?.iter().enumerate() {
            let path = format!("tokens[{index}]");
            let step = field(entry, &path, "stepId", parsed)?;
            let tokens = field(entry, &path, "tokens", Value::as_u64)?;
            attachments.tokens.push((step, tokens));
        }
        Ok(attachments)
    }

    /// Stores the attachments. Artifacts and skill executions that outlived a deleted plan are
    /// linked to it again.
    pub(super) async fn store(&self, tx: &mut Tx) -> Result<(), Error> {
        for artifact in &self.artifacts {
            match Artifacts(tx).artifact(artifact.id).await? {
                Some(_) => Artifacts(tx).adopt(artifact),
                None => {
                    Artifacts(tx).keep(artifact);
                }
            }
        }
        for extraction in &self.extractions {
            if Extractions(tx).extraction(extraction.id).await?.is_none() {
                Extractions(tx).add_extraction(extraction);
            }
        }
        for output in &self.outputs {
            if Outputs(tx).plan_of_output(output.id).await?.is_some() {
                let message = format!("output `{}` already exists in another plan", output.id);
                return Err(already_exists(message));
            }
            Outputs(tx).add_output(output);
        }
        for execution in &self.skills {
            match Skills(tx).skill(execution.id).await? {
                None => Skills(tx).add_skill(execution),
                // An execution that continued after the plan was deleted is newer than the
                // document; keep it.
                Some(known) if known.plan.is_none() && known.status() == execution.status() => {
                    Skills(tx).change_skill(&SkillExecution {
                        plan: execution.plan,
                        ..known
                    });
                }
                Some(_) => {}
            }
        }
        for entry in &self.feedback {
            UserFeedback(tx).add_feedback(entry);
        }
        if let Some((plan, tokens)) = self.plan_tokens {
            Usages(tx).add_to_plan(plan, tokens);
        }
        for (step, tokens) in &self.tokens {
            Usages(tx).add_to_step(*step, *tokens);
        }
        Ok(())
    }
}

pub(super) fn tokens((step, tokens): &(StepId, u64)) -> Value {
    json!({ "stepId": step.to_string(), "tokens": tokens })
}

pub(super) fn artifact(artifact: &Artifact) -> Value {
    json!({
        "artifactId": artifact.id.to_string(),
        "stepId": artifact.step.map(|step| step.to_string()),
        "artifactType": artifact.kind,
        "title": artifact.title,
        "content": artifact.content,
        "sourceUrl": artifact.source_url,
        "metadata": artifact.metadata,
        "createdAt": artifact.created_at.to_string(),
    })
}

pub(super) fn extraction(extraction: &Extraction) -> Value {
    let issue = |issue: &Issue| json!({ "path": issue.path, "message": issue.message });
    json!({
        "extractionId": extraction.id.to_string(),
        "artifactId": extraction.artifact.map(|id| id.to_string()),
        "schema": extraction.schema,
        "instructions": extraction.instructions,
        "data": extraction.data,
        "issues": extraction.issues.iter().map(issue).collect::<Vec<_>>(),
        "model": extraction.model,
        "actor": extraction.actor,
        "createdAt": extraction.created_at.to_string(),
    })
}

pub(super) fn output(output: &Output) -> Value {
    json!({
        "outputId": output.id.to_string(),
        "title": output.title,
        "version": output.version,
        "mediaType": output.media_type,
        "content": output.content,
        "actor": output.actor,
        "createdAt": output.created_at.to_string(),
    })
}

pub(super) fn skill(execution: &SkillExecution) -> Value {
    let error = match &execution.state {
        SkillState::Failed { error, .. } => error.as_deref(),
        SkillState::Started | SkillState::Executing | SkillState::Completed { .. } => None,
    };
    json!({
        "executionId": execution.id.to_string(),
        "skillName": execution.skill,
        "status": execution.status().as_str(),
        "sessionId": execution.session.as_ref().map(SessionId::as_str),
        "metadata": execution.metadata,
        "errorMessage": error,
        "startedAt": execution.started_at.to_string(),
        "updatedAt": execution.updated_at.to_string(),
        "endedAt": execution.ended_at().map(|at| at.to_string()),
    })
}

pub(super) fn feedback(feedback: &Feedback) -> Value {
    json!({
        "feedbackId": feedback.id.to_string(),
        "rating": feedback.rating,
        "comment": feedback.comment,
        "outputId": feedback.output.map(|id| id.to_string()),
        "actor": feedback.actor,
        "createdAt": feedback.created_at.to_string(),
    })
}

fn known_kind(value: &Value) -> Option<String> {
    text(value).filter(|kind| Artifact::KINDS.contains(&kind.as_str()))
}

fn read_artifact(artifact: &Value, plan: PlanId, path: &str) -> Result<Artifact, Error> {
    let metadata = field(artifact, path, "metadata", Value::as_object)?;
    Ok(Artifact {
        id: field::<ArtifactId>(artifact, path, "artifactId", parsed)?,
        plan: Some(plan),
        step: field(artifact, path, "stepId", nullable(parsed))?,
        kind: field(artifact, path, "artifactType", known_kind)?,
        title: field(artifact, path, "title", text)?,
        content: field(artifact, path, "content", text)?,
        source_url: field(artifact, path, "sourceUrl", nullable(text))?,
        metadata: Value::Object(Map::clone(metadata)),
        created_at: field(artifact, path, "createdAt", parsed)?,
    })
}

fn read_extraction(extraction: &Value, path: &str) -> Result<Extraction, Error> {
    let any = |value: &Value| Some(value.clone());
    let issue = |issue: &Value| {
        let text = |name: &str| issue.get(name).and_then(text);
        Some(Issue {
            path: text("path")?,
            message: text("message")?,
        })
    };
    let issues = |value: &Value| value.as_array()?.iter().map(issue).collect();
    Ok(Extraction {
        id: field::<ExtractionId>(extraction, path, "extractionId", parsed)?,
        artifact: field(extraction, path, "artifactId", nullable(parsed))?,
        schema: field(extraction, path, "schema", any)?,
        instructions: field(extraction, path, "instructions", nullable(text))?,
        data: field(extraction, path, "data", any)?,
        issues: field(extraction, path, "issues", issues)?,
        model: field(extraction, path, "model", text)?,
        actor: field(extraction, path, "actor", text)?,
        created_at: field(extraction, path, "createdAt", parsed)?,
    })
}

/// Parses outputs, sorted by version: the latest one is searchable.
fn read_outputs(outputs: &[Value], plan: PlanId) -> Result<Vec<Output>, Error> {
    let mut read = Vec::new();
    let (mut ids, mut versions) = (BTreeSet::new(), BTreeSet::new());
    for (index, output) in outputs.iter().enumerate() {
        let path = format!("outputs[{index}]");
        let output = read_output(output, plan, &path)?;
        if !ids.insert(output.id) || !versions.insert((output.title.clone(), output.version)) {
            return Err(Error::invalid(&path, "is a duplicate"));
        }
        read.push(output);
    }
    read.sort_by_key(|output| output.version);
    Ok(read)
}

fn read_output(output: &Value, plan: PlanId, path: &str) -> Result<Output, Error> {
    let count = |value: &Value| {
        u32::try_from(value.as_u64()?)
            .ok()
            .filter(|version| *version > 0)
    };
    Ok(Output {
        id: field::<OutputId>(output, path, "outputId", parsed)?,
        plan,
        title: field(output, path, "title", text)?,
        version: field(output, path, "version", count)?,
        media_type: field(output, path, "mediaType", text)?,
        content: field(output, path, "content", text)?,
        actor: field(output, path, "actor", text)?,
        created_at: field(output, path, "createdAt", parsed)?,
    })
}

fn read_skill(execution: &Value, plan: PlanId, path: &str) -> Result<SkillExecution, Error> {
    let status: SkillStatus = field(execution, path, "status", parsed)?;
    let error: Option<String> = field(execution, path, "errorMessage", nullable(text))?;
    let ended_at = || field::<Timestamp>(execution, path, "endedAt", parsed);
    let state = match status {
        SkillStatus::Started => SkillState::Started,
        SkillStatus::Executing => SkillState::Executing,
        SkillStatus::Completed => SkillState::Completed {
            ended_at: ended_at()?,
        },
        SkillStatus::Failed => SkillState::Failed {
            ended_at: ended_at()?,
            error,
        },
    };
    let session: Option<String> = field(execution, path, "sessionId", nullable(text))?;
    let metadata = field(execution, path, "metadata", Value::as_object)?;
    Ok(SkillExecution {
        id: field::<SkillExecutionId>(execution, path, "executionId", parsed)?,
        skill: field(execution, path, "skillName", text)?,
        session: session.map(SessionId::new),
        plan: Some(plan),
        metadata: Map::clone(metadata),
        state,
        started_at: field(execution, path, "startedAt", parsed)?,
        updated_at: field(execution, path, "updatedAt", parsed)?,
    })
}

fn read_feedback(entry: &Value, plan: PlanId, path: &str) -> Result<Feedback, Error> {
    let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
    let feedback = Feedback {
        id: field::<FeedbackId>(entry, path, "feedbackId", parsed)?,
        plan,
        rating: field(entry, path, "rating", nullable(number))?,
        comment: field(entry, path, "comment", nullable(text))?,
        output: match entry.get("outputId") {
            // Documents of older versions have no `outputId`.
            None => None,
            Some(_) => field(entry, path, "outputId", nullable(parsed))?,
        },
        actor: field(entry, path, "actor", text)?,
        created_at: field(entry, path, "createdAt", parsed)?,
    };
    let valid = feedback::check(feedback.rating, feedback.comment.as_deref());
    valid.map_err(|error| Error::invalid(path, error.to_string()))?;
    Ok(feedback)
}
