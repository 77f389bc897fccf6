//! Creates plans. With an idempotency key, a repeated request returns the existing plan; a request
//! with the same key and different content is a conflict.

use std::sync::Arc;
use std::time::Duration;

use onward_core::command::{ActionSpec, CreatePlan, StepRef, StepSpec};
use onward_core::event::{Change, Created};
use onward_core::id::{BranchId, SkillExecutionId};
use onward_core::role::Permission;
use onward_core::{Event, PlanId, StepId, decide};
use onward_store::{AuditTrail, Entry, Transitions, Tx};
use sha2::{Digest, Sha256};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::environment::hex;
use crate::error::Error;
use crate::plan::skill;
use crate::sanitize;

/// Maximum length of an idempotency key.
const MAX_KEY_CHARS: usize = 200;

/// A created plan.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPlan {
    /// The plan as created.
    pub created: Box<Created>,
    /// The skill execution that was linked to the plan at creation.
    pub skill: Option<SkillExecutionId>,
}

impl Engine {
    /// Generates a plan id.
    pub fn new_plan_id(&self) -> PlanId {
        PlanId::new(self.ids.random_id())
    }

    /// Generates a step id.
    pub fn new_step_id(&self) -> StepId {
        StepId::new(self.ids.step_id())
    }

    /// Generates a branch id.
    pub fn new_branch_id(&self) -> BranchId {
        BranchId::new(self.ids.ordered_id(self.now()))
    }

    /// Creates a plan, or returns the plan created earlier with the same key, as it was then.
    pub async fn create_plan(
        &self,
        caller: &Caller,
        mut command: CreatePlan,
        key: Option<String>,
    ) -> Result<NewPlan, Error> {
        caller.allow(Permission::CreatePlan)?;
        sanitize::plan(&mut command);
        let mut key = key;
        sanitize::optional_text(&mut key);
        let characters = key.as_ref().map_or(1, |key| key.chars().count());
        if characters == 0 || characters > MAX_KEY_CHARS {
            let message = format!("has {characters} characters, must have 1 to {MAX_KEY_CHARS}");
            return Err(Error::invalid("idempotencyKey", message));
        }
        let digest = key.as_ref().map(|_| digest(&command));
        // Decided before the transaction: creating a plan depends on no stored facts.
        let event = first(decide::create::decide(&command)?)?;
        let session = command.session;
        let ctx = self.command_context(caller, session.as_ref());
        let entry = Arc::new(Entry {
            seq: 1,
            commit_seq: 1,
            at: ctx.now,
            author: ctx.author.clone(),
            event,
        });
        let key_and_digest = key.zip(digest);
        let result = self.store.write(&caller.tenant, move |tx| {
            let (entry, key_and_digest) = (Arc::clone(&entry), key_and_digest.clone());
            let (session, ctx) = (session.clone(), ctx.clone());
            Box::pin(async move {
                let creation = created(&entry.event)?;
                if let Some((key, digest)) = &key_and_digest {
                    if let Some((existing, stored_digest)) =
                        Transitions(tx).plan_of_key(key).await?
                    {
                        if *stored_digest != **digest {
                            return Err(different_content());
                        }
                        return existing_plan(tx, existing).await;
                    }
                    Transitions(tx).remember_key(key, creation.plan, digest, entry.at);
                }
                Transitions(tx).create(creation, &entry);
                let skill = match &session {
                    Some(session) => skill::link(tx, session, creation.plan, &ctx, 1).await?,
                    None => None,
                };
                let created = Box::new(creation.clone());
                Ok(NewPlan { created, skill })
            })
        });
        result.await
    }
}

/// A plan that was created earlier, as it was then. A second event in its first commit is the link
/// to a skill execution.
async fn existing_plan(tx: &mut Tx, plan: PlanId) -> Result<NewPlan, Error> {
    let mut entries = AuditTrail(tx).trail(plan, 0, 2).await?.into_iter();
    let first = entries.next();
    let first = first.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
    let linked = entries.next().filter(|entry| entry.commit_seq == 1);
    let skill = linked.and_then(|entry| {
        let Event::SkillStarted { execution, .. } = entry.event else {
            return None;
        };
        Some(execution)
    });
    let created = Box::new(created(&first.event)?.clone());
    Ok(NewPlan { created, skill })
}

fn different_content() -> Error {
    Error::Conflict {
        message: "`idempotencyKey` was already used for a plan with different content".to_owned(),
        hint: "send the same content again, or use a new `idempotencyKey`",
    }
}

fn first(events: Vec<Event>) -> Result<Event, Error> {
    let mut events = events.into_iter();
    events.next().ok_or_else(not_created)
}

fn created(event: &Event) -> Result<&Created, Error> {
    let Event::PlanModified {
        change: Change::Created(created),
        ..
    } = event
    else {
        return Err(not_created());
    };
    Ok(created)
}

fn not_created() -> Error {
    Error::Store(onward_store::Error::refused(
        "the plan's first event is not its creation",
    ))
}

/// Digest of a plan's content. Excludes the ids, which differ in every request, and the session: an
/// agent may retry a request from its next session.
fn digest(command: &CreatePlan) -> String {
    let mut hasher = ContentHasher(Sha256::new());
    hasher.text(&command.name);
    hasher.text(&command.research_question);
    hasher.optional_text(command.design_rationale.as_deref());
    hasher.optional_text(command.output_formatting_notes.as_deref());
    hasher.optional_duration(command.stall_threshold);
    hasher.text(command.on_stall.as_str());
    hasher.steps(&command.steps);
    hasher.number(command.branches.len());
    for branch in &command.branches {
        hasher.number(usize::try_from(branch.after_order).unwrap_or(usize::MAX));
        hasher.text(&branch.condition);
        match &branch.action {
            ActionSpec::Continue => hasher.text("continue"),
            ActionSpec::SkipTo(target) => {
                hasher.text("skip_to");
                match target {
                    StepRef::Order(order) => hasher.text(&order.to_string()),
                    // Rejected later: a plan that is being created has no step ids to refer to.
                    StepRef::Id(id) => hasher.text(&id.to_string()),
                }
            }
            ActionSpec::AddSteps(steps) => {
                hasher.text("add_steps");
                hasher.steps(steps);
            }
            ActionSpec::Fail { reason } => {
                hasher.text("fail");
                hasher.optional_text(reason.as_deref());
            }
        }
    }
    hex(&hasher.0.finalize())
}

/// Hashes texts and numbers with their lengths, so that different contents have different digests.
struct ContentHasher(Sha256);

impl ContentHasher {
    fn number(&mut self, number: usize) {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        self.0.update(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.update(text.as_bytes());
    }

    fn optional_text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => {
                self.number(1);
                self.text(text);
            }
            None => self.number(0),
        }
    }

    fn optional_duration(&mut self, span: Option<Duration>) {
        self.optional_text(span.map(|span| span.as_millis().to_string()).as_deref());
    }

    fn steps(&mut self, steps: &[StepSpec]) {
        self.number(steps.len());
        for step in steps {
            self.text(step.step_type.as_str());
            self.optional_text(step.title.as_deref());
            self.text(&step.instructions);
            self.optional_duration(step.stall_threshold);
            self.optional_text(step.max_attempts.map(|most| most.to_string()).as_deref());
            self.number(step.depends_on.len());
            for order in &step.depends_on {
                self.number(usize::try_from(*order).unwrap_or(usize::MAX));
            }
        }
    }
}
