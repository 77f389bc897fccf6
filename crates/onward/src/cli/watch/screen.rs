//! Rendering of the screen for any terminal size.
//!
//! States and the selection are visible without colour. A narrow terminal hides columns, a low one
//! hides reviews and sessions; plans are always displayed. Text from agents is sanitized.

use onward_core::StepStatus;
use onward_core::plan::Origin;
use onward_engine::{Listed, StepLine, session};
use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::view::{Input, State, View};
use crate::output::status::{StepMark, session_label, session_tone, word_mark};
use crate::output::{Tone, format};

/// The minimum width for ids, counts and times.
const WIDE_COLUMNS: usize = 60;
/// The minimum height for reviews and sessions.
const HIGH_LINES: usize = 14;
/// Lines per section of reviews or sessions.
const SECTION_LINES: usize = 4;
/// The width of the column with the word and its duration.
const STATE_COLUMNS: usize = 22;
/// The text of an empty list.
pub(super) const NO_OPEN_PLANS: &str =
    "no open plans; connect an agent with `onward install claude-code`";

pub(super) fn draw(frame: &mut Frame<'_>, view: &View, state: &mut State, coloured: bool) {
    let area = frame.area();
    let (wide, high) = (usize::from(area.width), usize::from(area.height));
    let paint = Paint(coloured);
    let mut lines = vec![head(view, wide)];
    let room = high.saturating_sub(2);
    match state.opened {
        Some(_) => lines.extend(steps(view, state, wide, room, paint)),
        None => lines.extend(overview(view, state, wide, room, paint)),
    }
    lines.truncate(high.saturating_sub(1));
    lines.resize_with(high.saturating_sub(1), Line::default);
    let (text, style) = footer(view, state, paint);
    lines.push(Line::styled(format::truncate(&text, wide), style));
    frame.render_widget(Paragraph::new(lines), area);
}

/// The last line: a question, the outcome of an action, the filter, or the keys.
fn footer(view: &View, state: &State, paint: Paint) -> (String, Style) {
    if let Some(question) = state.question(view) {
        return (question, paint.tone(Tone::Attention));
    }
    if let Some(message) = &state.message {
        return (format::sanitize_line(message), paint.tone(Tone::Heading));
    }
    let text = match (&state.input, state.opened) {
        (Input::Filter, _) => {
            format!(
                "/{}_  Enter keep · Esc clear",
                format::sanitize_line(&state.filter)
            )
        }
        (_, Some(_)) => "↑↓ scroll · r release · a approve · o open · Esc back · q quit".to_owned(),
        (_, None) => "↑↓ select · Enter steps · r release · a approve · o open · / filter · q quit"
            .to_owned(),
    };
    (text, paint.tone(Tone::Faint))
}

/// Styles, empty if colour is off.
#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn tone(self, tone: Tone) -> Style {
        if !self.0 {
            return Style::new();
        }
        match tone {
            Tone::Alert => Style::new().fg(Color::Red),
            Tone::Attention => Style::new().fg(Color::Yellow),
            Tone::Unattended => Style::new().fg(Color::Magenta),
            Tone::Active => Style::new().fg(Color::Blue),
            Tone::Good => Style::new().fg(Color::Green),
            Tone::Faint => Style::new().add_modifier(Modifier::DIM),
            Tone::Heading => Style::new().add_modifier(Modifier::BOLD),
        }
    }
}

/// The number of plans per word.
fn head(view: &View, wide: usize) -> Line<'static> {
    let counted = view.words.iter().filter(|counted| counted.plans > 0);
    let words: Vec<String> = counted
        .map(|counted| format!("{} {}", counted.plans, counted.word.label()))
        .collect();
    let text = if words.is_empty() {
        "0 plans".to_owned()
    } else {
        words.join("   ")
    };
    Line::from(format::truncate(&text, wide))
}

fn overview(
    view: &View,
    state: &State,
    wide: usize,
    room: usize,
    paint: Paint,
) -> Vec<Line<'static>> {
    let mut below = Vec::new();
    if room >= HIGH_LINES {
        below.extend(reviews(view, wide, paint));
        below.extend(sessions(view, wide, paint));
    }
    let room = room.saturating_sub(below.len());
    let mut lines = Vec::new();
    let visible = state.visible(view);
    if view.plans.is_empty() {
        lines.push(Line::from(format::truncate(NO_OPEN_PLANS, wide)));
    } else if visible.is_empty() {
        let text = format!(
            "no open plan matches `{}`",
            format::sanitize_line(&state.filter)
        );
        lines.push(Line::from(format::truncate(&text, wide)));
    }
    let selected = state.index(view);
    // The selected plan stays visible.
    let first = (selected + 1).saturating_sub(room.max(1));
    for (index, listed) in visible.iter().enumerate().skip(first).take(room) {
        lines.push(plan(view, listed, index == selected, wide, paint));
    }
    lines.resize_with(room, Line::default);
    lines.extend(below);
    lines
}

/// "stuck 3 h 41 min".
fn state_text(view: &View, listed: &Listed) -> String {
    let age = format::age(view.now.since(listed.attention.since));
    format!("{} {age}", listed.attention.word.label())
}

fn plan(view: &View, listed: &Listed, selected: bool, wide: usize, paint: Paint) -> Line<'static> {
    let (head, counts) = (&listed.sheet.head, &listed.sheet.head.counts);
    let (symbol, tone) = word_mark(listed.attention.word);
    let cursor = if selected { ">" } else { " " };
    let done = counts.completed.saturating_add(counts.skipped);
    let mut parts = vec![format!("{cursor}{symbol}")];
    if wide >= WIDE_COLUMNS {
        parts.push(format::short_id(head.id));
        parts.push(format!("{:<STATE_COLUMNS$}", state_text(view, listed)));
        parts.push(format!("{:>7}", format!("{done}/{}", counts.total())));
    } else {
        parts.push(format!("{:<11}", listed.attention.word.label()));
    }
    parts.push(format::sanitize_line(&listed.sheet.brief.name));
    let mut style = if listed.attention.word.needs_person() {
        paint.tone(tone)
    } else {
        Style::new()
    };
    if selected {
        style = style.add_modifier(Modifier::REVERSED);
    }
    Line::styled(format::truncate(&parts.join(" "), wide), style)
}

fn reviews(view: &View, wide: usize, paint: Paint) -> Vec<Line<'static>> {
    let rows = view.reviews.iter().map(|(open, name)| {
        let waiting = format::age(view.now.since(open.review.requested_at));
        let (id, order) = (format::short_id(open.plan), open.order);
        let summary = format::sanitize_line(&format!("{name}: {}", open.review.summary));
        (
            format!("  {id}/{order:<4} {waiting:<10} {summary}"),
            paint.tone(Tone::Attention),
        )
    });
    section("pending reviews", rows.collect(), wide, paint)
}

fn sessions(view: &View, wide: usize, paint: Paint) -> Vec<Line<'static>> {
    let rows = view.sessions.iter().map(|line| {
        let (status, since) = session::status(line, view.now);
        let state = format!(
            "{} {}",
            session_label(status),
            format::age(view.now.since(since))
        );
        let agent = format::sanitize_line(&line.session.agent);
        let directory = line.session.directory.as_deref().unwrap_or_default();
        let text = format!(
            "  {state:<STATE_COLUMNS$} {agent:<12} {}",
            format::sanitize_line(directory)
        );
        (text, paint.tone(session_tone(status)))
    });
    section("sessions", rows.collect(), wide, paint)
}

/// The first rows below a heading; empty if there are no rows.
fn section(
    name: &str,
    rows: Vec<(String, Style)>,
    wide: usize,
    paint: Paint,
) -> Vec<Line<'static>> {
    if rows.is_empty() {
        return Vec::new();
    }
    let more = rows.len().saturating_sub(SECTION_LINES);
    let title = match more {
        0 => name.to_owned(),
        more => format!("{name} ({more} more)"),
    };
    let title = Line::styled(format::truncate(&title, wide), paint.tone(Tone::Heading));
    let mut lines = vec![Line::default(), title];
    for (text, style) in rows.into_iter().take(SECTION_LINES) {
        lines.push(Line::styled(format::truncate(&text, wide), style));
    }
    lines
}

fn steps(
    view: &View,
    state: &mut State,
    wide: usize,
    room: usize,
    paint: Paint,
) -> Vec<Line<'static>> {
    let plan = view.plans.iter();
    let mut plan = plan.filter(|listed| Some(listed.sheet.head.id) == state.opened);
    let listed = plan.next();
    let origin = listed.map_or(Origin::Caller, |listed| listed.sheet.head.origin);
    let title = match listed {
        Some(listed) => {
            let counts = &listed.sheet.head.counts;
            let name = format::sanitize_line(&listed.sheet.brief.name);
            let done = counts.completed.saturating_add(counts.skipped);
            let (state, total) = (state_text(view, listed), counts.total());
            format!("{name}: {state}, {done} of {total} done")
        }
        None if view.steps.is_empty() => "this plan was deleted".to_owned(),
        None => "this plan has ended".to_owned(),
    };
    let mut lines = vec![Line::default(), Line::from(format::truncate(&title, wide))];
    let room = room.saturating_sub(lines.len());
    // The last page is full.
    state.offset = state.offset.min(view.steps.len().saturating_sub(room));
    for line in view.steps.iter().skip(state.offset).take(room) {
        lines.push(step(view, origin, line, wide, paint));
    }
    lines
}

fn step(view: &View, origin: Origin, line: &StepLine, wide: usize, paint: Paint) -> Line<'static> {
    let mark = StepMark::new(line, origin, view.now);
    let activity = match (line.status, line.started_at) {
        (StepStatus::InProgress, Some(_)) => {
            let elapsed = view.now.since(line.timestamp().reference());
            if line.is_stalled(view.now) && origin.reports_inactivity() {
                format!("no update for {}", format::age(elapsed))
            } else {
                format!("updated {}", format::elapsed(elapsed))
            }
        }
        _ => String::new(),
    };
    let title = line.title.as_deref().unwrap_or(line.step_type.as_str());
    let result = line.result_summary.as_deref().unwrap_or_default();
    let mut text = format!("{} {:>4} {:<15} ", mark.symbol, line.order, mark.label);
    if wide >= WIDE_COLUMNS && !activity.is_empty() {
        text.push_str(&format!("{activity}  "));
    }
    text.push_str(&format::sanitize_line(title));
    if !result.is_empty() {
        text.push_str(&format!(": {}", format::sanitize_line(result)));
    }
    let style = mark.tone.map_or(Style::new(), |tone| paint.tone(tone));
    Line::styled(format::truncate(&text, wide), style)
}
