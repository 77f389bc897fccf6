//! Make a plan. The same key from the same tenant gives the same plan; with other content it is a
//! conflict.

use std::sync::Arc;
use std::time::Duration;

use onward_core::command::{ActionSpec, CreatePlan, StepRef, StepSpec};
use onward_core::event::{Change, Created};
use onward_core::id::{BranchId, SessionId, SkillExecutionId};
use onward_core::role::Permission;
use onward_core::{Event, PlanId, StepId, decide};
use onward_store::{Entry, Tx};
use sha2::{Digest, Sha256};

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::skill;
use crate::world::hex;

/// How long an idempotency key may be.
const LONGEST_KEY: usize = 200;

/// A plan that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPlan {
    /// The plan, as it came into being.
    pub created: Box<Created>,
    /// The skill's execution that it was linked to, as it came into being.
    pub skill: Option<SkillExecutionId>,
}

impl Engine {
    /// A fresh id for a plan.
    pub fn fresh_plan(&self) -> PlanId {
        PlanId::new(self.fresh.id())
    }

    /// A fresh id for a step.
    pub fn fresh_step(&self) -> StepId {
        StepId::new(self.fresh.timely_id(self.now()))
    }

    /// A fresh id for a branch.
    pub fn fresh_branch(&self) -> BranchId {
        BranchId::new(self.fresh.timely_id(self.now()))
    }

    /// Makes a plan, or gives the one that was made under the same key before, as it was then.
    pub async fn create_plan(
        &self,
        caller: &Caller,
        mut command: CreatePlan,
        key: Option<String>,
    ) -> Result<NewPlan, Error> {
        caller.allow(Permission::CreatePlan)?;
        clean::plan(&mut command);
        let mut key = key;
        clean::maybe(&mut key);
        let characters = key.as_ref().map_or(1, |key| key.chars().count());
        if characters == 0 || characters > LONGEST_KEY {
            let message = format!("has {characters} characters, must have 1 to {LONGEST_KEY}");
            return Err(Error::invalid("idempotencyKey", message));
        }
        let digest = key.as_ref().map(|_| digest(&command));
        // Decided before the transaction: a plan that comes into being depends on nothing.
        let event = first(decide::create::decide(&command)?)?;
        let session = command.session;
        let moment = self.moment(caller, session.as_ref());
        let entry = Arc::new(Entry {
            seq: 1,
            commit_seq: 1,
            at: moment.now,
            author: moment.author.clone(),
            event,
        });
        let keyed = key.zip(digest);
        let made = self.store.write(&caller.tenant, move |tx| {
            let (entry, keyed) = (Arc::clone(&entry), keyed.clone());
            let (session, moment) = (session.clone(), moment.clone());
            Box::pin(async move {
                let made = created(&entry.event)?;
                if let Some((key, digest)) = &keyed {
                    if let Some((plan, known)) = tx.plan_of_key(key).await? {
                        if *known != **digest {
                            return Err(other_content());
                        }
                        return before(tx, plan).await;
                    }
                    tx.remember_key(key, made.plan, digest, entry.at);
                }
                tx.create(made, &entry);
                let skill = match &session {
                    Some(session) => skill::link(tx, session, made.plan, &moment, 1).await?,
                    None => None,
                };
                let created = Box::new(made.clone());
                Ok(NewPlan { created, skill })
            })
        });
        made.await
    }
}

/// A plan that was made before, as it was then. What its first commit says beside its creation is
/// the skill that it was linked to.
async fn before(tx: &mut Tx, plan: PlanId) -> Result<NewPlan, Error> {
    let mut trail = tx.trail(plan, 0, 2).await?.into_iter();
    let first = trail.next();
    let first = first.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
    let linked = trail.next().filter(|entry| entry.commit_seq == 1);
    let skill = linked.and_then(|entry| {
        let Event::SkillStarted { execution, .. } = entry.event else {
            return None;
        };
        Some(execution)
    });
    let created = Box::new(created(&first.event)?.clone());
    Ok(NewPlan { created, skill })
}

fn other_content() -> Error {
    Error::Conflict {
        message: "`idempotencyKey` was used before, for a plan with other content".to_owned(),
        hint: "send the same content again, or use another `idempotencyKey`",
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
    Error::Store(onward_store::Error::Refused(
        "a plan does not begin with its creation".to_owned(),
    ))
}

/// What a plan is made from, but for the ids, which are fresh each time.
fn digest(command: &CreatePlan) -> String {
    let mut seen = Seen(Sha256::new());
    seen.text(&command.name);
    seen.text(&command.research_question);
    seen.maybe(command.design_rationale.as_deref());
    seen.maybe(command.output_formatting_notes.as_deref());
    seen.maybe_span(command.stall_threshold);
    seen.text(command.on_stall.as_str());
    seen.maybe(command.session.as_ref().map(SessionId::as_str));
    seen.steps(&command.steps);
    seen.number(command.branches.len());
    for branch in &command.branches {
        seen.number(usize::try_from(branch.after_order).unwrap_or(usize::MAX));
        seen.text(&branch.condition);
        match &branch.action {
            ActionSpec::Continue => seen.text("continue"),
            ActionSpec::SkipTo(target) => {
                seen.text("skip_to");
                match target {
                    StepRef::Order(order) => seen.text(&order.to_string()),
                    // The id of a step that does not exist yet names nothing; it is refused.
                    StepRef::Id(id) => seen.text(&id.to_string()),
                }
            }
            ActionSpec::AddSteps(steps) => {
                seen.text("add_steps");
                seen.steps(steps);
            }
            ActionSpec::Fail { reason } => {
                seen.text("fail");
                seen.maybe(reason.as_deref());
            }
        }
    }
    hex(&seen.0.finalize())
}

/// A digest of texts and numbers, each with its length, so that no two contents look alike.
struct Seen(Sha256);

impl Seen {
    fn number(&mut self, number: usize) {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        self.0.update(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.update(text.as_bytes());
    }

    fn maybe(&mut self, text: Option<&str>) {
        match text {
            Some(text) => {
                self.number(1);
                self.text(text);
            }
            None => self.number(0),
        }
    }

    fn maybe_span(&mut self, span: Option<Duration>) {
        self.maybe(span.map(|span| span.as_millis().to_string()).as_deref());
    }

    fn steps(&mut self, steps: &[StepSpec]) {
        self.number(steps.len());
        for step in steps {
            self.text(step.step_type.as_str());
            self.maybe(step.title.as_deref());
            self.text(&step.instructions);
            self.maybe_span(step.stall_threshold);
            self.maybe(step.max_attempts.map(|most| most.to_string()).as_deref());
            self.number(step.depends_on.len());
            for order in &step.depends_on {
                self.number(usize::try_from(*order).unwrap_or(usize::MAX));
            }
        }
    }
}
