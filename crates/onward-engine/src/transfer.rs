//! Moving a plan: one JSON document out, the same plan in. The trail is the truth of the document;
//! what stands beside it is for readers, and is made anew from the trail on the way in.

mod beside;

use std::sync::Arc;

use onward_core::id::SessionId;
use onward_core::role::Permission;
use onward_core::skill::SkillExecution;
use onward_core::step::{FailReason, StepState};
use onward_core::{Plan, PlanId, Step, StepId, Timestamp};
use onward_store::{
    Artifact, Author, Entry, Extraction, Feedback, LogLine, Output, WholePlan, codec,
};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::stalls_at;
use crate::submit::replay;
use beside::Beside;

/// What a document says that it is.
const FORMAT: &str = "onward.plan";
const VERSION: u64 = 1;
/// How many artifacts of a plan a document holds; and of all else that stands beside it.
const MOST: u32 = 100_000;

/// All there is to say about a plan.
#[derive(Debug, Clone)]
pub struct Whole {
    /// Its rows.
    pub plan: WholePlan,
    /// Its trail.
    pub trail: Vec<Entry>,
    /// What was found or made for it.
    pub artifacts: Vec<Artifact>,
    /// What models took out of that, the oldest first.
    pub extractions: Vec<Extraction>,
    /// What it delivered, every version, the oldest first.
    pub outputs: Vec<Output>,
    /// The skills that are linked to it, the last one first.
    pub skills: Vec<SkillExecution>,
    /// What people said about it, the last one first.
    pub feedback: Vec<Feedback>,
}

impl Engine {
    /// All there is to say about a plan.
    pub async fn whole_plan(&self, caller: &Caller, plan: PlanId) -> Result<Whole, Error> {
        caller.allow(Permission::Read)?;
        let whole = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let rows = tx.whole_plan(plan).await?;
                let rows = rows.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<Whole, Error>(Whole {
                    plan: rows,
                    trail: tx.whole_trail(plan).await?,
                    artifacts: tx.artifacts_of(plan, MOST).await?,
                    extractions: tx.extractions_of(plan, MOST).await?,
                    outputs: tx.outputs_of(plan, MOST).await?,
                    skills: tx.skills_of(plan, MOST).await?,
                    feedback: tx.feedback_of(plan, MOST).await?,
                })
            })
        });
        whole.await
    }

    /// A plan as one JSON document.
    pub async fn export(&self, caller: &Caller, plan: PlanId) -> Result<Value, Error> {
        let whole = self.whole_plan(caller, plan).await?;
        let sheet = &whole.plan.sheet;
        let head = &sheet.head;
        Ok(json!({
            "format": FORMAT,
            "version": VERSION,
            "exportedAt": self.now().to_string(),
            "plan": {
                "planId": head.id.to_string(),
                "name": sheet.brief.name,
                "researchQuestion": sheet.brief.research_question,
                "planDesignRationale": sheet.brief.design_rationale,
                "outputFormattingNotes": sheet.brief.output_formatting_notes,
                "status": head.status().as_str(),
                "progress": head.counts.progress(),
                "onStall": head.on_stall.as_str(),
                "stallThresholdMs": head.stall_threshold.map(|span| span.as_millis() as u64),
                "createdAt": sheet.created_at.to_string(),
                "updatedAt": sheet.updated_at.to_string(),
                "eventCount": head.seq,
            },
            "steps": whole.plan.steps.iter().map(step).collect::<Vec<_>>(),
            "branches": whole.plan.branches.iter().map(branch).collect::<Vec<_>>(),
            "events": whole.trail.iter().map(event).collect::<Vec<_>>(),
            "artifacts": whole.artifacts.iter().map(beside::artifact).collect::<Vec<_>>(),
            "extractions": whole.extractions.iter().map(beside::extraction).collect::<Vec<_>>(),
            "outputs": whole.outputs.iter().map(beside::output).collect::<Vec<_>>(),
            "skillExecutions": whole.skills.iter().map(beside::skill).collect::<Vec<_>>(),
            "feedback": whole.feedback.iter().map(beside::said).collect::<Vec<_>>(),
        }))
    }

    /// Takes a plan in, under its own ids. A plan that is there already is not touched.
    pub async fn import(&self, caller: &Caller, document: &Value) -> Result<PlanId, Error> {
        caller.allow(Permission::CreatePlan)?;
        let mut document = document.clone();
        clean::value(&mut document);
        let (named, trail) = read(&document)?;
        let plan = replay(&trail).map_err(|why| Error::invalid("events", why.to_string()))?;
        let id = plan.head().id;
        if id != named {
            return Err(Error::invalid(
                "plan.planId",
                "is not the plan that `events` make",
            ));
        }
        same_state(&document, &plan)?;
        let beside = Beside::read(&document, id, &trail)?;
        let now = self.now();
        let line = LogLine {
            id: self.fresh.timely_id(now),
            at: now,
            actor: caller.signature(),
            action: "plan_imported".to_owned(),
            details: json!({ "planId": id.to_string(), "events": trail.len() }),
        };
        let all = Arc::new((plan, trail, beside, line));
        let taken_in = self.store.write(&caller.tenant, move |tx| {
            let all = Arc::clone(&all);
            Box::pin(async move {
                let (plan, trail, beside, line) = &*all;
                if tx.plan(id).await?.is_some() {
                    return Err(taken(format!("there is a plan `{id}` already")));
                }
                if let Some(step) = tx.first_taken(plan).await? {
                    return Err(taken(format!("another plan has a step or branch `{step}`")));
                }
                let stalls: Vec<Option<Timestamp>> = stalls(plan);
                tx.restore(plan, trail, &stalls);
                beside.keep(tx).await?;
                tx.log_line(line);
                Ok::<(), Error>(())
            })
        });
        taken_in.await?;
        // Its steps may have stalled long ago.
        self.alarm.ring(onward_store::Due::By(now));
        Ok(id)
    }
}

fn taken(message: String) -> Error {
    Error::Conflict {
        message,
        hint: "import it into another database or tenant",
    }
}

/// What the document says about the plan is what its trail makes: a trail that was cut off, or
/// edited, makes something else.
fn same_state(document: &Value, plan: &Plan) -> Result<(), Error> {
    let said = |path: &str| document.pointer(path).and_then(Value::as_str);
    let same = said("/plan/status") == Some(plan.head().status().as_str())
        && said("/plan/updatedAt") == Some(plan.updated_at().to_string().as_str())
        && document.pointer("/plan/eventCount").and_then(Value::as_u64) == Some(plan.head().seq);
    let steps = document.get("steps").and_then(Value::as_array);
    let steps = steps.ok_or_else(|| Error::invalid("steps", "is missing, or no list"))?;
    let as_made = steps.len() == plan.steps().len()
        && steps
            .iter()
            .zip(plan.steps())
            .all(|(said, made)| *said == step(made));
    if !same || !as_made {
        let message =
            "do not make the plan that the document describes: some are missing or edited";
        return Err(Error::invalid("events", message));
    }
    Ok(())
}

fn stalls(plan: &Plan) -> Vec<Option<Timestamp>> {
    let stalls = |step: &Step| stalls_at(step, plan.threshold(step, None));
    plan.steps().iter().map(stalls).collect()
}

fn step(step: &Step) -> Value {
    let depends_on: Vec<String> = step.spec.depends_on.iter().map(StepId::to_string).collect();
    let mut shown = json!({
        "stepId": step.id().to_string(),
        "stepOrder": step.order,
        "stepType": step.spec.step_type.as_str(),
        "title": step.spec.title,
        "instructions": step.spec.instructions,
        "dependsOn": depends_on,
        "status": step.status().as_str(),
        "attempt": step.attempt(),
    });
    let mut add = |key: &str, value: Value| {
        if let Value::Object(shown) = &mut shown {
            shown.insert(key.to_owned(), value);
        }
    };
    match &step.state {
        StepState::Pending { .. } => {}
        StepState::InProgress(work) | StepState::AwaitingInput { work, .. } => {
            add("startedAt", work.started_at.to_string().into());
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
            add("result", result.data.clone().unwrap_or(Value::Null));
            add("confidence", result.confidence.into());
        }
        StepState::Skipped { ended_at, .. } => add("endedAt", ended_at.to_string().into()),
        StepState::Failed {
            reason, ended_at, ..
        } => {
            add("endedAt", ended_at.to_string().into());
            add("reason", FailReason::to_string(reason).into());
        }
    }
    shown
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
    json!({
        "seq": entry.seq,
        "commitSeq": entry.commit_seq,
        "at": entry.at.to_string(),
        "actor": entry.author.name,
        "sessionId": entry.author.session.as_ref().map(SessionId::as_str),
        "eventType": encoded.name,
        "stepId": encoded.step.map(|step| step.to_string()),
        "details": encoded.details,
    })
}

fn read(document: &Value) -> Result<(PlanId, Vec<Entry>), Error> {
    let format = document.get("format").and_then(Value::as_str);
    if format != Some(FORMAT) {
        let message = format!("must be `{FORMAT}`: this is no exported plan");
        return Err(Error::invalid("format", message));
    }
    let version = document.get("version").and_then(Value::as_u64);
    if version != Some(VERSION) {
        let message = format!("is {version:?}, this program reads version {VERSION}");
        return Err(Error::invalid("version", message));
    }
    let events = document.get("events").and_then(Value::as_array);
    let events = events.ok_or_else(|| Error::invalid("events", "is missing, or no list"))?;
    let mut trail = Vec::new();
    for (place, event) in events.iter().enumerate() {
        trail.push(read_event(event, &format!("events[{place}]"))?);
    }
    for (entry, seq) in trail.iter().zip(1u64..) {
        if entry.seq != seq || entry.commit_seq == 0 || entry.commit_seq > seq {
            let message = "must count up from 1";
            return Err(Error::invalid(&format!("events[{}].seq", seq - 1), message));
        }
    }
    let plan = document
        .pointer("/plan/planId")
        .and_then(Value::as_str)
        .and_then(|id| id.parse::<PlanId>().ok())
        .ok_or_else(|| Error::invalid("plan.planId", "is missing, or no id"))?;
    Ok((plan, trail))
}

/// A field of an object, read as its type.
fn field<'v, T>(
    object: &'v Value,
    path: &str,
    key: &str,
    read: impl FnOnce(&'v Value) -> Option<T>,
) -> Result<T, Error> {
    let value = object.get(key).and_then(read);
    value.ok_or_else(|| Error::invalid(&format!("{path}.{key}"), "is missing, or does not fit"))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn parsed<T: std::str::FromStr>(value: &Value) -> Option<T> {
    value.as_str()?.parse().ok()
}

/// Nothing, or something that fits.
fn maybe<T>(read: impl FnOnce(&Value) -> Option<T>) -> impl FnOnce(&Value) -> Option<Option<T>> {
    |value| match value.is_null() {
        true => Some(None),
        false => read(value).map(Some),
    }
}

fn read_event(event: &Value, path: &str) -> Result<Entry, Error> {
    let name = field(event, path, "eventType", Value::as_str)?;
    let step: Option<StepId> = field(event, path, "stepId", maybe(parsed))?;
    let details = field(event, path, "details", Some)?;
    let decoded = codec::decode(name, step, details)
        .map_err(|why| Error::invalid(&format!("{path}.details"), why.to_string()))?;
    let session: Option<String> = field(event, path, "sessionId", maybe(text))?;
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
