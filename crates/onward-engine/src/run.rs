//! The execution loop: load the facts for a command, call the core, write its events.
//!
//! On PostgreSQL, a transition (`Store::advance`) locks nothing while the core decides: the commit
//! checks the plan's version, and if another writer has changed the plan, the store runs the work
//! again. Other commands (`Store::write`) lock the plan when they load its facts. On SQLite, all of
//! it runs in the one write transaction. The core's `apply` computes the new rows from the events;
//! this module contains no plan rules.

use onward_core::command::{HandleStalls, ModifyPlan, ResumeSession, StartNext};
use onward_core::decide;
use onward_core::watcher::Watcher;
use onward_core::{Command, Event, PlanHead, PlanId, Refusal, Step, StepId, Timestamp};
use onward_store::{Author, Due, Lookup, Tx, With};

use crate::error::Error;

mod write;

use write::commit;
pub(crate) use write::stalls_at;

/// The plan or step that a command applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Plan(PlanId),
    Step(StepId),
}

/// Time, author and monitor of a command.
#[derive(Debug, Clone)]
pub(crate) struct CommandContext {
    pub(crate) now: Timestamp,
    pub(crate) author: Author,
    /// The monitor that issued the command, if it may have been asleep.
    pub(crate) watcher: Option<Watcher>,
}

/// Result of executing a command.
#[derive(Debug)]
pub(crate) enum CommandOutcome {
    /// The core accepted the command. `events` is empty if there was nothing to change.
    Applied(Applied),
    /// A rule rejects the command. Nothing was written.
    Rejected { refusal: Refusal, head: PlanHead },
    /// The plan or step does not exist.
    NotFound,
}

/// An accepted command.
#[derive(Debug)]
pub(crate) struct Applied {
    /// The plan's head after the command.
    pub(crate) head: PlanHead,
    /// The loaded steps after the command.
    pub(crate) steps: Vec<Step>,
    /// The events of the command.
    pub(crate) events: Vec<Event>,
    /// Sequence number of the transaction's first event.
    pub(crate) commit_seq: u64,
    /// When the sweep must check the plan next.
    pub(crate) due: Due,
}

impl Applied {
    pub(crate) fn step(&self, id: StepId) -> Option<&Step> {
        self.steps.iter().find(|step| step.id() == id)
    }
}

/// The loaded facts and the core's decision.
struct Evaluation {
    head: PlanHead,
    steps: Vec<Step>,
    /// No other step depends on the first step in `steps`.
    no_dependents: bool,
    /// The step that was ready before the command, if it was loaded.
    ready: Option<Step>,
    events: Result<Vec<Event>, Refusal>,
}

/// Executes a command in a transaction. `commit_seq` is the sequence number of the transaction's
/// first event if this is not the transaction's first command.
pub(crate) async fn run(
    tx: &mut Tx,
    target: Target,
    command: &Command,
    ctx: &CommandContext,
    commit_seq: Option<u64>,
) -> Result<CommandOutcome, Error> {
    let Some(evaluation) = evaluate(tx, target, command, ctx).await? else {
        return Ok(CommandOutcome::NotFound);
    };
    if let Err(refusal) = evaluation.events {
        let head = evaluation.head;
        return Ok(CommandOutcome::Rejected { refusal, head });
    }
    let done = commit(tx, evaluation, ctx, commit_seq)?;
    Ok(CommandOutcome::Applied(done))
}

/// Executes a command on a step, and assigns the next step in the same commit if the facts loaded
/// with the step determine it. The second value is true if a step was assigned. Otherwise the
/// caller requests the next step separately.
pub(crate) async fn run_and_claim(
    tx: &mut Tx,
    step: StepId,
    command: &Command,
    next: &StartNext,
    ctx: &CommandContext,
) -> Result<(CommandOutcome, bool), Error> {
    let Some(mut evaluation) = evaluate_step(tx, step, command, ctx.now, With::Ready).await? else {
        return Ok((CommandOutcome::NotFound, false));
    };
    let claimed = claim_ready(&mut evaluation, next, ctx.now)?;
    match evaluation.events {
        Err(refusal) => {
            let head = evaluation.head;
            Ok((CommandOutcome::Rejected { refusal, head }, false))
        }
        Ok(_) => Ok((
            CommandOutcome::Applied(commit(tx, evaluation, ctx, None)?),
            claimed,
        )),
    }
}

/// Adds the claim of the ready step to the decision, unless the command may have changed which step
/// is ready: a branch was taken, other steps depend on this step, or undelivered review feedback
/// takes precedence.
fn claim_ready(
    evaluation: &mut Evaluation,
    next: &StartNext,
    now: Timestamp,
) -> Result<bool, Error> {
    let (Ok(events), Some(ready)) = (&mut evaluation.events, evaluation.ready.take()) else {
        return Ok(false);
    };
    let preserves_readiness = |event: &Event| {
        matches!(
            event,
            Event::PlanResumed { .. } | Event::StepStarted { .. } | Event::StepCompleted { .. }
        )
    };
    let is_new = evaluation.steps.iter().all(|step| step.id() != ready.id());
    let readiness_preserved = !events.is_empty() && events.iter().all(preserves_readiness);
    if !(is_new && evaluation.no_dependents && readiness_preserved) {
        return Ok(false);
    }
    let mut head = evaluation.head.clone();
    for event in events.iter() {
        head.apply(event, now).map_err(inconsistent_decision)?;
    }
    if head.counts.in_progress > 0 || head.counts.awaiting_input > 0 {
        return Ok(false);
    }
    let facts = decide::start_next::Facts {
        plan: &head,
        undelivered: None,
        stalled: &[],
        ready: Some(&ready),
    };
    events.extend(decide::start_next::decide(&facts, next, now)?);
    evaluation.steps.push(ready);
    Ok(true)
}

async fn evaluate(
    tx: &mut Tx,
    target: Target,
    command: &Command,
    ctx: &CommandContext,
) -> Result<Option<Evaluation>, Error> {
    match (target, command) {
        (Target::Plan(plan), Command::StartNext(command)) => {
            start_next(tx, plan, command, ctx.now).await
        }
        (Target::Plan(plan), Command::ModifyPlan(command)) => {
            modify(tx, plan, command, ctx.now).await
        }
        (Target::Plan(plan), Command::HandleStalls(command)) => {
            handle_stalls(tx, plan, command, ctx).await
        }
        (Target::Plan(plan), Command::ResumeSession(command)) => {
            resume_session(tx, plan, command).await
        }
        (Target::Plan(plan), Command::ResumePlan) => {
            let head = tx.plan(plan).await?;
            Ok(head.map(|head| evaluate_head(decide::resume::decide(&head, ctx.now), head)))
        }
        (Target::Plan(plan), Command::AbandonPlan(command)) => {
            let head = tx.plan(plan).await?;
            Ok(head
                .map(|head| evaluate_head(decide::abandon::decide(&head, command, ctx.now), head)))
        }
        (Target::Plan(plan), Command::LogSkill(command)) => {
            let head = tx.plan(plan).await?;
            Ok(head.map(|head| evaluate_head(Ok(decide::log_skill::decide(command)), head)))
        }
        (Target::Plan(plan), Command::KeepLateResult(command)) => {
            let head = tx.plan(plan).await?;
            Ok(head.map(|head| evaluate_head(Ok(decide::keep_late_result::decide(command)), head)))
        }
        (Target::Step(step), command) => {
            let may_end = matches!(command, Command::SubmitResult(_) | Command::DecideReview(_));
            let with = if may_end { With::Branches } else { With::Head };
            evaluate_step(tx, step, command, ctx.now, with).await
        }
        (Target::Plan(_), _) => Ok(None),
    }
}

fn evaluate_head(events: Result<Vec<Event>, Refusal>, head: PlanHead) -> Evaluation {
    Evaluation {
        head,
        steps: Vec::new(),
        no_dependents: false,
        ready: None,
        events,
    }
}

async fn evaluate_step(
    tx: &mut Tx,
    id: StepId,
    command: &Command,
    now: Timestamp,
    with: With,
) -> Result<Option<Evaluation>, Error> {
    let Some(facts) = tx.step(id, with).await? else {
        return Ok(None);
    };
    let (plan, step, branches) = (&facts.head, &facts.step, facts.branches.as_slice());
    let settled = match command {
        Command::SubmitResult(command) => {
            let facts = decide::submit::Facts {
                plan,
                step,
                branches,
            };
            decide::submit::decide(&facts, command, now)
        }
        Command::DecideReview(command) => {
            let facts = decide::review::Facts {
                plan,
                step,
                branches,
            };
            decide::review::decide(&facts, command, now)
        }
        Command::ReportProgress(command) => {
            let facts = decide::report_progress::Facts { plan, step };
            decide::report_progress::decide(&facts, command, now).map(decide::Outcome::Events)
        }
        Command::RequestReview(command) => {
            let facts = decide::request_review::Facts { plan, step };
            decide::request_review::decide(&facts, command, now).map(decide::Outcome::Events)
        }
        Command::StartNext(_)
        | Command::ModifyPlan(_)
        | Command::HandleStalls(_)
        | Command::ResumePlan
        | Command::AbandonPlan(_)
        | Command::ResumeSession(_)
        | Command::LogSkill(_)
        | Command::KeepLateResult(_) => return Ok(None),
    };
    let mut steps = vec![facts.step];
    let events = match settled {
        Err(refusal) => Err(refusal),
        Ok(decide::Outcome::Events(events)) => Ok(events),
        Ok(decide::Outcome::SkipTo(skip)) => {
            let order = steps.first().map_or(0, |step| step.order);
            let (landing, passed) = tx.landing(facts.head.id, order, skip.target()).await?;
            steps.extend(passed);
            skip.resolve(landing)
        }
    };
    Ok(Some(Evaluation {
        head: facts.head,
        steps,
        no_dependents: !facts.needed,
        ready: facts.ready,
        events,
    }))
}

async fn start_next(
    tx: &mut Tx,
    plan: PlanId,
    command: &StartNext,
    now: Timestamp,
) -> Result<Option<Evaluation>, Error> {
    let Some(mut facts) = tx
        .next_of(plan, command.include_stalled.then_some(now))
        .await?
    else {
        return Ok(None);
    };
    let stalled: Vec<&Step> = facts.stalled.iter().collect();
    let exhausted = decide::start_next::exhausted(&stalled);
    if !exhausted.is_empty() {
        // Steps that fail in this commit no longer block the steps that depend on them.
        let freed = tx.ready_without(&exhausted).await?;
        let ready = facts.ready.take().into_iter().chain(freed);
        facts.ready = ready.min_by_key(|step| step.order);
    }
    let stalled: Vec<&Step> = facts.stalled.iter().collect();
    let events = decide::start_next::decide(
        &decide::start_next::Facts {
            plan: &facts.head,
            undelivered: facts.undelivered.as_ref(),
            stalled: &stalled,
            ready: facts.ready.as_ref(),
        },
        command,
        now,
    );
    let mut steps = facts.stalled;
    for step in facts.undelivered.into_iter().chain(facts.ready) {
        if steps.iter().all(|known| known.id() != step.id()) {
            steps.push(step);
        }
    }
    Ok(Some(Evaluation {
        head: facts.head,
        steps,
        no_dependents: false,
        ready: None,
        events,
    }))
}

async fn modify(
    tx: &mut Tx,
    plan: PlanId,
    command: &ModifyPlan,
    now: Timestamp,
) -> Result<Option<Evaluation>, Error> {
    let Some(head) = tx.plan(plan).await? else {
        return Ok(None);
    };
    let needs = decide::modify::needs(&command.modification, &head);
    let lookup = Lookup {
        step: needs.step,
        references: needs.references,
        orders: needs.orders.into_iter().collect(),
        target: needs.target,
        branches_after: needs.branches_after,
        list: needs.list,
    };
    let found = tx.look_up(plan, &lookup).await?;
    let events = decide::modify::decide(
        &decide::modify::Facts {
            plan: &head,
            step: found.step.as_ref(),
            dependents: &found.dependents,
            needed_by: &found.needed_by,
            // The engine generates the ids, so none of them exists yet.
            taken: &[],
            orders: &found.orders,
            target: found.target,
            branches_after: found.branches_after,
            list: &found.list,
        },
        command,
        now,
    );
    Ok(Some(Evaluation {
        head,
        steps: found.step.into_iter().collect(),
        no_dependents: false,
        ready: None,
        events,
    }))
}

async fn handle_stalls(
    tx: &mut Tx,
    plan: PlanId,
    command: &HandleStalls,
    ctx: &CommandContext,
) -> Result<Option<Evaluation>, Error> {
    let Some((head, stalled)) = tx.stalls_of(plan, ctx.now).await? else {
        return Ok(None);
    };
    // With an overriding threshold, any step in progress may be stalled.
    let steps = match command.threshold {
        Some(_) => tx.in_progress(plan).await?,
        None => stalled,
    };
    let in_progress: Vec<&Step> = steps.iter().collect();
    let facts = decide::handle_stalls::Facts {
        plan: &head,
        in_progress: &in_progress,
        watcher: ctx.watcher.as_ref(),
    };
    let events = decide::handle_stalls::decide(&facts, command, ctx.now);
    Ok(Some(Evaluation {
        head,
        steps,
        no_dependents: false,
        ready: None,
        events,
    }))
}

async fn resume_session(
    tx: &mut Tx,
    plan: PlanId,
    command: &ResumeSession,
) -> Result<Option<Evaluation>, Error> {
    let Some(head) = tx.plan(plan).await? else {
        return Ok(None);
    };
    let seen = tx.has_resumed(plan, &command.session).await?;
    let facts = decide::resume_session::Facts {
        plan: &head,
        recorded: seen,
    };
    let events = decide::resume_session::decide(&facts, command);
    Ok(Some(evaluate_head(Ok(events), head)))
}

fn inconsistent_decision(error: impl std::fmt::Display) -> Error {
    Error::Store(onward_store::Error::Refused(format!(
        "the decision does not match the loaded facts: {error}"
    )))
}
