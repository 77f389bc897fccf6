//! Periods of a step from its events, and folded periods.

use onward_core::StepType;

use super::*;

const LIMIT: Duration = Duration::from_secs(30);

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1000)
}

fn step(status: StepStatus) -> StepLine {
    StepLine {
        id: StepId::from_u128(1),
        order: 1,
        step_type: StepType::Search,
        title: None,
        status,
        attempt: 1,
        session: None,
        started_at: Some(at(10)),
        last_progress_at: None,
        monitored: false,
        orphaned_at: None,
        stalls_at: None,
        stall_threshold: None,
        ended_at: None,
        result_summary: None,
        failure: None,
        updated_at: at(10),
        note: None,
        supersedes: None,
        superseded_by: None,
    }
}

fn phases(step: &StepLine, events: &[(i64, &str)], now: i64) -> Vec<(Phase, i64, i64)> {
    let events: Vec<(Timestamp, &str)> = events.iter().map(|(s, name)| (at(*s), *name)).collect();
    let seconds = |at: Timestamp| at.as_millis() / 1000;
    periods(step, &events, LIMIT, at(now))
        .iter()
        .map(|period| (period.phase, seconds(period.from), seconds(period.until)))
        .collect()
}

#[test]
fn a_silence_has_the_same_bounds_after_the_step_is_released() {
    let started = (10, "step_started");
    let during = phases(&step(StepStatus::InProgress), &[started], 100);
    assert_eq!(during, [(Phase::Stuck, 10, 100)]);
    let mut pending = step(StepStatus::Pending);
    pending.started_at = None;
    let events = [
        started,
        (20, "step_progressed"),
        (100, "step_requeued"),
        (110, "step_started"),
        (120, "step_completed"),
    ];
    let after = phases(&pending, &events, 200);
    assert_eq!(
        after,
        [
            (Phase::Released, 10, 20),
            (Phase::Stuck, 20, 100),
            (Phase::Done, 110, 120)
        ]
    );
}

#[test]
fn reviews_and_failures_stay_visible() {
    let events = [
        (10, "step_started"),
        (20, "user_reviewed"),
        (90, "user_reviewed"),
        (95, "step_failed"),
    ];
    assert_eq!(
        phases(&step(StepStatus::Failed), &events, 200),
        [
            (Phase::Failed, 10, 20),
            (Phase::Review, 20, 90),
            (Phase::Failed, 90, 95)
        ]
    );
}

#[test]
fn an_attempt_whose_start_is_not_loaded_begins_with_the_step() {
    let mut done = step(StepStatus::Completed);
    done.ended_at = Some(at(30));
    assert_eq!(phases(&done, &[], 200), [(Phase::Done, 10, 30)]);
    let review = [(20, "user_reviewed")];
    assert_eq!(
        phases(&step(StepStatus::AwaitingInput), &review, 50),
        [(Phase::Working, 10, 20), (Phase::Review, 20, 50)]
    );
}

#[test]
fn a_long_idle_period_is_folded_unless_the_axis_is_to_scale() {
    let work = |from, until| Period {
        phase: Phase::Done,
        from: at(from),
        until: at(until),
    };
    let periods = [work(0, 100), work(10_000, 10_100)];
    let axis = Axis::new(periods.iter(), at(10_100), false).unwrap();
    assert_eq!(axis.folds.len(), 1);
    let bars = axis.bars(&periods);
    assert_eq!((bars[0].x, bars[0].width), (Percent(0), Percent(475)));
    assert_eq!((bars[1].x, bars[1].width), (Percent(525), Percent(475)));
    let axis = Axis::new(periods.iter(), at(10_100), true).unwrap();
    assert!(axis.folds.is_empty());
    assert_eq!(axis.bars(&periods)[0].width, Percent(9));
}

#[test]
fn a_folded_period_states_what_the_plan_waited_for() {
    let period = |phase, from, until| Period {
        phase,
        from: at(from),
        until: at(until),
    };
    let periods = [
        period(Phase::Done, 0, 100),
        period(Phase::Review, 100, 10_000),
        period(Phase::Done, 20_000, 20_100),
        period(Phase::Stuck, 20_100, 40_000),
        // No fold: another step worked.
        period(Phase::Done, 40_000, 40_100),
        period(Phase::Review, 40_000, 40_100),
    ];
    let gap = |from, until, phase| Gap {
        from: at(from),
        until: at(until),
        phase,
    };
    assert_eq!(
        long_gaps(periods.iter()),
        [
            gap(100, 10_000, Some(Phase::Review)),
            gap(10_000, 20_000, None),
            gap(20_100, 40_000, Some(Phase::Stuck)),
        ]
    );
}
