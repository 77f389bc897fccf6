//! What happened to steps, reviews and outputs: attempts, late results, decisions, versions, and the
//! values that branch conditions have read.

use std::ops::Range;
use std::time::Duration;

use onward_core::command::{ActionSpec, Modification};
use onward_core::event::Decision;
use onward_core::{PlanId, Timestamp};
use onward_engine::audit::ALL_TIMES;
use onward_engine::history::AttemptEnd;
use onward_engine::step::ReviewDecision;
use serde_json::json;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{error, submission_for};

const SECOND: Duration = Duration::from_secs(1);

async fn a_released_step_keeps_its_earlier_attempts_and_late_results(harness: &Harness) {
    let plan = harness.plan(2).await;
    let first = harness.claim(plan.id).await;
    let started_at = harness.now();
    harness.advance(SECOND);
    let step = first.step;
    harness
        .modify(plan.id, Modification::RequeueStep { step })
        .await
        .unwrap();
    let second = harness.claim(plan.id).await;
    harness.complete(&second, "done").await;
    harness.advance(SECOND);
    let rejected = error(harness.submit(submission_for(&first, "too late")).await);
    let history = harness.engine.step_history(&harness.me, plan.id, step);
    let history = history.await.unwrap();
    let ends: Vec<_> = history
        .attempts
        .iter()
        .map(|attempt| (attempt.number, attempt.ended.map(|(_, end)| end)))
        .collect();
    assert_eq!(
        ends,
        [
            (1, Some(AttemptEnd::Released)),
            (2, Some(AttemptEnd::Completed))
        ]
    );
    assert_eq!(history.attempts[0].started_at, started_at);
    assert_eq!(history.late_results.len(), 1);
    assert_eq!(Some(history.late_results[0].artifact), rejected.kept());
    assert_eq!(history.late_results[0].rejection, rejected.code().as_str());
    let other = harness
        .engine
        .step_history(&harness.me, plan.id, plan.steps[1]);
    assert_eq!(other.await.unwrap(), Default::default());
}

/// The entries of all plans in these times, read in pages of one entry.
async fn events_between(
    harness: &Harness,
    times: &Range<Timestamp>,
) -> Vec<(Timestamp, PlanId, u64)> {
    let mut events: Vec<(Timestamp, PlanId, u64)> = Vec::new();
    loop {
        let after = events.last().map(|(_, plan, seq)| (*plan, *seq));
        let page = harness
            .engine
            .audit_between(&harness.me, times.clone(), after, 1, None)
            .await
            .unwrap();
        let Some((plan, event)) = page.first() else {
            return events;
        };
        events.push((event.entry.at, *plan, event.entry.seq));
    }
}

async fn the_audit_trails_of_all_plans_are_read_by_time(harness: &Harness) {
    let plans = [harness.plan(2).await.id, harness.plan(2).await.id];
    let superseded = harness.claim(plans[0]).await;
    harness.advance(SECOND);
    let since = harness.now();
    let step = superseded.step;
    harness
        .modify(plans[0], Modification::RequeueStep { step })
        .await
        .unwrap();
    harness.complete_steps(plans[1], 1).await;
    harness.complete_steps(plans[0], 1).await;
    harness.advance(SECOND);
    let late = harness.now();
    error(
        harness
            .submit(submission_for(&superseded, "too late"))
            .await,
    );
    harness.advance(SECOND);
    let until = harness.now();
    harness.complete_steps(plans[1], 1).await;
    for times in [
        since..until,
        late..until,
        since..late,
        until..Timestamp::MAX,
        ALL_TIMES,
    ] {
        let mut expected = Vec::new();
        for plan in plans {
            let (e, me) = (&harness.engine, &harness.me);
            let page = e.audit_page(me, plan, times.clone(), 0, 100, 100_000);
            let events = page.await.unwrap().into_iter();
            let events = events.map(|event| (event.entry.at, plan, event.entry.seq));
            expected.extend(events);
        }
        expected.sort();
        assert!(!expected.is_empty());
        assert!(expected.iter().all(|(at, ..)| times.contains(at)));
        assert_eq!(events_between(harness, &times).await, expected);
    }
    assert_eq!(events_between(harness, &(late..until)).await.len(), 1);
}

async fn a_decided_review_names_its_decision_and_author(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let review = harness.request_review(&step).await.unwrap().review;
    let decision = || harness.engine.review_decision(&harness.me, review);
    assert_eq!(decision().await.unwrap(), None, "it is pending");
    harness.advance(SECOND);
    let decided = ReviewDecision::new(step.step, Decision::Skip, None);
    let decided = harness.engine.decide_review(&harness.me, decided);
    decided.await.unwrap();
    let found = decision().await.unwrap().expect("it was decided");
    assert_eq!(
        (found.plan, found.step, found.decision, found.at),
        (plan.id, step.step, Decision::Skip, harness.now())
    );
    assert_eq!(found.author.name, harness.me.name.to_string());
    let other = harness.create_tenant("other").await;
    let foreign = harness.engine.review_decision(&other, review).await;
    assert_eq!(foreign.unwrap(), None, "another tenant");
}

async fn all_versions_of_an_output_are_listed_newest_first(harness: &Harness) {
    let plan = harness.plan(1).await;
    let first = harness.deliver(plan.id, "Report", "one").await;
    let second = harness.deliver(plan.id, "Report", "two").await;
    harness.deliver(plan.id, "Other", "three").await;
    let versions = harness
        .engine
        .output_versions(&harness.me, plan.id, "Report", 9);
    let versions = versions.await.unwrap();
    let versions: Vec<_> = versions.iter().map(|one| (one.id, one.version)).collect();
    assert_eq!(versions, [(second.id, 2), (first.id, 1)]);
}

async fn conditions_have_the_values_of_the_result_that_they_read(harness: &Harness) {
    let branches = vec![
        harness.branch(1, "confidence > 0.9", ActionSpec::Continue),
        harness.branch(1, "result.spread > 25", ActionSpec::Continue),
        harness.branch(2, "confidence > 0.9", ActionSpec::Continue),
    ];
    let plan = harness.plan_with_branches(2, branches).await;
    let step = harness.claim(plan.id).await;
    let mut submission = submission_for(&step, "done");
    submission.result.confidence = Some(0.5);
    submission.result.data = Some(json!({ "spread": 64 }).into());
    harness.submit(submission).await.unwrap();
    let (branches, lines) = harness.engine.branches(&harness.me, plan.id).await.unwrap();
    let branches: Vec<_> = branches
        .into_iter()
        .filter_map(|branch| {
            let line = lines.iter().find(|line| line.id == branch.after)?;
            Some((branch, line.clone()))
        })
        .collect();
    let values = harness.engine.tested_values(&harness.me, &branches);
    let values = values.await.unwrap();
    let value = |index: usize| {
        let values = values.get(&branches[index].0.id)?;
        Some(
            values
                .iter()
                .map(|one| one.value.as_str())
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(value(0), Some(vec!["0.5"]));
    assert_eq!(value(1), Some(vec!["64"]));
    assert_eq!(value(2), None, "step 2 is not completed");
}

on_both_databases![
    the_audit_trails_of_all_plans_are_read_by_time,
    a_released_step_keeps_its_earlier_attempts_and_late_results,
    a_decided_review_names_its_decision_and_author,
    all_versions_of_an_output_are_listed_newest_first,
    conditions_have_the_values_of_the_result_that_they_read,
];
