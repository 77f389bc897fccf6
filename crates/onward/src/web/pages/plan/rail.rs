//! The rail: the table of steps, which is also the graph and the timeline. Rows of the same kind
//! collapse; rows that need a person never do. Also the strip, with one cell per step.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::time::Duration;

use onward_core::attention::Word;
use onward_core::{StepId, StepStatus, Timestamp};
use onward_engine::status::Status;
use onward_engine::{Caller, Engine, Error, StepLine, StepMark};

use super::branches::{BranchNote, Branches};
use super::graph::{self, Graph};
use super::lanes::Lanes;
use super::step_name;
use crate::output::format;
use crate::web::pages::Fields;
use crate::web::pages::format::{Age, Badge, Clock, PlanTime, one_line};
use crate::web::pages::markdown_html;
use crate::web::pages::timeline::{self, Axis, Bar, Period};

/// Number of steps per page.
const PAGE_SIZE: u32 = 400;
/// Number of steps in the app.
const APP_PAGE_SIZE: u32 = 60;
/// Steps before the current one on the first page of a longer plan.
const STEPS_BEFORE_CURRENT: u32 = 10;
/// Plans with at most this many steps are displayed without collapsed rows.
const MAX_EXPANDED: usize = 24;
/// Shorter runs are not collapsed.
const MIN_RUN: usize = 4;
/// Maximum number of cells in the strip.
const MAX_CELLS: usize = 400;
/// Width of a lane, and height of a row with one line, with two lines, and of a collapsed run, in
/// pixels.
const LANE: usize = 12;
const LINE: usize = 30;
const ROW: usize = 40;
const RUN: usize = 26;
/// Length of the ends of a bracket.
const BRACKET: usize = 5;

/// A view of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Rail,
    Table,
    Graph,
}

/// The steps to load, and how they are displayed.
pub(super) struct Selection {
    view: View,
    /// The page starts after this step. Without it, a long plan starts near the current step.
    after: Option<u32>,
    page_size: u32,
    /// Whether all rows are displayed.
    expanded: bool,
    to_scale: bool,
    selected: Option<StepId>,
}

impl Selection {
    /// The steps of a plan page.
    pub(super) fn from_fields(fields: &Fields, selected: Option<StepId>) -> Self {
        let view = match fields.get("view") {
            Some("table") => View::Table,
            Some("graph") => View::Graph,
            Some(_) | None => View::Rail,
        };
        let is_table = view == View::Table || fields.get("reorder").is_some();
        Self {
            view,
            after: fields.parsed("after"),
            page_size: PAGE_SIZE,
            expanded: fields.get("rows") == Some("all") || is_table,
            to_scale: fields.get("scale") == Some("real"),
            selected,
        }
    }

    /// The steps of the app.
    pub(super) fn app() -> Self {
        Self {
            view: View::Rail,
            after: None,
            page_size: APP_PAGE_SIZE,
            expanded: false,
            to_scale: false,
            selected: None,
        }
    }
}

/// The steps of a plan page.
pub(super) struct Rail {
    pub(super) view: View,
    pub(super) strip: Vec<Cell>,
    /// Text alternative of the strip.
    pub(super) tally: String,
    pub(super) rows: Vec<Row>,
    /// Width of the lanes in pixels.
    pub(super) gutter: usize,
    pub(super) axis: Option<Axis>,
    pub(super) to_scale: bool,
    pub(super) graph: Option<Graph>,
    /// Whether the plan is small enough for the graph.
    pub(super) has_graph: bool,
    /// Whether all rows are displayed although some could collapse.
    pub(super) expanded: bool,
    pub(super) collapses: bool,
    pub(super) earlier: Option<u32>,
    pub(super) later: Option<u32>,
    pub(super) after: u32,
    pub(super) total: u32,
    /// Number of steps left that depend on a stuck step.
    pub(super) blocked_by_stuck: usize,
    pub(super) depends_on: HashMap<u32, Vec<u32>>,
}

/// A cell of the strip: one step, or several.
pub(super) struct Cell {
    pub(super) class: &'static str,
    pub(super) link: String,
    pub(super) title: String,
    pub(super) x: timeline::Percent,
    pub(super) width: timeline::Percent,
}

/// A row: a step, or a collapsed run.
pub(super) struct Row {
    pub(super) height: usize,
    pub(super) paths: Vec<(&'static str, String)>,
    pub(super) step: Option<StepRow>,
    /// "18 more done: steps 2 to 19".
    pub(super) run: Option<(String, String)>,
}

/// A step.
pub(super) struct StepRow {
    pub(super) id: String,
    pub(super) order: u32,
    pub(super) name: String,
    pub(super) badge: Badge,
    pub(super) since: Option<Age>,
    pub(super) duration: Option<String>,
    pub(super) attempt: u32,
    pub(super) detail: Option<String>,
    pub(super) silent: Option<Clock>,
    pub(super) branches: Vec<BranchNote>,
    pub(super) bars: Vec<Bar>,
    pub(super) bars_text: String,
    pub(super) x: usize,
    pub(super) selected: bool,
    /// Whether a branch has added the step.
    pub(super) is_added: bool,
}

impl StepRow {
    /// Whether there is a second line.
    fn has_detail(&self) -> bool {
        self.detail.is_some() || self.silent.is_some() || !self.branches.is_empty()
    }
}

/// Loads the steps for the rail, the table and the graph.
pub(super) async fn load(
    engine: &Engine,
    caller: &Caller,
    status: &Status,
    branches: &Branches,
    selection: &Selection,
) -> Result<Rail, Error> {
    let head = &status.sheet.head;
    let (now, total) = (engine.now(), head.counts.last_order());
    let word = status.attention.word;
    let time = PlanTime::new(head, now).with_word(word);
    let states = engine.step_states(caller, head.id).await?;
    let default_after = if total > selection.page_size {
        current(status, &states, time).saturating_sub(STEPS_BEFORE_CURRENT + 1)
    } else {
        0
    };
    let after = selection.after.unwrap_or(default_after);
    let page = engine.list_steps(caller, head.id, None, after, selection.page_size);
    let page = page.await?;
    let recent = engine.recent_events(caller, head.id, timeline::MAX_EVENTS);
    // The bars of a finished plan end with the plan, those of an unfinished list with the last activity.
    let last_activity = Some(status.attention.since).filter(|_| word == Word::UnfinishedList);
    let until = head.ended_at().or(last_activity).unwrap_or(now);
    // The silences of a captured plan are not stalls.
    let threshold = if head.origin.reports_inactivity() {
        head.stall_threshold
    } else {
        Some(Duration::MAX)
    };
    let periods = timeline::periods_by_step(&page.steps, &recent.await?, threshold, until);
    let to_scale = selection.to_scale;
    let axis = Axis::new(periods.values().flatten(), now, to_scale);
    let rows: HashMap<u32, usize> = (0..)
        .zip(&page.steps)
        .map(|(row, line)| (line.order, row))
        .collect();
    let of_line = |line: &StepLine| {
        let orders = page.depends_on.get(&line.id).into_iter().flatten();
        orders
            .filter_map(|order| rows.get(order).copied())
            .collect()
    };
    let parents: Vec<Vec<usize>> = page.steps.iter().map(of_line).collect();
    let lanes = Lanes::new(&parents);
    let plan = head.id.to_string();
    let drawn = Drawing {
        lines: &page.steps,
        lanes: &lanes,
        periods: &periods,
        axis: axis.as_ref(),
        branches,
        selected: selection.selected,
        now: until,
        time,
    };
    let visible = drawn.visible(selection.expanded);
    let collapses = drawn.visible(false).len() < page.steps.len();
    let fits_graph = page.steps.len() <= graph::MAX_NODES && after == 0;
    let view = match selection.view {
        View::Graph if !fits_graph => View::Rail,
        view @ (View::Rail | View::Table | View::Graph) => view,
    };
    let has_graph = usize::try_from(total).is_ok_and(|total| total <= graph::MAX_NODES);
    let by_order = page.steps.iter().filter_map(|line| {
        let orders = page.depends_on.get(&line.id)?;
        Some((line.order, orders.clone()))
    });
    Ok(Rail {
        view,
        tally: tally(&states, time),
        strip: strip(&states, &plan, time),
        rows: drawn.rows(&visible),
        gutter: drawn.bracket_x() + LANE / 2,
        graph: (view == View::Graph)
            .then(|| Graph::new(&page.steps, &parents, branches, &plan, time)),
        has_graph,
        to_scale,
        expanded: selection.expanded,
        collapses,
        earlier: (after > 0).then(|| after.saturating_sub(selection.page_size)),
        later: page.next,
        after,
        total,
        blocked_by_stuck: blocked(&page.steps, &parents, time),
        depends_on: by_order.collect(),
        axis,
    })
}

/// The order of the first step that needs a person or is in progress.
fn current(status: &Status, states: &[StepMark], now: PlanTime) -> u32 {
    if status.sheet.head.ended_at().is_some() {
        return 0;
    }
    let class = |mark: &StepMark| Badge::mark(mark, now).class();
    let find = |wanted: &str| states.iter().find(|mark| class(mark) == wanted);
    let words = ["stuck", "needs_you", "working", "queued"];
    let found = words.into_iter().find_map(find);
    found.map_or(0, |mark| mark.order)
}

/// The number of steps left that depend on a stuck step, directly or not.
fn blocked(lines: &[StepLine], parents: &[Vec<usize>], now: PlanTime) -> usize {
    let mut waits = vec![false; lines.len()];
    let mut count = 0;
    for (row, line) in lines.iter().enumerate() {
        let is_blocked = parents.get(row).into_iter().flatten().any(|parent| {
            let is_stuck = lines
                .get(*parent)
                .is_some_and(|line| Badge::line(line, now).class() == "stuck");
            is_stuck || waits.get(*parent).copied().unwrap_or(false)
        });
        if is_blocked && line.status == StepStatus::Pending {
            if let Some(waits) = waits.get_mut(row) {
                *waits = true;
            }
            count += 1;
        }
    }
    count
}

/// The words of the states in the order of the legend.
const WORDS: [&str; 10] = [
    "done",
    "working",
    "stuck",
    "needs_you",
    "failed",
    "skipped",
    "superseded",
    "stopped",
    "queued",
    "not_run",
];

fn tally(states: &[StepMark], now: PlanTime) -> String {
    let of_word = |word: &str| {
        let class = |mark: &&StepMark| Badge::mark(mark, now).class() == word;
        states.iter().filter(class).count()
    };
    let counts = WORDS.map(|word| (of_word(word), word.replace('_', " ")));
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    counts.join(", ")
}

fn strip(states: &[StepMark], plan: &str, now: PlanTime) -> Vec<Cell> {
    let per_cell = states.len().div_ceil(MAX_CELLS).max(1);
    let cells = states.len().div_ceil(per_cell).max(1);
    let cell = |(index, marks): (usize, &[StepMark])| {
        let badges = || {
            let badge = |mark: &StepMark| Badge::mark(mark, now);
            marks.iter().map(badge)
        };
        // The most urgent of several steps.
        let urgent = ["stuck", "needs_you", "failed", "working"];
        let urgent = urgent
            .into_iter()
            .find(|word| badges().any(|badge| badge.class() == *word));
        let common = badges().next().map_or("queued", |badge| badge.class());
        let (first, last) = (marks.first()?, marks.last()?);
        let steps = if first.order == last.order {
            format!("step {}", first.order)
        } else {
            format!("steps {} to {}", first.order, last.order)
        };
        let place = |index: usize| u64::try_from(index * 1_000 / cells).unwrap_or(0);
        let class = urgent.unwrap_or(common);
        Some(Cell {
            class,
            link: format!("/plans/{plan}?step={}#inspector", first.id),
            title: format!("{steps}: {}", class.replace('_', " ")),
            x: timeline::Percent(place(index)),
            width: timeline::Percent(place(index + 1) - place(index)),
        })
    };
    states
        .chunks(per_cell)
        .enumerate()
        .filter_map(cell)
        .collect()
}

/// Everything that a row is drawn from.
struct Drawing<'a> {
    lines: &'a [StepLine],
    lanes: &'a Lanes,
    periods: &'a HashMap<StepId, Vec<Period>>,
    axis: Option<&'a Axis>,
    branches: &'a Branches,
    selected: Option<StepId>,
    now: Timestamp,
    time: PlanTime,
}

/// Indices of the steps that are displayed in one row.
type Run = (usize, usize);

impl Drawing<'_> {
    fn badge(&self, line: &StepLine) -> Badge {
        Badge::line(line, self.time)
    }

    /// The displayed rows: one step each, or a run of steps of the same kind.
    fn visible(&self, expanded: bool) -> Vec<Run> {
        let each = || (0..self.lines.len()).map(|row| (row, row));
        if expanded || self.lines.len() <= MAX_EXPANDED {
            return each().collect();
        }
        let mut rows: Vec<Run> = Vec::new();
        let mut start = 0;
        while let Some(line) = self.lines.get(start) {
            let kind = self.badge(line).class();
            let same =
                |line: &&StepLine| self.badge(line).class() == kind && !self.is_notable(line);
            let rest = self.lines.get(start..).unwrap_or_default().iter();
            let length = rest.take_while(same).count();
            let can_collapse = ["done", "queued", "not_run", "skipped"].contains(&kind);
            if can_collapse && length >= MIN_RUN {
                let end = start + length - 1;
                // The first one stays.
                rows.extend([(start, start), (start + 1, end)]);
                start = end + 1;
            } else {
                rows.push((start, start));
                start += 1;
            }
        }
        rows
    }

    /// Whether a step always has its own row.
    fn is_notable(&self, line: &StepLine) -> bool {
        self.selected == Some(line.id) || self.branches.is_taken_after(line.id) || line.attempt > 1
    }

    /// The column of the brackets, to the right of the lanes and the arcs.
    fn bracket_x(&self) -> usize {
        let arcs = usize::from(!self.branches.skips().is_empty());
        let brackets = usize::from(!self.branches.additions().is_empty());
        (self.lanes.width + arcs + brackets) * LANE
    }

    fn rows(&self, visible: &[Run]) -> Vec<Row> {
        let mut row_of: Vec<usize> = vec![0; self.lines.len()];
        let mut rows = Vec::new();
        for (row, (first, last)) in visible.iter().enumerate() {
            for place in row_of.iter_mut().take(last + 1).skip(*first) {
                *place = row;
            }
            let is_run = first != last;
            let step = self.lines.get(*first).filter(|_| !is_run);
            let step = step.map(|line| self.step(*first, line));
            rows.push(Row {
                height: match &step {
                    Some(step) if step.has_detail() => ROW,
                    Some(_) => LINE,
                    None => RUN,
                },
                paths: Vec::new(),
                run: is_run.then(|| self.run(*first, *last)),
                step,
            });
        }
        let heights: Vec<usize> = rows.iter().map(|row| row.height).collect();
        let paths = self.paths(&heights, &row_of);
        for (row, paths) in rows.iter_mut().zip(paths) {
            row.paths = paths;
        }
        rows
    }

    fn run(&self, first: usize, last: usize) -> (String, String) {
        let order = |index: usize| self.lines.get(index).map_or(0, |line| line.order);
        let kind = self
            .lines
            .get(first)
            .map_or("", |line| self.badge(line).class());
        let count = last - first + 1;
        (
            format!("{count} more {kind}"),
            format!("steps {} to {}", order(first), order(last)),
        )
    }

    /// The lines of each row: edges, arcs of branches that skipped steps, and brackets around steps
    /// that a branch has added.
    fn paths(&self, heights: &[usize], row_of: &[usize]) -> Vec<Vec<(&'static str, String)>> {
        let mut paths: Vec<HashSet<(&'static str, String)>> = vec![HashSet::new(); heights.len()];
        let height = |row: usize| heights.get(row).copied().unwrap_or(RUN);
        let mut draw = |row: usize, class: &'static str, path: String| {
            if let Some(paths) = paths.get_mut(row) {
                paths.insert((class, path));
            }
        };
        let x = |lane: usize| lane * LANE + LANE / 2;
        let lane_of = |step: usize| self.lanes.of_step.get(step).copied().unwrap_or(0);
        let row = |step: usize| row_of.get(step).copied().unwrap_or(0);
        let mut connect = |class, from: usize, to: usize, ends: (usize, usize), via: usize| {
            let (top, bottom) = (row(from), row(to));
            if top >= bottom {
                return;
            }
            let (start, end) = (x(ends.0), x(ends.1));
            let middle = height(top) / 2;
            draw(top, class, bend(start, middle, via, height(top)));
            for between in top + 1..bottom {
                draw(between, class, format!("M{via} 0V{}", height(between)));
            }
            draw(bottom, class, bend(via, 0, end, height(bottom) / 2));
        };
        for edge in &self.lanes.edges {
            let ends = (lane_of(edge.from), lane_of(edge.to));
            connect("edge", edge.from, edge.to, ends, x(edge.lane));
        }
        let index: HashMap<StepId, usize> = (0..)
            .zip(self.lines)
            .map(|(index, line)| (line.id, index))
            .collect();
        for (from, to) in self.branches.skips() {
            if let (Some(from), Some(to)) = (index.get(from), index.get(to)) {
                let ends = (lane_of(*from), lane_of(*to));
                connect("arc", *from, *to, ends, x(self.lanes.width));
            }
        }
        for steps in self.branches.additions() {
            let added = steps.iter().filter_map(|step| index.get(step));
            let added: Vec<usize> = added.map(|step| row(*step)).collect();
            let (Some(top), Some(bottom)) = (added.iter().min(), added.iter().max()) else {
                continue;
            };
            for between in *top..=*bottom {
                let ends = (between == *top, between == *bottom);
                let path = bracket(self.bracket_x(), height(between), ends);
                draw(between, "bracket", path);
            }
        }
        let sorted = |paths: HashSet<(&'static str, String)>| {
            let mut paths: Vec<_> = paths.into_iter().collect();
            paths.sort_unstable();
            paths
        };
        paths.into_iter().map(sorted).collect()
    }

    fn step(&self, index: usize, line: &StepLine) -> StepRow {
        let badge = self.badge(line);
        let periods = self.periods.get(&line.id).map_or(&[][..], Vec::as_slice);
        let bars = self.axis.map_or_else(Vec::new, |axis| axis.bars(periods));
        let mut bars_text = String::new();
        for bar in &bars {
            let _ = write!(
                bars_text,
                "{}{}",
                if bars_text.is_empty() { "" } else { ", " },
                bar.description
            );
        }
        let last_activity = line.last_progress_at.max(line.started_at);
        let is_open = line.ended_at.is_none();
        let since = match line.status {
            StepStatus::InProgress | StepStatus::AwaitingInput if badge.class() == "stopped" => {
                None
            }
            StepStatus::InProgress if badge.class() == "stuck" => last_activity,
            StepStatus::InProgress => line.started_at,
            StepStatus::AwaitingInput => Some(line.updated_at),
            StepStatus::Pending
            | StepStatus::Completed
            | StepStatus::Skipped
            | StepStatus::Failed => None,
        };
        let took = line.started_at.zip(line.ended_at).filter(|_| !is_open);
        let outcome = line
            .result_summary
            .as_deref()
            .map(markdown_html::plain_text);
        let failure = line.failure.as_ref().map(ToString::to_string);
        let note = line.note.as_ref().filter(|_| is_open).map(super::note_text);
        let detail = outcome.or(failure).or(note);
        let lane = self.lanes.of_step.get(index).copied().unwrap_or(0);
        StepRow {
            id: line.id.to_string(),
            order: line.order,
            name: step_name(line),
            since: since.map(|since| Age::new(since, self.now)),
            duration: took.map(|(started, ended)| format::duration(ended.since(started))),
            attempt: line.attempt,
            detail: detail.map(|detail| one_line(&detail, 160)),
            silent: last_activity
                .filter(|_| badge.class() == "stuck")
                .map(|at| Clock::new(at, self.now)),
            branches: self.branches.after(line.id),
            bars,
            bars_text,
            x: lane * LANE + LANE / 2,
            selected: self.selected == Some(line.id),
            is_added: self.branches.is_added(line.id),
            badge,
        }
    }
}

/// The part of a bracket in a row of this height, with its upper and lower end if they are in the row.
fn bracket(x: usize, height: usize, (starts, ends): (bool, bool)) -> String {
    let inner = x - BRACKET.min(x);
    let start = if starts {
        format!("M{inner} 4H{x}")
    } else {
        format!("M{x} 0")
    };
    let end = if ends {
        format!("V{}H{inner}", height - 4)
    } else {
        format!("V{height}")
    };
    format!("{start}{end}")
}

/// A line from one point down to another, with a bend if they are in different lanes.
fn bend(x: usize, y: usize, end_x: usize, end_y: usize) -> String {
    if x == end_x {
        return format!("M{x} {y}V{end_y}");
    }
    let middle = usize::midpoint(y, end_y);
    format!("M{x} {y}C{x} {middle} {end_x} {middle} {end_x} {end_y}")
}
