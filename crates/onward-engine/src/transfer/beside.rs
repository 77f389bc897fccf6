//! What stands beside a plan in its document: what was found or made for it, what models took out of that,
//! what it delivered, the
//! skills that are linked to it, what people said about it. Out as JSON, and in again.

use std::collections::BTreeSet;

use onward_core::id::{
    ArtifactId, ExtractionId, FeedbackId, OutputId, SessionId, SkillExecutionId,
};
use onward_core::refusal::Issue;
use onward_core::skill::{SkillExecution, SkillState, SkillStatus};
use onward_core::{PlanId, Timestamp};
use onward_store::{Artifact, Entry, Extraction, Feedback, Output, Tx};
use serde_json::{Map, Value, json};

use super::{field, maybe, parsed, text};
use crate::error::Error;
use crate::feedback;
use crate::skill;

/// What stands beside a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Beside {
    artifacts: Vec<Artifact>,
    extractions: Vec<Extraction>,
    outputs: Vec<Output>,
    skills: Vec<SkillExecution>,
    feedback: Vec<Feedback>,
}

impl Beside {
    /// Reads what a document holds. One that was made before there were extractions, outputs, skills and
    /// feedback has none.
    pub(super) fn read(document: &Value, plan: PlanId, trail: &[Entry]) -> Result<Self, Error> {
        let list = |key: &'static str| match document.get(key) {
            Some(Value::Array(list)) => Ok(list.as_slice()),
            None if key != "artifacts" => Ok(&[][..]),
            Some(_) | None => Err(Error::invalid(key, "is missing, or no list")),
        };
        let mut beside = Beside::default();
        for (place, artifact) in list("artifacts")?.iter().enumerate() {
            let path = format!("artifacts[{place}]");
            beside.artifacts.push(read_artifact(artifact, plan, &path)?);
        }
        for (place, extraction) in list("extractions")?.iter().enumerate() {
            let path = format!("extractions[{place}]");
            let extraction = read_extraction(extraction, &path)?;
            let is_there = |id| beside.artifacts.iter().any(|artifact| artifact.id == id);
            if !extraction.artifact.is_some_and(is_there) {
                let path = format!("{path}.artifactId");
                return Err(Error::invalid(&path, "is none of `artifacts`"));
            }
            beside.extractions.push(extraction);
        }
        beside.outputs = read_outputs(list("outputs")?, plan)?;
        for (place, execution) in list("skillExecutions")?.iter().enumerate() {
            let path = format!("skillExecutions[{place}]");
            let execution = read_skill(execution, plan, &path)?;
            if let Some(why) = skill::unlike_trail(&execution, trail) {
                return Err(Error::invalid(&path, why));
            }
            beside.skills.push(execution);
        }
        for (place, said) in list("feedback")?.iter().enumerate() {
            let path = format!("feedback[{place}]");
            let said = read_feedback(said, plan, &path)?;
            let is_there = |id| beside.outputs.iter().any(|output| output.id == id);
            if said.output.is_some_and(|id| !is_there(id)) {
                let path = format!("{path}.outputId");
                return Err(Error::invalid(&path, "is none of `outputs`"));
            }
            beside.feedback.push(said);
        }
        Ok(beside)
    }

    /// Keeps it. What outlived the plan where it was before is given back to it.
    pub(super) async fn keep(&self, tx: &mut Tx) -> Result<(), Error> {
        for artifact in &self.artifacts {
            match tx.artifact(artifact.id).await? {
                Some(_) => tx.adopt(artifact),
                None => {
                    tx.keep(artifact);
                }
            }
        }
        for extraction in &self.extractions {
            if tx.extraction(extraction.id).await?.is_none() {
                tx.add_extraction(extraction);
            }
        }
        for output in &self.outputs {
            if tx.plan_of_output(output.id).await?.is_some() {
                let taken = format!("another plan has an output `{}`", output.id);
                return Err(super::taken(taken));
            }
            tx.add_output(output);
        }
        for execution in &self.skills {
            match tx.skill(execution.id).await? {
                None => tx.add_skill(execution),
                // One that went on without its plan says more than the plan's trail.
                Some(known) if known.plan.is_none() && known.status() == execution.status() => {
                    tx.change_skill(&SkillExecution {
                        plan: execution.plan,
                        ..known
                    });
                }
                Some(_) => {}
            }
        }
        for said in &self.feedback {
            tx.add_feedback(said);
        }
        Ok(())
    }
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

pub(super) fn said(feedback: &Feedback) -> Value {
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
        step: field(artifact, path, "stepId", maybe(parsed))?,
        kind: field(artifact, path, "artifactType", known_kind)?,
        title: field(artifact, path, "title", text)?,
        content: field(artifact, path, "content", text)?,
        source_url: field(artifact, path, "sourceUrl", maybe(text))?,
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
        artifact: field(extraction, path, "artifactId", maybe(parsed))?,
        schema: field(extraction, path, "schema", any)?,
        instructions: field(extraction, path, "instructions", maybe(text))?,
        data: field(extraction, path, "data", any)?,
        issues: field(extraction, path, "issues", issues)?,
        model: field(extraction, path, "model", text)?,
        actor: field(extraction, path, "actor", text)?,
        created_at: field(extraction, path, "createdAt", parsed)?,
    })
}

/// Outputs, the versions of each in their order: the last is the one that is searched.
fn read_outputs(outputs: &[Value], plan: PlanId) -> Result<Vec<Output>, Error> {
    let mut read = Vec::new();
    let (mut ids, mut versions) = (BTreeSet::new(), BTreeSet::new());
    for (place, output) in outputs.iter().enumerate() {
        let path = format!("outputs[{place}]");
        let output = read_output(output, plan, &path)?;
        if !ids.insert(output.id) || !versions.insert((output.title.clone(), output.version)) {
            return Err(Error::invalid(&path, "is there twice"));
        }
        read.push(output);
    }
    read.sort_by_key(|output| output.version);
    Ok(read)
}

fn read_output(output: &Value, plan: PlanId, path: &str) -> Result<Output, Error> {
    let count = |value: &Value| u32::try_from(value.as_u64()?).ok().filter(|it| *it > 0);
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
    let error: Option<String> = field(execution, path, "errorMessage", maybe(text))?;
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
    let session: Option<String> = field(execution, path, "sessionId", maybe(text))?;
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

fn read_feedback(said: &Value, plan: PlanId, path: &str) -> Result<Feedback, Error> {
    let small = |value: &Value| u32::try_from(value.as_u64()?).ok();
    let feedback = Feedback {
        id: field::<FeedbackId>(said, path, "feedbackId", parsed)?,
        plan,
        rating: field(said, path, "rating", maybe(small))?,
        comment: field(said, path, "comment", maybe(text))?,
        output: match said.get("outputId") {
            // One that was made before there were outputs is about none.
            None => None,
            Some(_) => field(said, path, "outputId", maybe(parsed))?,
        },
        actor: field(said, path, "actor", text)?,
        created_at: field(said, path, "createdAt", parsed)?,
    };
    let fits = feedback::check(feedback.rating, feedback.comment.as_deref());
    fits.map_err(|why| Error::invalid(path, why.to_string()))?;
    Ok(feedback)
}
