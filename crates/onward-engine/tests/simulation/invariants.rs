//! Invariants of every stored plan and its audit trail, independent of the model.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::event::{Change, RequeueReason, ReviewAction};
use onward_core::step::ReviewScope;
use onward_core::{Event, StepId, StepStatus};
use onward_engine::transfer::FullPlan;

pub(crate) fn check(plan: &FullPlan) -> Result<(), String> {
    let mut claimed: BTreeMap<StepId, bool> = BTreeMap::new();
    // The step that carries the review of the plan's start. It has no claim.
    let mut awaiting_start: Option<StepId> = None;
    let mut plan_ended = false;
    let mut ended_steps: BTreeSet<StepId> = BTreeSet::new();
    let mut commit = 1;
    for (entry, seq) in plan.events.iter().zip(1u64..) {
        let violation = |rule: &str| Err(format!("entry {seq}: {rule}: {:?}", entry.event));
        if entry.seq != seq {
            return violation("sequence numbers are not consecutive");
        }
        if entry.commit_seq < commit || entry.commit_seq > seq {
            return violation("invalid commit number");
        }
        commit = entry.commit_seq;
        let late_result = matches!(entry.event, Event::LateResultKept { .. });
        if plan_ended && !late_result {
            return violation("the plan had ended");
        }
        let allowed_after_end = matches!(
            entry.event,
            Event::PlanModified {
                change: Change::InstructionsUpdated { .. }
                    | Change::StepRenamed { .. }
                    | Change::StepRedone { .. },
                ..
            } | Event::BranchTaken { .. }
        );
        let step = entry.event.step();
        if step.is_some_and(|step| ended_steps.contains(&step))
            && !late_result
            && !allowed_after_end
        {
            return violation("the step had ended");
        }
        let not_claimed = "the step was not claimed";
        let violated = match &entry.event {
            Event::StepStarted { .. } if awaiting_start.is_some() => {
                Some("the plan was not approved")
            }
            Event::UserReviewed {
                step,
                action:
                    ReviewAction::Requested {
                        scope: ReviewScope::Start,
                        ..
                    },
                ..
            } => {
                awaiting_start = Some(*step);
                None
            }
            Event::UserReviewed { step, .. } if awaiting_start == Some(*step) => None,
            Event::StepRequeued {
                step,
                reason: RequeueReason::Approved,
                ..
            } => {
                let was_awaiting = awaiting_start.take() == Some(*step);
                (!was_awaiting).then_some("the start of the plan was not under review")
            }
            Event::StepStarted { step, .. } => {
                let was_claimed = claimed.insert(*step, true) == Some(true);
                was_claimed.then_some("the step was already claimed")
            }
            Event::StepRequeued { step, .. } => {
                let was_claimed = claimed.insert(*step, false) == Some(true);
                (!was_claimed).then_some(not_claimed)
            }
            Event::StepCompleted { step, .. } => {
                ended_steps.insert(*step);
                let was_claimed = claimed.insert(*step, false) == Some(true);
                (!was_claimed).then_some(not_claimed)
            }
            Event::StepFailed { step, .. } | Event::StepSkipped { step, .. } => {
                claimed.insert(*step, false);
                ended_steps.insert(*step);
                None
            }
            Event::PlanCompleted | Event::PlanFailed { .. } => {
                plan_ended = true;
                None
            }
            Event::UserReviewed { step, .. } | Event::StepProgressed { step, .. } => {
                let is_claimed = claimed.get(step) == Some(&true);
                (!is_claimed).then_some(not_claimed)
            }
            _ => None,
        };
        if let Some(rule) = violated {
            return violation(rule);
        }
    }
    check_rows(plan, &claimed)
}

fn check_rows(plan: &FullPlan, claimed: &BTreeMap<StepId, bool>) -> Result<(), String> {
    for (step, order) in plan.plan.steps.iter().zip(1u32..) {
        let id = step.id();
        if step.order != order {
            return Err(format!("step {id} has order {}, not {order}", step.order));
        }
        if step.attempt() > step.spec.max_attempts {
            return Err(format!("step {id} was assigned more often than allowed"));
        }
        let has_claim = step.claim().is_some();
        let is_claimed = claimed.get(&id) == Some(&true);
        let status = step.status();
        let is_open = matches!(status, StepStatus::InProgress | StepStatus::AwaitingInput);
        if is_claimed != (is_open && has_claim) {
            return Err(format!(
                "step {id} is {status}, which contradicts its audit trail"
            ));
        }
    }
    Ok(())
}
