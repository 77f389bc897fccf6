//! The commit: events, and the rows that they change, all or none. There is no other way to change a
//! row of a plan.
//!
//! What the rows become was decided before: here it is only written. The number of a plan's first new
//! event is taken once, by the primary key of the trail, so of two commits that were decided on the
//! same state one is refused.

use std::sync::Arc;
use std::time::Duration;

use onward_core::branch::{Branch, Effect};
use onward_core::event::{Change, Created};
use onward_core::id::ArtifactId;
use onward_core::step::NewStep;
use onward_core::{Event, Plan, PlanHead, PlanId, Step, StepId, Timestamp};
use serde_json::Value as Json;

use crate::error::Error;
use crate::memory::Recalled;
use crate::row::event::{Author, Entry};
use crate::row::plan::Sheet;
use crate::row::{branch, event, plan, step};
use crate::tx::{Connection, Tx};
use crate::value::{Value, params};

/// Room for this many branches per event, so that later ones are tried later.
pub(crate) const BRANCHES_PER_EVENT: u64 = 100_000;

/// A statement ends long before this: what is not due for so long stays as it is while it runs.
const QUIET: Duration = Duration::from_secs(60);

/// A change of a plan.
#[derive(Debug)]
pub struct Commit<'a> {
    /// The number of events that the plan had before.
    pub before: u64,
    /// The number of the first event of the transaction, of which this may be a later part.
    pub commit_seq: u64,
    /// The plan's head, with the events applied.
    pub head: &'a PlanHead,
    /// The steps whose state the events have changed, with the events applied.
    pub steps: &'a [StepAfter],
    /// What happened.
    pub events: &'a [Event],
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub author: &'a Author,
    /// When the sweep must look at the plan.
    pub due: Due,
}

impl Commit<'_> {
    /// No sweep looks at what is due later than this while it is being written.
    pub(crate) fn quiet_until(&self) -> Option<Timestamp> {
        self.at.checked_add(QUIET)
    }
}

/// A step with its events applied.
#[derive(Debug, Clone)]
pub struct StepAfter {
    /// The step.
    pub step: Step,
    /// When it is past its threshold, where it is in progress.
    pub stalls_at: Option<Timestamp>,
    /// Its instructions are others than before.
    pub rewritten: bool,
    /// It is known that no other step waits for it.
    pub frees_nobody: bool,
    /// It was handed out, or is done, and nothing else about it has changed.
    pub advanced: bool,
}

/// A step about which there is nothing to say beside who works on it since when, and what came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// How many claims on it were handed back.
    superseded: usize,
}

impl Plain {
    /// Of a step that is plain. Where it is so before and after some events, and both are the same, it was
    /// handed out or is done, and nothing else about it has changed.
    pub fn of(step: &Step) -> Option<Self> {
        step::is_plain(step).then_some(Self {
            superseded: step.superseded.len(),
        })
    }
}

/// When the sweep must look at a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// As before.
    Unchanged,
    /// At this instant, or before it.
    By(Timestamp),
    /// At this instant, and not before it.
    At(Timestamp),
    /// Never.
    Never,
}

/// Something found or made during research, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Which one.
    pub id: ArtifactId,
    /// The plan that it belongs to, while that exists.
    pub plan: Option<PlanId>,
    /// The step that it belongs to.
    pub step: Option<StepId>,
    /// `note`, `late_result`, ….
    pub kind: String,
    /// A short name.
    pub title: String,
    /// All of it.
    pub content: String,
    /// Where it came from.
    pub source_url: Option<String>,
    /// Whatever else is known: a JSON object.
    pub metadata: Json,
    /// When it was stored.
    pub created_at: Timestamp,
}

impl Artifact {
    /// Every kind.
    pub const KINDS: [&str; 7] = [
        "note",
        "source",
        "data",
        "finding",
        "quote",
        "late_result",
        "other",
    ];
}

impl Tx {
    /// Writes a change of a plan that exists.
    pub fn commit(&mut self, commit: &Commit<'_>) {
        let plan = commit.head.id;
        let about = plan::About::of(commit.at);
        let by_parts = self.writes_by_parts();
        let known = self.known(plan);
        let stays = by_parts && known.is_some_and(|known| known.stays(commit.head));
        if by_parts && known.is_none_or(|known| known.about != about) {
            let params = params![plan.as_uuid(), about.0];
            self.queue(self.statement("plan_touch", params).touching(1));
        }
        let (name, mut head) = match stays {
            true => ("plan_update", plan::counting(commit.head)),
            false => ("plan_move", plan::changing(commit.head)),
        };
        head.extend(params![commit.at, commit.before]);
        self.queue(self.statement(name, head).touching(1));
        self.remember(plan, plan::Known::of(commit.head, about));
        self.change_steps(commit);
        let seqs = commit.before.saturating_add(1)..;
        let mut bytes = 0;
        for (seq, event) in seqs.clone().zip(commit.events) {
            let entry = Entry {
                seq,
                commit_seq: commit.commit_seq,
                at: commit.at,
                author: commit.author.clone(),
                event: event.clone(),
            };
            bytes += self.log(plan, &entry);
        }
        if self.follow(commit, bytes) {
            self.due_from(plan, commit.due, commit.quiet_until());
        }
        // What most transitions have nothing of comes behind what all of them have: PostgreSQL is
        // sent that as one statement.
        for after in commit.steps.iter().filter(|after| after.rewritten) {
            self.rewrite(&after.step);
        }
        for (seq, event) in seqs.zip(commit.events) {
            if let Event::StepCompleted { step, .. }
            | Event::StepFailed { step, .. }
            | Event::StepSkipped { step, .. } = event
            {
                self.release(commit, *step);
            }
            self.change_list(commit, seq, event);
        }
        self.note(plan);
    }

    fn change_steps(&mut self, commit: &Commit<'_>) {
        for after in commit.steps {
            let (name, row): (_, fn(&Step, _, _) -> _) = match after.advanced {
                true => ("step_advance", step::advancing),
                false => ("step_update", step::changing),
            };
            let params = row(&after.step, after.stalls_at, commit.commit_seq);
            self.queue(self.statement(name, params).touching(1));
        }
    }

    /// Writes a plan that comes into being by this event.
    pub fn create(&mut self, created: &Created, entry: &Entry) {
        let at = entry.at;
        let head = PlanHead::created(created);
        let plan = head.id;
        let sheet = Sheet {
            head,
            brief: created.brief.clone(),
            created_at: at,
            updated_at: at,
        };
        self.insert_plan(&sheet);
        for (order, spec) in (1u32..).zip(&created.steps) {
            // All that a new plan's steps wait for is as new as they are.
            self.insert_step(plan, spec, order, at, spec.depends_on.len());
        }
        for (place, branch) in (0u64..).zip(&created.branches) {
            self.insert_branch(plan, branch, BRANCHES_PER_EVENT + place);
        }
        let bytes = self.log(plan, entry);
        if self.memory.is_some() {
            self.recalled = Some(Recalled::made(Plan::created(created, at), bytes));
            self.has_recalled = true;
        }
        self.note(plan);
    }

    /// Keeps something that was found or made, and makes it findable; the number of its chunks.
    pub fn keep(&mut self, artifact: &Artifact) -> usize {
        let params = params![
            artifact.id.as_uuid(),
            artifact.plan.map(|id| *id.as_uuid()),
            artifact.step.map(|id| *id.as_uuid()),
            &artifact.kind,
            &artifact.title,
            &artifact.content,
            artifact.source_url.as_deref(),
            &artifact.metadata,
            artifact.created_at,
        ];
        self.queue(self.statement("artifact_insert", params));
        self.index(*artifact.id.as_uuid(), &artifact.title, &artifact.content)
    }

    /// Gives an artifact that outlived its plan back to it. One that belongs to a plan stays there.
    pub fn adopt(&mut self, artifact: &Artifact) {
        let params = params![
            artifact.id.as_uuid(),
            artifact.plan.map(|id| *id.as_uuid()),
            artifact.step.map(|id| *id.as_uuid()),
        ];
        self.queue(self.statement("artifact_adopt", params));
    }

    /// Says when the sweep must look at a plan.
    pub fn due(&mut self, plan: PlanId, due: Due) {
        self.due_from(plan, due, None);
    }

    /// The same where no sweep looks at what is due after an instant while this is being written.
    fn due_from(&mut self, plan: PlanId, due: Due, quiet: Option<Timestamp>) {
        let statement = match due {
            Due::Unchanged => return,
            Due::By(at) => {
                let mut params = params![plan.as_uuid(), at];
                if let Connection::Postgres(_) = self.connection {
                    params.extend(params![quiet.unwrap_or(Timestamp::MAX)]);
                }
                self.statement("due_sooner", params)
            }
            Due::At(at) => self.statement("due_set", params![plan.as_uuid(), at]),
            Due::Never => self.statement("due_clear", params![plan.as_uuid()]),
        };
        self.queue(statement);
    }

    /// Remembers under which key a plan was made, and from what.
    pub fn remember_key(&mut self, key: &str, plan: PlanId, digest: &str, at: Timestamp) {
        let params = params![key, plan.as_uuid(), digest, at];
        self.queue(self.statement("idempotency_key_insert", params));
    }

    /// The plan that was made under a key, and the digest of what it was made from.
    pub async fn plan_of_key(&mut self, key: &str) -> Result<Option<(PlanId, Arc<str>)>, Error> {
        let rows = self.rows("idempotency_key", params![key]).await?;
        let Some(row) = rows.into_iter().next() else {
            return Ok(None);
        };
        let mut cells = row.cells("idempotency_keys");
        cells.text("idempotency_key")?;
        let plan = PlanId::new(cells.id("plan_id")?);
        Ok(Some((plan, cells.text("digest")?)))
    }

    /// Writes an entry of the trail; how long it is.
    pub(crate) fn log(&mut self, plan: PlanId, entry: &Entry) -> usize {
        let params = event::inserted(plan, entry);
        let bytes = params.iter().map(Value::bytes).sum();
        self.queue(self.statement("event_insert", params));
        bytes
    }

    /// Those that wait for a step wait for one less.
    fn release(&mut self, commit: &Commit<'_>, ended: StepId) {
        let known = commit.steps.iter().find(|after| after.step.id() == ended);
        // Mostly nobody waits, and a statement that finds that out costs as much as a write.
        if known.is_none_or(|after| !after.frees_nobody) {
            self.queue(self.statement("dependents_release", params![ended.as_uuid()]));
        }
    }

    /// What an event changes beside the states of steps: the list of steps and branches, and who
    /// has resumed the plan.
    fn change_list(&mut self, commit: &Commit<'_>, seq: u64, event: &Event) {
        let (plan, at) = (commit.head.id, commit.at);
        match event {
            Event::PlanModified { change, .. } => match change {
                Change::StepsAdded { after, steps } => self.insert_steps(plan, *after, steps, at),
                Change::StepRemoved { step } => self.remove_step(plan, *step),
                Change::StepsReordered { steps } => self.reorder(plan, steps),
                Change::BranchAdded { branch } => {
                    self.insert_branch(plan, branch, seq.saturating_mul(BRANCHES_PER_EVENT));
                }
                Change::Created(_)
                | Change::InstructionsUpdated { .. }
                | Change::StepFailed { .. }
                | Change::StepRequeued { .. } => {}
            },
            Event::BranchTaken {
                step,
                effect: Effect::Added { steps },
                ..
            } => {
                let after = commit.steps.iter().find(|after| after.step.id() == *step);
                // A branch is taken after a step that was completed just now.
                let order = after.map_or(0, |after| after.step.order);
                self.insert_steps(plan, order, steps, at);
            }
            Event::SessionResumed { session } => {
                let params = params![plan.as_uuid(), session.as_str()];
                self.queue(self.statement("resumed_session_insert", params));
            }
            Event::BranchTaken { .. }
            | Event::StepStarted { .. }
            | Event::StepCompleted { .. }
            | Event::StepFailed { .. }
            | Event::StepSkipped { .. }
            | Event::StepRequeued { .. }
            | Event::StepProgressed { .. }
            | Event::FeedbackDelivered { .. }
            | Event::UserReviewed { .. }
            | Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::PlanStalled { .. }
            | Event::PlanResumed { .. }
            | Event::PlanCompleted
            | Event::PlanFailed { .. }
            | Event::LateResultKept { .. } => {}
        }
    }

    fn rewrite(&mut self, step: &Step) {
        let params = params![
            step.id().as_uuid(),
            &step.spec.instructions,
            step.updated_at
        ];
        self.queue(self.statement("step_instructions", params).touching(1));
    }

    fn insert_steps(&mut self, plan: PlanId, after: u32, specs: &[NewStep], at: Timestamp) {
        let params = params![plan.as_uuid(), after, specs.len()];
        self.queue(self.statement("steps_move_along", params));
        self.queue(self.statement("steps_settle", params![plan.as_uuid()]));
        for (order, spec) in (after.saturating_add(1)..).zip(specs) {
            self.insert_step(plan, spec, order, at, 0);
        }
        for spec in specs.iter().filter(|spec| !spec.depends_on.is_empty()) {
            let params = params![spec.id.as_uuid()];
            self.queue(
                self.statement("step_count_dependencies", params)
                    .touching(1),
            );
        }
    }

    pub(crate) fn insert_step(
        &mut self,
        plan: PlanId,
        spec: &NewStep,
        order: u32,
        at: Timestamp,
        open: usize,
    ) {
        let params = step::inserted(plan, spec, order, at, open);
        self.queue(self.statement("step_insert", params));
        for needed in &spec.depends_on {
            let params = params![needed.as_uuid(), spec.id.as_uuid(), plan.as_uuid()];
            self.queue(self.statement("dependency_insert", params));
        }
    }

    fn remove_step(&mut self, plan: PlanId, id: StepId) {
        for name in [
            "branch_needs_delete_after",
            "branches_delete_after",
            "dependencies_delete_of_step",
        ] {
            self.queue(self.statement(name, params![id.as_uuid()]));
        }
        // Those behind it move up by one: counted before it is gone.
        let params = params![plan.as_uuid(), id.as_uuid()];
        self.queue(self.statement("steps_close_up", params));
        self.queue(
            self.statement("step_delete", params![id.as_uuid()])
                .touching(1),
        );
        self.queue(self.statement("steps_settle", params![plan.as_uuid()]));
    }

    fn reorder(&mut self, plan: PlanId, ids: &[StepId]) {
        for (order, id) in (1u32..).zip(ids) {
            let params = params![id.as_uuid(), order];
            self.queue(self.statement("step_move", params).touching(1));
        }
        self.queue(self.statement("steps_settle", params![plan.as_uuid()]));
    }

    pub(crate) fn insert_branch(&mut self, plan: PlanId, made: &Branch, ordinal: u64) {
        let params = branch::inserted(plan, made, ordinal);
        self.queue(self.statement("branch_insert", params));
        for needed in made.references() {
            let params = params![needed.as_uuid(), made.id.as_uuid(), plan.as_uuid()];
            self.queue(self.statement("branch_need_insert", params));
        }
    }
}
