//! Exports a plan as a JSON document and imports it. The audit trail in the document is
//! authoritative; everything derived from it is for readers, and is rebuilt from the trail on
//! import.

mod attachments;
mod document;
mod stream;

use std::sync::Arc;

use onward_core::budget::{Budget, Limit};
use onward_core::id::SessionId;
use onward_core::next_check::Due;
use onward_core::role::Permission;
use onward_core::routing::DEFAULT_PRIORITY;
use onward_core::skill::SkillExecution;
use onward_core::step::{FailReason, StepResult, StepState};
use onward_core::{Event, Plan, PlanId, Step, StepId, Timestamp};
use onward_store::{
    Artifact, Artifacts, AuditTrail, Author, Entry, Extraction, Extractions, Facts, Feedback,
    Imports, LogLine, Output, Outputs, Plans, Sheet, Skills, Tenants, Usages, UserFeedback,
    WholePlan, codec,
};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::plan::late_results::evidence_json;
use crate::plan::submit::replay;
use crate::sanitize;
pub use stream::ExportTarget;

use attachments::Attachments;
use document::{already_exists, field, nullable, parsed, text};

/// The document's format name.
const FORMAT: &str = "onward.plan";
const VERSION: u64 = 1;
/// Replaces claim tokens in a document: with a token, a reader could complete another agent's step.
const MASKED_TOKEN: &str = "[token]";
/// Maximum number of objects of each kind in a document.
const MAX_OBJECTS: u32 = 100_000;

/// A plan with all its data.
#[derive(Debug, Clone)]
pub struct FullPlan {
    /// The stored rows.
    pub plan: WholePlan,
    /// The audit trail.
    pub events: Vec<Entry>,
    /// Artifacts.
    pub artifacts: Vec<Artifact>,
    /// Extractions from the artifacts, oldest first.
    pub extractions: Vec<Extraction>,
    /// Outputs, all versions, oldest first.
    pub outputs: Vec<Output>,
    /// Linked skill executions, newest first.
    pub skills: Vec<SkillExecution>,
    /// Feedback, newest first.
    pub feedback: Vec<Feedback>,
    /// The steps whose tokens are known, in order.
    pub tokens: Vec<(StepId, u64)>,
}

impl Engine {
    /// Loads a plan with all its data.
    pub async fn full_plan(&self, caller: &Caller, plan: PlanId) -> Result<FullPlan, Error> {
        self.full_plan_within(caller, plan, u64::MAX).await
    }

    /// Loads a plan with all its data, unless its texts have more than `max_bytes` bytes.
    pub async fn full_plan_within(
        &self,
        caller: &Caller,
        plan: PlanId,
        max_bytes: u64,
    ) -> Result<FullPlan, Error> {
        caller.allow(Permission::Read)?;
        let full_plan = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                if max_bytes < u64::MAX {
                    let bytes = Plans(tx).plan_bytes(plan).await?;
                    if bytes > max_bytes {
                        return Err(too_large(bytes, max_bytes));
                    }
                }
                let rows = Plans(tx).whole_plan(plan).await?;
                let rows = rows.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<FullPlan, Error>(FullPlan {
                    plan: rows,
                    events: AuditTrail(tx).whole_trail(plan).await?,
                    artifacts: Artifacts(tx).artifacts_of(plan, MAX_OBJECTS, 0).await?,
                    extractions: Extractions(tx).extractions_of(plan, MAX_OBJECTS, 0).await?,
                    outputs: Outputs(tx).outputs_of(plan, MAX_OBJECTS, 0).await?,
                    skills: Skills(tx).skills_of(plan, MAX_OBJECTS).await?,
                    feedback: UserFeedback(tx).feedback_of(plan, MAX_OBJECTS).await?,
                    tokens: Usages(tx).of_steps(plan).await?,
                })
            })
        });
        full_plan.await
    }

    /// Exports a plan as a JSON document.
    pub async fn export(&self, caller: &Caller, plan: PlanId) -> Result<Value, Error> {
        let full_plan = self.full_plan(caller, plan).await?;
        Ok(json!({
            "format": FORMAT,
            "version": VERSION,
            "exportedAt": self.now().to_string(),
            "plan": head(&full_plan.plan.sheet),
            "steps": full_plan.plan.steps.iter().map(step).collect::<Vec<_>>(),
            "branches": full_plan.plan.branches.iter().map(branch).collect::<Vec<_>>(),
            "events": full_plan.events.iter().map(event).collect::<Vec<_>>(),
            "artifacts": full_plan.artifacts.iter().map(attachments::artifact).collect::<Vec<_>>(),
            "extractions": full_plan.extractions.iter().map(attachments::extraction).collect::<Vec<_>>(),
            "outputs": full_plan.outputs.iter().map(attachments::output).collect::<Vec<_>>(),
            "skillExecutions": full_plan.skills.iter().map(attachments::skill).collect::<Vec<_>>(),
            "feedback": full_plan.feedback.iter().map(attachments::feedback).collect::<Vec<_>>(),
            "tokens": full_plan.tokens.iter().map(attachments::tokens).collect::<Vec<_>>(),
        }))
    }

    /// Imports a plan with its original ids. An existing plan is not changed.
    pub async fn import(&self, caller: &Caller, document: &Value) -> Result<PlanId, Error> {
        caller.allow(Permission::CreatePlan)?;
        let mut document = document.clone();
        sanitize::value(&mut document);
        let (declared_id, mut entries) = read(&document)?;
        for entry in &mut entries {
            self.replace_masked_token(entry);
        }
        let plan = replay(&entries).map_err(|error| Error::invalid("events", error.to_string()))?;
        let id = plan.head().id;
        if id != declared_id {
            return Err(Error::invalid("plan.planId", "does not match `events`"));
        }
        check_matches(&document, &plan)?;
        let attachments = Attachments::read(&document, id, &entries)?;
        let now = self.now();
        let line = LogLine {
            id: self.ids.ordered_id(now),
            at: now,
            actor: caller.actor(),
            action: "plan_imported".to_owned(),
            details: json!({ "planId": id.to_string(), "events": entries.len() }),
        };
        let all = Arc::new((plan, entries, attachments, line));
        let imported = self.store.write(&caller.tenant, move |tx| {
            let all = Arc::clone(&all);
            Box::pin(async move {
                let (plan, entries, attachments, line) = &*all;
                if Facts(tx).plan(id).await?.is_some() {
                    return Err(already_exists(format!("plan `{id}` already exists")));
                }
                if let Some(step) = Imports(tx).first_taken(plan).await? {
                    return Err(already_exists(format!(
                        "step or branch `{step}` already exists in another plan"
                    )));
                }
                let stalls: Vec<Option<Timestamp>> = stalls(plan);
                Imports(tx).restore(plan, entries, &stalls);
                attachments.store(tx).await?;
                Tenants(tx).log_line(line);
                Ok::<(), Error>(())
            })
        });
        imported.await?;
        // The imported steps may already have stalled.
        self.sweep_waker.wake_by(Due::By(now));
        Ok(id)
    }

    /// Gives an imported claim a new token. The agent that holds the claim can continue without a
    /// token; its old token is unknown here.
    fn replace_masked_token(&self, entry: &mut Entry) {
        if let Event::StepStarted { claim, .. } = &mut entry.event
            && claim.token.as_str() == MASKED_TOKEN
        {
            claim.token = self.ids.claim_token();
        }
    }
}

/// Checks that the document's description of the plan matches its audit trail. A truncated or
/// edited trail does not.
fn check_matches(document: &Value, plan: &Plan) -> Result<(), Error> {
    let text_at = |path: &str| document.pointer(path).and_then(Value::as_str);
    let same = text_at("/plan/status") == Some(plan.head().status().as_str())
        && text_at("/plan/updatedAt") == Some(plan.updated_at().to_string().as_str())
        && document.pointer("/plan/eventCount").and_then(Value::as_u64) == Some(plan.head().seq);
    let steps = document.get("steps").and_then(Value::as_array);
    let steps = steps.ok_or_else(|| Error::invalid("steps", "must be a list"))?;
    let same_steps = steps.len() == plan.steps().len()
        && steps
            .iter()
            .zip(plan.steps())
            .all(|(exported, replayed)| *exported == step(replayed));
    if !same || !same_steps {
        let message = "do not match the plan in the document: some events are missing or edited";
        return Err(Error::invalid("events", message));
    }
    Ok(())
}

fn stalls(plan: &Plan) -> Vec<Option<Timestamp>> {
    let stalls_at = |step: &Step| step.stalls_at(plan.head().stall_threshold);
    plan.steps().iter().map(stalls_at).collect()
}

fn too_large(bytes: u64, max_bytes: u64) -> Error {
    Error::Conflict {
        message: format!("the plan has {bytes} bytes of texts; at most {max_bytes} are loaded"),
        hint: "export the plan as JSON, or read its steps one by one".into(),
    }
}

fn head(sheet: &Sheet) -> Value {
    let head = &sheet.head;
    json!({
        "planId": head.id.to_string(),
        "name": sheet.brief.name,
        "researchQuestion": sheet.brief.research_question,
        "planDesignRationale": sheet.brief.design_rationale,
        "outputFormattingNotes": sheet.brief.output_formatting_notes,
        "status": head.status().as_str(),
        "progress": head.counts.progress(),
        "onStall": head.on_stall.as_str(),
        "onDependencyFailure": head.on_dependency_failure.as_str(),
        "stallThresholdMs": head.stall_threshold.map(|span| span.as_millis() as u64),
        "createdAt": sheet.created_at.to_string(),
        "updatedAt": sheet.updated_at.to_string(),
        "eventCount": head.seq,
        "forkedFrom": sheet.brief.forked_from.map(|source| json!({
            "planId": source.plan.to_string(),
            "stepOrder": source.step_order,
        })),
        "projectKey": head.routing.project_key,
        "labels": head.routing.labels,
        "priority": head.routing.priority,
        "tokens": sheet.tokens,
        "budget": head.budget.map(|budget| limits(&budget.limits)),
    })
}

/// The limits that are set.
fn limits(budget: &Budget) -> Value {
    let set = Limit::ALL.iter();
    let set = set.filter_map(|limit| Some((limit.to_string(), budget.max(*limit)?.into())));
    Value::Object(set.collect())
}

fn step(step: &Step) -> Value {
    let depends_on: Vec<String> = step.spec.depends_on.iter().map(StepId::to_string).collect();
    let mut object = json!({
        "stepId": step.id().to_string(),
        "stepOrder": step.order,
        "stepType": step.spec.step_type.as_str(),
        "title": step.spec.title,
        "instructions": step.spec.instructions,
        "dependsOn": depends_on,
        "status": step.status().as_str(),
        "attempt": step.attempt(),
        "supersedes": step.spec.supersedes.map(|step| step.to_string()),
        "supersededBy": step.superseded_by.map(|step| step.to_string()),
    });
    let mut add = |key: &str, value: Value| {
        if let Value::Object(object) = &mut object {
            object.insert(key.to_owned(), value);
        }
    };
    if !step.spec.labels.is_empty() {
        add("labels", json!(step.spec.labels));
    }
    if step.spec.priority != DEFAULT_PRIORITY {
        add("priority", step.spec.priority.into());
    }
    if let Some(gates) = &step.spec.gates {
        if let Some(schema) = &gates.result_schema {
            add("resultSchema", json!(schema));
        }
        if !gates.acceptance_criteria.is_empty() {
            add("acceptanceCriteria", json!(gates.acceptance_criteria));
        }
        if let Some(by) = gates.review_by {
            add("reviewRequired", true.into());
            add("reviewBy", by.as_str().into());
        }
    }
    match &step.state {
        StepState::Pending { .. } => {}
        StepState::InProgress(work) => add("startedAt", work.started_at.to_string().into()),
        StepState::AwaitingInput { work, review } => {
            if let Some(work) = work {
                add("startedAt", work.started_at.to_string().into());
            }
            if let Some(result) = &review.result {
                add("resultUnderReview", result_json(result));
            }
        }
        StepState::Completed {
            started_at,
            ended_at,
            result,
            ..
        } => {
            add("startedAt", started_at.to_string().into());
            add("endedAt", ended_at.to_string().into());
            add("resultSummary", result.summary.clone().into());
            add("result", json!(result.data));
            add("confidence", result.confidence.into());
            if !result.evidence.is_empty() {
                add("evidence", evidence_json(&result.evidence));
            }
        }
        StepState::Skipped { ended_at, .. } => add("endedAt", ended_at.to_string().into()),
        StepState::Failed {
            reason, ended_at, ..
        } => {
            add("endedAt", ended_at.to_string().into());
            add("reason", FailReason::to_string(reason).into());
        }
    }
    object
}

fn result_json(result: &StepResult) -> Value {
    let mut object = json!({ "resultSummary": result.summary, "result": result.data });
    if !result.evidence.is_empty()
        && let Value::Object(object) = &mut object
    {
        object.insert("evidence".to_owned(), evidence_json(&result.evidence));
    }
    object
}

fn branch(branch: &onward_core::branch::Branch) -> Value {
    json!({
        "branchId": branch.id.to_string(),
        "afterStepId": branch.after.to_string(),
        "conditionExpression": branch.condition.source(),
        "ifTrueAction": branch.action.as_str(),
        "actionParams": codec::encode_action(&branch.action),
    })
}

fn event(entry: &Entry) -> Value {
    let encoded = codec::encode(&entry.event);
    let mut details = json!(encoded.details);
    if let Some(token) = details.get_mut("claimToken") {
        *token = MASKED_TOKEN.into();
    }
    json!({
        "seq": entry.seq,
        "commitSeq": entry.commit_seq,
        "at": entry.at.to_string(),
        "actor": entry.author.name,
        "sessionId": entry.author.session.as_ref().map(SessionId::as_str),
        "eventType": encoded.name,
        "stepId": encoded.step.map(|step| step.to_string()),
        "details": details,
    })
}

fn read(document: &Value) -> Result<(PlanId, Vec<Entry>), Error> {
    let format = document.get("format").and_then(Value::as_str);
    if format != Some(FORMAT) {
        let message = format!("must be `{FORMAT}`");
        return Err(Error::invalid("format", message));
    }
    let version = document.get("version").and_then(Value::as_u64);
    if version != Some(VERSION) {
        let message = format!("must be {VERSION}, is {version:?}");
        return Err(Error::invalid("version", message));
    }
    let events = document.get("events").and_then(Value::as_array);
    let events = events.ok_or_else(|| Error::invalid("events", "must be a list"))?;
    let mut entries = Vec::new();
    for (index, event) in events.iter().enumerate() {
        entries.push(read_event(event, &format!("events[{index}]"))?);
    }
    for (entry, seq) in entries.iter().zip(1u64..) {
        if entry.seq != seq || entry.commit_seq == 0 || entry.commit_seq > seq {
            let message = "must increase by 1, starting at 1";
            return Err(Error::invalid(&format!("events[{}].seq", seq - 1), message));
        }
    }
    let plan = document
        .pointer("/plan/planId")
        .and_then(Value::as_str)
        .and_then(|id| id.parse::<PlanId>().ok())
        .ok_or_else(|| Error::invalid("plan.planId", "must be a plan id"))?;
    Ok((plan, entries))
}

fn read_event(event: &Value, path: &str) -> Result<Entry, Error> {
    let name = field(event, path, "eventType", Value::as_str)?;
    let step: Option<StepId> = field(event, path, "stepId", nullable(parsed))?;
    let details = field(event, path, "details", Some)?;
    let decoded = codec::decode(name, step, &details.to_string())
        .map_err(|error| Error::invalid(&format!("{path}.details"), error.to_string()))?;
    let session: Option<String> = field(event, path, "sessionId", nullable(text))?;
    Ok(Entry {
        seq: field(event, path, "seq", Value::as_u64)?,
        commit_seq: field(event, path, "commitSeq", Value::as_u64)?,
        at: field(event, path, "at", parsed)?,
        author: Author {
            name: field(event, path, "actor", text)?,
            session: session.map(SessionId::new),
        },
        event: decoded,
    })
}
