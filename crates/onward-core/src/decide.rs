//! Decisions: facts, a command and `now` in; events or a refusal out. One file per command.
//!
//! Each module declares the facts that it needs: the plan's head with its counts, the step, its
//! branches. A program that stores plans loads these few rows, calls `decide` and commits the
//! returned events; the cost does not depend on the size of the plan. Nothing here reads a clock,
//! creates an id or blocks. An empty list of events means that there is nothing to change, for
//! example because the command is a repetition.
//!
//! [`decide`] takes the facts from a [`Plan`] in memory.

pub mod abandon;
mod check;
mod claim;
pub mod create;
mod draft;
mod finish;
pub mod handle_stalls;
pub mod keep_late_result;
pub mod log_skill;
pub mod modify;
pub mod report_progress;
pub mod report_skill;
pub mod request_review;
mod resolve;
pub mod resume;
pub mod resume_session;
pub mod review;
pub mod start_next;
pub mod submit;

pub use finish::{Outcome, PendingSkip, SkipTarget};
pub use resolve::{OrderFacts, ReferencedStep};

use crate::apply::Plan;
use crate::command::{Command, ModifyPlan, StartNext};
use crate::event::Event;
use crate::id::StepId;
use crate::refusal::Refusal;
use crate::step::{Step, StepStatus};
use crate::time::Timestamp;

/// Decides a command on a plan in memory.
pub fn decide(plan: &Plan, command: &Command, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let head = plan.head();
    match command {
        Command::StartNext(command) => start_next(plan, command, now),
        Command::SubmitResult(command) => {
            let step = find_step(plan, command.step)?;
            let branches = plan.branches_after(step.id());
            let outcome = submit::decide(
                &submit::Facts {
                    plan: head,
                    step,
                    branches,
                },
                command,
                now,
            )?;
            outcome.resolve(|skip| skip_target(plan, step, skip))
        }
        Command::ReportProgress(command) => {
            let step = find_step(plan, command.step)?;
            report_progress::decide(&report_progress::Facts { plan: head, step }, command, now)
        }
        Command::RequestReview(command) => {
            let step = find_step(plan, command.step)?;
            request_review::decide(&request_review::Facts { plan: head, step }, command, now)
        }
        Command::DecideReview(command) => {
            let step = find_step(plan, command.step)?;
            let branches = plan.branches_after(step.id());
            let outcome = review::decide(
                &review::Facts {
                    plan: head,
                    step,
                    branches,
                },
                command,
                now,
            )?;
            outcome.resolve(|skip| skip_target(plan, step, skip))
        }
        Command::ModifyPlan(command) => modify(plan, command, now),
        Command::HandleStalls(command) => {
            let steps: Vec<&Step> = plan.in_progress().collect();
            let facts = handle_stalls::Facts {
                plan: head,
                in_progress: &steps,
                watcher: None,
            };
            handle_stalls::decide(&facts, command, now)
        }
        Command::ResumePlan => resume::decide(head, now),
        Command::AbandonPlan(command) => abandon::decide(head, command, now),
        Command::ResumeSession(command) => {
            let seen = plan.has_resumed(&command.session);
            Ok(resume_session::decide(
                &resume_session::Facts {
                    plan: head,
                    recorded: seen,
                },
                command,
            ))
        }
        Command::LogSkill(command) => Ok(log_skill::decide(command)),
        Command::KeepLateResult(command) => Ok(keep_late_result::decide(command)),
    }
}

fn find_step(plan: &Plan, step: StepId) -> Result<&Step, Refusal> {
    plan.step(step).ok_or(Refusal::StepNotFound(step))
}

fn start_next(plan: &Plan, command: &StartNext, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let stalled: Vec<&Step> = if command.include_stalled {
        plan.stalled_steps(now, None).collect()
    } else {
        Vec::new()
    };
    let used_up = start_next::exhausted(&stalled);
    let ready = plan.index().first_ready(plan.steps(), &used_up);
    let facts = start_next::Facts {
        plan: plan.head(),
        undelivered: plan.undelivered(),
        stalled: &stalled,
        ready: ready.and_then(|order| plan.step_at(order)),
    };
    start_next::decide(&facts, command, now)
}

fn skip_target(plan: &Plan, step: &Step, skip: &PendingSkip) -> SkipTarget {
    let Some(target) = plan.step(skip.target()) else {
        return SkipTarget::Missing;
    };
    let between = (step.order.saturating_add(1)..target.order)
        .filter_map(|order| plan.step_at(order))
        .filter(|between| between.status() == StepStatus::Pending)
        .map(Step::id)
        .collect();
    SkipTarget::Found {
        order: target.order,
        status: target.status(),
        pending_between: between,
    }
}

fn modify(plan: &Plan, command: &ModifyPlan, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let needs = modify::needs(&command.modification, plan.head());
    let step = match needs.step {
        Some(id) => Some(find_step(plan, id)?),
        None => None,
    };
    let removable = step.filter(|_| needs.references);
    let orders: OrderFacts = needs
        .orders
        .into_iter()
        .filter_map(|order| Some((order, ReferencedStep::new(plan.step_at(order)?))))
        .collect();
    let taken: Vec<StepId> = needs
        .fresh
        .into_iter()
        .filter(|id| plan.index().is_taken(*id))
        .collect();
    let branches_after = needs.branches_after.and_then(|order| plan.step_at(order));
    let list: Vec<StepId> = if needs.list {
        plan.steps().iter().map(Step::id).collect()
    } else {
        Vec::new()
    };
    let facts = modify::Facts {
        plan: plan.head(),
        step,
        dependents: removable.map_or(&[], |step| plan.index().dependents(step.id())),
        needed_by: removable.map_or(&[], |step| plan.index().needed_by(step.id())),
        taken: &taken,
        orders: &orders,
        target: needs
            .target
            .and_then(|id| plan.step(id))
            .map(ReferencedStep::new),
        branches_after: branches_after.map_or(0, |step| plan.branches_after(step.id()).len()),
        list: &list,
    };
    modify::decide(&facts, command, now)
}
