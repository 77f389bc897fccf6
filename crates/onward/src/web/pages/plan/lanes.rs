//! Lanes of the dependency graph, as in `git log --graph`: a position for every step, and the path
//! of every edge. Linear in the number of steps and edges.
//!
//! The first child keeps its parent's lane, each further child reserves a free lane, and a join
//! bends into the lane of its first parent. Lanes above the maximum share the last one.

use std::collections::HashMap;

/// Maximum number of lanes.
pub(super) const MAX_LANES: usize = 14;

/// An edge between two rows. It leaves the first row in its own lane and ends in the second row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The lane between the rows.
    pub(super) lane: usize,
}

/// The lanes of a list of steps.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lanes {
    /// The lane of each step.
    pub(super) of_step: Vec<usize>,
    pub(super) edges: Vec<Edge>,
    /// Number of lanes.
    pub(super) width: usize,
}

/// Lanes that are in use, with the row until which each is reserved.
#[derive(Default)]
struct Reserved(Vec<Option<usize>>);

impl Reserved {
    /// The first lane that is free in this row, reserved until another one.
    fn take(&mut self, row: usize, until: usize) -> usize {
        let is_free = |held: &Option<usize>| held.is_none_or(|until| until <= row);
        let lane = self.0.iter().position(is_free).unwrap_or(self.0.len());
        if lane >= MAX_LANES - 1 {
            return MAX_LANES - 1;
        }
        if lane == self.0.len() {
            self.0.push(None);
        }
        self.hold(lane, until);
        lane
    }

    fn hold(&mut self, lane: usize, until: usize) {
        if let Some(held) = self.0.get_mut(lane) {
            *held = Some(held.map_or(until, |held| held.max(until)));
        }
    }
}

impl Lanes {
    /// The lanes for steps with these parents, which are indices of earlier steps.
    pub(super) fn new(parents: &[Vec<usize>]) -> Self {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
        for (child, parents) in parents.iter().enumerate() {
            for parent in parents {
                if let Some(children) = children.get_mut(*parent).filter(|_| *parent < child) {
                    children.push(child);
                }
            }
        }
        let mut reserved = Reserved::default();
        let mut assigned: HashMap<usize, usize> = HashMap::new();
        let mut lanes = Self::default();
        for (row, own) in children.iter().enumerate() {
            let lane = match assigned.get(&row) {
                Some(lane) => *lane,
                None => reserved.take(row, row),
            };
            lanes.of_step.push(lane);
            let mut is_continued = false;
            for child in own {
                let is_first_parent = parents.get(*child).and_then(|all| all.first()) == Some(&row);
                let edge_lane = if is_continued {
                    reserved.take(row, *child)
                } else {
                    is_continued = true;
                    reserved.hold(lane, *child);
                    lane
                };
                if is_first_parent {
                    assigned.insert(*child, edge_lane);
                }
                lanes.edges.push(Edge {
                    from: row,
                    to: *child,
                    lane: edge_lane,
                });
            }
        }
        let edge_lanes = lanes.edges.iter().map(|edge| edge.lane);
        let used = lanes.of_step.iter().copied().chain(edge_lanes);
        lanes.width = used.max().map_or(0, |last| last + 1);
        lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_step(parents: &[&[usize]]) -> Vec<usize> {
        let parents: Vec<Vec<usize>> = parents.iter().map(|own| own.to_vec()).collect();
        Lanes::new(&parents).of_step
    }

    #[test]
    fn steps_without_dependencies_share_a_lane_without_edges() {
        let lanes = Lanes::new(&[vec![], vec![], vec![]]);
        assert_eq!((lanes.of_step, lanes.width), (vec![0, 0, 0], 1));
        assert_eq!(lanes.edges, []);
    }

    #[test]
    fn a_further_child_gets_its_own_lane_and_a_join_returns() {
        assert_eq!(of_step(&[&[], &[0], &[0], &[1, 2]]), [0, 0, 1, 0]);
        // The lane of a branch that has ended is reused.
        assert_eq!(
            of_step(&[&[], &[0], &[0], &[1], &[3], &[3]]),
            [0, 0, 1, 0, 0, 1]
        );
    }

    #[test]
    fn many_children_share_the_last_lane() {
        let mut parents = vec![vec![]];
        parents.extend(std::iter::repeat_n(vec![0], 40));
        let lanes = Lanes::new(&parents);
        assert_eq!(lanes.width, MAX_LANES);
        assert!(lanes.of_step.iter().all(|lane| *lane < MAX_LANES));
    }
}
