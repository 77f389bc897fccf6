//! Budgets: limits on steps, attempts, time and tokens.

use std::time::Duration;

use onward_core::attention::{Facts, Word, attention, no_agent_at};
use onward_core::budget::{Budget, Exhausted, Limit};
use onward_core::command::{CountTokens, CreatePlan, Modification, ModifyPlan, StartStep};
use onward_core::decide::{create, fork};
use onward_core::event::Decision;
use onward_core::finding::{Finding, Kind};
use onward_core::id::{BranchId, ClaimToken, PlanId};
use onward_core::next_check::Due;
use onward_core::plan::Origin;
use onward_core::transition::Transition;
use onward_core::{Code, Command, Event, PlanStatus, Refusal, StepId};

use crate::harness::{Harness, MINUTE, create_plan, decision, id, modify, spec, sweep};

fn steps(max: u64) -> Budget {
    Budget {
        max_steps: Some(max),
        ..Budget::default()
    }
}

fn attempts(max: u64) -> Budget {
    Budget {
        max_attempts: Some(max),
        ..Budget::default()
    }
}

fn duration(max: Duration) -> Budget {
    Budget {
        max_duration_ms: u64::try_from(max.as_millis()).ok(),
        ..Budget::default()
    }
}

fn tokens(max: u64) -> Budget {
    Budget {
        max_tokens: Some(max),
        ..Budget::default()
    }
}

fn with_budget(count: u32, budget: Budget) -> Harness {
    Harness::new(CreatePlan {
        budget: Some(budget),
        ..create_plan(count)
    })
}

fn set(budget: Option<Budget>, by_person: bool) -> Command {
    modify(Modification::SetBudget { budget, by_person })
}

fn exhausted(harness: &Harness) -> Option<Exhausted> {
    harness.plan.head().exhausted(harness.now)
}

/// Claims the next step and submits its result.
fn do_next(harness: &mut Harness) -> Vec<&'static str> {
    let (order, claim) = harness.claim_next().expect("a step is assigned");
    let submit = harness.submit(order, Some(&claim.token));
    harness.run(&submit)
}

#[test]
fn the_last_result_within_a_limit_stalls_a_plan_with_steps_left() {
    for budget in [steps(2), attempts(2)] {
        let mut harness = with_budget(3, budget);
        assert_eq!(do_next(&mut harness), ["step_completed"]);
        assert_eq!(
            do_next(&mut harness),
            ["step_completed", "budget_exhausted", "plan_stalled"]
        );
        assert_eq!(harness.status(), PlanStatus::Stalled);
        assert_eq!(harness.claim_next(), None);
        let found = exhausted(&harness).unwrap();
        assert_eq!((found.max, found.used), (2, 2));
    }
}

#[test]
fn a_plan_that_needs_no_further_step_completes() {
    let mut harness = with_budget(2, steps(2));
    do_next(&mut harness);
    assert_eq!(do_next(&mut harness), ["step_completed", "plan_completed"]);
}

#[test]
fn a_denied_step_records_the_limit_once_and_work_in_progress_continues() {
    let mut harness = with_budget(3, attempts(1));
    let (order, claim) = harness.claim_next().unwrap();
    let request = harness.start_next(None, false);
    assert_eq!(harness.run(&request), ["budget_exhausted"]);
    assert_eq!(harness.status(), PlanStatus::Executing);
    let request = harness.start_next(None, true);
    assert_eq!(harness.run(&request), [""; 0]);
    let report = harness.report(order, Some(&claim.token));
    assert_eq!(harness.run(&report), ["step_progressed"]);
    let submit = harness.submit(order, Some(&claim.token));
    assert_eq!(harness.run(&submit), ["step_completed", "plan_stalled"]);
}

#[test]
fn a_stalled_step_is_not_taken_over_if_the_budget_is_exhausted() {
    let mut harness = with_budget(2, attempts(1));
    harness.claim_next().unwrap();
    harness.advance(MINUTE * 31);
    let request = harness.start_next(Some("other"), true);
    assert_eq!(harness.run(&request), ["budget_exhausted"]);
}

#[test]
fn a_requeued_step_counts_as_an_attempt_and_not_as_another_step() {
    let mut harness = with_budget(2, steps(2));
    harness.claim_next().unwrap();
    harness.run(&modify(Modification::RequeueStep { step: id(1) }));
    harness.claim_next().unwrap();
    let used = harness.plan.head().budget.unwrap().used;
    assert_eq!((used.steps, used.attempts), (1, 2));
}

#[test]
fn the_sweep_records_an_expired_duration() {
    let mut harness = with_budget(2, duration(MINUTE * 10));
    harness.advance(MINUTE * 60);
    let (order, claim) = harness.claim_next().unwrap();
    let ends_at = harness.plan.head().budget.unwrap().ends_at();
    assert_eq!(ends_at, harness.now.checked_add(MINUTE * 10));
    harness.advance(MINUTE * 10);
    assert_eq!(harness.run(&sweep()), ["budget_exhausted"]);
    assert_eq!(harness.run(&sweep()), [""; 0]);
    assert_eq!(harness.plan.head().budget.unwrap().ends_at(), None);
    let submit = harness.submit(order, Some(&claim.token));
    assert_eq!(harness.run(&submit), ["step_completed", "plan_stalled"]);
}

#[test]
fn a_claim_after_the_duration_is_denied_without_a_sweep() {
    let mut harness = with_budget(2, duration(MINUTE));
    do_next(&mut harness);
    harness.advance(MINUTE);
    let request = harness.start_next(None, false);
    assert_eq!(harness.run(&request), ["budget_exhausted", "plan_stalled"]);
}

#[test]
fn the_first_claim_schedules_a_check_at_the_end_of_the_duration() {
    let mut harness = with_budget(2, duration(MINUTE));
    let head = harness.plan.head().clone();
    let request = harness.start_next(None, false);
    let events = harness.execute(&request).unwrap();
    let transition =
        Transition::new(head, Vec::new(), &events, harness.now, Duration::MAX).unwrap();
    let ends_at = harness.now.checked_add(MINUTE).unwrap();
    assert_eq!(transition.due, Due::By(ends_at));
}

#[test]
fn a_transition_shows_whether_it_changes_the_budget_or_its_use() {
    let changes = |harness: &mut Harness, command: &Command| {
        let head = harness.plan.head().clone();
        let events = harness.execute(command).unwrap();
        let transition = Transition::new(head, Vec::new(), &events, harness.now, Duration::MAX);
        transition.unwrap().budget_changed
    };
    for (budget, is_counted) in [(Some(attempts(3)), true), (None, false)] {
        let mut harness = Harness::new(CreatePlan {
            budget,
            ..create_plan(2)
        });
        let claim = harness.start_next(None, false);
        assert_eq!(changes(&mut harness, &claim), is_counted);
        let submit = harness.submit(1, None);
        assert!(!changes(&mut harness, &submit));
        assert!(changes(&mut harness, &set(Some(attempts(5)), true)));
    }
}

#[test]
fn tokens_are_compared_when_they_are_counted() {
    let mut harness = with_budget(2, tokens(1_000));
    let (order, claim) = harness.claim_next().unwrap();
    let count = |total| Command::from(CountTokens { total });
    assert_eq!(harness.run(&count(999)), [""; 0]);
    assert_eq!(harness.plan.head().budget.unwrap().used.tokens, None);
    assert_eq!(harness.run(&count(1_200)), ["budget_exhausted"]);
    assert_eq!(harness.run(&count(1_300)), [""; 0]);
    assert_eq!(
        exhausted(&harness),
        Some(Exhausted {
            limit: Limit::Tokens,
            max: 1_000,
            used: 1_200,
        })
    );
    let submit = harness.submit(order, Some(&claim.token));
    assert_eq!(harness.run(&submit), ["step_completed", "plan_stalled"]);
    // The tokens that were used still count.
    let raised = harness.run(&set(Some(tokens(1_100)), true));
    assert_eq!(raised, ["plan_modified", "budget_exhausted"]);
    let raised = harness.run(&set(Some(tokens(1_201)), true));
    assert_eq!(raised, ["plan_modified", "plan_resumed"]);
}

#[test]
fn a_result_is_never_rejected_because_of_a_budget() {
    let mut harness = with_budget(3, attempts(1));
    do_next(&mut harness);
    assert_eq!(harness.status(), PlanStatus::Stalled);
    // Without a claim, the step is claimed with the result.
    let submit = harness.submit(2, None);
    assert_eq!(
        harness.run(&submit),
        [
            "plan_resumed",
            "step_started",
            "step_completed",
            "plan_stalled"
        ]
    );
    assert_eq!(harness.plan.head().budget.unwrap().used.attempts, 2);
}

#[test]
fn only_assignment_and_resumption_are_rejected() {
    let mut harness = with_budget(3, attempts(1));
    do_next(&mut harness);
    let claim = Command::StartStep(StartStep {
        step: id(2),
        token: ClaimToken::new("own"),
        session: None,
    });
    assert_eq!(harness.rejection_code(&claim), Code::BudgetExhausted);
    let resume = Command::ResumePlan;
    assert_eq!(harness.rejection_code(&resume), Code::BudgetExhausted);
    let add = Modification::AddSteps {
        steps: vec![spec(4)],
        insert_after: None,
    };
    let by_agent = modify(add.clone());
    assert_eq!(harness.rejection_code(&by_agent), Code::BudgetExhausted);
    let by_user = Command::ModifyPlan(ModifyPlan {
        resume: true,
        ..ModifyPlan::new(add)
    });
    assert_eq!(
        harness.run(&by_user),
        ["plan_resumed", "plan_modified", "plan_stalled"]
    );
}

#[test]
fn a_higher_budget_continues_the_plan() {
    let mut harness = with_budget(3, attempts(1));
    do_next(&mut harness);
    let raise = set(Some(attempts(2)), true);
    assert_eq!(harness.run(&raise), ["plan_modified", "plan_resumed"]);
    assert_eq!(
        do_next(&mut harness),
        ["step_completed", "budget_exhausted", "plan_stalled"]
    );
    let remove = set(None, true);
    assert_eq!(harness.run(&remove), ["plan_modified", "plan_resumed"]);
    assert_eq!(harness.plan.head().budget, None);
    assert_eq!(do_next(&mut harness), ["step_completed", "plan_completed"]);
    let late = set(Some(attempts(9)), true);
    assert_eq!(harness.rejection_code(&late), Code::PlanNotModifiable);
}

#[test]
fn a_budget_counts_what_happened_before_it_was_set() {
    let mut harness = Harness::with_steps(4);
    do_next(&mut harness);
    let first_claim_at = harness.now;
    harness.advance(MINUTE);
    do_next(&mut harness);
    assert_eq!(
        harness.run(&set(Some(steps(2)), false)),
        ["plan_modified", "budget_exhausted", "plan_stalled"]
    );
    let used = harness.plan.head().budget.unwrap().used;
    assert_eq!(used.first_claim_at, Some(first_claim_at));
    assert_eq!((used.steps, used.attempts), (2, 2));
}

#[test]
fn an_agent_may_lower_a_budget_and_not_raise_it() {
    let both = Budget {
        max_attempts: Some(9),
        ..steps(9)
    };
    let mut harness = with_budget(3, both);
    for raised in [
        None,
        Some(steps(9)),
        Some(Budget {
            max_attempts: Some(10),
            ..both
        }),
    ] {
        let refusal = harness.expect_rejection(&set(raised, false));
        assert_eq!(refusal, Refusal::BudgetRaised);
        assert_eq!(refusal.code(), Code::Forbidden);
    }
    let lowered = Budget {
        max_attempts: Some(8),
        max_tokens: Some(1),
        ..both
    };
    assert_eq!(harness.run(&set(Some(lowered), false)), ["plan_modified"]);
}

#[test]
fn every_limit_is_between_one_and_its_upper_bound() {
    for limit in Limit::ALL {
        for max in [0, limit.upper_bound() + 1] {
            let mut budget = Budget::default();
            budget.set(limit, Some(max));
            let plan = CreatePlan {
                budget: Some(budget),
                ..create_plan(1)
            };
            let Err(Refusal::InvalidInput(issues)) = create::decide(&plan) else {
                panic!("{limit} {max}: expected invalid input");
            };
            assert_eq!(issues[0].path, format!("budget.{limit}"));
        }
    }
    let empty = set(Some(Budget::default()), true);
    let code = Harness::with_steps(1).rejection_code(&empty);
    assert_eq!(code, Code::InvalidInput);
}

#[test]
fn a_plan_that_awaits_review_is_stalled_after_the_decision() {
    let mut harness = with_budget(3, attempts(1));
    let (order, claim) = harness.claim_next().unwrap();
    let request = harness.request_review(order, Some(&claim.token));
    harness.run(&request);
    assert_eq!(harness.status(), PlanStatus::AwaitingReview);
    let decided = harness.run(&decision(order, Decision::Approve, None));
    assert_eq!(decided.last(), Some(&"plan_stalled"));
}

#[test]
fn a_review_of_a_step_does_not_hide_the_exhausted_budget() {
    let mut harness = with_budget(3, attempts(1));
    let (order, claim) = harness.claim_next().unwrap();
    let request = harness.request_step_review(order, Some(&claim.token));
    let requested = harness.run(&request);
    assert_eq!(requested.last(), Some(&"plan_stalled"));
    let decided = harness.run(&decision(order, Decision::Approve, None));
    assert_eq!(decided.first(), Some(&"plan_resumed"));
    assert_eq!(decided.last(), Some(&"plan_stalled"));
}

#[test]
fn a_fork_has_the_budget_of_its_source() {
    let mut harness = with_budget(3, steps(2));
    do_next(&mut harness);
    let mut next = 100;
    let mut step = || {
        next += 1;
        StepId::from_u128(next)
    };
    let command = onward_core::command::ForkPlan {
        plan: PlanId::from_u128(2),
        from_order: 2,
        name: None,
        research_question: None,
        design_rationale: None,
        session: None,
        approval: None,
    };
    let mut ids = fork::NewIds {
        step: &mut step,
        branch: &mut || BranchId::from_u128(1),
        token: &mut || ClaimToken::new("copied"),
    };
    let events = fork::decide(&harness.plan, &command, &mut ids, harness.now).unwrap();
    let at = harness.now;
    let fork = onward_core::Plan::replay(events.iter().map(|event| (event, at))).unwrap();
    let budget = fork.head().budget.unwrap();
    assert_eq!(budget.limits, steps(2));
    assert_eq!(budget.used.steps, 1);
}

#[test]
fn an_exhausted_budget_is_stuck_and_found_once() {
    let mut harness = with_budget(3, duration(MINUTE));
    do_next(&mut harness);
    let worked_at = harness.now;
    let facts = Facts {
        stuck_since: None,
        orphaned_at: None,
        asked_at: None,
        has_ready_step: true,
        created_at: worked_at,
        worked_at,
    };
    let word = |harness: &Harness| {
        let head = harness.plan.head();
        attention(head, &facts, harness.now, MINUTE * 10)
    };
    assert_eq!(word(&harness).word, Word::Working);
    harness.advance(MINUTE * 2);
    // Before the sweep, since the end of the duration.
    let ended_at = worked_at.checked_add(MINUTE).unwrap();
    assert_eq!(
        (word(&harness).word, word(&harness).since),
        (Word::Stuck, ended_at)
    );
    let events = harness.execute(&sweep()).unwrap();
    assert_eq!(
        (word(&harness).word, word(&harness).since),
        (Word::Stuck, harness.now)
    );
    assert_eq!(no_agent_at(harness.plan.head(), harness.now, MINUTE), None);
    let found = |event: &Event| Finding::from_event(event, Origin::Caller, harness.now);
    let found: Vec<Finding> = events.iter().flat_map(found).collect();
    let kinds: Vec<Kind> = found.iter().map(|found| found.kind).collect();
    assert_eq!(kinds, [Kind::Budget]);
}
