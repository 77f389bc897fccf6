//! The screen: what is going on, drawn into whatever room there is.
//!
//! What has stopped, and what is chosen, can be told without colour. A narrow terminal loses columns,
//! a low one the reviews and sessions; the plans are never left out. Text from agents is made harmless.

use onward_core::{PlanStatus, StepStatus};
use onward_engine::{Listed, StepLine};
use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::view::{State, View};
use crate::output::words;

/// Narrower than this, times and ids are left out.
const NARROW: usize = 60;
/// Lower than this, only plans are shown.
const LOW: usize = 14;
/// Lines of reviews, and of sessions.
const FEW: usize = 4;
/// Columns of a bar.
const BAR: usize = 10;

/// Draws all of it.
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
        Some(_) => "arrows scroll · Esc back · q ends",
        None => "arrows choose · Enter shows steps · q ends",
    };
    lines.push(Line::styled(words::cut(keys, wide), paint.faint()));
    frame.render_widget(Paragraph::new(lines), area);
}

/// Styles, where there is colour.
#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn bad(self) -> Style {
        match self.0 {
            true => Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
            false => Style::new(),
        }
    }

    fn good(self) -> Style {
        match self.0 {
            true => Style::new().fg(Color::Green),
            false => Style::new(),
        }
    }

    fn faint(self) -> Style {
        match self.0 {
            true => Style::new().add_modifier(Modifier::DIM),
            false => Style::new(),
        }
    }

    fn plan(self, status: PlanStatus) -> Style {
        match status {
            PlanStatus::Stalled | PlanStatus::AwaitingReview | PlanStatus::Failed => self.bad(),
            PlanStatus::Completed => self.good(),
            PlanStatus::Planning | PlanStatus::Executing => Style::new(),
        }
    }

    fn step(self, line: &StepLine, silent: bool) -> Style {
        match line.status {
            StepStatus::InProgress if silent => self.bad(),
            StepStatus::AwaitingInput | StepStatus::Failed => self.bad(),
            StepStatus::Completed => self.good(),
            StepStatus::Skipped | StepStatus::Pending => self.faint(),
            StepStatus::InProgress => Style::new(),
        }
    }
}

/// How many plans are where.
fn head(view: &View, wide: usize) -> Line<'static> {
    let total: u64 = view.counts.iter().map(|counted| counted.plans).sum();
    let mut text = words::count(total, "plan", "plans");
    for status in PlanStatus::ALL {
        let counted = view.counts.iter().find(|counted| counted.status == status);
        if let Some(counted) = counted.filter(|counted| counted.plans > 0) {
            text.push_str(&format!(", {} {status}", counted.plans));
        }
    }
    Line::from(words::cut(&text, wide))
}

fn overview(
    view: &View,
    state: &State,
    wide: usize,
    room: usize,
    paint: Paint,
) -> Vec<Line<'static>> {
    let mut below = Vec::new();
    if room >= LOW {
        below.extend(reviews(view, wide, paint));
        below.extend(sessions(view, wide, paint));
    }
    let room = room.saturating_sub(below.len());
    let mut lines = Vec::new();
    if view.plans.is_empty() {
        let empty = "no open plans; an agent makes one with `create_research_plan`";
        lines.push(Line::from(words::cut(empty, wide)));
    }
    let chosen = state.place(view);
    // The chosen one stays in sight.
    let first = (chosen + 1).saturating_sub(room.max(1));
    for (place, listed) in view.plans.iter().enumerate().skip(first).take(room) {
        lines.push(plan(view, listed, place == chosen, wide, paint));
    }
    lines.resize_with(room, Line::default);
    lines.extend(below);
    lines
}

fn plan(view: &View, listed: &Listed, chosen: bool, wide: usize, paint: Paint) -> Line<'static> {
    let (head, counts) = (&listed.sheet.head, &listed.sheet.head.counts);
    let status = head.status();
    let stopped = listed.stalled || status == PlanStatus::Stalled;
    let mark = if chosen { ">" } else { " " };
    let sign = if stopped { "!" } else { " " };
    let done = counts.completed + counts.skipped;
    let progress = format!("{:>3}% ({done}/{})", counts.progress(), counts.total());
    let mut parts = vec![format!("{mark}{sign}")];
    if wide >= NARROW {
        parts.push(words::short(head.id));
    }
    parts.push(format!("{:<15}", status.as_str()));
    if wide >= NARROW {
        parts.push(bar(counts.progress()));
        parts.push(format!("{progress:<13}"));
        let ago = words::ago(view.now, listed.sheet.updated_at);
        parts.push(format!("{ago:<10}"));
    } else {
        parts.push(format!("{:>3}%", counts.progress()));
    }
    parts.push(words::line(&listed.sheet.brief.name));
    let style = match stopped {
        true => paint.bad(),
        false => paint.plan(status),
    };
    let style = match chosen {
        true => style.add_modifier(Modifier::REVERSED),
        false => style,
    };
    Line::styled(words::cut(&parts.join(" "), wide), style)
}

/// How far a plan is, drawn.
fn bar(percent: u32) -> String {
    let full = usize::try_from(percent).unwrap_or(0).min(100) * BAR / 100;
    format!("[{}{}]", "#".repeat(full), "-".repeat(BAR - full))
}

fn reviews(view: &View, wide: usize, paint: Paint) -> Vec<Line<'static>> {
    let rows = view.reviews.iter().map(|(open, name)| {
        let ago = words::ago(view.now, open.review.requested_at);
        let (id, order) = (words::short(open.plan), open.order);
        let said = words::line(&format!("{name}: {}", open.review.summary));
        (
            format!("  {id} step {order:<4} {ago:<10} {said}"),
            paint.bad(),
        )
    });
    section("waiting for a decision", rows.collect(), wide)
}

fn sessions(view: &View, wide: usize, paint: Paint) -> Vec<Line<'static>> {
    let rows = view.sessions.iter().map(|line| {
        let session = &line.session;
        let seen = words::ago(view.now, session.last_seen_at);
        let turns = words::count(line.turns, "turn", "turns");
        let stuck = match line.held {
            0 => String::new(),
            held => format!(", {held} stuck"),
        };
        let agent = words::line(&session.agent);
        let place = session.directory.as_deref().unwrap_or_default();
        let text = format!(
            "  {agent:<12} {seen:<10} {turns}{stuck} {}",
            words::line(place)
        );
        let style = match line.held {
            0 => Style::new(),
            _ => paint.bad(),
        };
        (text, style)
    });
    section("sessions", rows.collect(), wide)
}

/// A few lines under a name; nothing where there are none.
fn section(name: &str, rows: Vec<(String, Style)>, wide: usize) -> Vec<Line<'static>> {
    if rows.is_empty() {
        return Vec::new();
    }
    let more = rows.len().saturating_sub(FEW);
    let title = match more {
        0 => name.to_owned(),
        more => format!("{name} ({more} more)"),
    };
    let mut lines = vec![Line::default(), Line::from(words::cut(&title, wide))];
    for (text, style) in rows.into_iter().take(FEW) {
        lines.push(Line::styled(words::cut(&text, wide), style));
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
            let name = words::line(&listed.sheet.brief.name);
            format!("{name}: {}, {}%", head.status(), head.counts.progress())
        }
        None if view.steps.is_empty() => "this plan is gone".to_owned(),
        None => "this plan is over".to_owned(),
    };
    let mut lines = vec![Line::default(), Line::from(words::cut(&title, wide))];
    let room = room.saturating_sub(lines.len());
    // The last page is a full one.
    state.scrolled = state.scrolled.min(view.steps.len().saturating_sub(room));
    for line in view.steps.iter().skip(state.scrolled).take(room) {
        lines.push(step(view, line, wide, paint));
    }
    lines
}

fn step(view: &View, line: &StepLine, wide: usize, paint: Paint) -> Line<'static> {
    let silent = line.stalls_at.is_some_and(|at| view.now > at);
    let life = match (line.status, line.started_at) {
        (StepStatus::InProgress, Some(started)) => {
            let sign = line.last_progress_at.map_or(started, |at| at.max(started));
            let span = view.now.since(sign);
            match silent {
                true => format!("silent for {}", words::span(span)),
                false => format!("sign of life {}", words::since(span)),
            }
        }
        _ => String::new(),
    };
    let sign = if silent { "!" } else { " " };
    let title = line.title.as_deref().unwrap_or(line.step_type.as_str());
    let result = line.result_summary.as_deref().unwrap_or_default();
    let mut text = format!("{sign}{:>4} {:<14} ", line.order, line.status.as_str());
    if wide >= NARROW && !life.is_empty() {
        text.push_str(&format!("{life}  "));
    }
    text.push_str(&words::line(title));
    if !result.is_empty() {
        text.push_str(&format!(" - {}", words::line(result)));
    }
    Line::from(Span::styled(
        words::cut(&text, wide),
        paint.step(line, silent),
    ))
}
