//! The one loop: load the facts that a command looks at, ask the core, commit what it decided.
//!
//! All of it happens in one transaction that holds the plan, so nobody changes the facts meanwhile.
//! What the rows become is what the core's own `apply` makes of them, event by event: nothing about
//! a plan is decided here.

use onward_core::command::{HandleStalls, ModifyPlan, ResumeSession, StartNext};
use onward_core::decide::{self, Settled};
use onward_core::watcher::Watcher;
use onward_core::{Command, Event, PlanHead, PlanId, Refusal, Step, StepId, Timestamp};
use onward_store::{Author, Due, Lookup, Tx, With};

use crate::error::Error;

mod write;

use write::commit;
pub(crate) use write::stalls_at;

/// What a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Plan(PlanId),
    Step(StepId),
}

/// When a command is run, by whom, and as part of which transaction.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    pub(crate) now: Timestamp,
    pub(crate) author: Author,
    /// Who watches, where a command comes from a watch that may have slept.
    pub(crate) watcher: Option<Watcher>,
}

/// What became of a command.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It was done; no events where there was nothing to change.
    Done(Done),
    /// A rule forbids it. Nothing was written.
    Refused { refusal: Refusal, head: PlanHead },
    /// There is no such plan, or no such step.
    NotFound,
}

/// A command that was done.
#[derive(Debug)]
pub(crate) struct Done {
    /// The plan's head, afterwards.
    pub(crate) head: PlanHead,
    /// The steps that were looked at, afterwards.
    pub(crate) steps: Vec<Step>,
    /// What happened.
    pub(crate) events: Vec<Event>,
    /// The number of the first event of the transaction.
    pub(crate) commit_seq: u64,
    /// When the sweep must look at the plan.
    pub(crate) due: Due,
}

impl Done {
    pub(crate) fn step(&self, id: StepId) -> Option<&Step> {
        self.steps.iter().find(|step| step.id() == id)
    }
}

/// The facts, and what the core made of them.
struct Decided {
    head: PlanHead,
    steps: Vec<Step>,
    /// It is known that no step waits for the first of these.
    frees_nobody: bool,
    /// What could be handed out before any of this, where it was looked up.
    ready: Option<Step>,
    events: Result<Vec<Event>, Refusal>,
}

/// Runs a command in a transaction. `commit_seq` is the number of the transaction's first event,
/// where this is not its first command.
pub(crate) async fn run(
    tx: &mut Tx,
    target: Target,
    command: &Command,
    moment: &Moment,
    commit_seq: Option<u64>,
) -> Result<Outcome, Error> {
    let Some(decided) = decide(tx, target, command, moment).await? else {
        return Ok(Outcome::NotFound);
    };
    if let Err(refusal) = decided.events {
        let head = decided.head;
        return Ok(Outcome::Refused { refusal, head });
    }
    let done = commit(tx, decided, moment, commit_seq)?;
    Ok(Outcome::Done(done))
}

/// Runs a command on a step, and hands out the next one in the same commit where what was looked up
/// with the step says already which that is. Whether it was handed out is the second answer; where
/// not, whoever wants the next step asks for it once more.
pub(crate) async fn run_and_claim(
    tx: &mut Tx,
    step: StepId,
    command: &Command,
    next: &StartNext,
    moment: &Moment,
) -> Result<(Outcome, bool), Error> {
    let Some(mut decided) = on_step(tx, step, command, moment.now, With::Ready).await? else {
        return Ok((Outcome::NotFound, false));
    };
    let claimed = claim_ready(&mut decided, next, moment.now)?;
    match decided.events {
        Err(refusal) => {
            let head = decided.head;
            Ok((Outcome::Refused { refusal, head }, false))
        }
        Ok(_) => Ok((Outcome::Done(commit(tx, decided, moment, None)?), claimed)),
    }
}

/// Adds the claim of the ready step to what was decided, unless that could have changed what is ready:
/// a branch was taken, somebody waited for the step, or somebody else may have to be told of a
/// person's feedback first.
fn claim_ready(decided: &mut Decided, next: &StartNext, now: Timestamp) -> Result<bool, Error> {
    let (Ok(events), Some(ready)) = (&mut decided.events, decided.ready.take()) else {
        return Ok(false);
    };
    let keeps_what_is_ready = |event: &Event| {
        matches!(
            event,
            Event::PlanResumed { .. } | Event::StepStarted { .. } | Event::StepCompleted { .. }
        )
    };
    let is_new = decided.steps.iter().all(|step| step.id() != ready.id());
    let stays = !events.is_empty() && events.iter().all(keeps_what_is_ready);
    if !(is_new && decided.frees_nobody && stays) {
        return Ok(false);
    }
    let mut head = decided.head.clone();
    for event in events.iter() {
        head.apply(event, now).map_err(misfit)?;
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
    decided.steps.push(ready);
    Ok(true)
}

async fn decide(
    tx: &mut Tx,
    target: Target,
    command: &Command,
    moment: &Moment,
) -> Result<Option<Decided>, Error> {
    match (target, command) {
        (Target::Plan(plan), Command::StartNext(command)) => {
            start_next(tx, plan, command, moment.now).await
        }
        (Target::Plan(plan), Command::ModifyPlan(command)) => {
            modify(tx, plan, command, moment.now).await
        }
        (Target::Plan(plan), Command::HandleStalls(command)) => {
            handle_stalls(tx, plan, command, moment).await
        }
        (Target::Plan(plan), Command::ResumeSession(command)) => {
            resume_session(tx, plan, command).await
        }
        (Target::Plan(plan), Command::ResumePlan) => {
            let head = tx.plan(plan).await?;
            Ok(head.map(|head| of_head(decide::resume::decide(&head, moment.now), head)))
        }
        (Target::Plan(plan), Command::AbandonPlan(command)) => {
            let head = tx.plan(plan).await?;
            Ok(head.map(|head| of_head(decide::abandon::decide(&head, command, moment.now), head)))
        }
        (Target::Plan(plan), Command::LogSkill(command)) => {
            let head = tx.plan(plan).await?;
            Ok(head.map(|head| of_head(Ok(decide::log_skill::decide(command)), head)))
        }
        (Target::Plan(plan), Command::KeepLateResult(command)) => {
            let head = tx.plan(plan).await?;
            Ok(head.map(|head| of_head(Ok(decide::keep_late_result::decide(command)), head)))
        }
        (Target::Step(step), command) => {
            let may_end = matches!(command, Command::SubmitResult(_) | Command::DecideReview(_));
            let with = if may_end { With::Branches } else { With::Head };
            on_step(tx, step, command, moment.now, with).await
        }
        (Target::Plan(_), _) => Ok(None),
    }
}

fn of_head(events: Result<Vec<Event>, Refusal>, head: PlanHead) -> Decided {
    Decided {
        head,
        steps: Vec::new(),
        frees_nobody: false,
        ready: None,
        events,
    }
}

async fn on_step(
    tx: &mut Tx,
    id: StepId,
    command: &Command,
    now: Timestamp,
    with: With,
) -> Result<Option<Decided>, Error> {
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
            decide::report_progress::decide(&facts, command, now).map(Settled::Events)
        }
        Command::RequestReview(command) => {
            let facts = decide::request_review::Facts { plan, step };
            decide::request_review::decide(&facts, command, now).map(Settled::Events)
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
        Ok(Settled::Events(events)) => Ok(events),
        Ok(Settled::Skips(skip)) => {
            let order = steps.first().map_or(0, |step| step.order);
            let (landing, passed) = tx.landing(facts.head.id, order, skip.target()).await?;
            steps.extend(passed);
            skip.land(landing)
        }
    };
    Ok(Some(Decided {
        head: facts.head,
        steps,
        frees_nobody: !facts.needed,
        ready: facts.ready,
        events,
    }))
}

async fn start_next(
    tx: &mut Tx,
    plan: PlanId,
    command: &StartNext,
    now: Timestamp,
) -> Result<Option<Decided>, Error> {
    let Some(mut facts) = tx
        .next_of(plan, command.include_stalled.then_some(now))
        .await?
    else {
        return Ok(None);
    };
    let stalled: Vec<&Step> = facts.stalled.iter().collect();
    let used_up = decide::start_next::used_up(&stalled);
    if !used_up.is_empty() {
        // What will fail in the same breath holds nobody up any more.
        let freed = tx.ready_without(&used_up).await?;
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
    Ok(Some(Decided {
        head: facts.head,
        steps,
        frees_nobody: false,
        ready: None,
        events,
    }))
}

async fn modify(
    tx: &mut Tx,
    plan: PlanId,
    command: &ModifyPlan,
    now: Timestamp,
) -> Result<Option<Decided>, Error> {
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
            // The engine makes the ids itself, so none of them is taken.
            taken: &[],
            orders: &found.orders,
            target: found.target,
            branches_after: found.branches_after,
            list: &found.list,
        },
        command,
        now,
    );
    Ok(Some(Decided {
        head,
        steps: found.step.into_iter().collect(),
        frees_nobody: false,
        ready: None,
        events,
    }))
}

async fn handle_stalls(
    tx: &mut Tx,
    plan: PlanId,
    command: &HandleStalls,
    moment: &Moment,
) -> Result<Option<Decided>, Error> {
    let Some((head, stalled)) = tx.stalls_of(plan, moment.now).await? else {
        return Ok(None);
    };
    // With another threshold than their own, any of them may be past it.
    let steps = match command.threshold {
        Some(_) => tx.in_progress(plan).await?,
        None => stalled,
    };
    let in_progress: Vec<&Step> = steps.iter().collect();
    let facts = decide::handle_stalls::Facts {
        plan: &head,
        in_progress: &in_progress,
        watcher: moment.watcher.as_ref(),
    };
    let events = decide::handle_stalls::decide(&facts, command, moment.now);
    Ok(Some(Decided {
        head,
        steps,
        frees_nobody: false,
        ready: None,
        events,
    }))
}

async fn resume_session(
    tx: &mut Tx,
    plan: PlanId,
    command: &ResumeSession,
) -> Result<Option<Decided>, Error> {
    let Some(head) = tx.plan(plan).await? else {
        return Ok(None);
    };
    let seen = tx.has_resumed(plan, &command.session).await?;
    let facts = decide::resume_session::Facts { plan: &head, seen };
    let events = decide::resume_session::decide(&facts, command);
    Ok(Some(of_head(Ok(events), head)))
}

fn misfit(why: impl std::fmt::Display) -> Error {
    Error::Store(onward_store::Error::Refused(format!(
        "what was decided does not fit what was loaded: {why}"
    )))
}
