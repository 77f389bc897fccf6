//! The graph view: the steps of a small plan as boxes, from left to right. The rail is its text
//! alternative.

use std::collections::HashSet;

use onward_core::StepId;
use onward_engine::StepLine;

use super::branches::Branches;
use super::lanes::{Edge, Lanes};
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
/// Height of an arc above its boxes, and the space for it above the first row.
const ARC: usize = 40;
/// Minimum number of boxes in a row of steps without dependencies.
const ROW: usize = 4;

/// A drawn graph.
pub(super) struct Graph {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<String>,
    /// Taken branches that skipped steps: path and description.
    pub(super) arcs: Vec<(String, String)>,
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
    /// Whether a branch has added the step.
    pub(super) is_added: bool,
}

impl Graph {
    pub(super) fn new(
        lines: &[StepLine],
        parents: &[Vec<usize>],
        branches: &Branches,
        plan: &str,
        now: PlanTime,
    ) -> Self {
        let lanes = Lanes::new(parents);
        let places = places(&lanes);
        let top = if branches.skips().is_empty() {
            MARGIN
        } else {
            ARC
        };
        let place = |step: usize| {
            let (column, row) = places.get(step).copied().unwrap_or_default();
            (MARGIN + column * COLUMN, top + row * LANE)
        };
        let node = |(index, line): (usize, &StepLine)| {
            let badge = Badge::line(line, now);
            let word = badge.class().replace('_', " ");
            let is_added = branches.is_added(line.id);
            let added = if is_added { ", added by a branch" } else { "" };
            let (x, y) = place(index);
            Node {
                x,
                y,
                class: badge.class(),
                link: format!("/plans/{plan}?view=graph&step={}#inspector", line.id),
                title: format!("step {}, {}: {word}{added}", line.order, step_name(line)),
                label: one_line(&format!("{} {}", line.order, step_name(line)), 19),
                word,
                is_added,
            }
        };
        let edge = |edge: &Edge| {
            let ((x, y), (end_x, end_y)) = (place(edge.from), place(edge.to));
            let (x, y, end_y) = (x + WIDTH, y + HEIGHT / 2, end_y + HEIGHT / 2);
            let middle = usize::midpoint(x, end_x);
            format!("M{x} {y}C{middle} {y} {middle} {end_y} {end_x} {end_y}")
        };
        let arc = |(from, to): &(StepId, StepId)| {
            let find = |id: &StepId| {
                let index = lines.iter().position(|line| line.id == *id)?;
                Some((place(index), lines.get(index)?.order))
            };
            let ((start, from), (end, to)) = (find(from)?, find(to)?);
            let title = format!("a branch after step {from} skipped to step {to}");
            Some((curve(start, end), title))
        };
        let columns = places.iter().map(|(column, _)| column + 1).max();
        let rows = places.iter().map(|(_, row)| row + 1).max();
        Self {
            width: columns.unwrap_or(0) * COLUMN + 2 * MARGIN,
            height: top + rows.unwrap_or(0) * LANE + MARGIN,
            nodes: lines.iter().enumerate().map(node).collect(),
            edges: lanes.edges.iter().map(edge).collect(),
            arcs: branches.skips().iter().filter_map(arc).collect(),
        }
    }
}

/// The column and the row of each step. The column is the length of the longest path to the step,
/// the row is its lane or the next free row. Steps without edges fill rows below the others.
fn places(lanes: &Lanes) -> Vec<(usize, usize)> {
    let steps = lanes.of_step.len();
    let (mut columns, mut is_connected) = (vec![0; steps], vec![false; steps]);
    for edge in &lanes.edges {
        let column = columns.get(edge.from).map_or(0, |column| column + 1);
        if let Some(own) = columns.get_mut(edge.to) {
            *own = column.max(*own);
        }
        for end in [edge.from, edge.to] {
            if let Some(is_connected) = is_connected.get_mut(end) {
                *is_connected = true;
            }
        }
    }
    let mut taken = HashSet::new();
    let of_step = columns.iter().zip(&lanes.of_step).zip(&is_connected);
    let connected = of_step.map(|((column, lane), is_connected)| {
        let free = |row: &usize| taken.insert((*column, *row));
        let row = is_connected.then(|| (*lane..).find(free))??;
        Some((*column, row))
    });
    let connected: Vec<Option<(usize, usize)>> = connected.collect();
    let rows = connected.iter().flatten().map(|(_, row)| row + 1).max();
    let rows = rows.unwrap_or(0);
    let per_row = columns.iter().max().map_or(0, |last| last + 1).max(ROW);
    let mut below = (0..).map(|index| (index % per_row, rows + index / per_row));
    let place = |place: Option<(usize, usize)>| place.or_else(|| below.next());
    connected.into_iter().filter_map(place).collect()
}

/// A curve above both boxes, or to the right of them if they are in the same column.
fn curve((x, y): (usize, usize), (end_x, end_y): (usize, usize)) -> String {
    if x == end_x {
        let (x, y, end_y) = (x + WIDTH, y + HEIGHT / 2, end_y + HEIGHT / 2);
        let side = x + ARC;
        return format!("M{x} {y}C{side} {y} {side} {end_y} {x} {end_y}");
    }
    let (x, end_x) = (x + WIDTH / 2, end_x + WIDTH / 2);
    let top = y.min(end_y).saturating_sub(ARC);
    format!("M{x} {y}C{x} {top} {end_x} {top} {end_x} {end_y}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_with(parents: &[&[usize]]) -> Vec<(usize, usize)> {
        let parents: Vec<Vec<usize>> = parents.iter().map(|own| own.to_vec()).collect();
        places(&Lanes::new(&parents))
    }

    #[test]
    fn steps_without_dependencies_fill_rows() {
        let places = places_with(&[&[][..]; ROW + 1]);
        assert_eq!(places[ROW - 1], (ROW - 1, 0));
        assert_eq!(places[ROW], (0, 1));
    }

    #[test]
    fn steps_without_edges_are_below_the_connected_ones() {
        assert_eq!(
            places_with(&[&[], &[], &[1], &[]]),
            [(0, 1), (0, 0), (1, 0), (1, 1)]
        );
    }

    #[test]
    fn boxes_do_not_overlap() {
        // Both roots of a chain start in the first lane once the first chain has ended.
        let places = places_with(&[&[], &[0], &[], &[2], &[0, 3]]);
        let distinct: HashSet<_> = places.iter().collect();
        assert_eq!(distinct.len(), places.len(), "{places:?}");
    }
}
