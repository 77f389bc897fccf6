//! Stalls: what is noticed, and what is done about it by which policy.

use std::time::Duration;

use onward_core::command::{HandleStalls, Modification, ModifyPlan};
use onward_core::decide::handle_stalls;
use onward_core::event::{Decision, RequeueReason};
use onward_core::policy::{DEFAULT_STALL_THRESHOLD, OnStall, stall_threshold};
use onward_core::step::{FailReason, StepState};
use onward_core::watcher::{Watcher, WatcherPolicy};
use onward_core::{
    Code, Command, Event, PlanStatus, Step, StepStatus, StepTimestamp, Timestamp,
    detect_stalled_steps, is_plan_stalled, next_stall_at,
};

use crate::desk::{Desk, MINUTE, decision, id, modify, plan_of, sweep};

const THRESHOLD: Duration = Duration::from_millis(1000);

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn working(
    started: Option<i64>,
    updated: i64,
    progress: Option<i64>,
) -> StepTimestamp<&'static str> {
    StepTimestamp {
        id: "it",
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
    found == ["it"]
}

#[test]
fn exactly_at_the_threshold_a_step_is_alive() {
    assert!(!is_stalled(working(Some(0), 0, None), 1000));
    assert!(is_stalled(working(Some(0), 0, None), 1001));
}

#[test]
fn only_a_step_in_progress_stalls() {
    for status in StepStatus::ALL {
        let step = StepTimestamp {
            status,
            ..working(Some(0), 0, None)
        };
        assert_eq!(
            is_stalled(step, 1_000_000),
            status == StepStatus::InProgress,
            "{status}"
        );
    }
}

#[test]
fn the_start_counts_and_the_last_change_only_where_there_is_no_start() {
    assert!(is_stalled(working(Some(0), 900, None), 1001));
    assert!(!is_stalled(working(None, 900, None), 1001));
    assert!(is_stalled(working(None, 0, None), 1001));
}

#[test]
fn a_later_sign_of_life_wins_and_an_earlier_one_does_not() {
    assert!(!is_stalled(working(Some(0), 0, Some(500)), 1500));
    assert!(is_stalled(working(Some(0), 0, Some(500)), 1501));
    assert!(!is_stalled(working(Some(600), 0, Some(500)), 1600));
    assert!(!is_stalled(working(None, 0, Some(500)), 1500));
}

#[test]
fn a_reference_in_the_future_is_alive() {
    assert!(!is_stalled(working(Some(5000), 5000, None), 0));
}

#[test]
fn a_threshold_past_the_end_of_time_never_passes() {
    let steps = [working(Some(0), 0, None)];
    assert!(!is_plan_stalled(&steps, Timestamp::MAX, Duration::MAX));
    assert_eq!(next_stall_at(&steps, at(0), Duration::MAX), None);
}

#[test]
fn the_next_stall_is_the_last_instant_at_which_all_that_live_still_do() {
    let steps = [working(Some(0), 0, None), working(Some(300), 0, None)];
    assert_eq!(next_stall_at(&steps, at(0), THRESHOLD), Some(at(1000)));
    assert_eq!(next_stall_at(&steps, at(1000), THRESHOLD), Some(at(1000)));
    assert_eq!(next_stall_at(&steps, at(1001), THRESHOLD), Some(at(1300)));
    assert_eq!(next_stall_at(&steps, at(1301), THRESHOLD), None);
}

#[test]
fn half_an_hour_is_the_default_and_the_nearest_threshold_wins() {
    let [call, step, plan] = [1, 2, 3].map(|n| Some(Duration::from_millis(n)));
    assert_eq!(DEFAULT_STALL_THRESHOLD, 30 * MINUTE);
    assert_eq!(stall_threshold(call, step, plan), Duration::from_millis(1));
    assert_eq!(stall_threshold(None, step, plan), Duration::from_millis(2));
    assert_eq!(stall_threshold(None, None, plan), Duration::from_millis(3));
    assert_eq!(stall_threshold(None, None, None), DEFAULT_STALL_THRESHOLD);
}

#[test]
fn each_step_is_judged_by_its_own_threshold() {
    let mut command = plan_of(3);
    command.stall_threshold = Some(10 * MINUTE);
    command.steps[1].stall_threshold = Some(20 * MINUTE);
    let mut desk = Desk::of(command);
    desk.next();
    desk.next();
    desk.wait(11 * MINUTE);
    let stalled = |desk: &Desk, call| -> Vec<_> {
        desk.plan
            .stalls(desk.now, call)
            .into_iter()
            .map(|stall| stall.step)
            .collect()
    };
    assert_eq!(stalled(&desk, None), [id(1)]);
    assert_eq!(stalled(&desk, Some(MINUTE)), [id(1), id(2)]);
    assert_eq!(
        desk.plan.next_stall_at(desk.now, None),
        desk.now.checked_add(9 * MINUTE)
    );
}

#[test]
fn detection_changes_nothing_and_the_sweep_marks() {
    let mut desk = Desk::with(2).started();
    desk.wait(31 * MINUTE);
    assert_eq!(desk.plan.stalls(desk.now, None).len(), 1);
    assert_eq!(desk.status(), PlanStatus::Executing);
    assert_eq!(desk.does(&sweep()), ["plan_stalled"]);
    assert_eq!(desk.status(), PlanStatus::Stalled);
    assert_eq!(desk.steps(), [StepStatus::InProgress, StepStatus::Pending]);
}

#[test]
fn at_the_threshold_the_sweep_does_nothing() {
    let mut desk = Desk::with(1).started();
    desk.wait(30 * MINUTE);
    assert!(desk.does(&sweep()).is_empty());
    desk.wait(Duration::from_millis(1));
    assert_eq!(desk.does(&sweep()), ["plan_stalled"]);
}

#[test]
fn one_stall_marks_once_even_after_the_plan_was_resumed() {
    let mut desk = Desk::with(3).stalled();
    assert!(desk.does(&sweep()).is_empty());
    assert_eq!(desk.does(&Command::ResumePlan), ["plan_resumed"]);
    desk.wait(MINUTE);
    assert!(desk.does(&sweep()).is_empty());
    assert_eq!(desk.status(), PlanStatus::Executing);
    // A sign of life, and silence again, is another stall.
    let report = desk.report(1, None);
    desk.does(&report);
    desk.wait(31 * MINUTE);
    assert_eq!(desk.does(&sweep()), ["plan_stalled"]);
}

#[test]
fn an_agent_beside_a_dead_one_is_not_thrown_back_and_forth() {
    let mut desk = Desk::with(4).stalled();
    for step in 2..=4 {
        assert_eq!(desk.next().unwrap().0, step);
        desk.wait(5 * MINUTE);
        assert!(desk.does(&sweep()).is_empty());
        let submit = desk.submit(step, None);
        desk.does(&submit);
        assert_eq!(desk.status(), PlanStatus::Executing);
    }
}

#[test]
fn several_stalls_are_one_mark() {
    let mut desk = Desk::with(2).started().started();
    desk.wait(31 * MINUTE);
    let events = desk.try_to(&sweep()).unwrap();
    let [Event::PlanStalled { stalls }] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(
        stalls.iter().map(|stall| stall.step).collect::<Vec<_>>(),
        [id(1), id(2)]
    );
}

fn by_policy(policy: OnStall, steps: u32) -> Desk {
    let mut command = plan_of(steps);
    command.on_stall = policy;
    let mut desk = Desk::of(command).started();
    desk.wait(31 * MINUTE);
    desk
}

#[test]
fn requeue_hands_the_step_back_until_its_attempts_are_used_up() {
    let mut desk = by_policy(OnStall::Requeue, 1);
    for attempt in 2..=3 {
        let events = desk.try_to(&sweep()).unwrap();
        assert!(matches!(
            events.as_slice(),
            [Event::StepRequeued { attempt: next, reason: RequeueReason::Stalled, .. }] if *next == attempt
        ));
        assert_eq!(desk.next().unwrap().1.attempt, attempt);
        desk.wait(31 * MINUTE);
    }
    assert_eq!(desk.does(&sweep()), ["step_failed", "plan_completed"]);
}

#[test]
fn fail_fails_the_step_with_the_reason_stalled() {
    let mut desk = by_policy(OnStall::Fail, 2);
    assert_eq!(desk.does(&sweep()), ["step_failed"]);
    let state = &desk.plan.step(id(1)).unwrap().state;
    assert!(matches!(
        state,
        StepState::Failed {
            reason: FailReason::Stalled,
            ..
        }
    ));
    assert_eq!(FailReason::Stalled.to_string(), "stalled");
    assert_eq!(desk.status(), PlanStatus::Executing);
}

#[test]
fn ignore_does_nothing_and_the_stall_still_shows() {
    let mut desk = by_policy(OnStall::Ignore, 1);
    assert!(desk.does(&sweep()).is_empty());
    assert_eq!(desk.plan.stalls(desk.now, None).len(), 1);
}

#[test]
fn a_handler_may_act_by_another_policy_and_threshold() {
    let mut desk = Desk::with(1).started();
    desk.wait(MINUTE);
    let command = HandleStalls {
        policy: Some(OnStall::Fail),
        threshold: Some(MINUTE / 2),
    };
    assert_eq!(
        desk.does(&Command::HandleStalls(command)),
        ["step_failed", "plan_completed"]
    );
}

#[test]
fn a_plan_that_waits_for_a_person_is_not_marked_but_its_other_steps_are_handed_back() {
    for (policy, expected) in [
        (OnStall::Mark, &[][..]),
        (OnStall::Requeue, &["step_requeued"]),
    ] {
        let mut command = plan_of(2);
        command.on_stall = policy;
        let mut desk = Desk::of(command).started().in_review();
        desk.wait(31 * MINUTE);
        assert_eq!(desk.does(&sweep()), expected);
        assert_eq!(desk.status(), PlanStatus::AwaitingReview);
    }
}

#[test]
fn no_clock_runs_while_a_person_thinks_and_a_decision_is_a_sign_of_life() {
    let mut desk = Desk::with(1).in_review();
    desk.wait(60 * 24 * MINUTE);
    assert!(desk.plan.stalls(desk.now, None).is_empty());
    assert_eq!(desk.plan.next_stall_at(desk.now, None), None);
    desk.does(&decision(1, Decision::Modify, Some("more")));
    desk.wait(30 * MINUTE);
    assert!(desk.plan.stalls(desk.now, None).is_empty());
    desk.wait(Duration::from_millis(1));
    assert_eq!(desk.plan.stalls(desk.now, None).len(), 1);
}

#[test]
fn a_plan_that_is_over_has_no_stalls() {
    let mut desk = Desk::with(1).started().abandoned();
    desk.wait(60 * MINUTE);
    assert!(desk.plan.stalls(desk.now, None).is_empty());
    assert_eq!(desk.plan.next_stall_at(desk.now, None), None);
    assert!(desk.does(&sweep()).is_empty());
}

#[test]
fn what_a_person_chooses_on_a_stalled_plan_resumes_it_and_acts() {
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
        let mut desk = Desk::with(2).stalled();
        assert_eq!(
            desk.code(&modify(modification.clone())),
            Code::PlanNotModifiable
        );
        let command = ModifyPlan {
            modification,
            rationale: None,
            resume: true,
        };
        assert_eq!(
            desk.does(&Command::ModifyPlan(command)),
            ["plan_resumed", "plan_modified", event]
        );
        assert_eq!(desk.status(), PlanStatus::Executing);
    }
}

#[test]
fn after_its_own_sleep_the_watcher_convicts_nobody_for_one_grace_period() {
    let mut desk = Desk::with(1).started();
    let mut watcher = Watcher::begin(
        WatcherPolicy {
            tolerance: MINUTE,
            grace: 2 * MINUTE,
        },
        desk.now,
    );
    watcher.sleep_until(desk.now.checked_add(MINUTE).unwrap());
    desk.wait(8 * 60 * MINUTE);
    watcher.wake(desk.now);
    let convicts = |desk: &Desk, watcher: &Watcher| {
        let steps: Vec<&Step> = desk.plan.steps().iter().collect();
        let facts = handle_stalls::Facts {
            plan: desk.plan.head(),
            in_progress: &steps,
            watcher: Some(watcher),
        };
        !handle_stalls::decide(&facts, &HandleStalls::default(), desk.now)
            .unwrap()
            .is_empty()
    };
    assert!(!convicts(&desk, &watcher));
    desk.wait(2 * MINUTE);
    assert!(!convicts(&desk, &watcher));
    desk.wait(Duration::from_millis(1));
    assert!(convicts(&desk, &watcher));
}

#[test]
fn a_handler_may_not_give_a_threshold_out_of_its_range() {
    let mut desk = Desk::with(1).started();
    let command = HandleStalls {
        policy: None,
        threshold: Some(Duration::ZERO),
    };
    assert_eq!(desk.code(&command.into()), Code::InvalidInput);
}
