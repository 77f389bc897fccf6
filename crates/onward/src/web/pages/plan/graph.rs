//! The graph view: the steps of a small plan as boxes, from left to right. The rail is its text
//! alternative.

use onward_engine::StepLine;

use super::lanes::Lanes;
use super::step_name;
use crate::web::pages::format::{Badge, PlanTime, one_line};

/// Maximum number of boxes.
pub(super) const MAX_NODES: usize = 60;
/// Size of a box, and of the grid.
const WIDTH: usize = 168;
const HEIGHT: usize = 44;
const COLUMN: usize = 208;
const LANE: usize = 60;
const MARGIN: usize = 8;

/// A drawn graph.
pub(super) struct Graph {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<String>,
}

/// A box.
pub(super) struct Node {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) class: &'static str,
    pub(super) link: String,
    pub(super) title: String,
    pub(super) label: String,
    pub(super) word: String,
}

impl Graph {
    pub(super) fn new(
        lines: &[StepLine],
        parents: &[Vec<usize>],
        plan: &str,
        now: PlanTime,
    ) -> Self {
        let lanes = Lanes::new(parents);
        // The column is the length of the longest path to a step.
        let mut columns = vec![0; lines.len()];
        for edge in &lanes.edges {
            let column = columns.get(edge.from).map_or(0, |column| column + 1);
            if let Some(own) = columns.get_mut(edge.to) {
                *own = column.max(*own);
            }
        }
        let place = |step: usize| {
            let column = columns.get(step).copied().unwrap_or(0);
            let lane = lanes.of_step.get(step).copied().unwrap_or(0);
            (MARGIN + column * COLUMN, MARGIN + lane * LANE)
        };
        let node = |(index, line): (usize, &StepLine)| {
            let badge = Badge::line(line, now);
            let word = badge.class().replace('_', " ");
            let (x, y) = place(index);
            Node {
                x,
                y,
                class: badge.class(),
                link: format!("/plans/{plan}?view=graph&step={}#inspector", line.id),
                title: format!("step {}, {}: {word}", line.order, step_name(line)),
                label: one_line(&format!("{} {}", line.order, step_name(line)), 19),
                word,
            }
        };
        let edge = |edge: &super::lanes::Edge| {
            let ((x, y), (end_x, end_y)) = (place(edge.from), place(edge.to));
            let (x, y, end_y) = (x + WIDTH, y + HEIGHT / 2, end_y + HEIGHT / 2);
            let middle = usize::midpoint(x, end_x);
            format!("M{x} {y}C{middle} {y} {middle} {end_y} {end_x} {end_y}")
        };
        let columns = columns.iter().max().map_or(0, |last| last + 1);
        Self {
            width: columns * COLUMN + 2 * MARGIN,
            height: lanes.width * LANE + 2 * MARGIN,
            nodes: lines.iter().enumerate().map(node).collect(),
            edges: lanes.edges.iter().map(edge).collect(),
        }
    }
}
