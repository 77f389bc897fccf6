//! Decisions: facts, a command and `now` in; events or a refusal out. One file per command.
//!
//! Each command needs few facts: the plan's head with its counts, the step, its branches. A program
//! that stores plans loads these rows, calls `decide` and commits the returned events; the cost does
//! not depend on the size of the plan. Nothing here reads a clock, creates an id or blocks. An empty
//! list of events means that there is nothing to change, for example because the command is a
//! repetition.
//!
//! [`decide`] takes the facts from a [`Plan`] in memory.

pub mod abandon;
mod answers;
mod approval;
mod check;
mod claim;
pub mod count_tokens;
pub mod create;
mod draft;
mod facts;
mod finish;
pub mod fork;
mod gates;
pub mod handle_stalls;
pub mod keep_late_result;
pub mod log_skill;
pub mod modify;
pub mod orphan_step;
pub mod report_progress;
pub mod report_skill;
pub mod request_review;
mod resolve;
pub mod resume;
pub mod resume_session;
pub mod review;
pub mod start_next;
pub mod start_step;
pub mod submit;

pub use claim::calling_session;
pub use facts::{NextFacts, StepFacts, With};
pub use finish::{Outcome, PendingSkip, SkipTarget};
pub use resolve::{IdFacts, OrderFacts, ReferencedStep};

use crate::apply::Plan;
use crate::command::Command;
use crate::event::Event;
use crate::id::StepId;
use crate::refusal::Refusal;
use crate::step::{Step, StepStatus};
use crate::time::Timestamp;

/// Decides a command on a plan in memory.
pub fn decide(plan: &Plan, command: &Command, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let head = plan.head();
    match command {
        Command::StartNext(command) => {
            let stalled_at = command.include_stalled.then_some(now);
            let session = command.session.as_ref();
            let labels = command.labels.as_deref();
            let facts = NextFacts::from_plan(plan, session, stalled_at, labels);
            start_next::decide(&facts, command, now)
        }
        Command::StartStep(command) => {
            let facts = step_facts(plan, command.step, With::Head)?;
            start_step::decide(&facts, command, now)
        }
        Command::SubmitResult(command) => {
            let facts = step_facts(plan, command.step, submit::FACTS)?;
            let outcome = submit::decide(&facts, command, now)?;
            outcome.resolve(|skip| skip_target(plan, &facts.step, skip))
        }
        Command::ReportProgress(command) => {
            let facts = step_facts(plan, command.step, With::Head)?;
            report_progress::decide(&facts, command, now)
        }
        Command::RequestReview(command) => {
            let facts = step_facts(plan, command.step, With::Head)?;
            request_review::decide(&facts, command, now)
        }
        Command::DecideReview(command) => {
            let facts = step_facts(plan, command.step, review::FACTS)?;
            let outcome = review::decide(&facts, command, now)?;
            outcome.resolve(|skip| skip_target(plan, &facts.step, skip))
        }
        Command::ModifyPlan(command) => {
            let needs = modify::needs(&command.modification, head);
            modify::decide(&modify::Facts::from_plan(plan, &needs), command, now)
        }
        Command::HandleStalls(command) => {
            let facts = handle_stalls::Facts::from_plan(plan);
            handle_stalls::decide(&facts, command, now)
        }
        Command::CountTokens(command) => count_tokens::decide(head, command, now),
        Command::ResumePlan => resume::decide(head, now),
        Command::AbandonPlan(command) => abandon::decide(head, command, now),
        Command::ResumeSession(command) => {
            let facts = resume_session::Facts::from_plan(plan, &command.session);
            Ok(resume_session::decide(&facts, command))
        }
        Command::OrphanStep(command) => {
            let facts = step_facts(plan, command.step, With::Head)?;
            Ok(orphan_step::decide(&facts, command))
        }
        Command::LogSkill(command) => Ok(log_skill::decide(command)),
        Command::KeepLateResult(command) => Ok(keep_late_result::decide(command)),
    }
}

fn step_facts(plan: &Plan, step: StepId, with: With) -> Result<StepFacts, Refusal> {
    StepFacts::from_plan(plan, step, with).ok_or(Refusal::StepNotFound(step))
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
