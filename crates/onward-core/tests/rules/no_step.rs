//! Why a request for the next step gets none, and which step it would get.

use onward_core::budget::{Budget, BudgetState, Exhausted, Limit, Used};
use onward_core::command::{ActionSpec, Modification, StartNext, StepRef};
use onward_core::decide::NextFacts;
use onward_core::decide::start_next::{
    NoStepReason, assigned_step, decide, is_assignable, no_step_reason,
};
use onward_core::event::Decision;
use onward_core::id::{ClaimToken, ReviewId};
use onward_core::plan::{PendingReview, PlanFailure, PlanState};
use onward_core::{Counts, PlanHead, Step, Timestamp};

use crate::harness::{Harness, branch, create_plan, decision, id, modify, session};

const NOW: Timestamp = Timestamp::from_millis(1_000);

/// The states in which steps are assigned.
fn open_states() -> [PlanState; 3] {
    [
        PlanState::Planning,
        PlanState::Executing,
        PlanState::Stalled { marked_at: NOW },
    ]
}

/// The other states, each with its reason.
fn closed_states() -> Vec<(PlanState, NoStepReason)> {
    let pending = |step: u32| PendingReview {
        step: id(step),
        review: ReviewId::from_u128(u128::from(step)),
    };
    let failures = [
        PlanFailure::Branch(None),
        PlanFailure::Rejected(Some("test feedback".to_owned())),
        PlanFailure::Abandoned(None),
    ];
    let failed = failures.into_iter().map(|reason| {
        let ended_at = NOW;
        let state = PlanState::Failed {
            reason: reason.clone(),
            ended_at,
        };
        (state, NoStepReason::Failed(reason))
    });
    let completed = PlanState::Completed { ended_at: NOW };
    // The oldest review comes first, whatever the order of its step.
    let reviews = vec![pending(3), pending(1)];
    let asked = NoStepReason::AwaitingReview { step: Some(id(3)) };
    let mut states = vec![
        (completed, NoStepReason::Complete),
        (PlanState::AwaitingReview { reviews }, asked),
    ];
    states.extend(failed);
    states
}

fn exhausted(limit: Limit, max: u64, used: u64) -> Exhausted {
    Exhausted { limit, max, used }
}

fn budget(limits: Budget, used: Used) -> Option<BudgetState> {
    Some(BudgetState {
        used,
        ..BudgetState::new(limits)
    })
}

/// Budgets, each with the limit that is exhausted at [`NOW`].
fn budgets() -> [(Option<BudgetState>, Option<Exhausted>); 6] {
    let attempts = Budget {
        max_attempts: Some(2),
        ..Budget::default()
    };
    let made = |attempts| Used {
        attempts,
        ..Used::default()
    };
    let duration = |max| Budget {
        max_duration_ms: Some(max),
        ..Budget::default()
    };
    let claimed = Used {
        first_claim_at: Some(Timestamp::from_millis(0)),
        ..Used::default()
    };
    let recorded = exhausted(Limit::Tokens, 7, 8);
    let of_tokens = BudgetState {
        exhausted: Some(recorded),
        ..BudgetState::new(attempts)
    };
    [
        (None, None),
        (budget(attempts, made(1)), None),
        (budget(duration(1_001), claimed), None),
        (
            budget(attempts, made(2)),
            Some(exhausted(Limit::Attempts, 2, 2)),
        ),
        (
            budget(duration(1_000), claimed),
            Some(exhausted(Limit::Duration, 1_000, 1_000)),
        ),
        (Some(of_tokens), Some(recorded)),
    ]
}

/// Numbers of steps that are pending, in progress and under review, each with the reason in an open
/// state within the budget, and whether an exhausted budget is the reason instead.
fn step_counts() -> [(Counts, NoStepReason, bool); 8] {
    let row = |[pending, in_progress, awaiting_input]: [u32; 3], reason, needs_budget| {
        let counts = Counts {
            pending,
            in_progress,
            awaiting_input,
            completed: 1,
            ..Counts::default()
        };
        (counts, reason, needs_budget)
    };
    let asked = || NoStepReason::AwaitingReview { step: None };
    [
        row([0, 0, 0], NoStepReason::NoneReady, false),
        row([0, 0, 1], asked(), false),
        row([0, 1, 0], NoStepReason::NoneReady, false),
        row([0, 1, 1], NoStepReason::NoneReady, false),
        row([1, 0, 0], NoStepReason::NoneReady, true),
        row([1, 0, 1], asked(), true),
        row([1, 1, 0], NoStepReason::NoneReady, true),
        row([1, 1, 1], NoStepReason::NoneReady, true),
    ]
}

#[test]
fn every_state_budget_and_open_review_has_one_reason() {
    let mut head = Harness::with_steps(1).plan.head().clone();
    for (counts, within_budget, needs_budget) in step_counts() {
        for (budget, exhausted) in budgets() {
            (head.counts, head.budget) = (counts, budget);
            for state in open_states() {
                head.state = state;
                let expected = match exhausted {
                    Some(exhausted) if needs_budget => NoStepReason::BudgetExhausted(exhausted),
                    _ => within_budget.clone(),
                };
                assert_eq!(no_step_reason(&head, NOW), expected, "{head:?}");
            }
            for (state, expected) in closed_states() {
                head.state = state;
                assert_eq!(no_step_reason(&head, NOW), expected, "{head:?}");
            }
        }
    }
}

/// Step 1 with undelivered feedback, held by the session `a`, and the ready step 2.
fn undelivered_and_ready() -> Harness {
    let mut harness = Harness::with_steps(2);
    harness.claim_next_for(Some("a"), false).unwrap();
    let request = harness.request_review(1, None);
    harness.run(&request);
    harness.run(&decision(1, Decision::Modify, Some("shorter")));
    harness
}

/// Whether a request with this head assigns the step.
fn assigns(head: &PlanHead, undelivered: Option<&Step>, ready: Option<&Step>) -> bool {
    let facts = NextFacts {
        head: head.clone(),
        undelivered: undelivered.cloned(),
        stalled: Vec::new(),
        ready: ready.cloned(),
    };
    let command = StartNext {
        token: ClaimToken::new("token"),
        session: Some(session("a")),
        include_stalled: false,
        labels: None,
    };
    assigned_step(&decide(&facts, &command, NOW).unwrap()).is_some()
}

#[test]
fn an_exhausted_budget_denies_a_ready_step_and_not_one_with_undelivered_feedback() {
    let harness = undelivered_and_ready();
    let undelivered = harness.plan.undelivered(Some(&session("a"))).unwrap();
    let ready = harness.plan.ready().unwrap();
    let mut head = harness.plan.head().clone();
    let closed = closed_states().into_iter().map(|(state, _)| (state, false));
    let states = open_states().map(|state| (state, true));
    for (state, is_open) in states.into_iter().chain(closed) {
        head.state = state;
        for (budget, exhausted) in budgets() {
            head.budget = budget;
            assert_eq!(is_assignable(&head, undelivered, NOW), is_open, "{head:?}");
            assert_eq!(assigns(&head, Some(undelivered), None), is_open, "{head:?}");
            let expected = is_open && exhausted.is_none();
            assert_eq!(is_assignable(&head, ready, NOW), expected, "{head:?}");
            assert_eq!(assigns(&head, None, Some(ready)), expected, "{head:?}");
        }
    }
}

#[test]
fn a_pending_step_is_blocked_until_its_dependencies_are_met() {
    let mut command = create_plan(4);
    command.steps[1].depends_on = vec![4];
    command.steps[2].depends_on = vec![1, 4];
    command.on_dependency_failure = onward_core::policy::OnDependencyFailure::Continue;
    let skip = ActionSpec::SkipTo(StepRef::Order(3));
    command.branches.push(branch(1, 1, "true", skip));
    let mut harness = Harness::new(command).started();
    assert_eq!(harness.plan.count_blocked(), 2);
    // The branch skips step 2. Its dependency is not terminal.
    let submit = harness.submit(1, None);
    harness.run(&submit);
    assert_eq!(harness.plan.count_blocked(), 1);
    // Steps of this plan continue after a failure.
    harness.run(&modify(Modification::FailStep {
        step: id(4),
        reason: None,
    }));
    assert_eq!(harness.plan.count_blocked(), 0);
    assert_eq!(harness.claim_next().unwrap().0, 3);
}
