//! The execution loop: load the facts for a command, call the core, write its events.
//!
//! On PostgreSQL, a transition (`Store::advance`) locks nothing while the core decides: the commit
//! checks the plan's version, and if another writer has changed the plan, the store runs the work
//! again. Other commands (`Store::write`) lock the plan when they load its facts. On SQLite, all of
//! it runs in the one write transaction. The core's `apply` computes the new rows from the events;
//! this module contains no plan rules.

mod command;
mod evaluate;
mod write;

use onward_core::command::StartNext;
use onward_core::{Command, Event, StepId, Timestamp, decide};
use onward_store::{Tx, With};

use crate::error::Error;
use command::inconsistent_decision;
use evaluate::{Evaluation, evaluate, evaluate_step};
use write::commit;

pub(crate) use command::{Applied, CommandContext, CommandOutcome, Target};
pub(crate) use write::stalls_at;

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
