//! The bars of a plan page: per step, every attempt with its silences, reviews and outcome, drawn
//! from the audit trail, so that past silence stays visible after it has ended.
//!
//! Positions are in tenths of a percent of the width. Long periods in which no step works are
//! folded: they are narrow, and their label states what the plan waited for.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use askama::filters::HtmlSafe;
use onward_core::policy::stall_threshold;
use onward_core::{StepId, StepStatus, Timestamp};
use onward_engine::{Recent, StepLine};

use super::format::Clock;
use crate::output::format;

/// Number of recent events that are loaded.
pub(super) const MAX_EVENTS: u32 = 2_000;
/// Minimum width of a bar, so that it is visible.
const MIN_BAR_WIDTH: u64 = 4;
const WIDTH: u64 = 1_000;
/// Width of a folded period.
const FOLD_WIDTH: u64 = 50;
/// Width of the label of a folded period.
const LABEL_WIDTH: u64 = 240;
/// Maximum number of folded periods.
const MAX_FOLDS: usize = 6;
/// Shorter periods are not folded.
const MIN_FOLD: Duration = Duration::from_secs(60);
/// Number of labels on the axis.
const MAX_TICKS: u128 = 5;

/// The state of a step during a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Work of an attempt that continues.
    Working,
    /// Work of an attempt with a result.
    Done,
    /// Work of an attempt that failed.
    Failed,
    /// Work of an attempt that was released.
    Released,
    /// A review was open.
    Review,
    /// The step was past its limit.
    Stuck,
}

impl Phase {
    fn label(self) -> &'static str {
        match self {
            Phase::Working => "working",
            Phase::Done => "done",
            Phase::Failed => "failed",
            Phase::Released => "released",
            Phase::Review => "awaiting review",
            Phase::Stuck => "stuck",
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Phase::Working => "working",
            Phase::Done => "done",
            Phase::Failed => "failed",
            Phase::Released => "released",
            Phase::Review => "review",
            Phase::Stuck => "stuck",
        }
    }

    /// Offset and height in a row of 14 pixels. Phases differ in height, not only in colour.
    const fn offset_and_height(self) -> (u64, u64) {
        match self {
            Phase::Working | Phase::Done | Phase::Failed => (2, 10),
            Phase::Released => (4, 6),
            Phase::Review => (5, 4),
            Phase::Stuck => (1, 12),
        }
    }
}

/// A period in which no step works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    from: Timestamp,
    until: Timestamp,
    /// A step was in review or stuck; none if all were idle.
    phase: Option<Phase>,
}

impl Gap {
    fn duration(&self) -> Duration {
        self.until.since(self.from)
    }

    fn label(&self) -> String {
        let duration = format::duration(self.duration());
        match self.phase {
            Some(phase) => format!("{} {duration}", phase.class()),
            None => format!("{duration} idle"),
        }
    }
}

/// A period of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) phase: Phase,
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
}

/// A length in tenths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Percent(pub(super) u64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}%", self.0 / 10, self.0 % 10)
    }
}

impl HtmlSafe for Percent {}

pub(super) struct Bar {
    pub(super) x: Percent,
    pub(super) y: u64,
    pub(super) width: Percent,
    pub(super) height: u64,
    pub(super) class: &'static str,
    pub(super) description: String,
}

/// A folded period.
pub(super) struct Fold {
    pub(super) x: Percent,
    pub(super) width: Percent,
    pub(super) label: String,
    /// Where the label is drawn, if there is room for it.
    pub(super) label_x: Option<Percent>,
}

/// A label of the axis.
pub(super) struct Tick {
    pub(super) x: Percent,
    pub(super) at: Timestamp,
    pub(super) label: String,
}

/// The axis of a plan.
pub(super) struct Axis {
    pub(super) from: Clock,
    pub(super) until: Clock,
    pub(super) ticks: Vec<Tick>,
    pub(super) folds: Vec<Fold>,
    /// Total length of the folded periods.
    pub(super) folded: Option<String>,
    scale: Scale,
}

/// The periods of all steps, from the trail. `recent` is sorted newest first.
pub(super) fn periods_by_step(
    steps: &[StepLine],
    recent: &[Recent],
    plan_threshold: Option<Duration>,
    now: Timestamp,
) -> HashMap<StepId, Vec<Period>> {
    let mut events: HashMap<StepId, Vec<(Timestamp, &str)>> = HashMap::new();
    for event in recent.iter().rev() {
        if let Some(step) = event.step {
            let own = events.entry(step).or_default();
            own.push((event.at, event.name.as_str()));
        }
        if event.name == "plan_stalled" {
            for (step, since) in stalls(event) {
                // The last activity, also if its own event was not recorded.
                events.entry(step).or_default().push((since, "active"));
            }
        }
    }
    let of_step = |step: &StepLine| {
        let own = events.get(&step.id).map_or(&[][..], Vec::as_slice);
        let threshold = stall_threshold(None, step.stall_threshold, plan_threshold);
        (step.id, periods(step, own, threshold, now))
    };
    steps.iter().map(of_step).collect()
}

/// The steps of a stall with their last activity.
fn stalls(event: &Recent) -> Vec<(StepId, Timestamp)> {
    let Some(details) = event.details.as_ref().and_then(|details| details.parse()) else {
        return Vec::new();
    };
    let stalls = details.get("stalls").and_then(serde_json::Value::as_array);
    let read = |stall: &serde_json::Value| {
        let step = stall.get("stepId")?.as_str()?.parse().ok()?;
        let since = stall.get("since")?.as_str()?.parse().ok()?;
        Some((step, since))
    };
    stalls.into_iter().flatten().filter_map(read).collect()
}

/// A claim of a step while it is read from the trail.
struct Attempt {
    /// Start of the current stretch of work.
    since: Timestamp,
    activity: Vec<Timestamp>,
    /// When the open review was requested.
    asked_at: Option<Timestamp>,
    periods: Vec<Period>,
}

impl Attempt {
    fn begin(at: Timestamp) -> Self {
        Self {
            since: at,
            activity: Vec::new(),
            asked_at: None,
            periods: Vec::new(),
        }
    }

    /// Ends the current stretch of work: silences longer than the threshold, and the work between.
    fn pause(&mut self, at: Timestamp, threshold: Duration) {
        let mut points = std::mem::take(&mut self.activity);
        points.retain(|point| *point > self.since && *point < at);
        points.sort_unstable();
        let mut last = self.since;
        for point in points.into_iter().chain([at]) {
            let is_silent = point.since(last) > threshold;
            let phase = if is_silent {
                Phase::Stuck
            } else {
                Phase::Working
            };
            match self.periods.last_mut() {
                Some(previous) if previous.phase == phase && previous.until == last => {
                    previous.until = point;
                }
                Some(_) | None => self.periods.push(Period {
                    phase,
                    from: last,
                    until: point,
                }),
            }
            last = point;
        }
        self.since = at;
    }

    fn review(&mut self, at: Timestamp, threshold: Duration) {
        match self.asked_at.take() {
            Some(asked_at) => {
                self.periods.push(Period {
                    phase: Phase::Review,
                    from: asked_at,
                    until: at,
                });
                self.since = at;
            }
            None => {
                self.pause(at, threshold);
                self.asked_at = Some(at);
            }
        }
    }

    /// Ends the attempt. `outcome` is the phase of its work.
    fn end(mut self, at: Timestamp, threshold: Duration, outcome: Phase) -> Vec<Period> {
        if self.asked_at.is_some() {
            self.review(at, threshold);
        } else {
            self.pause(at, threshold);
        }
        for period in &mut self.periods {
            if period.phase == Phase::Working {
                period.phase = outcome;
            }
        }
        self.periods
    }
}

/// The periods of a step, in order.
fn periods(
    step: &StepLine,
    events: &[(Timestamp, &str)],
    threshold: Duration,
    now: Timestamp,
) -> Vec<Period> {
    let mut periods = Vec::new();
    let mut attempt: Option<Attempt> = None;
    let first = events.iter().find(|(_, name)| *name != "step_progressed");
    if first.is_none_or(|(_, name)| *name != "step_started")
        && let Some(started_at) = step.started_at
    {
        // The start is older than the loaded events.
        attempt = Some(Attempt::begin(started_at));
    }
    for (at, name) in events {
        let outcome = match *name {
            "step_started" => {
                attempt = Some(Attempt::begin(*at));
                continue;
            }
            "step_progressed" | "active" => {
                if let Some(attempt) = &mut attempt {
                    attempt.activity.push(*at);
                }
                continue;
            }
            "user_reviewed" => {
                if let Some(attempt) = &mut attempt {
                    attempt.review(*at, threshold);
                }
                continue;
            }
            "step_completed" => Phase::Done,
            "step_failed" => Phase::Failed,
            "step_requeued" | "step_skipped" => Phase::Released,
            _ => continue,
        };
        if let Some(attempt) = attempt.take() {
            periods.extend(attempt.end(*at, threshold, outcome));
        }
    }
    if let Some(mut attempt) = attempt {
        let (until, outcome) = match (step.ended_at, step.status) {
            (Some(ended_at), StepStatus::Failed) => (ended_at, Phase::Failed),
            (Some(ended_at), _) => (ended_at, Phase::Done),
            (None, _) => (now, Phase::Working),
        };
        attempt.activity.extend(step.last_progress_at);
        periods.extend(attempt.end(until, threshold, outcome));
    }
    periods
}

/// A piecewise linear map from times to positions.
struct Scale {
    /// Times and positions, ascending.
    points: Vec<(Timestamp, u64)>,
}

impl Scale {
    fn at(&self, instant: Timestamp) -> u64 {
        let after = self.points.partition_point(|(at, _)| *at <= instant);
        let Some(&(from, x)) = self.points.get(after.saturating_sub(1)) else {
            return 0;
        };
        let Some(&(until, end)) = self.points.get(after) else {
            return WIDTH;
        };
        if instant < from {
            return 0;
        }
        let whole = until.since(from).as_millis().max(1);
        let part = instant.since(from).as_millis();
        x + u64::try_from(part * u128::from(end - x) / whole).unwrap_or(0)
    }
}

impl Axis {
    /// The axis for these periods; none if no step was started. Does not fold if `to_scale`.
    pub(super) fn new<'p>(
        periods: impl Iterator<Item = &'p Period> + Clone,
        now: Timestamp,
        to_scale: bool,
    ) -> Option<Self> {
        let from = periods.clone().map(|period| period.from).min()?;
        let until = periods.clone().map(|period| period.until).max()?;
        let gaps = if to_scale {
            Vec::new()
        } else {
            long_gaps(periods)
        };
        let folded: Duration = gaps.iter().map(Gap::duration).sum();
        let shown = until.since(from).saturating_sub(folded).as_millis().max(1);
        let folds = u64::try_from(gaps.len()).unwrap_or(0) * FOLD_WIDTH;
        let mut points = vec![(from, 0)];
        let (mut x, mut last) = (0, from);
        for gap in &gaps {
            let part = gap.from.since(last).as_millis();
            x += u64::try_from(part * u128::from(WIDTH - folds) / shown).unwrap_or(0);
            points.push((gap.from, x));
            x += FOLD_WIDTH;
            points.push((gap.until, x));
            last = gap.until;
        }
        points.push((until, WIDTH));
        let scale = Scale { points };
        let mut folds: Vec<Fold> = Vec::new();
        for gap in &gaps {
            let x = scale.at(gap.from);
            let label_x = x + FOLD_WIDTH / 2;
            let is_inside = (LABEL_WIDTH / 2..=WIDTH - LABEL_WIDTH / 2).contains(&label_x);
            let mut labels = folds.iter().rev().filter_map(|fold| fold.label_x);
            let is_apart = labels
                .next()
                .is_none_or(|last| label_x >= last.0 + LABEL_WIDTH);
            folds.push(Fold {
                x: Percent(x),
                width: Percent(FOLD_WIDTH),
                label: gap.label(),
                label_x: (is_inside && is_apart).then_some(Percent(label_x)),
            });
        }
        Some(Self {
            from: Clock::new(from, now),
            until: Clock::new(until, now),
            ticks: ticks(&scale, &gaps, &folds, (from, until), shown, now),
            folded: (!gaps.is_empty()).then(|| format::duration(folded)),
            folds,
            scale,
        })
    }

    pub(super) fn bars(&self, periods: &[Period]) -> Vec<Bar> {
        periods.iter().map(|period| self.bar(period)).collect()
    }

    fn bar(&self, period: &Period) -> Bar {
        let x = self.scale.at(period.from).min(WIDTH - MIN_BAR_WIDTH);
        let end = self.scale.at(period.until);
        let (y, height) = period.phase.offset_and_height();
        let span = format::duration(period.until.since(period.from));
        Bar {
            x: Percent(x),
            y,
            width: Percent(end.saturating_sub(x).max(MIN_BAR_WIDTH)),
            height,
            class: period.phase.class(),
            description: format!("{} {span}", period.phase.label()),
        }
    }
}

/// The longest periods in which no step worked, in order, each with what the plan waited for.
fn long_gaps<'p>(periods: impl Iterator<Item = &'p Period>) -> Vec<Gap> {
    let mut changes: Vec<(Timestamp, bool, Phase)> = Vec::new();
    for Period { phase, from, until } in periods.filter(|period| period.from <= period.until) {
        changes.extend([(*from, false, *phase), (*until, true, *phase)]);
    }
    // At the same time, periods begin before others end.
    changes.sort_unstable_by_key(|(at, ends, _)| (*at, *ends));
    let (mut working, mut in_review, mut stuck) = (0_usize, 0_usize, 0_usize);
    let (mut active, mut last) = (Duration::ZERO, None);
    let mut gaps: Vec<Gap> = Vec::new();
    for (until, ends, changed) in changes {
        let from = last.replace(until).unwrap_or(until);
        let phase = match (in_review, stuck) {
            (0, 0) => None,
            (0, _) => Some(Phase::Stuck),
            (_, _) => Some(Phase::Review),
        };
        if working > 0 {
            active += until.since(from);
        } else if until > from {
            let same = |gap: &&mut Gap| gap.until == from && gap.phase == phase;
            match gaps.last_mut().filter(same) {
                Some(gap) => gap.until = until,
                None => gaps.push(Gap { from, until, phase }),
            }
        }
        let open = match changed {
            Phase::Working | Phase::Done | Phase::Failed | Phase::Released => &mut working,
            Phase::Review => &mut in_review,
            Phase::Stuck => &mut stuck,
        };
        *open = if ends { *open - 1 } else { *open + 1 };
    }
    let min_fold = (active / 2).max(MIN_FOLD);
    gaps.retain(|gap| gap.duration() > min_fold);
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.duration()));
    gaps.truncate(MAX_FOLDS);
    gaps.sort_by_key(|gap| gap.from);
    gaps
}

/// Labels at round times outside of folded periods.
fn ticks(
    scale: &Scale,
    gaps: &[Gap],
    folds: &[Fold],
    (from, until): (Timestamp, Timestamp),
    shown: u128,
    now: Timestamp,
) -> Vec<Tick> {
    const MINUTES: [i64; 11] = [1, 2, 5, 10, 15, 30, 60, 180, 360, 720, 1_440];
    let enough = |minutes: &&i64| {
        let every = u128::try_from(**minutes * 60_000).unwrap_or(u128::MAX);
        shown / every <= MAX_TICKS
    };
    let Some(minutes) = MINUTES.iter().find(enough) else {
        return Vec::new();
    };
    let every = minutes * 60_000;
    let mut ticks: Vec<Tick> = Vec::new();
    let mut at = (from.as_millis() / every + 1) * every;
    while at < until.as_millis() {
        let instant = Timestamp::from_millis(at);
        if let Some(gap) = gaps
            .iter()
            .find(|gap| gap.from <= instant && instant < gap.until)
        {
            // Continue after the folded period.
            at = (gap.until.as_millis() / every + 1) * every;
            continue;
        }
        let x = scale.at(instant);
        let mut labels = folds.iter().filter_map(|fold| fold.label_x);
        let is_apart = ticks.last().is_none_or(|last| x >= last.x.0 + 90)
            && labels.all(|label| x.abs_diff(label.0) >= LABEL_WIDTH);
        if is_apart && (30..WIDTH - 60).contains(&x) {
            ticks.push(Tick {
                x: Percent(x),
                at: instant,
                label: Clock::new(instant, now).text(),
            });
        }
        at += every;
    }
    ticks
}

#[cfg(test)]
mod tests;
