//! Token counts of sessions, steps and plans, and budgets of tokens.

use std::sync::{Arc, Mutex};

use onward_core::budget::{Budget, Limit};
use onward_core::command::{CreatePlan, Modification};
use onward_core::id::SessionId;
use onward_core::usage::TokenUsage;
use onward_core::{PlanId, PlanStatus};
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::usage::UsageReport;
use onward_engine::{SeenClaim, SessionUsage, UsageSource};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{claimed_step, document, submission_for};
use crate::sessions::{source, step};

const SESSION: &str = "one";

fn tokens(input: u64) -> TokenUsage {
    TokenUsage {
        input,
        cache_creation: 20,
        cache_read: 30,
        output: 50,
    }
}

async fn report(harness: &Harness, input: u64) {
    let report = UsageReport::Response(tokens(input));
    let recorded = harness.engine.record_usage(&harness.me, SESSION, report);
    recorded.await.unwrap();
}

/// Reports tokens of a transcript that has this length, and returns the position before.
async fn report_transcript(harness: &Harness, path: &str, length: u64, input: u64) -> u64 {
    let before = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&before);
    let report = UsageReport::Transcript {
        path: path.to_owned(),
        read: Arc::new(move |position| {
            *seen.lock().unwrap() = position.offset;
            let is_new = position.offset < length;
            position.offset = length;
            position.recent = vec![("msg".to_owned(), tokens(input))];
            is_new.then_some(tokens(input))
        }),
    };
    let recorded = harness.engine.record_usage(&harness.me, SESSION, report);
    recorded.await.unwrap();
    *before.lock().unwrap()
}

async fn claim(harness: &Harness, plan: PlanId) -> AssignedStep {
    let session = Some(SessionId::new(SESSION));
    let next = harness.engine.next_step(&harness.me, plan, session, false);
    claimed_step(next.await.unwrap())
}

/// `None` also for a session that is not recorded.
async fn session_usage(harness: &Harness) -> Option<SessionUsage> {
    let view = harness.engine.show_session(&harness.me, SESSION, 0, 0);
    view.await.ok()?.usage
}

async fn session_total(harness: &Harness) -> Option<u64> {
    let usage = session_usage(harness).await;
    usage.map(|usage| usage.tokens.total())
}

async fn step_tokens(harness: &Harness, step: &AssignedStep) -> Option<u64> {
    let tokens = harness.engine.step_tokens(&harness.me, step.step);
    tokens.await.unwrap()
}

async fn plan_tokens(harness: &Harness, plan: PlanId) -> Option<u64> {
    harness.status(plan).await.sheet.tokens
}

async fn tokens_belong_to_the_step_that_the_session_holds(harness: &Harness) {
    let plan = harness.plan(3).await;
    // A session that is not recorded is ignored.
    report(harness, 1).await;
    assert_eq!(session_total(harness).await, None);
    harness.begin_turn(source()).await;
    report(harness, 0).await;
    assert_eq!(session_total(harness).await, Some(100));
    assert_eq!(plan_tokens(harness, plan.id).await, None);
    let first = claim(harness, plan.id).await;
    assert_eq!(step_tokens(harness, &first).await, None);
    report(harness, 900).await;
    report(harness, 0).await;
    harness
        .submit(submission_for(&first, "done"))
        .await
        .unwrap();
    let second = claim(harness, plan.id).await;
    report(harness, 400).await;
    assert_eq!(step_tokens(harness, &first).await, Some(1_100));
    assert_eq!(step_tokens(harness, &second).await, Some(500));
    assert_eq!(plan_tokens(harness, plan.id).await, Some(1_600));
    assert_eq!(session_total(harness).await, Some(1_700));
}

async fn a_claim_in_the_result_of_a_call_belongs_to_the_session(harness: &Harness) {
    let plan = harness.plan(1).await;
    let claimed = harness.claim(plan.id).await;
    harness.begin_turn(source()).await;
    report(harness, 0).await;
    assert_eq!(step_tokens(harness, &claimed).await, None);
    let mut seen = step(Vec::new());
    seen.claims.push(SeenClaim {
        step: claimed.step,
        token: claimed.token.clone(),
    });
    harness.observe(source(), seen).await;
    report(harness, 0).await;
    assert_eq!(step_tokens(harness, &claimed).await, Some(100));
}

async fn the_first_source_of_a_session_counts(harness: &Harness) {
    harness.begin_turn(source()).await;
    let transcript = |length, input| report_transcript(harness, "/tmp/a.jsonl", length, input);
    assert_eq!(transcript(10, 0).await, 0);
    report(harness, 900).await;
    assert_eq!(session_total(harness).await, Some(100));
    assert_eq!(transcript(10, 0).await, 10);
    assert_eq!(session_total(harness).await, Some(100));
    assert_eq!(transcript(20, 100).await, 10);
    assert_eq!(session_total(harness).await, Some(300));
    // Another transcript of the same session.
    assert_eq!(report_transcript(harness, "/tmp/b.jsonl", 5, 0).await, 0);
    assert_eq!(session_total(harness).await, Some(400));
    assert_eq!(transcript(20, 0).await, 20);
    let usage = session_usage(harness).await.unwrap();
    assert_eq!(usage.source, UsageSource::Transcript);
}

/// Hooks that end at the same time read a transcript one after the other.
async fn concurrent_hooks_count_a_transcript_once(harness: &Harness) {
    harness.begin_turn(source()).await;
    let report = || report_transcript(harness, "/tmp/a.jsonl", 10, 0);
    tokio::join!(report(), report(), report());
    assert_eq!(session_total(harness).await, Some(100));
}

async fn a_budget_of_tokens_is_exhausted_by_its_sessions(harness: &Harness) {
    let budget = |max| Budget {
        max_tokens: Some(max),
        ..Budget::default()
    };
    let draft = CreatePlan {
        budget: Some(budget(1_000)),
        ..harness.draft(3)
    };
    let plan = harness.create(draft).await;
    harness.begin_turn(source()).await;
    let first = claim(harness, plan.id).await;
    report(harness, 800).await;
    assert_eq!(harness.status(plan.id).await.exhausted, None);
    report(harness, 100).await;
    let exhausted = harness.status(plan.id).await.exhausted.unwrap();
    assert_eq!((exhausted.limit, exhausted.used), (Limit::Tokens, 1_100));
    let next = harness.next_step(plan.id).await;
    assert!(matches!(next, NextStep::BudgetExhausted { .. }), "{next:?}");
    harness
        .submit(submission_for(&first, "done"))
        .await
        .unwrap();
    assert_eq!(harness.plan_status(plan.id).await, PlanStatus::Stalled);
    let set = |budget| Modification::SetBudget {
        budget: Some(budget),
        by_person: true,
    };
    // The tokens that were used still count.
    harness.modify(plan.id, set(budget(1_100))).await.unwrap();
    assert_eq!(harness.plan_status(plan.id).await, PlanStatus::Stalled);
    harness.modify(plan.id, set(budget(1_101))).await.unwrap();
    assert_eq!(harness.plan_status(plan.id).await, PlanStatus::Executing);
}

async fn an_imported_plan_has_its_tokens(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.begin_turn(source()).await;
    let first = claim(harness, plan.id).await;
    report(harness, 0).await;
    let exported = document(&harness.engine, &harness.me, plan.id).await;
    let other = harness.create_tenant("other").await;
    harness.engine.import(&other, &exported).await.unwrap();
    let sheet = harness.engine.sheet(&other, plan.id).await.unwrap();
    assert_eq!(sheet.tokens, Some(100));
    let tokens = harness.engine.step_tokens(&other, first.step).await;
    assert_eq!(tokens.unwrap(), Some(100));
}

on_both_databases!(
    tokens_belong_to_the_step_that_the_session_holds,
    a_claim_in_the_result_of_a_call_belongs_to_the_session,
    the_first_source_of_a_session_counts,
    concurrent_hooks_count_a_transcript_once,
    a_budget_of_tokens_is_exhausted_by_its_sessions,
    an_imported_plan_has_its_tokens,
);
