//! The steps of a plan against time, drawn to scale: where each waited, was worked on, was in review,
//! and fell silent.
//!
//! The trail says when a step changed; what has happened before the part of it that is looked at is
//! taken from the step itself. All positions are thousandths of the width, so that the drawing fits any
//! screen.

use std::collections::HashMap;

use onward_core::{StepId, StepStatus, Timestamp};
use onward_engine::{Recent, StepLine};

use crate::output::words;

/// How many entries of the trail are looked at.
pub(super) const LOOKED_AT: u32 = 2_000;
/// What is shorter than this would not be seen.
const THINNEST: u64 = 3;
const WIDTH: u64 = 1_000;
/// Of more steps than this, those that nobody took on yet are only counted.
const WAITING: usize = 12;

/// What a step was in for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Waiting,
    Working,
    InReview,
    Stalled,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Waiting => "waiting",
            Kind::Working => "working",
            Kind::InReview => "in review",
            Kind::Stalled => "stalled",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Kind::Waiting => "waiting",
            Kind::Working => "working",
            Kind::InReview => "in-review",
            Kind::Stalled => "stalled",
        }
    }

    /// Where it stands in a row of 16: the kinds differ in shape, not only in colour.
    fn place(self) -> (u64, u64) {
        match self {
            Kind::Waiting => (7, 2),
            Kind::Working => (2, 12),
            Kind::InReview => (5, 6),
            Kind::Stalled => (1, 14),
        }
    }
}

/// The drawing.
pub(super) struct Timeline {
    pub(super) rows: Vec<Row>,
    pub(super) from: String,
    pub(super) until: String,
    pub(super) span: String,
    /// How many steps wait that are not drawn.
    pub(super) waiting: usize,
}

pub(super) struct Row {
    pub(super) order: u32,
    pub(super) name: String,
    pub(super) bars: Vec<Bar>,
    /// The same in words.
    pub(super) told: String,
}

pub(super) struct Bar {
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) width: u64,
    pub(super) height: u64,
    pub(super) class: &'static str,
    pub(super) told: String,
}

/// A while that a step was in something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    kind: Kind,
    from: Timestamp,
    until: Timestamp,
}

/// Draws these steps.
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
    let rows: Vec<(&StepLine, Vec<Piece>)> = steps
        .iter()
        .map(|step| {
            let own = events.get(&step.id).map_or(&[][..], Vec::as_slice);
            (step, pieces(step, own, created_at, now))
        })
        .collect();
    let worked = |piece: &&Piece| piece.kind != Kind::Waiting;
    let count = rows.len();
    let was_taken_on = |pieces: &[Piece]| pieces.iter().any(|piece| worked(&piece));
    let drawn: Vec<(&StepLine, Vec<Piece>)> = rows
        .into_iter()
        .filter(|(_, pieces)| count <= WAITING || was_taken_on(pieces))
        .collect();
    let all = || drawn.iter().flat_map(|(_, pieces)| pieces);
    let from = all().filter(worked).map(|piece| piece.from).min()?;
    let until = all().map(|piece| piece.until).max()?;
    let scale = Scale { from, until };
    let rows = drawn.into_iter().map(|(step, pieces)| {
        let bars: Vec<Bar> = pieces.iter().filter_map(|one| scale.bar(one)).collect();
        let told: Vec<String> = pieces.iter().map(told).collect();
        Row {
            order: step.order,
            name: super::show::gist(step.title.as_deref().unwrap_or(step.step_type.as_str()), 40),
            bars,
            told: told.join(", "),
        }
    });
    let rows: Vec<Row> = rows.collect();
    Some(Timeline {
        waiting: count - rows.len(),
        rows,
        from: words::instant(from),
        until: words::instant(until),
        span: words::span(until.since(from)),
    })
}

fn told(piece: &Piece) -> String {
    let span = words::span(piece.until.since(piece.from));
    format!("{} {span}", piece.kind.word())
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

    fn bar(&self, piece: &Piece) -> Option<Bar> {
        if piece.until <= self.from && piece.kind == Kind::Waiting {
            return None;
        }
        let (x, end) = (self.at(piece.from), self.at(piece.until));
        let x = x.min(WIDTH - THINNEST);
        let (y, height) = piece.kind.place();
        Some(Bar {
            x,
            y,
            width: end.saturating_sub(x).max(THINNEST),
            height,
            class: piece.kind.class(),
            told: told(piece),
        })
    }
}

/// What a step was in, one after the other.
fn pieces(
    step: &StepLine,
    events: &[&Recent],
    created_at: Timestamp,
    now: Timestamp,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut since = created_at;
    let first = events.iter().find(|event| event.name != "step_progressed");
    let mut kind = match (first.map(|event| event.name.as_str()), step.started_at) {
        (Some("step_started") | None, None) | (Some("step_started"), Some(_)) => Kind::Waiting,
        (_, Some(started_at)) => {
            // What came before is too long ago to be looked at.
            pieces.push(piece(Kind::Waiting, created_at, started_at));
            since = started_at;
            Kind::Working
        }
        (Some(_), None) => Kind::Waiting,
    };
    for event in events {
        let next = match (event.name.as_str(), kind) {
            ("step_started", _) => Kind::Working,
            ("user_reviewed", Kind::InReview) => Kind::Working,
            ("user_reviewed", _) => Kind::InReview,
            ("step_requeued", _) => Kind::Waiting,
            ("step_completed" | "step_failed" | "step_skipped", _) => {
                pieces.push(piece(kind, since, event.at));
                return drawn(pieces);
            }
            _ => continue,
        };
        pieces.push(piece(kind, since, event.at));
        (kind, since) = (next, event.at);
    }
    if let Some(ended_at) = step.ended_at {
        pieces.push(piece(kind, since, ended_at));
        return drawn(pieces);
    }
    // The last piece is what the step is in.
    match (step.status, step.stalls_at) {
        (StepStatus::InProgress, Some(stalls_at)) if stalls_at < now => {
            let silent = stalls_at.max(since);
            pieces.push(piece(Kind::Working, since, silent));
            pieces.push(piece(Kind::Stalled, silent, now));
        }
        (StepStatus::InProgress, _) => pieces.push(piece(Kind::Working, since, now)),
        (StepStatus::AwaitingInput, _) => pieces.push(piece(Kind::InReview, since, now)),
        _ => pieces.push(piece(Kind::Waiting, since, now)),
    }
    drawn(pieces)
}

fn piece(kind: Kind, from: Timestamp, until: Timestamp) -> Piece {
    Piece { kind, from, until }
}

/// Without those that took no time, unless that is all there was.
fn drawn(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.retain(|piece| piece.kind != Kind::Waiting || piece.until > piece.from);
    pieces
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

    fn of(step: &StepLine, events: &[Recent], now: i64) -> Vec<(Kind, i64, i64)> {
        let events: Vec<&Recent> = events.iter().collect();
        let second = |instant: Timestamp| instant.as_millis() / 1000;
        let pieces = pieces(step, &events, at(0), at(now));
        let told = |one: &Piece| (one.kind, second(one.from), second(one.until));
        pieces.iter().map(told).collect()
    }

    #[test]
    fn a_step_waits_is_worked_on_is_in_review_and_is_worked_on_again() {
        let events = [
            event(10, "step_started"),
            event(15, "step_progressed"),
            event(20, "user_reviewed"),
            event(50, "user_reviewed"),
        ];
        assert_eq!(
            of(&step(StepStatus::InProgress), &events, 60),
            [
                (Kind::Waiting, 0, 10),
                (Kind::Working, 10, 20),
                (Kind::InReview, 20, 50),
                (Kind::Working, 50, 60),
            ]
        );
    }

    #[test]
    fn who_is_past_the_threshold_is_stalled_from_then_on() {
        assert_eq!(
            of(
                &step(StepStatus::InProgress),
                &[event(10, "step_started")],
                130
            ),
            [
                (Kind::Waiting, 0, 10),
                (Kind::Working, 10, 100),
                (Kind::Stalled, 100, 130),
            ]
        );
    }

    #[test]
    fn what_is_not_in_the_trail_any_more_is_taken_from_the_step() {
        let mut done = step(StepStatus::Completed);
        done.ended_at = Some(at(40));
        let expected = [(Kind::Waiting, 0, 10), (Kind::Working, 10, 40)];
        assert_eq!(of(&done, &[], 60), expected);
        assert_eq!(of(&done, &[event(40, "step_completed")], 60), expected);
    }

    #[test]
    fn a_step_that_nobody_took_on_waits() {
        let mut pending = step(StepStatus::Pending);
        (pending.started_at, pending.stalls_at) = (None, None);
        assert_eq!(of(&pending, &[], 60), [(Kind::Waiting, 0, 60)]);
        assert!(draw(&[pending], &[], at(0), at(60)).is_none());
    }

    #[test]
    fn of_many_steps_those_that_wait_are_counted() {
        let mut pending = step(StepStatus::Pending);
        (pending.started_at, pending.stalls_at) = (None, None);
        let mut steps = vec![step(StepStatus::InProgress)];
        steps.resize(12, pending.clone());
        let few = draw(&steps, &[], at(0), at(60)).unwrap();
        assert_eq!((few.rows.len(), few.waiting), (12, 0));
        steps.push(pending);
        let many = draw(&steps, &[], at(0), at(60)).unwrap();
        assert_eq!((many.rows.len(), many.waiting), (1, 12));
    }

    #[test]
    fn the_drawing_is_to_scale() {
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
