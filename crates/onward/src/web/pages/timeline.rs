//! The timeline of a plan: per step, when it was pending, in progress, awaiting review and stalled.
//!
//! Phases come from recent events of the audit trail; earlier phases are derived from the step.
//! Positions are in thousandths of the width, so the drawing scales.

use std::collections::HashMap;

use onward_core::{StepId, StepStatus, Timestamp};
use onward_engine::{Recent, StepLine};

use crate::output::format;

/// Number of recent events that are loaded.
pub(super) const MAX_EVENTS: u32 = 2_000;
/// Minimum width of a bar, so that it is visible.
const MIN_BAR_WIDTH: u64 = 3;
const WIDTH: u64 = 1_000;
/// With more steps than this, steps that were never started are only counted.
const MAX_UNSTARTED_ROWS: usize = 12;

/// The status of a step during a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    InProgress,
    AwaitingReview,
    Stalled,
}

impl Phase {
    fn label(self) -> &'static str {
        match self {
            Phase::Pending => "pending",
            Phase::InProgress => "in progress",
            Phase::AwaitingReview => "awaiting review",
            Phase::Stalled => "stuck",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Phase::Pending => "pending",
            Phase::InProgress => "in-progress",
            Phase::AwaitingReview => "awaiting-review",
            Phase::Stalled => "stalled",
        }
    }

    /// Offset and height in a row of 16 units. Phases differ in height, not only in colour.
    fn offset_and_height(self) -> (u64, u64) {
        match self {
            Phase::Pending => (7, 2),
            Phase::InProgress => (2, 12),
            Phase::AwaitingReview => (5, 6),
            Phase::Stalled => (1, 14),
        }
    }
}

/// A drawn timeline.
pub(super) struct Timeline {
    pub(super) rows: Vec<Row>,
    pub(super) from: String,
    pub(super) until: String,
    pub(super) span: String,
    /// Number of pending steps that are not drawn.
    pub(super) pending: usize,
}

pub(super) struct Row {
    pub(super) order: u32,
    pub(super) name: String,
    pub(super) bars: Vec<Bar>,
    /// Text alternative.
    pub(super) description: String,
}

pub(super) struct Bar {
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) width: u64,
    pub(super) height: u64,
    pub(super) class: &'static str,
    pub(super) description: String,
}

/// A period of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Period {
    phase: Phase,
    from: Timestamp,
    until: Timestamp,
}

/// Draws a timeline, or none if no step was started.
pub(super) fn draw(
    steps: &[StepLine],
    recent: &[Recent],
    created_at: Timestamp,
    now: Timestamp,
) -> Option<Timeline> {
    let mut events: HashMap<StepId, Vec<&Recent>> = HashMap::new();
    for event in recent.iter().rev() {
        if let Some(step) = event.step {
            events.entry(step).or_default().push(event);
        }
    }
    let rows: Vec<(&StepLine, Vec<Period>)> = steps
        .iter()
        .map(|step| {
            let own = events.get(&step.id).map_or(&[][..], Vec::as_slice);
            (step, periods(step, own, created_at, now))
        })
        .collect();
    let is_started = |period: &&Period| period.phase != Phase::Pending;
    let count = rows.len();
    let was_started = |periods: &[Period]| periods.iter().any(|period| is_started(&period));
    let drawn: Vec<(&StepLine, Vec<Period>)> = rows
        .into_iter()
        .filter(|(_, periods)| count <= MAX_UNSTARTED_ROWS || was_started(periods))
        .collect();
    let all = || drawn.iter().flat_map(|(_, periods)| periods);
    let from = all().filter(is_started).map(|period| period.from).min()?;
    let until = all().map(|period| period.until).max()?;
    let scale = Scale { from, until };
    let rows = drawn.into_iter().map(|(step, periods)| {
        let bars: Vec<Bar> = periods
            .iter()
            .filter_map(|period| scale.bar(period))
            .collect();
        let descriptions: Vec<String> = periods.iter().map(describe).collect();
        let name = step.title.as_deref().unwrap_or(step.step_type.as_str());
        Row {
            order: step.order,
            name: super::format::one_line(name, 40),
            bars,
            description: descriptions.join(", "),
        }
    });
    let rows: Vec<Row> = rows.collect();
    Some(Timeline {
        pending: count - rows.len(),
        rows,
        from: format::timestamp(from),
        until: format::timestamp(until),
        span: format::duration(until.since(from)),
    })
}

fn describe(period: &Period) -> String {
    let span = format::duration(period.until.since(period.from));
    format!("{} {span}", period.phase.label())
}

struct Scale {
    from: Timestamp,
    until: Timestamp,
}

impl Scale {
    fn at(&self, instant: Timestamp) -> u64 {
        let whole = self.until.since(self.from).as_millis().max(1);
        let part = instant.since(self.from).as_millis().min(whole);
        u64::try_from(part * u128::from(WIDTH) / whole).unwrap_or(WIDTH)
    }

    fn bar(&self, period: &Period) -> Option<Bar> {
        if period.until <= self.from && period.phase == Phase::Pending {
            return None;
        }
        let (x, end) = (self.at(period.from), self.at(period.until));
        let x = x.min(WIDTH - MIN_BAR_WIDTH);
        let (y, height) = period.phase.offset_and_height();
        Some(Bar {
            x,
            y,
            width: end.saturating_sub(x).max(MIN_BAR_WIDTH),
            height,
            class: period.phase.class(),
            description: describe(period),
        })
    }
}

/// The periods of a step, in order.
fn periods(
    step: &StepLine,
    events: &[&Recent],
    created_at: Timestamp,
    now: Timestamp,
) -> Vec<Period> {
    let mut periods = Vec::new();
    let mut since = created_at;
    let first = events.iter().find(|event| event.name != "step_progressed");
    let mut phase = match (first.map(|event| event.name.as_str()), step.started_at) {
        (Some("step_started") | None, None) | (Some("step_started"), Some(_)) => Phase::Pending,
        (_, Some(started_at)) => {
            // The start event is older than the loaded events.
            periods.push(period(Phase::Pending, created_at, started_at));
            since = started_at;
            Phase::InProgress
        }
        (Some(_), None) => Phase::Pending,
    };
    for event in events {
        let next = match (event.name.as_str(), phase) {
            ("step_started", _) => Phase::InProgress,
            ("user_reviewed", Phase::AwaitingReview) => Phase::InProgress,
            ("user_reviewed", _) => Phase::AwaitingReview,
            ("step_requeued", _) => Phase::Pending,
            ("step_completed" | "step_failed" | "step_skipped", _) => {
                periods.push(period(phase, since, event.at));
                return without_empty(periods);
            }
            _ => continue,
        };
        periods.push(period(phase, since, event.at));
        (phase, since) = (next, event.at);
    }
    if let Some(ended_at) = step.ended_at {
        periods.push(period(phase, since, ended_at));
        return without_empty(periods);
    }
    // The last period is the current state.
    match (step.status, step.stalls_at) {
        (StepStatus::InProgress, Some(stalls_at)) if stalls_at < now => {
            let stalled_at = stalls_at.max(since);
            periods.push(period(Phase::InProgress, since, stalled_at));
            periods.push(period(Phase::Stalled, stalled_at, now));
        }
        (StepStatus::InProgress, _) => periods.push(period(Phase::InProgress, since, now)),
        (StepStatus::AwaitingInput, _) => {
            periods.push(period(Phase::AwaitingReview, since, now));
        }
        _ => periods.push(period(Phase::Pending, since, now)),
    }
    without_empty(periods)
}

fn period(phase: Phase, from: Timestamp, until: Timestamp) -> Period {
    Period { phase, from, until }
}

/// Drops pending periods of zero length.
fn without_empty(mut periods: Vec<Period>) -> Vec<Period> {
    periods.retain(|period| period.phase != Phase::Pending || period.until > period.from);
    periods
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_core::StepType;

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
            stalls_at: Some(at(100)),
            stall_threshold: None,
            ended_at: None,
            result_summary: None,
            failure: None,
            updated_at: at(10),
        }
    }

    fn event(second: i64, name: &str) -> Recent {
        Recent {
            seq: 1,
            at: at(second),
            actor: String::new(),
            session: None,
            name: name.to_owned(),
            step: Some(StepId::from_u128(1)),
            details: None,
        }
    }

    fn phases(step: &StepLine, events: &[Recent], now: i64) -> Vec<(Phase, i64, i64)> {
        let events: Vec<&Recent> = events.iter().collect();
        let second = |instant: Timestamp| instant.as_millis() / 1000;
        let periods = periods(step, &events, at(0), at(now));
        let phase = |period: &Period| (period.phase, second(period.from), second(period.until));
        periods.iter().map(phase).collect()
    }

    #[test]
    fn a_review_interrupts_the_work_on_a_step() {
        let events = [
            event(10, "step_started"),
            event(15, "step_progressed"),
            event(20, "user_reviewed"),
            event(50, "user_reviewed"),
        ];
        assert_eq!(
            phases(&step(StepStatus::InProgress), &events, 60),
            [
                (Phase::Pending, 0, 10),
                (Phase::InProgress, 10, 20),
                (Phase::AwaitingReview, 20, 50),
                (Phase::InProgress, 50, 60),
            ]
        );
    }

    #[test]
    fn a_step_is_stalled_from_its_threshold_on() {
        assert_eq!(
            phases(
                &step(StepStatus::InProgress),
                &[event(10, "step_started")],
                130
            ),
            [
                (Phase::Pending, 0, 10),
                (Phase::InProgress, 10, 100),
                (Phase::Stalled, 100, 130),
            ]
        );
    }

    #[test]
    fn phases_before_the_loaded_events_come_from_the_step() {
        let mut done = step(StepStatus::Completed);
        done.ended_at = Some(at(40));
        let expected = [(Phase::Pending, 0, 10), (Phase::InProgress, 10, 40)];
        assert_eq!(phases(&done, &[], 60), expected);
        assert_eq!(phases(&done, &[event(40, "step_completed")], 60), expected);
    }

    #[test]
    fn a_step_that_was_never_started_is_pending() {
        let mut pending = step(StepStatus::Pending);
        (pending.started_at, pending.stalls_at) = (None, None);
        assert_eq!(phases(&pending, &[], 60), [(Phase::Pending, 0, 60)]);
        assert!(draw(&[pending], &[], at(0), at(60)).is_none());
    }

    #[test]
    fn unstarted_steps_of_a_long_plan_are_only_counted() {
        let mut pending = step(StepStatus::Pending);
        (pending.started_at, pending.stalls_at) = (None, None);
        let mut steps = vec![step(StepStatus::InProgress)];
        steps.resize(12, pending.clone());
        let few = draw(&steps, &[], at(0), at(60)).unwrap();
        assert_eq!((few.rows.len(), few.pending), (12, 0));
        steps.push(pending);
        let many = draw(&steps, &[], at(0), at(60)).unwrap();
        assert_eq!((many.rows.len(), many.pending), (1, 12));
    }

    #[test]
    fn bars_are_to_scale() {
        let mut done = step(StepStatus::Completed);
        done.ended_at = Some(at(30));
        let working = step(StepStatus::InProgress);
        let drawn = draw(&[done, working], &[], at(0), at(50)).unwrap();
        let bars = |row: &Row| -> Vec<(u64, u64)> {
            row.bars.iter().map(|bar| (bar.x, bar.width)).collect()
        };
        assert_eq!(bars(&drawn.rows[0]), [(0, 500)]);
        assert_eq!(bars(&drawn.rows[1]), [(0, 1000)]);
        assert_eq!(drawn.span, "40 s");
    }
}
