//! The commit: writes events and the rows they change, all or none. Apart from restoring and
//! deleting a plan, nothing else changes its rows.
//!
//! The caller has computed the new rows; this module only writes them. The primary key of the audit
//! trail admits each sequence number once, so of two commits based on the same version of a plan
//! the second one fails.

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
use crate::query::Query;
use crate::row::event::{Author, Entry};
use crate::row::plan::Sheet;
use crate::row::{branch, event, plan, step};
use crate::tx::{Connection, Tx};
use crate::value::{Value, params};

/// Branch ordinals reserved per event, so that branches added later are evaluated later.
pub(crate) const BRANCHES_PER_EVENT: u64 = 100_000;

/// Longer than the statement timeout. A due time further ahead than this does not become due during
/// a commit.
const QUIET: Duration = Duration::from_secs(60);

/// A change of a plan.
#[derive(Debug)]
pub struct Commit<'a> {
    /// Number of events that the plan had before.
    pub before: u64,
    /// Sequence number of the first event of the transaction, of which this may be a later part.
    pub commit_seq: u64,
    /// Head of the plan, with the events applied.
    pub head: &'a PlanHead,
    /// Steps whose state changed, with the events applied.
    pub steps: &'a [StepAfter],
    /// The events.
    pub events: &'a [Event],
    /// Time of the events.
    pub at: Timestamp,
    /// Author of the change.
    pub author: &'a Author,
    /// When the sweep must check the plan.
    pub due: Due,
}

impl Commit<'_> {
    /// No sweep changes a due time after this instant while the commit is being written.
    pub(crate) fn quiet_until(&self) -> Option<Timestamp> {
        self.at.checked_add(QUIET)
    }
}

/// A step with its events applied.
#[derive(Debug, Clone)]
pub struct StepAfter {
    /// The step.
    pub step: Step,
    /// When the step exceeds its stall threshold, if it is in progress.
    pub stalls_at: Option<Timestamp>,
    /// Whether its instructions changed.
    pub rewritten: bool,
    /// Whether it is known that no other step depends on it.
    pub has_no_dependents: bool,
    /// Whether it was only claimed or completed, and nothing else about it changed.
    pub advanced: bool,
}

/// A step whose row contains only a claim and a result: no progress report, stall mark, undelivered
/// feedback, review, skip or failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// Number of superseded claims.
    superseded: usize,
}

impl Plain {
    /// `None` if the row contains more. If the values before and after some events are equal, the
    /// step was claimed or completed and nothing else about it changed.
    pub fn of(step: &Step) -> Option<Self> {
        step::is_plain(step).then_some(Self {
            superseded: step.superseded.len(),
        })
    }
}

/// When the sweep must check a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Keep the stored due time.
    Unchanged,
    /// At this instant, or at the stored due time if that is earlier.
    By(Timestamp),
    /// At this instant, replacing the stored due time.
    At(Timestamp),
    /// Never.
    Never,
}

/// A research artifact, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Artifact id.
    pub id: ArtifactId,
    /// Plan that it belongs to, while that plan exists.
    pub plan: Option<PlanId>,
    /// Step that it belongs to.
    pub step: Option<StepId>,
    /// `note`, `late_result`, ….
    pub kind: String,
    /// Title.
    pub title: String,
    /// Full content.
    pub content: String,
    /// Origin of the content.
    pub source_url: Option<String>,
    /// Additional data: a JSON object.
    pub metadata: Json,
    /// When it was stored.
    pub created_at: Timestamp,
}

impl Artifact {
    /// All kinds.
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
    /// Writes a change to an existing plan.
    pub fn commit(&mut self, commit: &Commit<'_>) {
        let plan = commit.head.id;
        let about = plan::About::of(commit.at);
        let by_parts = self.writes_by_parts();
        let known = self.known(plan);
        let stays = by_parts && known.is_some_and(|known| known.stays(commit.head));
        if by_parts && known.is_none_or(|known| known.about != about) {
            let params = params![plan.as_uuid(), about.0];
            self.queue(self.statement(Query::PlanTouch, params).expecting(1));
        }
        let (query, mut head) = match stays {
            true => (Query::PlanUpdate, plan::counting(commit.head)),
            false => (Query::PlanMove, plan::changing(commit.head)),
        };
        head.extend(params![commit.at, commit.before]);
        self.queue(self.statement(query, head).checking_version());
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
        // Statements that most transitions do not need come after those that all of them need:
        // PostgreSQL receives the latter as one message.
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
                true => (Query::StepAdvance, step::advancing),
                false => (Query::StepUpdate, step::changing),
            };
            let params = row(&after.step, after.stalls_at, commit.commit_seq);
            self.queue(self.statement(name, params).expecting(1));
        }
    }

    /// Writes a new plan.
    pub fn create(&mut self, created: &Created, entry: &Entry) {
        let at = entry.at;
        let head = PlanHead::new(created);
        let plan = head.id;
        let sheet = Sheet {
            head,
            brief: created.brief.clone(),
            created_at: at,
            updated_at: at,
        };
        self.insert_plan(&sheet);
        for (order, spec) in (1u32..).zip(&created.steps) {
            // All dependencies of a new plan's steps are new, and therefore open.
            self.insert_step(plan, spec, order, at, spec.depends_on.len());
        }
        for (place, branch) in (0u64..).zip(&created.branches) {
            self.insert_branch(plan, branch, BRANCHES_PER_EVENT + place);
        }
        let bytes = self.log(plan, entry);
        if self.memory.is_some() {
            self.recalled = Some(Recalled::made(Plan::from_created(created, at), bytes));
            self.has_recalled = true;
        }
        self.note(plan);
    }

    /// Stores an artifact and indexes it for search; returns the number of its chunks.
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
        self.queue(self.statement(Query::ArtifactInsert, params));
        self.index(*artifact.id.as_uuid(), &artifact.title, &artifact.content)
    }

    /// Attaches an artifact that outlived its plan to that plan again. An artifact that belongs to
    /// a plan stays there.
    pub fn adopt(&mut self, artifact: &Artifact) {
        let params = params![
            artifact.id.as_uuid(),
            artifact.plan.map(|id| *id.as_uuid()),
            artifact.step.map(|id| *id.as_uuid()),
        ];
        self.queue(self.statement(Query::ArtifactAdopt, params));
    }

    /// Sets when the sweep must check a plan.
    pub fn due(&mut self, plan: PlanId, due: Due) {
        self.due_from(plan, due, None);
    }

    /// Like [`Self::due`], if no sweep changes due times after `quiet` while this is being written.
    fn due_from(&mut self, plan: PlanId, due: Due, quiet: Option<Timestamp>) {
        let statement = match due {
            Due::Unchanged => return,
            Due::By(at) => {
                let mut params = params![plan.as_uuid(), at];
                if let Connection::Postgres(_) = self.connection {
                    params.extend(params![quiet.unwrap_or(Timestamp::MAX)]);
                }
                self.statement(Query::DueSooner, params)
            }
            Due::At(at) => self.statement(Query::DueSet, params![plan.as_uuid(), at]),
            Due::Never => self.statement(Query::DueClear, params![plan.as_uuid()]),
        };
        self.queue(statement);
    }

    /// Stores the idempotency key under which a plan was created, with the digest of its input.
    pub fn remember_key(&mut self, key: &str, plan: PlanId, digest: &str, at: Timestamp) {
        let params = params![key, plan.as_uuid(), digest, at];
        self.queue(self.statement(Query::IdempotencyKeyInsert, params));
    }

    /// The plan created under an idempotency key, and the digest of its input.
    pub async fn plan_of_key(&mut self, key: &str) -> Result<Option<(PlanId, Arc<str>)>, Error> {
        let rows = self.rows(Query::IdempotencyKey, params![key]).await?;
        let Some(row) = rows.into_iter().next() else {
            return Ok(None);
        };
        let mut cells = row.cells("idempotency_keys");
        cells.text("idempotency_key")?;
        let plan = PlanId::new(cells.id("plan_id")?);
        Ok(Some((plan, cells.text("digest")?)))
    }

    /// Writes an entry of the audit trail; returns its length in bytes.
    pub(crate) fn log(&mut self, plan: PlanId, entry: &Entry) -> usize {
        let params = event::inserted(plan, entry);
        let bytes = params.iter().map(Value::bytes).sum();
        self.queue(self.statement(Query::EventInsert, params));
        bytes
    }

    /// Decrements the number of open dependencies of the steps that depend on `ended`.
    fn release(&mut self, commit: &Commit<'_>, ended: StepId) {
        let known = commit.steps.iter().find(|after| after.step.id() == ended);
        // Usually no step depends on it, and a statement that affects no row costs as much as a
        // write.
        if known.is_none_or(|after| !after.has_no_dependents) {
            self.queue(self.statement(Query::DependentsRelease, params![ended.as_uuid()]));
        }
    }

    /// Writes what an event changes besides the states of steps: the lists of steps and branches,
    /// and the sessions that resumed the plan.
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
                // The step after which the branch was taken was completed in this commit.
                let order = after.map_or(0, |after| after.step.order);
                self.insert_steps(plan, order, steps, at);
            }
            Event::SessionResumed { session } => {
                let params = params![plan.as_uuid(), session.as_str()];
                self.queue(self.statement(Query::ResumedSessionInsert, params));
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
        self.queue(self.statement(Query::StepInstructions, params).expecting(1));
    }

    fn insert_steps(&mut self, plan: PlanId, after: u32, specs: &[NewStep], at: Timestamp) {
        let params = params![plan.as_uuid(), after, specs.len()];
        self.queue(self.statement(Query::StepsMoveAlong, params));
        self.queue(self.statement(Query::StepsSettle, params![plan.as_uuid()]));
        for (order, spec) in (after.saturating_add(1)..).zip(specs) {
            self.insert_step(plan, spec, order, at, 0);
        }
        for spec in specs.iter().filter(|spec| !spec.depends_on.is_empty()) {
            let params = params![spec.id.as_uuid()];
            self.queue(
                self.statement(Query::StepCountDependencies, params)
                    .expecting(1),
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
        self.queue(self.statement(Query::StepInsert, params));
        for needed in &spec.depends_on {
            let params = params![needed.as_uuid(), spec.id.as_uuid(), plan.as_uuid()];
            self.queue(self.statement(Query::DependencyInsert, params));
        }
    }

    fn remove_step(&mut self, plan: PlanId, id: StepId) {
        for name in [
            Query::BranchNeedsDeleteAfter,
            Query::BranchesDeleteAfter,
            Query::DependenciesDeleteOfStep,
        ] {
            self.queue(self.statement(name, params![id.as_uuid()]));
        }
        // Later steps move up by one. This statement reads the order of the step, so it runs first.
        let params = params![plan.as_uuid(), id.as_uuid()];
        self.queue(self.statement(Query::StepsCloseUp, params));
        self.queue(
            self.statement(Query::StepDelete, params![id.as_uuid()])
                .expecting(1),
        );
        self.queue(self.statement(Query::StepsSettle, params![plan.as_uuid()]));
    }

    fn reorder(&mut self, plan: PlanId, ids: &[StepId]) {
        for (order, id) in (1u32..).zip(ids) {
            let params = params![id.as_uuid(), order];
            self.queue(self.statement(Query::StepMove, params).expecting(1));
        }
        self.queue(self.statement(Query::StepsSettle, params![plan.as_uuid()]));
    }

    pub(crate) fn insert_branch(&mut self, plan: PlanId, made: &Branch, ordinal: u64) {
        let params = branch::inserted(plan, made, ordinal);
        self.queue(self.statement(Query::BranchInsert, params));
        for needed in made.references() {
            let params = params![needed.as_uuid(), made.id.as_uuid(), plan.as_uuid()];
            self.queue(self.statement(Query::BranchNeedInsert, params));
        }
    }
}
