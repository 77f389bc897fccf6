//! The execution loop: load the facts for a command, call the core, write its events.
//!
//! On PostgreSQL, a transition (`Store::transition`) locks nothing while the core decides: the
//! commit checks the plan's version, and if another writer has changed the plan, the store runs the
//! work again. Other commands (`Store::write`) lock the plan when they load its facts. On SQLite,
//! all of it runs in the one write transaction. The core decides, and computes the changed rows from
//! its events; this module contains no plan rules.

mod command;
mod evaluate;
mod log;
mod write;

use onward_core::command::{HandleStalls, StartNext};
use onward_core::decide::handle_stalls;
use onward_core::event::Created;
use onward_core::{Command, Event, StepId};
use onward_store::Tx;

use crate::error::Error;
use evaluate::{evaluate, evaluate_new_plan, evaluate_stalls, evaluate_step};
use write::commit;

pub use log::PLAN_LOG;

pub(crate) use command::{Applied, CommandContext, CommandOutcome, Target};

/// Executes a command in a transaction. `commit_seq` is the sequence number of the transaction's
/// first event if this is not the transaction's first command.
pub(crate) async fn run(
    tx: &mut Tx,
    target: Target,
    command: &Command,
    ctx: &CommandContext,
    commit_seq: Option<u64>,
) -> Result<CommandOutcome, Error> {
    match evaluate(tx, target, command, ctx).await? {
        Some(evaluation) => commit(tx, evaluation, ctx, commit_seq),
        None => Ok(CommandOutcome::NotFound),
    }
}

/// Handles the stalls of a plan whose facts this transaction has loaded.
pub(crate) fn run_loaded(
    tx: &mut Tx,
    facts: handle_stalls::Facts,
    command: &HandleStalls,
    ctx: &CommandContext,
    commit_seq: Option<u64>,
) -> Result<CommandOutcome, Error> {
    commit(
        tx,
        evaluate_stalls(facts, command, ctx.now),
        ctx,
        commit_seq,
    )
}

/// Appends events to a plan that this transaction created.
pub(crate) async fn append(
    tx: &mut Tx,
    created: &Created,
    events: Vec<Event>,
    ctx: &CommandContext,
    commit_seq: u64,
) -> Result<(), Error> {
    if let Some(evaluation) = evaluate_new_plan(tx, created, events, ctx.now).await? {
        commit(tx, evaluation, ctx, Some(commit_seq))?;
    }
    Ok(())
}

/// Executes a command on a step. With `next`, assigns the next step in the same commit if the facts
/// loaded with the step determine it; otherwise the caller requests the next step separately.
pub(crate) async fn run_and_claim(
    tx: &mut Tx,
    step: StepId,
    command: &Command,
    next: Option<&StartNext>,
    ctx: &CommandContext,
) -> Result<CommandOutcome, Error> {
    match evaluate_step(tx, step, command, next, ctx.now).await? {
        Some(evaluation) => commit(tx, evaluation, ctx, None),
        None => Ok(CommandOutcome::NotFound),
    }
}
