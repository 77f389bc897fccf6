//! Rendering of the screen for any terminal size.
//!
//! Stuck plans and the selection are visible without colour. A narrow terminal hides columns, a low
//! one hides reviews and sessions; plans are always displayed. Text from agents is sanitized.

use onward_core::{PlanStatus, StepStatus};
use onward_engine::{Listed, StepLine};
use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::view::{State, View};
use crate::output::format;
use crate::output::status::{STUCK, plan_label, step_label};

/// The minimum width for ids, progress bars and times.
const WIDE_COLUMNS: usize = 60;
/// The minimum height for reviews and sessions.
const HIGH_LINES: usize = 14;
/// Lines per section of reviews or sessions.
const SECTION_LINES: usize = 4;
/// The text of an empty list.
pub(super) const NO_OPEN_PLANS: &str =
    "no open plans; connect an agent with `onward install claude-code`";
/// Columns of a progress bar.
const BAR_COLUMNS: usize = 10;

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
    let keys = match state.opened {
        Some(_) => "↑↓ scroll · Esc back · q quit",
        None => "↑↓ select · Enter steps · q quit",
    };
    lines.push(Line::styled(format::truncate(keys, wide), paint.faint()));
    frame.render_widget(Paragraph::new(lines), area);
}

/// Styles, empty if colour is off.
#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn bad(self) -> Style {
        if self.0 {
            Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD)
        } else {
            Style::new()
        }
    }

    fn good(self) -> Style {
        if self.0 {
            Style::new().fg(Color::Green)
        } else {
            Style::new()
        }
    }

    fn faint(self) -> Style {
        if self.0 {
            Style::new().add_modifier(Modifier::DIM)
        } else {
            Style::new()
        }
    }

    fn plan(self, status: PlanStatus) -> Style {
        match status {
            PlanStatus::Stalled | PlanStatus::AwaitingReview | PlanStatus::Failed => self.bad(),
            PlanStatus::Completed => self.good(),
            PlanStatus::Planning | PlanStatus::Executing => Style::new(),
        }
    }

    fn step(self, line: &StepLine, stuck: bool) -> Style {
        match line.status {
            StepStatus::InProgress if stuck => self.bad(),
            StepStatus::AwaitingInput | StepStatus::Failed => self.bad(),
            StepStatus::Completed => self.good(),
            StepStatus::Skipped | StepStatus::Pending => self.faint(),
            StepStatus::InProgress => Style::new(),
        }
    }
}

/// The number of plans in each status.
fn head(view: &View, wide: usize) -> Line<'static> {
    let total: u64 = view.counts.iter().map(|counted| counted.plans).sum();
    let mut text = format::count(total, "plan", "plans");
    for status in PlanStatus::ALL {
        let counted = view.counts.iter().find(|counted| counted.status == status);
        if let Some(counted) = counted.filter(|counted| counted.plans > 0) {
            text.push_str(&format!(", {} {}", counted.plans, plan_label(status)));
        }
    }
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
    if view.plans.is_empty() {
        lines.push(Line::from(format::truncate(NO_OPEN_PLANS, wide)));
    }
    let selected = state.index(view);
    // The selected plan stays visible.
    let first = (selected + 1).saturating_sub(room.max(1));
    for (index, listed) in view.plans.iter().enumerate().skip(first).take(room) {
        lines.push(plan(view, listed, index == selected, wide, paint));
    }
    lines.resize_with(room, Line::default);
    lines.extend(below);
    lines
}

fn plan(view: &View, listed: &Listed, selected: bool, wide: usize, paint: Paint) -> Line<'static> {
    let (head, counts) = (&listed.sheet.head, &listed.sheet.head.counts);
    let status = head.status();
    let stuck = listed.stalled || status == PlanStatus::Stalled;
    let cursor = if selected { ">" } else { " " };
    let alert = if stuck { "!" } else { " " };
    let done = counts.completed + counts.skipped;
    let progress = format!("{:>3}% ({done}/{})", counts.progress(), counts.total());
    let mut parts = vec![format!("{cursor}{alert}")];
    if wide >= WIDE_COLUMNS {
        parts.push(format::short_id(head.id));
    }
    let label = if stuck { STUCK } else { plan_label(status) };
    parts.push(format!("{label:<15}"));
    if wide >= WIDE_COLUMNS {
        parts.push(bar(counts.progress()));
        parts.push(format!("{progress:<13}"));
        let ago = format::ago(view.now, listed.sheet.updated_at);
        parts.push(format!("{ago:<10}"));
    } else {
        parts.push(format!("{:>3}%", counts.progress()));
    }
    parts.push(format::sanitize_line(&listed.sheet.brief.name));
    let mut style = if stuck {
        paint.bad()
    } else {
        paint.plan(status)
    };
    if selected {
        style = style.add_modifier(Modifier::REVERSED);
    }
    Line::styled(format::truncate(&parts.join(" "), wide), style)
}

/// A progress bar.
fn bar(percent: u32) -> String {
    let full = usize::try_from(percent).unwrap_or(0).min(100) * BAR_COLUMNS / 100;
    format!("[{}{}]", "#".repeat(full), "-".repeat(BAR_COLUMNS - full))
}

fn reviews(view: &View, wide: usize, paint: Paint) -> Vec<Line<'static>> {
    let rows = view.reviews.iter().map(|(open, name)| {
        let ago = format::ago(view.now, open.review.requested_at);
        let (id, order) = (format::short_id(open.plan), open.order);
        let summary = format::sanitize_line(&format!("{name}: {}", open.review.summary));
        (
            format!("  {id} step {order:<4} {ago:<10} {summary}"),
            paint.bad(),
        )
    });
    section("pending reviews", rows.collect(), wide)
}

fn sessions(view: &View, wide: usize, paint: Paint) -> Vec<Line<'static>> {
    let rows = view.sessions.iter().map(|line| {
        let session = &line.session;
        let seen = format::ago(view.now, session.last_seen_at);
        let turns = format::count(line.turns, "turn", "turns");
        let stuck = match line.held {
            0 => String::new(),
            held => format!(", {held} stuck"),
        };
        let agent = format::sanitize_line(&session.agent);
        let directory = session.directory.as_deref().unwrap_or_default();
        let text = format!(
            "  {agent:<12} {seen:<10} {turns}{stuck} {}",
            format::sanitize_line(directory)
        );
        let style = match line.held {
            0 => Style::new(),
            _ => paint.bad(),
        };
        (text, style)
    });
    section("sessions", rows.collect(), wide)
}

/// The first rows below a heading; empty if there are no rows.
fn section(name: &str, rows: Vec<(String, Style)>, wide: usize) -> Vec<Line<'static>> {
    if rows.is_empty() {
        return Vec::new();
    }
    let more = rows.len().saturating_sub(SECTION_LINES);
    let title = match more {
        0 => name.to_owned(),
        more => format!("{name} ({more} more)"),
    };
    let mut lines = vec![Line::default(), Line::from(format::truncate(&title, wide))];
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
    let title = match plan.next() {
        Some(listed) => {
            let head = &listed.sheet.head;
            let name = format::sanitize_line(&listed.sheet.brief.name);
            format!(
                "{name}: {}, {}%",
                plan_label(head.status()),
                head.counts.progress()
            )
        }
        None if view.steps.is_empty() => "this plan was deleted".to_owned(),
        None => "this plan has ended".to_owned(),
    };
    let mut lines = vec![Line::default(), Line::from(format::truncate(&title, wide))];
    let room = room.saturating_sub(lines.len());
    // The last page is full.
    state.offset = state.offset.min(view.steps.len().saturating_sub(room));
    for line in view.steps.iter().skip(state.offset).take(room) {
        lines.push(step(view, line, wide, paint));
    }
    lines
}

fn step(view: &View, line: &StepLine, wide: usize, paint: Paint) -> Line<'static> {
    let stuck = line.stalls_at.is_some_and(|at| view.now > at);
    let activity = match (line.status, line.started_at) {
        (StepStatus::InProgress, Some(started)) => {
            let updated_at = line.last_progress_at.map_or(started, |at| at.max(started));
            let elapsed = view.now.since(updated_at);
            if stuck {
                format!("no update for {}", format::duration(elapsed))
            } else {
                format!("updated {}", format::elapsed(elapsed))
            }
        }
        _ => String::new(),
    };
    let alert = if stuck { "!" } else { " " };
    let title = line.title.as_deref().unwrap_or(line.step_type.as_str());
    let result = line.result_summary.as_deref().unwrap_or_default();
    let label = if stuck && line.status == StepStatus::InProgress {
        STUCK
    } else {
        step_label(line.status)
    };
    let mut text = format!("{alert}{:>4} {label:<15} ", line.order);
    if wide >= WIDE_COLUMNS && !activity.is_empty() {
        text.push_str(&format!("{activity}  "));
    }
    text.push_str(&format::sanitize_line(title));
    if !result.is_empty() {
        text.push_str(&format!(" - {}", format::sanitize_line(result)));
    }
    Line::from(Span::styled(
        format::truncate(&text, wide),
        paint.step(line, stuck),
    ))
}
