//! Budgets: exhaustion by each limit, raising them, and projects.

use std::time::Duration;

use onward_core::attention::Word;
use onward_core::budget::{Budget, Limit};
use onward_core::command::{CreatePlan, Modification};
use onward_core::finding::Kind;
use onward_core::{PlanHead, PlanId, PlanStatus, Role};
use onward_engine::Caller;
use onward_engine::next_step::{NextStep, Worker};
use onward_engine::peek::Peek;
use onward_engine::submit::Submission;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{claimed_step, code, document, submission_for};

const MINUTE: Duration = Duration::from_secs(60);

fn attempts(max: u64) -> Budget {
    Budget {
        max_attempts: Some(max),
        ..Budget::default()
    }
}

fn draft(harness: &Harness, steps: u32, budget: Budget) -> CreatePlan {
    CreatePlan {
        budget: Some(budget),
        ..harness.draft(steps)
    }
}

async fn next(harness: &Harness, plan: PlanId) -> NextStep {
    let next = harness.engine.next_step(&harness.me, plan, None, true);
    next.await.unwrap()
}

async fn set(harness: &Harness, plan: PlanId, budget: Option<Budget>) {
    let by_person = true;
    let change = Modification::SetBudget { budget, by_person };
    harness.modify(plan, change).await.unwrap();
}

async fn head(harness: &Harness, plan: PlanId) -> PlanHead {
    harness.status(plan).await.sheet.head
}

fn limit(next: &NextStep) -> Option<Limit> {
    if let NextStep::BudgetExhausted { exhausted, .. } = next {
        Some(exhausted.limit)
    } else {
        None
    }
}

async fn findings(harness: &Harness) -> usize {
    let notices = harness.engine.notifications(&harness.me, 100).await;
    let notices = notices.unwrap().into_iter();
    notices
        .filter(|notice| notice.finding.kind == Kind::Budget)
        .count()
}

async fn every_limit_stops_the_assignment_until_it_is_raised(harness: &Harness) {
    for (budget, reached) in [
        (
            Budget {
                max_steps: Some(2),
                ..Budget::default()
            },
            Limit::Steps,
        ),
        (attempts(2), Limit::Attempts),
        (
            Budget {
                max_duration_ms: Some(60_000),
                ..Budget::default()
            },
            Limit::Duration,
        ),
    ] {
        let plan = harness.create(draft(harness, 4, budget)).await;
        let first = harness.claim(plan.id).await;
        let second = harness.claim(plan.id).await;
        harness.advance(MINUTE);
        assert_eq!(limit(&next(harness, plan.id).await), Some(reached));
        let status = harness.status(plan.id).await;
        assert_eq!(status.sheet.head.status(), PlanStatus::Executing);
        assert_eq!(status.attention.word, Word::Working);
        // Assigned work continues.
        for step in [&first, &second] {
            harness.submit(submission_for(step, "done")).await.unwrap();
        }
        let status = harness.status(plan.id).await;
        assert_eq!(status.sheet.head.status(), PlanStatus::Stalled);
        assert_eq!(status.attention.word, Word::Stuck);
        assert_eq!(harness.engine.count_stuck(&harness.me).await.unwrap(), 1);
        assert!(status.stopped_by_budget);
        assert_eq!(status.exhausted.map(|found| found.limit), Some(reached));
        let peek = harness.engine.peek(&harness.me, plan.id).await.unwrap();
        assert!(matches!(peek, Peek::None(next) if limit(&next) == Some(reached)));
        let resumed = harness.engine.resume_plan(&harness.me, plan.id).await;
        assert_eq!(code(resumed), "budget_exhausted");
        set(harness, plan.id, None).await;
        let status = harness.status(plan.id).await;
        assert_eq!(status.sheet.head.status(), PlanStatus::Executing);
        assert_eq!(harness.claim(plan.id).await.order, 3);
    }
    assert_eq!(findings(harness).await, 3);
}

async fn a_submission_that_claims_the_next_step_returns_the_limit(harness: &Harness) {
    let plan = harness.create(draft(harness, 3, attempts(1))).await;
    let step = harness.claim(plan.id).await;
    let submission = Submission {
        claim_next: true,
        ..submission_for(&step, "done")
    };
    let response = harness.submit(submission.clone()).await.unwrap();
    assert_eq!(response.plan_status, PlanStatus::Stalled);
    let reached = response.next_step.as_ref().and_then(limit);
    assert_eq!(reached, Some(Limit::Attempts));
    // A repeated submission returns the same response.
    let again = harness.submit(submission).await.unwrap();
    assert_eq!(again, response);
}

async fn the_sweep_finds_an_expired_duration_at_its_end(harness: &Harness) {
    let budget = Budget {
        max_duration_ms: Some(90_000),
        ..Budget::default()
    };
    let plan = harness.create(draft(harness, 2, budget)).await;
    harness.complete_steps(plan.id, 1).await;
    let mut watcher = harness.engine.watcher();
    harness.advance(MINUTE);
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    let ends_at = harness.now().checked_add(MINUTE / 2);
    assert_eq!(round.next_at, ends_at);
    assert_eq!(findings(harness).await, 0);
    harness.advance(MINUTE / 2);
    for _ in 0..2 {
        harness.engine.sweep(&mut watcher).await.unwrap();
        let status = harness.status(plan.id).await;
        assert_eq!(status.sheet.head.status(), PlanStatus::Stalled);
        assert_eq!(findings(harness).await, 1);
    }
}

async fn a_budget_counts_the_claims_before_it_was_set(harness: &Harness) {
    let plan = harness.plan(3).await;
    let began_at = harness.now();
    let step = harness.claim(plan.id).await;
    let requeue = Modification::RequeueStep { step: step.step };
    harness.modify(plan.id, requeue).await.unwrap();
    harness.complete_steps(plan.id, 1).await;
    set(harness, plan.id, Some(attempts(9))).await;
    let used = head(harness, plan.id).await.budget.unwrap().used;
    assert_eq!((used.steps, used.attempts), (1, 2));
    assert_eq!(used.first_claim_at, Some(began_at));
    set(harness, plan.id, Some(attempts(2))).await;
    let reached = limit(&next(harness, plan.id).await);
    assert_eq!(reached, Some(Limit::Attempts));
}

async fn an_agent_cannot_raise_the_budget(harness: &Harness) {
    let plan = harness.create(draft(harness, 2, attempts(5))).await;
    let agent = Caller {
        role: Role::Agent,
        ..harness.me.clone()
    };
    let change = |budget, by_person| {
        let modification = Modification::SetBudget { budget, by_person };
        let command = onward_core::command::ModifyPlan::new(modification);
        harness.engine.modify_plan(&agent, plan.id, command)
    };
    // The role decides, whatever the interface claims.
    for by_person in [false, true] {
        let raised = change(Some(attempts(6)), by_person).await;
        assert_eq!(code(raised), "forbidden");
        let removed = change(None, by_person).await;
        assert_eq!(code(removed), "forbidden");
    }
    change(Some(attempts(1)), false).await.unwrap();
    let budget = head(harness, plan.id).await.budget.unwrap();
    assert_eq!(budget.limits, attempts(1));
}

async fn a_project_skips_plans_with_an_exhausted_budget(harness: &Harness) {
    let project = |mut draft: CreatePlan, priority| {
        draft.routing.project_key = Some("site".to_owned());
        draft.routing.priority = priority;
        draft
    };
    let urgent = project(draft(harness, 3, attempts(1)), 9);
    let urgent = harness.create(urgent).await;
    let other = harness.create(project(harness.draft(2), 1)).await;
    let claim = || {
        let worker = Worker::default();
        harness
            .engine
            .next_step_of_project(&harness.me, "site", worker)
    };
    assert_eq!(claimed_step(claim().await.unwrap()).plan, urgent.id);
    assert_eq!(claimed_step(claim().await.unwrap()).plan, other.id);
    set(harness, urgent.id, Some(attempts(2))).await;
    assert_eq!(claimed_step(claim().await.unwrap()).plan, urgent.id);
    assert_eq!(claimed_step(claim().await.unwrap()).plan, other.id);
    let none = claim().await.unwrap();
    assert!(matches!(none, NextStep::NoPendingSteps { .. }), "{none:?}");
    // The duration ends without a call: the next request finds it.
    set(harness, urgent.id, None).await;
    let expired = Budget {
        max_duration_ms: Some(1),
        ..Budget::default()
    };
    harness.advance(MINUTE);
    set(harness, urgent.id, Some(expired)).await;
    let none = claim().await.unwrap();
    assert!(matches!(none, NextStep::NoPendingSteps { .. }), "{none:?}");
}

async fn concurrent_callers_do_not_exceed_a_limit(harness: &Harness) {
    let plan = harness.create(draft(harness, 12, attempts(5))).await;
    let other = harness.another_engine().await;
    let calls: Vec<_> = (0..12)
        .map(|number| {
            let engine = if number % 2 == 0 {
                harness.engine.clone()
            } else {
                other.clone()
            };
            let (me, plan) = (harness.me.clone(), plan.id);
            tokio::spawn(async move { engine.next_step(&me, plan, None, false).await })
        })
        .collect();
    let (mut claimed, mut denied) = (0, 0);
    for call in calls {
        let next = call.await.unwrap().unwrap();
        claimed += u32::from(matches!(next, NextStep::Started(_)));
        denied += u32::from(limit(&next) == Some(Limit::Attempts));
    }
    assert_eq!((claimed, denied), (5, 7));
    let trail = harness.audit_trail(plan.id).await;
    let recorded = trail.iter().filter(|name| *name == "budget_exhausted");
    assert_eq!(recorded.count(), 1);
}

async fn an_imported_plan_has_its_budget(harness: &Harness) {
    let plan = harness.create(draft(harness, 2, attempts(1))).await;
    harness.complete_steps(plan.id, 1).await;
    let head = head(harness, plan.id).await;
    let exported = document(&harness.engine, &harness.me, plan.id).await;
    let other = harness.create_tenant("other").await;
    let imported = harness.engine.import(&other, &exported).await.unwrap();
    let copied = harness.engine.sheet(&other, imported).await.unwrap().head;
    assert_eq!(copied.budget, head.budget);
    let denied = harness.engine.next_step(&other, imported, None, false);
    assert_eq!(limit(&denied.await.unwrap()), Some(Limit::Attempts));
}

on_both_databases!(
    every_limit_stops_the_assignment_until_it_is_raised,
    a_submission_that_claims_the_next_step_returns_the_limit,
    a_budget_counts_the_claims_before_it_was_set,
    an_agent_cannot_raise_the_budget,
    a_project_skips_plans_with_an_exhausted_budget,
    concurrent_callers_do_not_exceed_a_limit,
    an_imported_plan_has_its_budget,
);

/// The sweep covers all tenants of a database.
mod exclusive {
    use super::the_sweep_finds_an_expired_duration_at_its_end;
    crate::on_both_databases![exclusive: the_sweep_finds_an_expired_duration_at_its_end];
}
