//! Table of all kinds of events, each with a name and the pattern that recognises it.
//!
//! A variant that is added to the core fails to compile here. If it is added to the table but not
//! to `events.rs`, the test at the end fails.

use std::collections::BTreeSet;

use onward_core::Event;
use onward_core::branch::{Action, Branch, Effect, NoEffect};
use onward_core::event::{
    Change, Decision, ProgressSource, RequeueReason, ResumedBy, ReviewAction,
};
use onward_core::plan::PlanFailure;
use onward_core::step::{FailReason, SkipCause};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::events::events;

macro_rules! kinds {
    ($($kind:literal: $pattern:pat,)+) => {
        /// The name of every kind of event.
        pub(crate) const KINDS: &[&str] = &[$($kind),+];

        /// Which kind it is. No wildcard, so that the table stays complete.
        pub(crate) fn kind(event: &Event) -> &'static str {
            match event {
                $($pattern => $kind,)+
            }
        }
    };
}

kinds! {
    "created": Event::PlanModified { change: Change::Created(_), .. },
    "steps added": Event::PlanModified { change: Change::StepsAdded { .. }, .. },
    "step removed": Event::PlanModified { change: Change::StepRemoved { .. }, .. },
    "steps reordered": Event::PlanModified { change: Change::StepsReordered { .. }, .. },
    "instructions updated": Event::PlanModified { change: Change::InstructionsUpdated { .. }, .. },
    "step renamed": Event::PlanModified { change: Change::StepRenamed { .. }, .. },
    "step updated": Event::PlanModified { change: Change::StepUpdated { .. }, .. },
    "plan updated": Event::PlanModified { change: Change::PlanUpdated { .. }, .. },
    "budget set": Event::PlanModified { change: Change::BudgetSet { .. }, .. },
    "step failed, the change": Event::PlanModified { change: Change::StepFailed { .. }, .. },
    "step skipped, the change": Event::PlanModified { change: Change::StepSkipped { .. }, .. },
    "step requeued, the change": Event::PlanModified { change: Change::StepRequeued { .. }, .. },
    "step redone": Event::PlanModified { change: Change::StepRedone { .. }, .. },
    "branch added: continue": Event::PlanModified { change: Change::BranchAdded { branch: Branch { action: Action::Continue, .. } }, .. },
    "branch added: skip_to": Event::PlanModified { change: Change::BranchAdded { branch: Branch { action: Action::SkipTo { .. }, .. } }, .. },
    "branch added: add_steps": Event::PlanModified { change: Change::BranchAdded { branch: Branch { action: Action::AddSteps { .. }, .. } }, .. },
    "branch added: fail": Event::PlanModified { change: Change::BranchAdded { branch: Branch { action: Action::Fail { .. }, .. } }, .. },
    "step started": Event::StepStarted { .. },
    "step completed": Event::StepCompleted { .. },
    "step failed: manual": Event::StepFailed { reason: FailReason::Manual(Some(_)), .. },
    "step failed: manual, no reason": Event::StepFailed { reason: FailReason::Manual(None), .. },
    "step failed: stalled": Event::StepFailed { reason: FailReason::Stalled, .. },
    "step failed: attempts exhausted": Event::StepFailed { reason: FailReason::AttemptsExhausted, .. },
    "step failed: rejected": Event::StepFailed { reason: FailReason::Rejected(Some(_)), .. },
    "step failed: rejected, no reason": Event::StepFailed { reason: FailReason::Rejected(None), .. },
    "step skipped: branch": Event::StepSkipped { by: SkipCause::Branch(_), .. },
    "step skipped: review": Event::StepSkipped { by: SkipCause::Review(_), .. },
    "step skipped: person": Event::StepSkipped { by: SkipCause::Person, .. },
    "step requeued: manual": Event::StepRequeued { reason: RequeueReason::Manual, .. },
    "step requeued: stalled": Event::StepRequeued { reason: RequeueReason::Stalled, .. },
    "step requeued: taken over": Event::StepRequeued { reason: RequeueReason::TakenOver, .. },
    "step requeued: approved": Event::StepRequeued { reason: RequeueReason::Approved, .. },
    "step progressed: reported": Event::StepProgressed { source: ProgressSource::Reported, .. },
    "step progressed: written": Event::StepProgressed { source: ProgressSource::Written, .. },
    "step progressed: seen": Event::StepProgressed { source: ProgressSource::Seen, .. },
    "feedback delivered": Event::FeedbackDelivered { .. },
    "branch taken: continued": Event::BranchTaken { effect: Effect::Continued, .. },
    "branch taken: skipped": Event::BranchTaken { effect: Effect::Skipped { .. }, .. },
    "branch taken: added": Event::BranchTaken { effect: Effect::Added { .. }, .. },
    "branch taken: failed": Event::BranchTaken { effect: Effect::FailedPlan { .. }, .. },
    "branch taken: target missing": Event::BranchTaken { effect: Effect::Nothing { reason: NoEffect::TargetMissing }, .. },
    "branch taken: target not pending": Event::BranchTaken { effect: Effect::Nothing { reason: NoEffect::TargetNotPending }, .. },
    "branch taken: target not after": Event::BranchTaken { effect: Effect::Nothing { reason: NoEffect::TargetNotAfter }, .. },
    "branch taken: plan full": Event::BranchTaken { effect: Effect::Nothing { reason: NoEffect::PlanFull }, .. },
    "review requested": Event::UserReviewed { action: ReviewAction::Requested { result: None, .. }, .. },
    "result submitted for review": Event::UserReviewed { action: ReviewAction::Requested { result: Some(_), .. }, .. },
    "approved": Event::UserReviewed { action: ReviewAction::Decided { decision: Decision::Approve, .. }, .. },
    "rejected": Event::UserReviewed { action: ReviewAction::Decided { decision: Decision::Reject, .. }, .. },
    "modified": Event::UserReviewed { action: ReviewAction::Decided { decision: Decision::Modify, .. }, .. },
    "skipped": Event::UserReviewed { action: ReviewAction::Decided { decision: Decision::Skip, .. }, .. },
    "step orphaned": Event::StepOrphaned { .. },
    "session resumed": Event::SessionResumed { .. },
    "skill started": Event::SkillStarted { .. },
    "skill completed": Event::SkillCompleted { error: None, .. },
    "skill completed with an error": Event::SkillCompleted { error: Some(_), .. },
    "budget exhausted": Event::BudgetExhausted { .. },
    "plan stalled": Event::PlanStalled { .. },
    "plan resumed: next step": Event::PlanResumed { by: ResumedBy::NextStep },
    "plan resumed: late result": Event::PlanResumed { by: ResumedBy::LateResult },
    "plan resumed: progress": Event::PlanResumed { by: ResumedBy::Progress },
    "plan resumed: user": Event::PlanResumed { by: ResumedBy::User },
    "plan resumed: budget": Event::PlanResumed { by: ResumedBy::Budget },
    "plan resumed: review": Event::PlanResumed { by: ResumedBy::Review },
    "plan completed": Event::PlanCompleted,
    "plan failed: branch": Event::PlanFailed { reason: PlanFailure::Branch(Some(_)), .. },
    "plan failed: branch, no reason": Event::PlanFailed { reason: PlanFailure::Branch(None), .. },
    "plan failed: rejected": Event::PlanFailed { reason: PlanFailure::Rejected(Some(_)), .. },
    "plan failed: rejected, no reason": Event::PlanFailed { reason: PlanFailure::Rejected(None), .. },
    "plan failed: abandoned": Event::PlanFailed { reason: PlanFailure::Abandoned(Some(_)), .. },
    "plan failed: abandoned, no reason": Event::PlanFailed { reason: PlanFailure::Abandoned(None), .. },
    "plan status changed": Event::PlanStatusChanged { .. },
    "late result kept": Event::LateResultKept { .. },
}

/// Deterministic, so that the result does not depend on chance.
#[test]
fn generates_events_of_every_kind() {
    let mut runner = TestRunner::deterministic();
    let strategy = events();
    let mut made = BTreeSet::new();
    for _ in 0..4096 {
        let tree = strategy.new_tree(&mut runner).expect("generated event");
        made.insert(kind(&tree.current()));
    }
    let missing: Vec<_> = KINDS.iter().filter(|kind| !made.contains(*kind)).collect();
    assert!(missing.is_empty(), "never generated: {missing:?}");
}
