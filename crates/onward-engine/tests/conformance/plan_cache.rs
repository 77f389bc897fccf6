//! The plan cache: a plan that this process works on is not read again, and a stale entry is never
//! used if another process has changed the plan.

use std::time::Duration;

use onward_core::PlanId;
use onward_core::attention::DEFAULT_NO_AGENT_AFTER;
use onward_core::command::{Modification, ModifyPlan, ReportSkill};
use onward_core::event::Decision;
use onward_core::skill::SkillStatus;
use onward_engine::Engine;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::step::{ProgressReport, ReviewDecision};
use onward_engine::submit::Submission;
use serde_json::json;

use crate::harness::{Harness, uses_plan_cache};
use crate::on_postgres;
use crate::operations::{claimed_step, code, submission_for};

/// The number of store operations of a call: its reads, and two for the commit (before and after).
async fn count_operations<A>(harness: &Harness, call: impl Future<Output = A>) -> (A, u32) {
    const MAX: u32 = 1000;
    harness.faults.fail_after(MAX);
    let response = call.await;
    let left = harness.faults.left();
    harness.faults.fail_after(u32::MAX);
    (response, MAX - left.expect("call has fewer operations"))
}

/// Whether a call needed no read.
async fn is_cached<A>(harness: &Harness, call: impl Future<Output = A>) -> (A, bool) {
    let (response, operations) = count_operations(harness, call).await;
    (response, operations <= 2)
}

async fn does_not_read_a_plan_created_by_this_process(harness: &Harness) {
    if !uses_plan_cache() {
        return;
    }
    let plan = harness.plan(3).await;
    let (first, cached) = is_cached(harness, harness.next_step(plan.id)).await;
    assert!(cached, "just created");
    let mut step = claimed_step(first);
    for _ in 0..2 {
        let submission = Submission {
            claim_next: true,
            ..submission_for(&step, "done")
        };
        let (submitted, cached) = is_cached(harness, harness.submit(submission)).await;
        assert!(cached, "no other process changes it");
        step = claimed_step(submitted.unwrap().next_step.unwrap());
    }
    let (last, cached) = is_cached(harness, harness.submit(submission_for(&step, "done"))).await;
    assert!(cached);
    assert_eq!(last.unwrap().progress, 100);
}

async fn returns_formatting_notes_from_the_cache(harness: &Harness) {
    if !uses_plan_cache() {
        return;
    }
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let mut submission = Submission {
        claim_next: true,
        ..submission_for(&step, "done")
    };
    submission.result.formatting_notes = Some("As a table.".to_owned());
    let (last, cached) = is_cached(harness, harness.submit(submission)).await;
    assert!(cached, "notes are cached");
    let Some(NextStep::Complete(notes)) = last.unwrap().next_step else {
        panic!("plan is not complete")
    };
    assert_eq!(notes.steps, [(step.step, 1, "As a table.".to_owned())]);
}

async fn reads_the_output_format_reported_by_a_skill(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    let metadata = json!({"outputMediaType": "text/html"});
    let report = ReportSkill {
        skill: "tides".to_owned(),
        status: SkillStatus::Started,
        session: None,
        plan: Some(plan.id),
        metadata: metadata.as_object().cloned().unwrap(),
        error: None,
    };
    let logged = harness.engine.log_skill(&harness.me, None, report).await;
    logged.expect("skill was linked");
    let mut next = Some(NextStep::Started(Box::new(step)));
    while let Some(NextStep::Started(step)) = next {
        let submission = Submission {
            claim_next: true,
            ..submission_for(&step, "done")
        };
        next = harness.submit(submission).await.unwrap().next_step;
    }
    let Some(NextStep::Complete(notes)) = next else {
        panic!("plan is not complete")
    };
    assert_eq!(notes.media_type.as_deref(), Some("text/html"));
}

async fn reads_a_plan_of_another_process_once(harness: &Harness) {
    if !uses_plan_cache() {
        return;
    }
    let other = harness.another_engine().await;
    let draft = harness.draft(4);
    let plan = draft.plan;
    let created = other.create_plan(&harness.me, draft, None).await;
    created.expect("plan was created");
    harness.claim(plan).await;
    let (_, cached) = is_cached(harness, harness.next_step(plan)).await;
    assert!(cached, "the first call has read the whole plan");
    assert_due_before_a_step_can_stall(harness, plan);
    other.close().await;
}

fn assert_due_before_a_step_can_stall(harness: &Harness, plan: PlanId) {
    let first = format!("SELECT min(stalls_at) + 1 FROM steps WHERE plan_id = '{plan}'");
    let due = format!("SELECT at <= ({first}) FROM due WHERE plan_id = '{plan}'");
    let matches = harness.sql(&due).expect("plan is due");
    assert_eq!(matches.trim(), "t");
}

async fn a_cached_due_time_that_a_sweep_has_replaced_is_not_trusted(harness: &Harness) {
    const MINUTE: Duration = Duration::from_secs(60);
    let mut draft = harness.draft(2);
    draft.steps[0].stall_threshold = Some(30 * MINUTE);
    draft.steps[1].stall_threshold = Some(15 * MINUTE);
    let plan = harness.create(draft).await.id;
    harness.advance(MINUTE);
    let step = harness.claim(plan).await;
    harness.advance(8 * MINUTE);
    let progress = ProgressReport {
        step: step.step,
        note: None,
        percent: Some(50.0),
        token: Some(step.token.clone()),
        session: None,
    };
    let reported = harness.engine.report_progress(&harness.me, progress);
    reported.await.expect("progress accepted");
    // The plan is due, because no agent may have started it.
    harness.advance(DEFAULT_NO_AGENT_AFTER);
    let mut watcher = harness.engine.watcher();
    harness.engine.sweep(&mut watcher).await.expect("sweep ran");
    let submission = Submission {
        claim_next: true,
        ..submission_for(&step, "done")
    };
    harness.submit(submission).await.expect("result accepted");
    assert_due_before_a_step_can_stall(harness, plan);
}

async fn reads_a_large_plan_completely_only_after_repeated_use(harness: &Harness) {
    if !uses_plan_cache() {
        return;
    }
    let other = harness.another_engine().await;
    let mut draft = harness.draft(12);
    for step in &mut draft.steps {
        step.instructions = "Read. ".repeat(5_000);
    }
    let plan = draft.plan;
    let created = other.create_plan(&harness.me, draft, None).await;
    created.expect("plan was created");
    let (_, first) = count_operations(harness, harness.claim(plan)).await;
    assert_eq!(
        first,
        2 + 2,
        "one read to find out that the audit trail is large, one for the facts"
    );
    let mut reads = Vec::new();
    for _ in 0..11 {
        let (step, count) = count_operations(harness, harness.claim(plan)).await;
        reads.push(count - 2);
        let submission = harness.submit(submission_for(&step, "done"));
        let (submitted, count) = count_operations(harness, submission).await;
        submitted.expect("result was accepted");
        reads.push(count - 2);
    }
    // One read of the facts per call, until the whole plan is read once. A plan without branches and
    // reviews needs no other read.
    assert_eq!(reads[..17], [1; 17], "{reads:?}");
    assert_eq!(reads[17..], [0; 5], "{reads:?}");
    other.close().await;
}

async fn sees_changes_of_another_process(harness: &Harness) {
    let other = harness.another_engine().await;
    let plan = harness.plan(2).await;
    let first = harness.claim(plan.id).await;
    let change = Modification::UpdateInstructions {
        step: plan.steps[1],
        instructions: "another thing".to_owned(),
    };
    let changed = other.modify_plan(&harness.me, plan.id, ModifyPlan::new(change));
    changed.await.expect("plan was modified");
    let submission = Submission {
        claim_next: true,
        ..submission_for(&first, "done")
    };
    let submitted = harness.submit(submission).await.unwrap();
    let second = claimed_step(submitted.next_step.unwrap());
    assert_eq!(second.instructions, "another thing");
    other.close().await;
}

async fn revalidates_before_reporting_that_no_step_is_pending(harness: &Harness) {
    let other = harness.another_engine().await;
    let plan = harness.plan(1).await;
    harness.claim(plan.id).await;
    assert!(matches!(
        harness.next_step(plan.id).await,
        NextStep::NoPendingSteps { in_progress: 1, .. }
    ));
    let second = harness.plan(1).await;
    let claimed = harness.claim(second.id).await;
    let change = Modification::AddSteps {
        insert_after: None,
        steps: vec![harness.step("more")],
    };
    let changed = other.modify_plan(&harness.me, second.id, ModifyPlan::new(change));
    changed.await.expect("plan was modified");
    // In this process's cache, all steps are claimed.
    let more = harness.claim(second.id).await;
    assert_eq!(more.instructions, "more");
    assert_ne!(more.step, claimed.step);
    other.close().await;
}

async fn revalidates_before_reporting_a_pending_review(harness: &Harness) {
    let other = harness.another_engine().await;
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    let requested = harness.request_review(&step).await;
    requested.expect("review was requested");
    let decided = other.decide_review(
        &harness.me,
        ReviewDecision::new(step.step, Decision::Approve, None),
    );
    decided.await.expect("review was decided on another server");
    assert_eq!(harness.claim(plan.id).await.step, plan.steps[1]);
    other.close().await;
}

/// Claims a step in this process; `other` then requeues and claims it. Returns both claims.
async fn reclaimed_step(harness: &Harness, other: &Engine) -> (AssignedStep, AssignedStep) {
    let plan = harness.plan(2).await;
    let first = harness.claim(plan.id).await;
    let change = Modification::RequeueStep { step: first.step };
    let changed = other.modify_plan(&harness.me, plan.id, ModifyPlan::new(change));
    changed.await.expect("step was requeued");
    let again = other.next_step(&harness.me, plan.id, None, false).await;
    let again = claimed_step(again.expect("step was claimed again"));
    assert_eq!(again.step, first.step);
    (first, again)
}

async fn revalidates_before_rejecting_a_call(harness: &Harness) {
    let other = harness.another_engine().await;
    let (_, again) = reclaimed_step(harness, &other).await;
    let progress = ProgressReport {
        step: again.step,
        note: None,
        percent: None,
        token: Some(again.token.clone()),
        session: None,
    };
    let reported = harness.engine.report_progress(&harness.me, progress).await;
    reported.expect("claim is current");
    other.close().await;
}

async fn revalidates_before_storing_a_result_as_late(harness: &Harness) {
    let other = harness.another_engine().await;
    let (_, again) = reclaimed_step(harness, &other).await;
    let submitted = harness.submit(submission_for(&again, "done")).await;
    assert_eq!(submitted.expect("claim is current").step, again.step);
    other.close().await;
}

async fn a_cached_claim_is_not_trusted(harness: &Harness) {
    let other = harness.another_engine().await;
    let (first, _) = reclaimed_step(harness, &other).await;
    let late = harness.submit(submission_for(&first, "late")).await;
    assert_eq!(code(late), "claim_superseded");
    other.close().await;
}

// On their own engine: after a lost race in an earlier test, an engine locks plans for a while, and
// does not use the cache.
on_postgres!(
    exclusive:
    does_not_read_a_plan_created_by_this_process,
    returns_formatting_notes_from_the_cache,
    reads_the_output_format_reported_by_a_skill,
    reads_a_plan_of_another_process_once,
    a_cached_due_time_that_a_sweep_has_replaced_is_not_trusted,
    reads_a_large_plan_completely_only_after_repeated_use,
    sees_changes_of_another_process,
    revalidates_before_reporting_that_no_step_is_pending,
    revalidates_before_reporting_a_pending_review,
    revalidates_before_rejecting_a_call,
    revalidates_before_storing_a_result_as_late,
    a_cached_claim_is_not_trusted,
);
