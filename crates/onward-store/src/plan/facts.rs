//! Loading the facts of a command: only the rows that it needs, in one round trip.
//!
//! A write locks the plan from load to commit, so that no other caller can change it. A transition
//! ([`crate::Store::transition`]) locks nothing: the version check at commit detects concurrent
//! changes. `Cached` serves the most frequent reads from the cached plan.
//!
//! The lock is a separate statement, sent before the query: a statement that waited for the lock
//! would still see the steps from before the wait.

use std::sync::Arc;

use onward_core::budget::Used;
use onward_core::command::HandleStalls;
use onward_core::decide::modify::{self, Needs};
use onward_core::decide::{
    NextFacts, ReferencedStep, SkipTarget, StepFacts, With, handle_stalls, resume_session,
};
use onward_core::event::Decided;
use onward_core::id::{BranchId, SessionId};
use onward_core::policy::CLOCK_TOLERANCE;
use onward_core::refusal::{MAX_NAMED, OpenDependencies};
use onward_core::routing::{QueuedStep, covers};
use onward_core::watcher::Watcher;
use onward_core::{Event, PlanHead, PlanId, Step, StepId, StepStatus, Timestamp};

use super::transition::dequeue;
use crate::error::{Corrupt, Error};
use crate::query::Query;
use crate::row::{branch, event, labels, plan, step};
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Cells, Row, first, ids, params};

/// Facts for decisions.
pub struct Facts<'t>(pub &'t mut Tx);

impl Facts<'_> {
    /// Head of a plan, locked until the commit.
    pub async fn plan(&mut self, id: PlanId) -> Result<Option<PlanHead>, Error> {
        let mut questions = self.hold(Query::PlanHeld, *id.as_uuid());
        questions.push(Statement::new(Query::PlanFacts, params![id.as_uuid()]));
        let mut answers = self.0.query(questions).await?;
        let head = answers.pop().unwrap_or_default().into_iter().next();
        head.map(|row| self.head(&mut row.cells("plans")))
            .transpose()
    }

    /// The statement that locks a plan until the commit, if one is needed.
    fn hold(&self, query: Query, id: uuid::Uuid) -> Vec<Statement> {
        let held = self
            .0
            .must_lock()
            .then(|| Statement::new(query, params![id]));
        held.into_iter().collect()
    }

    /// Reads the head of a plan and records its version.
    fn head(&mut self, cells: &mut Cells) -> Result<PlanHead, Error> {
        let (head, known) = plan::head_and_known(cells)?;
        self.0.versions.record_read(head.id, known);
        Ok(head)
    }

    /// A step and the head of its plan, with the requested data. If the transaction is in
    /// locking mode, the plan is locked until the commit.
    pub(crate) async fn step(
        &mut self,
        id: StepId,
        with: With,
    ) -> Result<Option<StepFacts>, Error> {
        let name = match with {
            With::Head | With::Branches | With::Decision => Query::StepFacts,
            With::Ready => Query::StepFactsAndReady,
        };
        let mut questions = self.hold(Query::PlanOfStepHeld, *id.as_uuid());
        questions.push(Statement::new(name, params![id.as_uuid()]));
        let mut rows = self
            .0
            .query(questions)
            .await?
            .pop()
            .unwrap_or_default()
            .into_iter();
        let Some(row) = rows.next() else {
            return Ok(None);
        };
        let mut cells = row.cells("plans");
        let head = self.head(&mut cells)?;
        let Some(step) = step::joined(&mut cells)? else {
            return Ok(None);
        };
        let mut facts = StepFacts {
            open_dependencies: OpenDependencies {
                total: cells.u32("open_dependencies")?,
                first: Vec::new(),
            },
            head,
            step,
            branches: Vec::new(),
            has_dependents: cells.flag("needed")?,
            decided: None,
            ready: None,
        };
        if with.includes_branches() {
            let mut branches: Vec<_> = branch::joined(&mut cells)?.into_iter().collect();
            for row in rows {
                branches.extend(branch::joined(&mut row.cells("plans"))?);
            }
            branches.sort_unstable_by_key(|(_, ordinal)| *ordinal);
            let branches = branches.into_iter();
            facts.branches = branches.map(|(branch, _)| branch).collect();
        }
        if with == With::Ready {
            facts.ready = step::joined(&mut cells)?;
        }
        self.add_rare_facts(&mut facts, with).await?;
        Ok(Some(facts))
    }

    /// Queries that only a rejected or repeated command needs.
    async fn add_rare_facts(&mut self, facts: &mut StepFacts, with: With) -> Result<(), Error> {
        let (plan, step) = (facts.head.id.as_uuid(), facts.step.id());
        let is_pending = facts.step.status() == StepStatus::Pending;
        if with.includes_branches() && is_pending && facts.open_dependencies.total > 0 {
            let params = params![step.as_uuid(), MAX_NAMED];
            let open = self.0.rows(Query::OpenDependencies, params).await?;
            let open: Result<Vec<_>, Error> = open.into_iter().map(place).collect();
            let named = open?.into_iter().map(|open| (open.id, open.order));
            facts.open_dependencies.first = named.collect();
        }
        if with.includes_decision(&facts.step) {
            let params = params![plan, step.as_uuid(), 1_u32];
            let last = self.0.rows(Query::EventsOfReviews, params).await?;
            let last = first(Some(last), event::entry)?;
            if let Some(Event::UserReviewed { review, action, .. }) = last.map(|entry| entry.event)
            {
                facts.decided = Decided::from_action(review, &action);
            }
        }
        Ok(())
    }

    /// The steps of a plan that can be assigned to a session that offers these labels, including the
    /// steps past their stall threshold at `stalled_at`, if given. If the transaction is in
    /// locking mode, the plan is locked until the commit.
    pub(crate) async fn next_of(
        &mut self,
        id: PlanId,
        session: Option<&SessionId>,
        stalled_at: Option<Timestamp>,
        labels: Option<&[String]>,
    ) -> Result<Option<NextFacts>, Error> {
        let mut questions = self.hold(Query::PlanHeld, *id.as_uuid());
        let ahead = questions.len();
        let params = params![id.as_uuid(), session.map(SessionId::as_str)];
        questions.push(Statement::new(Query::NextFacts, params));
        if let Some(now) = stalled_at {
            questions.push(Statement::new(
                Query::StepsStalled,
                params![id.as_uuid(), now],
            ));
        }
        let mut answers = self.0.query(questions).await?.into_iter().skip(ahead);
        let Some(row) = answers.next().and_then(|rows| rows.into_iter().next()) else {
            return Ok(None);
        };
        let mut cells = row.cells("plans");
        let head = self.head(&mut cells)?;
        if let Some(step) = cells.maybe_id("corrupt_step")? {
            return Err(self.corrupt_step(step).await);
        }
        let can_claim = |step: &Step| covers(labels, &step.spec.labels);
        let mut facts = NextFacts {
            head,
            undelivered: step::joined(&mut cells)?,
            ready: step::joined(&mut cells)?,
            stalled: step::steps(answers.next().unwrap_or_default())?,
        };
        facts.stalled.retain(can_claim);
        if facts.ready.as_ref().is_some_and(|step| !can_claim(step)) {
            facts.ready = self.ready_with(id, labels).await?;
        }
        if facts.ready.is_none() && stalled_at.is_none() && facts.head.counts.in_progress > 0 {
            let rows = self
                .0
                .rows(Query::StepsOrphaned, params![id.as_uuid()])
                .await?;
            facts.stalled = step::steps(rows)?;
            facts.stalled.retain(can_claim);
        }
        Ok(Some(facts))
    }

    /// The first step of a plan that a session with these labels can claim.
    async fn ready_with(
        &mut self,
        id: PlanId,
        labels: Option<&[String]>,
    ) -> Result<Option<Step>, Error> {
        let plan = id.as_uuid();
        let sets = self.0.rows(Query::PlanLabels, params![plan]).await?;
        let mut questions = vec![Statement::new(
            Query::StepsReadyWithoutLabels,
            params![plan],
        )];
        for set in matching_sets(sets, labels)? {
            questions.push(Statement::new(Query::StepsReadyWith, params![plan, &*set]));
        }
        let rows = self.0.query(questions).await?.into_iter().flatten();
        let steps = step::steps(rows.collect())?;
        Ok(steps.into_iter().min_by_key(Step::claim_order))
    }

    /// The plan whose step a session with these labels claims next, of all plans of a project.
    pub async fn next_plan_of(
        &mut self,
        project: &str,
        labels: Option<&[String]>,
    ) -> Result<Option<PlanId>, Error> {
        let sets = self.0.rows(Query::QueueLabels, params![project]).await?;
        let ask = |set: Arc<str>| Statement::new(Query::QueueFirst, params![project, &*set]);
        let questions = matching_sets(sets, labels)?.into_iter().map(ask).collect();
        let mut first = Vec::new();
        for row in self.0.query(questions).await?.into_iter().flatten() {
            let mut cells = row.cells("steps");
            first.push(QueuedStep {
                plan: PlanId::new(cells.id("plan_id")?),
                plan_priority: cells.u32("plan_priority")?,
                priority: cells.u32("priority")?,
                plan_created_at: cells.at("plan_created_at")?,
                order: cells.u32("step_order")?,
            });
        }
        let first = first.into_iter().min_by_key(QueuedStep::claim_order);
        Ok(first.map(|step| step.plan))
    }

    /// The plans of a project in which a session continues work although no pending step is ready: with
    /// a step of an ended session, then with a step that the session holds.
    pub async fn plans_to_continue(
        &mut self,
        project: &str,
        session: Option<&SessionId>,
        limit: u32,
    ) -> Result<Vec<PlanId>, Error> {
        let mut questions = vec![Statement::new(
            Query::PlansOrphaned,
            params![project, limit],
        )];
        if let Some(session) = session {
            let params = params![project, limit, session.as_str()];
            questions.push(Statement::new(Query::PlansHeld, params));
        }
        let rows = self.0.query(questions).await?.into_iter().flatten();
        let plans = rows.map(|row| row.cells("plans").id("plan_id").map(PlanId::new));
        plans.collect()
    }

    /// Removes the steps of a plan from the queue of its project, because the plan assigns no steps
    /// now.
    pub fn leave_queue(&mut self, plan: PlanId) {
        self.0.queue(dequeue(plan));
    }

    /// The error for a step whose row matches no state.
    async fn corrupt_step(&mut self, id: uuid::Uuid) -> Error {
        let rows = match self.0.rows(Query::Step, params![id]).await {
            Ok(rows) => rows,
            Err(why) => return why,
        };
        // Reading the row fails and names the cell, unless the cell is one that is derived.
        match step::steps(rows) {
            Err(why) => why,
            Ok(_) => Error::from(Corrupt {
                table: "steps",
                column: "status",
                row: id.to_string(),
                why: "contradicts other columns of the row".to_owned(),
            }),
        }
    }

    /// The first pending step whose open dependencies are all among `ended`, for a session that offers
    /// these labels.
    pub async fn ready_without(
        &mut self,
        ended: &[StepId],
        labels: Option<&[String]>,
    ) -> Result<Option<Step>, Error> {
        let questions = ended
            .iter()
            .map(|id| Statement::new(Query::StepsWaitingFor, params![id.as_uuid()]))
            .collect();
        let mut first: Option<Step> = None;
        for row in self.0.query(questions).await?.into_iter().flatten() {
            let (step, open) = step::step_and_open(row)?;
            let waits = step.spec.depends_on.iter();
            let freed = waits.filter(|needed| ended.contains(needed)).count();
            let is_free = usize::try_from(open).unwrap_or(usize::MAX) <= freed;
            let is_first = |first: &Step| step.claim_order() < first.claim_order();
            let can_claim = covers(labels, &step.spec.labels);
            if is_free && can_claim && first.as_ref().is_none_or(is_first) {
                first = Some(step);
            }
        }
        Ok(first)
    }

    /// Target of a `skip_to`, and the pending steps that it skips.
    pub async fn skip_target(
        &mut self,
        id: PlanId,
        after: u32,
        target: StepId,
    ) -> Result<(SkipTarget, Vec<Step>), Error> {
        let questions = vec![
            Statement::new(Query::StepPlace, params![id.as_uuid(), target.as_uuid()]),
            Statement::new(
                Query::StepsPendingBetween,
                params![id.as_uuid(), after, target.as_uuid()],
            ),
        ];
        let mut answers = self.0.query(questions).await?.into_iter();
        let Some(place) = first(answers.next(), place)? else {
            return Ok((SkipTarget::Missing, Vec::new()));
        };
        let between = step::steps(answers.next().unwrap_or_default())?;
        let skip_target = SkipTarget::Found {
            order: place.order,
            status: place.status,
            pending_between: between.iter().map(Step::id).collect(),
        };
        Ok((skip_target, between))
    }

    /// The facts for handling the stalls of a plan; locks the plan until the commit. `in_progress`
    /// contains the steps past their own threshold and the steps whose recorded times are in the
    /// future, or all steps in progress if the command overrides the threshold.
    pub async fn stalls_of(
        &mut self,
        id: PlanId,
        command: &HandleStalls,
        watcher: Option<Watcher>,
        now: Timestamp,
    ) -> Result<Option<(handle_stalls::Facts, Option<Timestamp>)>, Error> {
        let plan = id.as_uuid();
        let mut questions = self.hold(Query::PlanHeld, *plan);
        let locks = questions.len();
        questions.push(Statement::new(Query::PlanFacts, params![plan]));
        questions.push(Statement::new(Query::PlanSheet, params![plan]));
        questions.push(if command.threshold.is_some() {
            Statement::new(Query::StepsInProgress, params![plan])
        } else {
            let ahead = now.checked_add(CLOCK_TOLERANCE).unwrap_or(Timestamp::MAX);
            Statement::new(Query::StepsToCheck, params![plan, now, ahead])
        });
        questions.push(Statement::new(Query::StepNextStall, params![plan, now]));
        let mut answers = self.0.query(questions).await?.into_iter().skip(locks);
        let Some(row) = answers.next().and_then(|rows| rows.into_iter().next()) else {
            return Ok(None);
        };
        let head = self.head(&mut row.cells("plans"))?;
        let sheet = first(answers.next(), plan::sheet)?;
        let in_progress = step::steps(answers.next().unwrap_or_default())?;
        let stalls_at = |row: Row| row.cells("steps").maybe_at("stalls_at");
        let next_stall_at = first(answers.next(), stalls_at)?.flatten();
        let facts = handle_stalls::Facts {
            head,
            in_progress,
            changed_at: sheet.map_or(now, |sheet| sheet.updated_at),
            watcher,
        };
        Ok(Some((facts, next_stall_at)))
    }

    /// The facts for recording that a session resumes a plan; locks the plan until the commit.
    pub async fn resumption_of(
        &mut self,
        id: PlanId,
        session: &SessionId,
    ) -> Result<Option<resume_session::Facts>, Error> {
        let plan = id.as_uuid();
        let mut questions = self.hold(Query::PlanHeld, *plan);
        let locks = questions.len();
        questions.push(Statement::new(Query::PlanFacts, params![plan]));
        let params = params![plan, session.as_str()];
        questions.push(Statement::new(Query::ResumedSession, params));
        let mut answers = self.0.query(questions).await?.into_iter().skip(locks);
        let Some(row) = answers.next().and_then(|rows| rows.into_iter().next()) else {
            return Ok(None);
        };
        let head = self.head(&mut row.cells("plans"))?;
        Ok(Some(resume_session::Facts {
            head,
            recorded: answers.next().is_some_and(|rows| !rows.is_empty()),
        }))
    }

    /// Loads the facts of a modification. New ids ([`Needs::fresh`]) are not looked up: the caller
    /// generates them, so none of them exists yet.
    pub async fn modification(
        &mut self,
        head: PlanHead,
        needs: &Needs,
    ) -> Result<modify::Facts, Error> {
        let plan = head.id.as_uuid();
        let mut questions: Vec<Statement> = Vec::new();
        let by_id = |query, id: StepId| Statement::new(query, params![id.as_uuid()]);
        if let Some(step) = needs.step {
            questions.push(by_id(Query::Step, step));
            if needs.references {
                questions.push(by_id(Query::Dependents, step));
                questions.push(by_id(Query::BranchesNeeding, step));
            }
        }
        for id in &needs.ids {
            questions.push(Statement::new(
                Query::StepPlace,
                params![plan, id.as_uuid()],
            ));
        }
        if let Some(order) = needs.branches_after {
            questions.push(Statement::new(Query::BranchesCount, params![plan, order]));
        }
        if needs.list {
            questions.push(Statement::new(Query::StepIds, params![plan]));
        }
        if needs.outline {
            questions.push(Statement::new(Query::StepOutlines, params![plan]));
            questions.push(Statement::new(Query::BranchesAll, params![plan]));
        }
        if needs.used {
            questions.push(Statement::new(Query::EventsOfClaims, params![plan]));
        }
        for order in &needs.orders {
            questions.push(Statement::new(Query::StepAt, params![plan, *order]));
        }
        let mut answers = self.0.query(questions).await?.into_iter();
        let mut found = modify::Facts::new(head);
        if needs.step.is_some() {
            let step = first(answers.next(), step::step)?;
            let step = step.filter(|(owner, _)| *owner == found.head.id);
            found.step = step.map(|(_, step)| step);
            if needs.references {
                let dependents = ids(answers.next(), "dependencies", "step_id")?;
                found.dependents = dependents.map(StepId::new).collect();
                let needed_by = ids(answers.next(), "branch_needs", "branch_id")?;
                found.needed_by = needed_by.map(BranchId::new).collect();
            }
        }
        for id in &needs.ids {
            if let Some(step) = first(answers.next(), place)? {
                found.ids.insert(*id, step);
            }
        }
        if needs.branches_after.is_some() {
            let count = first(answers.next(), |row| row.cells("branches").u32("branches"))?;
            found.branches_after = count.map_or(0, |count| usize::try_from(count).unwrap_or(0));
        }
        if needs.list {
            let list = ids(answers.next(), "steps", "step_id")?;
            found.list = list.map(StepId::new).collect();
        }
        if needs.outline {
            let outline = answers.next().unwrap_or_default().into_iter();
            found.outline = outline.map(step::outline).collect::<Result<_, Error>>()?;
            let branches = answers.next().unwrap_or_default().into_iter();
            found.branches = branches.map(branch::branch).collect::<Result<_, Error>>()?;
        }
        if needs.used {
            let used = first(answers.next(), claims)?;
            found.used = used.unwrap_or_default();
        }
        for rows in answers {
            if let Some(step) = first(Some(rows), place)? {
                found.orders.insert(step.order, step);
            }
        }
        Ok(found)
    }
}

/// Reads a row of `events_of_claims`.
fn claims(row: Row) -> Result<Used, Error> {
    let mut cells = row.cells("events");
    Ok(Used {
        attempts: cells.u64("attempts")?,
        steps: cells.u64("steps")?,
        first_claim_at: cells.maybe_at("first_claim_at")?,
        tokens: cells.maybe_u64("tokens")?,
    })
}

/// The sets of labels that a session with these labels can claim.
fn matching_sets(rows: Vec<Row>, offered: Option<&[String]>) -> Result<Vec<Arc<str>>, Error> {
    let mut sets = Vec::new();
    for row in rows {
        let mut cells = row.cells("steps");
        let set = cells.text("labels")?;
        let labels = labels(&set).map_err(|error| cells.undecodable("labels", error))?;
        if covers(offered, &labels) {
            sets.push(set);
        }
    }
    Ok(sets)
}

pub(super) fn place(row: Row) -> Result<ReferencedStep, Error> {
    let mut cells = row.cells("steps");
    Ok(ReferencedStep {
        id: StepId::new(cells.id("step_id")?),
        order: cells.u32("step_order")?,
        status: cells.word("status")?,
    })
}
