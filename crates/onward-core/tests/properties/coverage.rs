//! Coverage of the random walks: they must reach every event, rejection and status often enough.
//!
//! The walks are deterministic. If a minimum is no longer reached, the generator has become worse:
//! improve it and do not lower the minimum.

use std::collections::BTreeMap;

use onward_core::branch::{Effect, NoEffect};
use onward_core::condition::Condition;
use onward_core::event::{DecidedBy, ReviewAction};
use onward_core::plan::PlanFailure;
use onward_core::step::{FailReason, SkipCause};
use onward_core::{Code, Event, PlanStatus};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::walk::{Walk, walks};

const WALKS: usize = 400;

/// Every event that a decision can emit, with its minimum count.
const EVENTS: [(&str, usize); 70] = [
    ("plan_modified add_steps", 40),
    ("plan_modified remove_step", 15),
    ("plan_modified reorder_steps", 40),
    ("plan_modified update_step_instructions", 40),
    ("plan_modified rename_step", 40),
    ("plan_modified update_step", 30),
    ("plan_modified update_plan", 30),
    ("plan_modified set_budget", 30),
    ("plan_modified fail_step", 40),
    ("plan_modified skip_step", 15),
    ("plan_modified requeue_step", 40),
    ("plan_modified add_branch", 80),
    ("plan_modified redo_step", 20),
    ("step_started first attempt", 400),
    ("step_started later attempt", 80),
    ("step_completed in_progress", 150),
    ("step_completed awaiting_input", 20),
    ("step_failed manual", 40),
    ("step_failed stalled", 40),
    ("step_failed attempts exhausted", 40),
    ("step_failed rejected", 8),
    ("step_skipped by branch", 5),
    ("step_skipped by review", 15),
    ("step_skipped by person", 15),
    ("step_requeued by_hand", 30),
    ("step_requeued stalled", 40),
    ("step_requeued taken_over", 20),
    ("step_requeued approved", 15),
    ("step_progressed reported", 60),
    ("step_progressed written", 15),
    ("step_progressed seen", 10),
    ("step_progressed feedback_delivered", 9),
    ("branch_taken continue", 10),
    ("branch_taken skip_to", 15),
    ("branch_taken skip_to: not pending", 8),
    ("branch_taken skip_to: not after", 1),
    ("branch_taken add_steps", 30),
    ("branch_taken fail", 8),
    ("user_reviewed review_requested", 80),
    ("user_reviewed result submitted", 10),
    ("user_reviewed approve", 20),
    ("user_reviewed modify", 20),
    ("user_reviewed skip", 15),
    ("user_reviewed reject", 8),
    ("user_reviewed by link", 8),
    ("user_reviewed by policy", 8),
    ("step_orphaned", 15),
    ("session_resumed", 30),
    ("skill_started", 30),
    ("skill_completed without error", 30),
    ("skill_completed with error", 40),
    ("budget_exhausted", 20),
    ("plan_stalled by budget", 15),
    ("plan_stalled one step", 40),
    ("plan_stalled several steps", 10),
    ("plan_resumed next_step", 15),
    ("plan_resumed late_result", 15),
    ("plan_resumed progress", 3),
    ("plan_resumed person", 20),
    ("plan_resumed review", 3),
    ("plan_resumed budget", 1),
    ("plan_completed", 40),
    ("plan_failed by branch", 8),
    ("plan_failed rejected", 8),
    ("plan_failed abandoned", 10),
    ("plan_status_changed planning", 100),
    ("plan_status_changed executing", 40),
    ("plan_status_changed awaiting_review", 20),
    ("late_result_kept", 100),
    ("no event", 400),
];

/// The name of an event, with its cause or variant.
fn label(event: &Event) -> String {
    let name = event.name();
    let detail = match event {
        Event::StepStarted { claim, .. } if claim.attempt == 1 => "first attempt",
        Event::StepStarted { .. } => "later attempt",
        Event::StepCompleted { from, .. } => from.as_str(),
        Event::StepFailed { reason, .. } => match reason {
            FailReason::Manual(_) => "manual",
            FailReason::Stalled => "stalled",
            FailReason::AttemptsExhausted => "attempts exhausted",
            FailReason::Rejected(_) => "rejected",
        },
        Event::StepSkipped { by, .. } => match by {
            SkipCause::Branch(_) => "by branch",
            SkipCause::Review(_) => "by review",
            SkipCause::Person => "by person",
        },
        Event::StepRequeued { reason, .. } => reason.as_str(),
        Event::BranchTaken {
            effect: Effect::Nothing { reason },
            ..
        } => match reason {
            NoEffect::TargetMissing => "skip_to: missing",
            NoEffect::TargetNotPending => "skip_to: not pending",
            NoEffect::TargetNotAfter => "skip_to: not after",
            NoEffect::PlanFull => "add_steps: full",
        },
        Event::SkillCompleted { error: None, .. } => "without error",
        Event::SkillCompleted { error: Some(_), .. } => "with error",
        Event::PlanStalled { stalls } if stalls.is_empty() => "by budget",
        Event::PlanStalled { stalls } if stalls.len() == 1 => "one step",
        Event::PlanStalled { .. } => "several steps",
        Event::PlanResumed { by } => by.as_str(),
        Event::PlanFailed { reason, .. } => match reason {
            PlanFailure::Branch(_) => "by branch",
            PlanFailure::Rejected(_) => "rejected",
            PlanFailure::Abandoned(_) => "abandoned",
        },
        Event::PlanStatusChanged { from, .. } => from.as_str(),
        Event::UserReviewed {
            action: ReviewAction::Requested {
                result: Some(_), ..
            },
            ..
        } => "result submitted",
        Event::UserReviewed {
            action:
                ReviewAction::Decided {
                    by: DecidedBy::Policy,
                    ..
                },
            ..
        } => "by policy",
        Event::UserReviewed {
            action:
                ReviewAction::Decided {
                    by: DecidedBy::Link { .. },
                    ..
                },
            ..
        } => "by link",
        Event::PlanModified { .. }
        | Event::StepProgressed { .. }
        | Event::FeedbackDelivered { .. }
        | Event::StepOrphaned { .. }
        | Event::UserReviewed { .. }
        | Event::BranchTaken { .. }
        | Event::SessionResumed { .. }
        | Event::SkillStarted { .. }
        | Event::BudgetExhausted { .. }
        | Event::PlanCompleted
        | Event::LateResultKept { .. } => event.action().unwrap_or_default(),
    };
    format!("{name} {detail}").trim_end().to_owned()
}

/// Whether deciding a command on a plan can return this code. Other crates return the rest.
fn is_decision_code(code: Code) -> bool {
    match code {
        Code::InvalidInput
        | Code::InvalidDependency
        | Code::InvalidStepReference
        | Code::StepNotFound
        | Code::IllegalTransition
        | Code::PlanNotModifiable
        | Code::PlanIsTerminal
        | Code::StepNotRemovable
        | Code::IncompleteStepList
        | Code::ClaimSuperseded
        | Code::DependenciesOpen
        | Code::FeedbackRequired
        | Code::Forbidden
        | Code::BudgetExhausted
        | Code::LimitExceeded => true,
        Code::InvalidCondition => Condition::parse("confidence >=").is_err(),
        Code::PlanNotFound
        | Code::Unauthorized
        | Code::RateLimited
        | Code::Conflict
        | Code::Unavailable
        | Code::NotConfigured => false,
    }
}

/// The same walks in every run.
fn deterministic_walks() -> impl Iterator<Item = Walk> {
    let mut runner = TestRunner::deterministic();
    let strategy = walks();
    std::iter::repeat_with(move || {
        let tree = strategy.new_tree(&mut runner);
        tree.expect("strategy generates a walk").current()
    })
    .take(WALKS)
}

#[derive(Default)]
struct Reached {
    events: BTreeMap<String, usize>,
    rejections: BTreeMap<&'static str, usize>,
    /// Rounds by the plan's status before the command.
    statuses: BTreeMap<PlanStatus, usize>,
    accepted: usize,
    rejected: usize,
}

fn run_walks() -> Reached {
    let mut reached = Reached::default();
    for walk in deterministic_walks() {
        let end = walk.run(|round| {
            let status = round.before.head().status();
            *reached.statuses.entry(status).or_default() += 1;
            match round.outcome {
                Ok(events) => {
                    reached.accepted += 1;
                    if events.is_empty() {
                        *reached.events.entry("no event".to_owned()).or_default() += 1;
                    }
                    for event in events {
                        *reached.events.entry(label(event)).or_default() += 1;
                    }
                }
                Err(refusal) => {
                    reached.rejected += 1;
                    *reached
                        .rejections
                        .entry(refusal.code().as_str())
                        .or_default() += 1;
                }
            }
            Ok(())
        });
        end.expect("walk completes");
    }
    reached
}

#[test]
fn walks_reach_every_event_rejection_and_status() {
    let reached = run_walks();
    let mut missing = Vec::new();
    for (event, minimum) in EVENTS {
        let count = reached.events.get(event).copied().unwrap_or(0);
        if count < minimum {
            missing.push(format!("`{event}`: {count} times, minimum {minimum}"));
        }
    }
    for event in reached.events.keys() {
        if !EVENTS.iter().any(|(listed, _)| listed == event) {
            missing.push(format!("`{event}` is not listed"));
        }
    }
    for code in Code::ALL {
        let count = reached.rejections.get(code.as_str()).copied().unwrap_or(0);
        let minimum = if is_decision_code(code) { 5 } else { 0 };
        if count < minimum {
            missing.push(format!("`{code}`: {count} times, minimum {minimum}"));
        }
        if count > 0 && !is_decision_code(code) {
            missing.push(format!("`{code}` is not a decision code"));
        }
    }
    for status in PlanStatus::ALL {
        let count = reached.statuses.get(&status).copied().unwrap_or(0);
        if count < 150 {
            missing.push(format!("`{status}`: {count} rounds, minimum 150"));
        }
    }
    assert!(
        missing.is_empty(),
        "{missing:#?}\nreached: {:#?}\n{:#?}\n{:#?}",
        reached.events,
        reached.rejections,
        reached.statuses
    );
    assert!(
        reached.accepted > reached.rejected,
        "{} accepted, {} rejected",
        reached.accepted,
        reached.rejected
    );
}
