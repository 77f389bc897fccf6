//! An agent's task list. Some agents report the whole list with every call, others report one task
//! at a time.

use super::title::similar;
use crate::command::StepSpec;
use crate::id::{PlanId, StepId};
use crate::policy::{MAX_MAX_ATTEMPTS, MAX_TITLE};
use crate::step::StepType;

/// Maximum number of tasks of a list; later ones are ignored.
pub const MAX_TASKS: usize = 200;
/// Maximum characters of a task's details.
const MAX_DETAILS: usize = 2_000;

/// A task of an agent's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The agent's id of the task, if it has one.
    pub key: Option<String>,
    /// One line.
    pub title: String,
    /// More about the task.
    pub details: Option<String>,
    /// The status.
    pub status: TaskStatus,
    /// The step that mirrors the task.
    pub step: Option<StepId>,
}

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// Not started.
    Pending,
    /// Started.
    InProgress,
    /// Done.
    Completed,
}

impl TaskStatus {
    /// All statuses.
    pub const ALL: [TaskStatus; 3] = [
        TaskStatus::Pending,
        TaskStatus::InProgress,
        TaskStatus::Completed,
    ];

    /// The stored value.
    pub const fn as_str(self) -> &'static str {
        match self {
            TaskStatus::Pending => "pending",
            TaskStatus::InProgress => "in_progress",
            TaskStatus::Completed => "completed",
        }
    }
}

impl Task {
    /// A pending task. `None` if the title is blank.
    pub fn new(title: &str, status: TaskStatus) -> Option<Self> {
        let line = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = truncate(&line, MAX_TITLE);
        (!title.is_empty()).then_some(Self {
            key: None,
            title,
            details: None,
            status,
            step: None,
        })
    }

    /// The same task with the agent's id.
    pub fn with_key(self, key: Option<String>) -> Self {
        Self { key, ..self }
    }

    /// The same task with details.
    pub fn with_details(self, details: Option<&str>) -> Self {
        let details = details.map(str::trim).filter(|text| !text.is_empty());
        let details = details.map(|text| truncate(text, MAX_DETAILS));
        Self { details, ..self }
    }

    /// The step that mirrors the task. An agent may start and stop its task as often as it likes,
    /// which is not a failed attempt.
    pub fn spec(&self, id: StepId) -> StepSpec {
        StepSpec {
            title: Some(self.title.clone()),
            max_attempts: Some(MAX_MAX_ATTEMPTS),
            ..StepSpec::new(id, StepType::Custom, self.instructions())
        }
    }

    /// The instructions of the step that mirrors the task.
    pub fn instructions(&self) -> String {
        match &self.details {
            Some(details) => format!("{}\n\n{details}", self.title),
            None => self.title.clone(),
        }
    }
}

fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned(),
        None => text.to_owned(),
    }
}

/// A report of an agent about its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskReport {
    /// The user has approved a plan, in Markdown.
    Approved(String),
    /// The whole list.
    List(Vec<Task>),
    /// A new task.
    Created(Task),
    /// A change of a task.
    Changed(TaskChange),
    /// The agent has called a tool that resumes this plan.
    TakenUp(PlanId),
}

/// A change of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskChange {
    /// The agent's id of the task.
    pub key: String,
    /// The new title.
    pub title: Option<String>,
    /// The new details.
    pub details: Option<String>,
    /// The new status.
    pub status: Option<TaskStatus>,
    /// Whether the task is removed.
    pub is_removed: bool,
}

/// An agent's task list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskList {
    /// The tasks, in order.
    pub tasks: Vec<Task>,
}

impl TaskList {
    /// Applies a report. Returns whether the list changed. A report that arrives twice changes it
    /// once.
    pub fn apply(&mut self, report: &TaskReport) -> bool {
        let before = self.clone();
        match report {
            // Not part of the list.
            TaskReport::Approved(_) | TaskReport::TakenUp(_) => {}
            TaskReport::List(tasks) => {
                let known = std::mem::take(&mut self.tasks);
                self.tasks = tasks.iter().take(MAX_TASKS).cloned().collect();
                for task in self.tasks.iter_mut().filter(|task| task.key.is_some()) {
                    // Some agents number the tasks of each list from 1.
                    let is_same =
                        |known: &&Task| known.key == task.key && similar(&known.title, &task.title);
                    let same = known.iter().find(is_same);
                    task.step = same.and_then(|known| known.step);
                }
            }
            TaskReport::Created(task) => {
                let is_known =
                    task.key.is_some() && self.tasks.iter().any(|known| known.key == task.key);
                if !is_known && self.tasks.len() < MAX_TASKS {
                    self.tasks.push(task.clone());
                }
            }
            TaskReport::Changed(change) => self.change(change),
        }
        *self != before
    }

    fn change(&mut self, change: &TaskChange) {
        let key = Some(change.key.as_str());
        let Some(index) = self
            .tasks
            .iter()
            .position(|task| task.key.as_deref() == key)
        else {
            return;
        };
        if change.is_removed {
            self.tasks.remove(index);
            return;
        }
        let Some(task) = self.tasks.get_mut(index) else {
            return;
        };
        let renamed = change.title.as_deref();
        if let Some(renamed) = renamed.and_then(|title| Task::new(title, task.status)) {
            task.title = renamed.title;
        }
        if change.details.is_some() {
            let changed = task.clone().with_details(change.details.as_deref());
            task.details = changed.details;
        }
        if let Some(status) = change.status {
            task.status = status;
        }
    }
}
