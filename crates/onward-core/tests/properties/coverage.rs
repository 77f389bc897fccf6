//! The walks really go everywhere: to every kind of event, every refusal and every status, and often
//! enough that the properties mean something.
//!
//! Always the same walks, so that this is no matter of luck. A bound that does not hold any more says
//! that the generator has lost its way: lead it back, and do not lower the bound.

use std::collections::BTreeMap;

use onward_core::branch::{Effect, NoEffect};
use onward_core::condition::Condition;
use onward_core::plan::PlanFailure;
use onward_core::step::{FailReason, SkipCause};
use onward_core::{Code, Event, PlanStatus};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::walk::{Walk, walks};

const WALKS: usize = 400;

/// Every event that deciding can answer with, and how often it must come at the least.
const EVENTS: [(&str, usize); 51] = [
    ("plan_modified add_steps", 40),
    ("plan_modified remove_step", 15),
    ("plan_modified reorder_steps", 40),
    ("plan_modified update_step_instructions", 40),
    ("plan_modified fail_step", 40),
    ("plan_modified requeue_step", 40),
    ("plan_modified add_branch", 80),
    ("step_started first attempt", 400),
    ("step_started later attempt", 80),
    ("step_completed in_progress", 150),
    ("step_completed awaiting_input", 20),
    ("step_failed by hand", 40),
    ("step_failed stalled", 40),
    ("step_failed used up", 40),
    ("step_failed rejected", 8),
    ("step_skipped by branch", 10),
    ("step_skipped by review", 15),
    ("step_requeued by_hand", 30),
    ("step_requeued stalled", 40),
    ("step_requeued taken_over", 20),
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
    ("user_reviewed approve", 20),
    ("user_reviewed modify", 20),
    ("user_reviewed skip", 15),
    ("user_reviewed reject", 8),
    ("session_resumed", 30),
    ("skill_started", 30),
    ("skill_completed well", 30),
    ("skill_completed badly", 40),
    ("plan_stalled one step", 40),
    ("plan_stalled several steps", 10),
    ("plan_resumed next_step", 15),
    ("plan_resumed late_result", 15),
    ("plan_resumed progress", 3),
    ("plan_resumed person", 20),
    ("plan_completed", 40),
    ("plan_failed by branch", 8),
    ("plan_failed rejected", 8),
    ("plan_failed abandoned", 10),
    ("late_result_kept", 100),
    ("nothing at all", 400),
];

/// What an event is, as finely as the rules tell events apart.
fn label(event: &Event) -> String {
    let name = event.name();
    let detail = match event {
        Event::StepStarted { claim, .. } if claim.attempt == 1 => "first attempt",
        Event::StepStarted { .. } => "later attempt",
        Event::StepCompleted { from, .. } => from.as_str(),
        Event::StepFailed { reason, .. } => match reason {
            FailReason::ByHand(_) => "by hand",
            FailReason::Stalled => "stalled",
            FailReason::AttemptsUsedUp => "used up",
            FailReason::Rejected(_) => "rejected",
        },
        Event::StepSkipped { by, .. } => match by {
            SkipCause::Branch(_) => "by branch",
            SkipCause::Review(_) => "by review",
        },
        Event::StepRequeued { reason, .. } => reason.as_str(),
        Event::BranchTaken {
            effect: Effect::Nothing { why },
            ..
        } => match why {
            NoEffect::TargetGone => "skip_to: gone",
            NoEffect::TargetNotPending => "skip_to: not pending",
            NoEffect::TargetNotAfter => "skip_to: not after",
            NoEffect::PlanFull => "add_steps: full",
        },
        Event::SkillCompleted { error: None, .. } => "well",
        Event::SkillCompleted { error: Some(_), .. } => "badly",
        Event::PlanStalled { stalls } if stalls.len() == 1 => "one step",
        Event::PlanStalled { .. } => "several steps",
        Event::PlanResumed { by } => by.as_str(),
        Event::PlanFailed { reason } => match reason {
            PlanFailure::Branch(_) => "by branch",
            PlanFailure::Rejected(_) => "rejected",
            PlanFailure::Abandoned(_) => "abandoned",
        },
        Event::PlanModified { .. }
        | Event::StepProgressed { .. }
        | Event::FeedbackDelivered { .. }
        | Event::UserReviewed { .. }
        | Event::BranchTaken { .. }
        | Event::SessionResumed { .. }
        | Event::SkillStarted { .. }
        | Event::PlanCompleted
        | Event::LateResultKept { .. } => event.action().unwrap_or_default(),
    };
    format!("{name} {detail}").trim_end().to_owned()
}

/// Whether deciding a command on a plan can be refused with this code. The others belong to whoever
/// looks plans up, knows roles, or keeps them.
fn comes_from_deciding(code: Code) -> bool {
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
        | Code::FeedbackRequired
        | Code::LimitExceeded => true,
        Code::InvalidCondition => Condition::parse("confidence >=").is_err(),
        Code::PlanNotFound
        | Code::Unauthorized
        | Code::Forbidden
        | Code::RateLimited
        | Code::Conflict
        | Code::Unavailable
        | Code::NotConfigured => false,
    }
}

/// Always the same walks.
fn the_walks() -> impl Iterator<Item = Walk> {
    let mut runner = TestRunner::deterministic();
    let strategy = walks();
    std::iter::repeat_with(move || {
        let tree = strategy.new_tree(&mut runner);
        tree.expect("a walk needs nothing that could be missing")
            .current()
    })
    .take(WALKS)
}

#[derive(Default)]
struct Seen {
    events: BTreeMap<String, usize>,
    refusals: BTreeMap<&'static str, usize>,
    /// Turns that began in this status.
    statuses: BTreeMap<PlanStatus, usize>,
    accepted: usize,
    refused: usize,
}

fn seen() -> Seen {
    let mut seen = Seen::default();
    for walk in the_walks() {
        let end = walk.play(|moment| {
            let status = moment.before.head().status();
            *seen.statuses.entry(status).or_default() += 1;
            match moment.answer {
                Ok(events) => {
                    seen.accepted += 1;
                    if events.is_empty() {
                        *seen.events.entry("nothing at all".to_owned()).or_default() += 1;
                    }
                    for event in events {
                        *seen.events.entry(label(event)).or_default() += 1;
                    }
                }
                Err(refusal) => {
                    seen.refused += 1;
                    *seen.refusals.entry(refusal.code().as_str()).or_default() += 1;
                }
            }
            Ok(())
        });
        end.expect("a walk to count on goes through");
    }
    seen
}

#[test]
fn walks_reach_every_event_every_refusal_and_every_status() {
    let seen = seen();
    let mut missing = Vec::new();
    for (event, least) in EVENTS {
        let came = seen.events.get(event).copied().unwrap_or(0);
        if came < least {
            missing.push(format!("`{event}` came {came} times, not {least}"));
        }
    }
    for event in seen.events.keys() {
        if !EVENTS.iter().any(|(known, _)| known == event) {
            missing.push(format!("`{event}` came, and is not in the list"));
        }
    }
    for code in Code::ALL {
        let came = seen.refusals.get(code.as_str()).copied().unwrap_or(0);
        let least = if comes_from_deciding(code) { 5 } else { 0 };
        if came < least {
            missing.push(format!("`{code}` came {came} times, not {least}"));
        }
        if came > 0 && !comes_from_deciding(code) {
            missing.push(format!("`{code}` came from deciding"));
        }
    }
    for status in PlanStatus::ALL {
        let came = seen.statuses.get(&status).copied().unwrap_or(0);
        if came < 150 {
            missing.push(format!("{came} turns began `{status}`, not 150"));
        }
    }
    assert!(
        missing.is_empty(),
        "{missing:#?}\nof {:#?}\n{:#?}\n{:#?}",
        seen.events,
        seen.refusals,
        seen.statuses
    );
    assert!(
        seen.accepted > seen.refused,
        "{} accepted, {} refused",
        seen.accepted,
        seen.refused
    );
}
