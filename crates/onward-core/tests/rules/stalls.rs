//! Stall detection, and the sweep's actions by policy.

use std::time::Duration;

use onward_core::command::{CreatePlan, HandleStalls, Modification, ModifyPlan};
use onward_core::decide::handle_stalls;
use onward_core::event::{Decision, ProgressSource, RequeueReason};
use onward_core::finding::{Finding, Kind};
use onward_core::plan::Origin;
use onward_core::policy::{DEFAULT_STALL_THRESHOLD, OnStall, stall_threshold};
use onward_core::step::{FailReason, StepState};
use onward_core::watcher::{Watcher, WatcherPolicy};
use onward_core::{
    Code, Command, Event, PlanStatus, StepStatus, StepTimestamp, Timestamp, detect_stalled_steps,
    is_plan_stalled, next_stall_at,
};

use crate::harness::{
    Harness, MINUTE, abandon, captured_plan, create_plan, decision, id, modify, sweep,
};

const THRESHOLD: Duration = Duration::from_millis(1000);

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn in_progress(
    started: Option<i64>,
    updated: i64,
    progress: Option<i64>,
) -> StepTimestamp<&'static str> {
    StepTimestamp {
        id: "step",
        status: StepStatus::InProgress,
        started_at: started.map(at),
        updated_at: at(updated),
        last_progress_at: progress.map(at),
    }
}

fn is_stalled(step: StepTimestamp<&'static str>, now: i64) -> bool {
    let steps = [step];
    let found = detect_stalled_steps(&steps, at(now), THRESHOLD);
    assert_eq!(
        found.is_empty(),
        !is_plan_stalled(&steps, at(now), THRESHOLD)
    );
    found == ["step"]
}

#[test]
fn a_step_stalls_after_its_threshold_not_at_it() {
    assert!(!is_stalled(in_progress(Some(0), 0, None), 1000));
    assert!(is_stalled(in_progress(Some(0), 0, None), 1001));
}

#[test]
fn only_a_step_in_progress_can_stall() {
    for status in StepStatus::ALL {
        let step = StepTimestamp {
            status,
            ..in_progress(Some(0), 0, None)
        };
        assert_eq!(
            is_stalled(step, 1_000_000),
            status == StepStatus::InProgress,
            "{status}"
        );
    }
}

#[test]
fn uses_the_last_change_only_if_the_start_is_missing() {
    assert!(is_stalled(in_progress(Some(0), 900, None), 1001));
    assert!(!is_stalled(in_progress(None, 900, None), 1001));
    assert!(is_stalled(in_progress(None, 0, None), 1001));
}

#[test]
fn the_later_of_start_and_last_progress_counts() {
    assert!(!is_stalled(in_progress(Some(0), 0, Some(500)), 1500));
    assert!(is_stalled(in_progress(Some(0), 0, Some(500)), 1501));
    assert!(!is_stalled(in_progress(Some(600), 0, Some(500)), 1600));
    assert!(!is_stalled(in_progress(None, 0, Some(500)), 1500));
}

#[test]
fn a_step_with_a_future_timestamp_is_not_stalled() {
    assert!(!is_stalled(in_progress(Some(5000), 5000, None), 0));
}

#[test]
fn a_threshold_out_of_range_never_stalls() {
    let steps = [in_progress(Some(0), 0, None)];
    assert!(!is_plan_stalled(&steps, Timestamp::MAX, Duration::MAX));
    assert_eq!(next_stall_at(&steps, at(0), Duration::MAX), None);
}

#[test]
fn next_stall_at_is_the_earliest_deadline_not_yet_passed() {
    let steps = [
        in_progress(Some(0), 0, None),
        in_progress(Some(300), 0, None),
    ];
    assert_eq!(next_stall_at(&steps, at(0), THRESHOLD), Some(at(1000)));
    assert_eq!(next_stall_at(&steps, at(1000), THRESHOLD), Some(at(1000)));
    assert_eq!(next_stall_at(&steps, at(1001), THRESHOLD), Some(at(1300)));
    assert_eq!(next_stall_at(&steps, at(1301), THRESHOLD), None);
}

#[test]
fn call_overrides_step_overrides_plan_overrides_the_default_threshold() {
    let [call, step, plan] = [1, 2, 3].map(|n| Some(Duration::from_millis(n)));
    assert_eq!(DEFAULT_STALL_THRESHOLD, 30 * MINUTE);
    assert_eq!(stall_threshold(call, step, plan), Duration::from_millis(1));
    assert_eq!(stall_threshold(None, step, plan), Duration::from_millis(2));
    assert_eq!(stall_threshold(None, None, plan), Duration::from_millis(3));
    assert_eq!(stall_threshold(None, None, None), DEFAULT_STALL_THRESHOLD);
}

#[test]
fn each_step_has_its_own_threshold() {
    let mut command = create_plan(3);
    command.stall_threshold = Some(10 * MINUTE);
    command.steps[1].stall_threshold = Some(20 * MINUTE);
    let mut harness = Harness::new(command);
    harness.claim_next();
    harness.claim_next();
    harness.advance(11 * MINUTE);
    let stalled = |harness: &Harness, call| -> Vec<_> {
        harness
            .plan
            .stalls(harness.now, call)
            .into_iter()
            .map(|stall| stall.step)
            .collect()
    };
    assert_eq!(stalled(&harness, None), [id(1)]);
    assert_eq!(stalled(&harness, Some(MINUTE)), [id(1), id(2)]);
    assert_eq!(
        harness.plan.next_stall_at(harness.now, None),
        harness.now.checked_add(9 * MINUTE)
    );
}

#[test]
fn detection_changes_nothing_and_the_sweep_marks_the_plan() {
    let mut harness = Harness::with_steps(2).started();
    harness.advance(31 * MINUTE);
    assert_eq!(harness.plan.stalls(harness.now, None).len(), 1);
    assert_eq!(harness.status(), PlanStatus::Executing);
    assert_eq!(harness.run(&sweep()), ["plan_stalled"]);
    assert_eq!(harness.status(), PlanStatus::Stalled);
    assert_eq!(
        harness.step_statuses(),
        [StepStatus::InProgress, StepStatus::Pending]
    );
}

#[test]
fn the_sweep_acts_after_the_threshold_not_at_it() {
    let mut harness = Harness::with_steps(1).started();
    harness.advance(30 * MINUTE);
    assert!(harness.run(&sweep()).is_empty());
    harness.advance(Duration::from_millis(1));
    assert_eq!(harness.run(&sweep()), ["plan_stalled"]);
}

#[test]
fn each_stall_marks_the_plan_once_even_after_a_resume() {
    let mut harness = Harness::with_steps(3).stalled();
    assert!(harness.run(&sweep()).is_empty());
    assert_eq!(harness.run(&Command::ResumePlan), ["plan_resumed"]);
    harness.advance(MINUTE);
    assert!(harness.run(&sweep()).is_empty());
    assert_eq!(harness.status(), PlanStatus::Executing);
    // New inactivity after a progress report is another stall.
    let report = harness.report(1, None);
    harness.run(&report);
    harness.advance(31 * MINUTE);
    assert_eq!(harness.run(&sweep()), ["plan_stalled"]);
}

#[test]
fn marks_a_resumed_plan_again_if_no_agent_works_on_it() {
    let mut harness = Harness::with_steps(2).stalled();
    assert_eq!(harness.claim_next().unwrap().0, 2);
    harness.advance(20 * MINUTE);
    let submit = harness.submit(2, None);
    harness.run(&submit);
    assert_eq!(harness.status(), PlanStatus::Executing);
    harness.advance(30 * MINUTE);
    assert!(harness.run(&sweep()).is_empty());
    harness.advance(Duration::from_millis(1));
    assert_eq!(harness.run(&sweep()), ["plan_stalled"]);
    assert_eq!(harness.status(), PlanStatus::Stalled);
}

#[test]
fn a_stalled_plan_without_a_step_to_assign_stays_stalled() {
    let mut harness = Harness::with_steps(1).stalled();
    assert_eq!(harness.claim_next(), None);
    assert_eq!(harness.status(), PlanStatus::Stalled);
}

#[test]
fn one_dead_agent_does_not_stop_another_repeatedly() {
    let mut harness = Harness::with_steps(4).stalled();
    for step in 2..=4 {
        assert_eq!(harness.claim_next().unwrap().0, step);
        harness.advance(5 * MINUTE);
        assert!(harness.run(&sweep()).is_empty());
        let submit = harness.submit(step, None);
        harness.run(&submit);
        assert_eq!(harness.status(), PlanStatus::Executing);
    }
}

#[test]
fn marks_the_plan_once_for_several_stalls() {
    let mut harness = Harness::with_steps(2).started().started();
    harness.advance(31 * MINUTE);
    let events = harness.execute(&sweep()).unwrap();
    let [Event::PlanStalled { stalls }] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(
        stalls.iter().map(|stall| stall.step).collect::<Vec<_>>(),
        [id(1), id(2)]
    );
}

fn past_threshold(policy: OnStall, steps: u32) -> Harness {
    let mut command = create_plan(steps);
    command.on_stall = policy;
    let mut harness = Harness::new(command).started();
    harness.advance(31 * MINUTE);
    harness
}

#[test]
fn requeue_releases_the_step_until_all_attempts_are_used() {
    let mut harness = past_threshold(OnStall::Requeue, 1);
    for attempt in 2..=3 {
        let events = harness.execute(&sweep()).unwrap();
        assert!(matches!(
            events.as_slice(),
            [Event::StepRequeued { attempt: next, reason: RequeueReason::Stalled, .. }] if *next == attempt
        ));
        assert_eq!(harness.claim_next().unwrap().1.attempt, attempt);
        harness.advance(31 * MINUTE);
    }
    assert_eq!(harness.run(&sweep()), ["step_failed", "plan_completed"]);
}

#[test]
fn fail_fails_the_step_with_reason_stalled() {
    let mut harness = past_threshold(OnStall::Fail, 2);
    assert_eq!(harness.run(&sweep()), ["step_failed"]);
    let state = &harness.plan.step(id(1)).unwrap().state;
    assert!(matches!(
        state,
        StepState::Failed {
            reason: FailReason::Stalled,
            ..
        }
    ));
    assert_eq!(FailReason::Stalled.to_string(), "stalled");
    assert_eq!(harness.status(), PlanStatus::Executing);
}

#[test]
fn ignore_does_nothing_but_queries_still_report_the_stall() {
    let mut harness = past_threshold(OnStall::Ignore, 1);
    assert!(harness.run(&sweep()).is_empty());
    assert_eq!(harness.plan.stalls(harness.now, None).len(), 1);
}

#[test]
fn a_command_can_override_policy_and_threshold() {
    let mut harness = Harness::with_steps(1).started();
    harness.advance(MINUTE);
    let command = HandleStalls {
        policy: Some(OnStall::Fail),
        threshold: Some(MINUTE / 2),
    };
    assert_eq!(
        harness.run(&Command::HandleStalls(command)),
        ["step_failed", "plan_completed"]
    );
}

#[test]
fn a_plan_awaiting_review_is_not_marked_but_its_other_steps_are_requeued() {
    for (policy, expected) in [
        (OnStall::Mark, &[][..]),
        (OnStall::Requeue, &["step_requeued"]),
    ] {
        let mut command = create_plan(2);
        command.on_stall = policy;
        let mut harness = Harness::new(command).started().in_review();
        harness.advance(31 * MINUTE);
        assert_eq!(harness.run(&sweep()), expected);
        assert_eq!(harness.status(), PlanStatus::AwaitingReview);
    }
}

#[test]
fn a_step_awaiting_review_cannot_stall_and_the_decision_counts_as_activity() {
    let mut harness = Harness::with_steps(1).in_review();
    harness.advance(60 * 24 * MINUTE);
    assert!(harness.plan.stalls(harness.now, None).is_empty());
    assert_eq!(harness.plan.next_stall_at(harness.now, None), None);
    harness.run(&decision(1, Decision::Modify, Some("more")));
    harness.advance(30 * MINUTE);
    assert!(harness.plan.stalls(harness.now, None).is_empty());
    harness.advance(Duration::from_millis(1));
    assert_eq!(harness.plan.stalls(harness.now, None).len(), 1);
}

#[test]
fn a_step_claimed_by_a_wrong_clock_is_active_when_the_clock_has_returned() {
    let mut harness = Harness::with_steps(2);
    let right = harness.now;
    harness.advance(8 * 60 * MINUTE);
    harness = harness.started();
    harness.now = right;
    assert_eq!(harness.run(&sweep()), ["step_progressed"]);
    assert!(harness.run(&sweep()).is_empty(), "once");
    harness.advance(30 * MINUTE);
    assert!(harness.run(&sweep()).is_empty());
    harness.advance(Duration::from_millis(1));
    assert_eq!(harness.run(&sweep()), ["plan_stalled"]);
}

#[test]
fn activity_replaces_the_times_of_a_wrong_clock() {
    for source in [ProgressSource::Seen, ProgressSource::Reported] {
        let mut harness = Harness::with_steps(1);
        let right = harness.now;
        harness.advance(8 * 60 * MINUTE);
        harness = harness.started();
        harness.now = right;
        let activity = harness.report_activity(1, source, None);
        assert_eq!(harness.run(&activity), ["step_progressed"]);
        let step = harness.plan.step(id(1)).unwrap();
        assert_eq!(step.timestamp().reference(), right, "{source:?}");
    }
}

#[test]
fn a_terminal_plan_has_no_stalls() {
    let mut harness = Harness::with_steps(1).started().abandoned();
    harness.advance(60 * MINUTE);
    assert!(harness.plan.stalls(harness.now, None).is_empty());
    assert_eq!(harness.plan.next_stall_at(harness.now, None), None);
    assert!(harness.run(&sweep()).is_empty());
}

#[test]
fn a_user_can_resume_and_modify_a_stalled_plan_in_one_command() {
    let choices = [
        (Modification::RequeueStep { step: id(1) }, "step_requeued"),
        (
            Modification::FailStep {
                step: id(1),
                reason: None,
            },
            "step_failed",
        ),
    ];
    for (modification, event) in choices {
        let mut harness = Harness::with_steps(2).stalled();
        assert_eq!(
            harness.rejection_code(&modify(modification.clone())),
            Code::PlanNotModifiable
        );
        let command = ModifyPlan {
            modification,
            rationale: None,
            resume: true,
            token: None,
            session: None,
        };
        assert_eq!(
            harness.run(&Command::ModifyPlan(command)),
            ["plan_resumed", "plan_modified", event]
        );
        assert_eq!(harness.status(), PlanStatus::Executing);
    }
}

#[test]
fn the_monitor_waits_one_grace_period_after_a_sleep() {
    let mut harness = Harness::with_steps(1).started();
    let mut watcher = Watcher::begin(
        WatcherPolicy {
            tolerance: MINUTE,
            grace: 2 * MINUTE,
        },
        harness.now,
    );
    watcher.sleep_until(harness.now.checked_add(MINUTE).unwrap());
    harness.advance(8 * 60 * MINUTE);
    watcher.wake(harness.now);
    let acts = |harness: &Harness, watcher: &Watcher| {
        let facts = handle_stalls::Facts {
            watcher: Some(*watcher),
            ..handle_stalls::Facts::from_plan(&harness.plan)
        };
        !handle_stalls::decide(&facts, &HandleStalls::default(), harness.now)
            .unwrap()
            .is_empty()
    };
    assert!(!acts(&harness, &watcher));
    harness.advance(2 * MINUTE);
    assert!(!acts(&harness, &watcher));
    harness.advance(Duration::from_millis(1));
    assert!(acts(&harness, &watcher));
}

#[test]
fn rejects_a_threshold_out_of_range() {
    let mut harness = Harness::with_steps(1).started();
    let command = HandleStalls {
        policy: None,
        threshold: Some(Duration::ZERO),
    };
    assert_eq!(harness.rejection_code(&command.into()), Code::InvalidInput);
}

#[test]
fn a_captured_plan_has_no_stalls_but_its_inactive_steps_can_be_taken_over() {
    for policy in OnStall::ALL {
        let mut harness = Harness::new(CreatePlan {
            on_stall: policy,
            ..captured_plan(2)
        });
        harness = harness.started().started();
        harness.advance(31 * MINUTE);
        assert!(harness.run(&sweep()).is_empty());
        assert_eq!(harness.plan.stalls(harness.now, None), []);
        assert_eq!(harness.plan.next_stall_at(harness.now, None), None);
        let facts = handle_stalls::Facts::from_plan(&harness.plan);
        let command = HandleStalls::default();
        let found = handle_stalls::notifiable_stalls(&facts, &command, harness.now);
        assert_eq!(found, []);
        let take_over = harness.start_next(None, true);
        assert_eq!(harness.run(&take_over), ["step_requeued", "step_started"]);
    }
}

#[test]
fn only_reviews_of_a_captured_plan_are_findings() {
    let now = at(0);
    let kinds = |event: &Event, origin| -> Vec<Kind> {
        let found = Finding::from_event(event, origin, now);
        found.into_iter().map(|finding| finding.kind).collect()
    };
    let mut harness = Harness::with_steps(2).started();
    let request = harness.request_review(1, None);
    let review = harness.execute(&request).unwrap();
    let mut harness = Harness::with_steps(1).started();
    harness.advance(31 * MINUTE);
    let stalled = harness.execute(&sweep()).unwrap();
    let abandoned = harness.execute(&abandon()).unwrap();
    for (events, kind, of_captured) in [
        (review, Kind::Review, vec![Kind::Review]),
        (stalled, Kind::Stall, vec![]),
        (abandoned, Kind::Failure, vec![]),
    ] {
        let all = |origin| -> Vec<Kind> {
            let events = events.iter();
            events.flat_map(|event| kinds(event, origin)).collect()
        };
        assert_eq!(all(Origin::Caller), [kind]);
        assert_eq!(all(Origin::Agent), of_captured);
    }
}
