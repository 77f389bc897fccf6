//! Creates plans. With an idempotency key, a repeated request returns the existing plan; a request
//! with the same key and different content is a conflict.

use std::sync::Arc;
use std::time::Duration;

use onward_core::budget::Limit;
use onward_core::command::{ActionSpec, CreatePlan, ForkPlan, StepRef, StepSpec};
use onward_core::decide::fork::NewIds;
use onward_core::event::{Change, Created};
use onward_core::id::{BranchId, ReviewId, SessionId, SkillExecutionId};
use onward_core::next_check::Due;
use onward_core::role::Permission;
use onward_core::step::{Gates, ReviewBy};
use onward_core::{Event, Json, Plan, PlanId, StepId, decide};
use onward_store::{AuditTrail, Cached, Entry, RequestOrigin, Sessions, Transitions, Tx};
use sha2::{Digest, Sha256};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::environment::hex;
use crate::error::Error;
use crate::plan::skill;
use crate::plan::submit::replay;
use crate::research::similar::SimilarPlan;
use crate::run::{self, CommandContext};
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
    /// The steps whose results a fork took over.
    pub taken_over: Vec<StepId>,
    /// The review of the plan's start, if it requires approval: its id and the step that carries it.
    pub approval: Option<(ReviewId, StepId)>,
    /// Ended plans with a similar question, whose results can be reused.
    pub similar: Vec<SimilarPlan>,
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

    /// Generates a review id.
    pub fn new_review_id(&self) -> ReviewId {
        ReviewId::new(self.ids.ordered_id(self.now()))
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
        let key = checked_key(key)?;
        let digest = key.as_ref().map(|_| digest(&command));
        // Decided before the transaction: creating a plan depends on no stored facts.
        let events = decide::create::decide(&command)?;
        // Before the plan is stored, so that a failed search does not hide that it was.
        let question = format!("{} {}", command.name, command.research_question);
        let similar = self.similar_plans(caller, question).await?;
        let mut plan = self
            .store_new_plan(caller, events, command.session, key.zip(digest))
            .await?;
        plan.similar = similar;
        // A repeated request returns the existing plan, which may have ended.
        let own = plan.created.plan;
        plan.similar.retain(|similar| similar.plan != own);
        Ok(plan)
    }

    /// Creates a plan that takes over results of `source`, or returns the plan created earlier with
    /// the same key, as it was then.
    pub async fn fork_plan(
        &self,
        caller: &Caller,
        source: PlanId,
        mut command: ForkPlan,
        key: Option<String>,
    ) -> Result<NewPlan, Error> {
        caller.allow(Permission::Read)?;
        caller.allow(Permission::CreatePlan)?;
        sanitize::fork(&mut command);
        let key = checked_key(key)?;
        let digest = key.as_ref().map(|_| fork_digest(source, &command));
        let trail = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { AuditTrail(tx).whole_trail(source).await })
        });
        let trail = trail.await?;
        if trail.is_empty() {
            return Err(Error::PlanNotFound(source.to_string()));
        }
        let events = self.decide_fork(&replay(&trail)?, &command)?;
        self.store_new_plan(caller, events, command.session, key.zip(digest))
            .await
    }

    fn decide_fork(&self, source: &Plan, command: &ForkPlan) -> Result<Vec<Event>, Error> {
        let mut ids = NewIds {
            step: &mut || self.new_step_id(),
            branch: &mut || self.new_branch_id(),
            token: &mut || self.ids.claim_token(),
        };
        Ok(decide::fork::decide(source, command, &mut ids, self.now())?)
    }

    /// Stores a new plan, or returns the plan created earlier with the same key.
    async fn store_new_plan(
        &self,
        caller: &Caller,
        events: Vec<Event>,
        session: Option<SessionId>,
        key_and_digest: Option<(String, String)>,
    ) -> Result<NewPlan, Error> {
        let mut events = events.into_iter();
        let event = events.next().ok_or_else(not_created)?;
        let following: Arc<[Event]> = events.collect();
        let ctx = self.command_context(caller, session.as_ref());
        let entry = Arc::new(Entry {
            seq: 1,
            commit_seq: 1,
            at: ctx.now,
            author: ctx.author.clone(),
            event,
        });
        let origin = caller.origin();
        let result = self.store.write(&caller.tenant, move |tx| {
            let (entry, key_and_digest) = (Arc::clone(&entry), key_and_digest.clone());
            let (session, ctx, origin) = (session.clone(), ctx.clone(), origin.clone());
            let following = Arc::clone(&following);
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
                store(tx, &entry, origin, session.as_ref(), &ctx).await?;
                let skill = match &session {
                    Some(session) => skill::link(tx, session, creation.plan, &ctx, 1).await?,
                    None => None,
                };
                if !following.is_empty() {
                    run::append(tx, creation, following.to_vec(), &ctx, 1).await?;
                }
                let created = Box::new(creation.clone());
                Ok(NewPlan::new(created, skill, following.iter()))
            })
        });
        result.await
    }
}

impl NewPlan {
    /// The plan with the other events of its first commit.
    fn new<'e>(
        created: Box<Created>,
        skill: Option<SkillExecutionId>,
        events: impl Iterator<Item = &'e Event> + Clone,
    ) -> Self {
        let approval = events.clone().find_map(|event| {
            let Event::UserReviewed { step, review, .. } = event else {
                return None;
            };
            Some((*review, *step))
        });
        Self {
            created,
            skill,
            taken_over: completed(events).collect(),
            approval,
            similar: Vec::new(),
        }
    }
}

fn checked_key(mut key: Option<String>) -> Result<Option<String>, Error> {
    sanitize::optional_text(&mut key);
    let characters = key.as_ref().map_or(1, |key| key.chars().count());
    if characters == 0 || characters > MAX_KEY_CHARS {
        let message = format!("has {characters} characters, must have 1 to {MAX_KEY_CHARS}");
        return Err(Error::invalid("idempotencyKey", message));
    }
    Ok(key)
}

fn completed<'e>(events: impl IntoIterator<Item = &'e Event>) -> impl Iterator<Item = StepId> {
    events.into_iter().filter_map(|event| {
        let Event::StepCompleted { step, .. } = event else {
            return None;
        };
        Some(*step)
    })
}

/// Creates a plan in a transaction, without an idempotency key.
pub(crate) async fn create(
    tx: &mut Tx,
    command: &CreatePlan,
    origin: RequestOrigin,
    ctx: &CommandContext,
) -> Result<(), Error> {
    let entry = Entry {
        seq: 1,
        commit_seq: 1,
        at: ctx.now,
        author: ctx.author.clone(),
        event: first(decide::create::decide(command)?)?,
    };
    store(tx, &entry, origin, command.session.as_ref(), ctx).await
}

/// Stores a new plan and the time at which the sweep checks it first.
async fn store(
    tx: &mut Tx,
    entry: &Entry,
    origin: RequestOrigin,
    session: Option<&SessionId>,
    ctx: &CommandContext,
) -> Result<(), Error> {
    let creation = created(&entry.event)?;
    let origin = complete_origin(tx, origin, session).await?;
    Cached(Transitions(tx)).create(creation, entry, origin);
    // The sweep reports a plan that no agent starts.
    let reported_at = entry.at.checked_add(ctx.no_agent_after);
    if let Some(at) = reported_at.filter(|_| creation.origin.reports_inactivity()) {
        Cached(Transitions(tx)).due(creation.plan, Due::By(at.next()));
    }
    Ok(())
}

/// Adds the agent and the directory that hooks have reported for the session.
async fn complete_origin(
    tx: &mut Tx,
    mut origin: RequestOrigin,
    session: Option<&SessionId>,
) -> Result<RequestOrigin, Error> {
    let is_complete = origin.client.is_some() && origin.directory.is_some();
    if let Some(session) = session.filter(|_| !is_complete) {
        let found = Sessions(tx).session_and_turn(session.as_str(), "").await?;
        if let Some((session, _)) = found {
            origin.client = origin.client.or(Some(session.agent));
            origin.directory = origin.directory.or(session.directory);
        }
    }
    Ok(origin)
}

/// Events in the first commit of a plan that is not a fork: its creation, the link to a skill
/// execution, and the request of its approval with the change of its status.
const FIRST_EVENTS: u32 = 4;

/// A plan that was created earlier, as it was then.
async fn existing_plan(tx: &mut Tx, plan: PlanId) -> Result<NewPlan, Error> {
    let mut entries = AuditTrail(tx).trail(plan, 0, FIRST_EVENTS).await?;
    let first = entries.first();
    let first = first.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
    let created = Box::new(created(&first.event)?.clone());
    if created.brief.forked_from.is_some() {
        entries = AuditTrail(tx).whole_trail(plan).await?;
    }
    let events = entries.iter().filter(|entry| entry.commit_seq == 1);
    let events = events.map(|entry| &entry.event);
    let skill = events.clone().find_map(|event| {
        let Event::SkillStarted { execution, .. } = event else {
            return None;
        };
        Some(*execution)
    });
    Ok(NewPlan::new(created, skill, events))
}

fn different_content() -> Error {
    Error::Conflict {
        message: "`idempotencyKey` was already used for a plan with different content".to_owned(),
        hint: "send the same content again, or use a new `idempotencyKey`".into(),
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
    hasher.text(command.on_dependency_failure.as_str());
    hasher.optional_text(command.routing.project_key.as_deref());
    hasher.labels(&command.routing.labels);
    hasher.number(command.routing.priority.into());
    for limit in Limit::ALL {
        let max = command.budget.and_then(|budget| budget.max(limit));
        hasher.optional_duration(max.map(Duration::from_millis));
    }
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
    hasher.approval(command.approval);
    hex(&hasher.0.finalize())
}

/// Digest of a fork. Excludes the same values as [`digest`].
fn fork_digest(source: PlanId, command: &ForkPlan) -> String {
    let mut hasher = ContentHasher(Sha256::new());
    hasher.text("fork");
    hasher.text(&source.to_string());
    hasher.text(&command.from_order.to_string());
    hasher.optional_text(command.name.as_deref());
    hasher.optional_text(command.research_question.as_deref());
    hasher.optional_text(command.design_rationale.as_deref());
    hasher.approval(command.approval);
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

    /// Plans without approval keep the digests that they had before approval existed.
    fn approval(&mut self, approval: Option<ReviewId>) {
        if approval.is_some() {
            self.text("requiresApproval");
        }
    }

    fn gates(&mut self, gates: &Gates) {
        self.optional_text(gates.result_schema.as_ref().map(Json::as_str));
        self.number(gates.acceptance_criteria.len());
        for criterion in &gates.acceptance_criteria {
            self.text(criterion);
        }
        self.optional_text(gates.review_by.map(ReviewBy::as_str));
    }

    fn labels(&mut self, labels: &[String]) {
        self.number(labels.len());
        for label in labels {
            self.text(label);
        }
    }

    fn steps(&mut self, steps: &[StepSpec]) {
        self.number(steps.len());
        for step in steps {
            self.text(step.step_type.as_str());
            self.optional_text(step.title.as_deref());
            self.text(&step.instructions);
            self.optional_duration(step.stall_threshold);
            self.optional_text(step.max_attempts.map(|most| most.to_string()).as_deref());
            self.gates(step.gates.as_deref().unwrap_or(&Gates::default()));
            self.labels(&step.labels);
            self.number(step.priority.into());
            self.number(step.depends_on.len());
            for order in &step.depends_on {
                self.number(usize::try_from(*order).unwrap_or(usize::MAX));
            }
        }
    }
}
