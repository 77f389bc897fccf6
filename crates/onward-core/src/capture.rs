//! Mirrors an agent's own plan or task list into a plan.
//!
//! The agent reports its list, or changes to it, through its hooks (`list`). [`diff`] compares the
//! list with the steps of the plan by content: a rewritten list does not become a new plan.
//! [`continues_plan`] decides whether the list of a later session is about the same task. [`outline`] finds the steps of an approved plan in its Markdown. The engine executes the edits as
//! ordinary commands.

mod continuation;
mod diff;
mod list;
mod outline;
mod title;

use std::str::FromStr;

use crate::policy::{UnknownVariant, parse_variant};

pub use continuation::{continues_plan, names_plan, rewrites_plan};
pub use diff::{CapturedStep, Diff, Edit, diff};
pub use list::{MAX_TASKS, Task, TaskChange, TaskList, TaskReport, TaskStatus};
pub use outline::{Outline, outline};

/// Minimum number of tasks of a list that becomes a plan.
pub const DEFAULT_MIN_TASKS: u32 = 3;

/// The summary of a step that the agent has marked as completed.
pub const CAPTURED_SUMMARY: &str = "Marked as completed in the agent's task list.";

/// The agents' plans that are captured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// None.
    Off,
    /// Plans that the user has approved.
    Approved,
    /// Approved plans and task lists.
    #[default]
    On,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 3] = [Mode::Off, Mode::Approved, Mode::On];

    /// The value in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Off => "off",
            Mode::Approved => "approved",
            Mode::On => "on",
        }
    }
}

impl FromStr for Mode {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

/// Which plans are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturePolicy {
    /// The kinds of plans.
    pub mode: Mode,
    /// Minimum number of tasks of a list that becomes a plan.
    pub min_tasks: u32,
}

impl Default for CapturePolicy {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            min_tasks: DEFAULT_MIN_TASKS,
        }
    }
}
