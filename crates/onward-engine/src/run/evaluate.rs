//! First half of the execution loop: loads the facts for a command and calls the core.

use onward_core::command::{HandleStalls, ModifyPlan, ResumeSession, StartNext};
use onward_core::decide;
use onward_core::{Command, Event, PlanHead, PlanId, Refusal, Step, StepId, Timestamp};
use onward_store::{Facts, Lookup, Tx, With};

use super::command::{CommandContext, Target};
use crate::error::Error;

/// The loaded facts and the core's decision.
pub(super) struct Evaluation {
    pub(super) head: PlanHead,
    pub(super) steps: Vec<Step>,
    /// No other step depends on the first step in `steps`.
    pub(super) no_dependents: bool,
    /// The step that was ready before the command, if it was loaded.
    pub(super) ready: Option<Step>,
    pub(super) events: Result<Vec<Event>, Refusal>,
}

pub(super) async fn evaluate(
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
            let head = Facts(tx).plan(plan).await?;
            Ok(head.map(|head| evaluate_head(decide::resume::decide(&head, ctx.now), head)))
        }
        (Target::Plan(plan), Command::AbandonPlan(command)) => {
            let head = Facts(tx).plan(plan).await?;
            Ok(head
                .map(|head| evaluate_head(decide::abandon::decide(&head, command, ctx.now), head)))
        }
        (Target::Plan(plan), Command::LogSkill(command)) => {
            let head = Facts(tx).plan(plan).await?;
            Ok(head.map(|head| evaluate_head(Ok(decide::log_skill::decide(command)), head)))
        }
        (Target::Plan(plan), Command::KeepLateResult(command)) => {
            let head = Facts(tx).plan(plan).await?;
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

pub(super) async fn evaluate_step(
    tx: &mut Tx,
    id: StepId,
    command: &Command,
    now: Timestamp,
    with: With,
) -> Result<Option<Evaluation>, Error> {
    let Some(facts) = Facts(tx).step(id, with).await? else {
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
            let (landing, passed) = Facts(tx)
                .landing(facts.head.id, order, skip.target())
                .await?;
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
    let Some(mut facts) = Facts(tx)
        .next_of(plan, command.include_stalled.then_some(now))
        .await?
    else {
        return Ok(None);
    };
    let stalled: Vec<&Step> = facts.stalled.iter().collect();
    let exhausted = decide::start_next::exhausted(&stalled);
    if !exhausted.is_empty() {
        // Steps that fail in this commit no longer block the steps that depend on them.
        let freed = Facts(tx).ready_without(&exhausted).await?;
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
    let Some(head) = Facts(tx).plan(plan).await? else {
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
    let found = Facts(tx).look_up(plan, &lookup).await?;
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
    let Some((head, stalled)) = Facts(tx).stalls_of(plan, ctx.now).await? else {
        return Ok(None);
    };
    // With an overriding threshold, any step in progress may be stalled.
    let steps = match command.threshold {
        Some(_) => Facts(tx).in_progress(plan).await?,
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
    let Some(head) = Facts(tx).plan(plan).await? else {
        return Ok(None);
    };
    let seen = Facts(tx).has_resumed(plan, &command.session).await?;
    let facts = decide::resume_session::Facts {
        plan: &head,
        recorded: seen,
    };
    let events = decide::resume_session::decide(&facts, command);
    Ok(Some(evaluate_head(Ok(events), head)))
}
