//! Compares an agent's task list with the steps of the plan that mirrors it.
//!
//! A task is the step that it was before, otherwise the step with the same words, otherwise an open
//! step with similar words, which is renamed. A task without a step is added. An open step without a
//! task is removed; a step that has ended stays, because agents drop completed tasks from their
//! lists. A task that is opened again after its step has ended is a new step.
//!
//! A step that the session did not write (of an earlier session, of a user) is only claimed and
//! completed: it keeps its title, and it stays if the list does not contain it.

use super::list::{Task, TaskStatus};
use super::title::{is_same_task, same_words, similar};
use crate::command::StepSpec;
use crate::id::StepId;
use crate::step::StepStatus;

/// A step of a captured plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedStep {
    /// The step.
    pub id: StepId,
    /// The title; empty if it has none.
    pub title: String,
    /// The status.
    pub status: StepStatus,
    /// Whether the session that reports the list wrote the step.
    pub is_own: bool,
    /// Whether the session that reports the list holds the step.
    pub is_held: bool,
    /// Whether it is in progress and can be taken over from the session that holds it.
    pub is_abandoned: bool,
}

/// A change to the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Replace a step's title and instructions.
    Rename {
        /// The step.
        step: StepId,
        /// The new title.
        title: String,
        /// The new instructions.
        instructions: String,
    },
    /// Append steps.
    Add(Vec<StepSpec>),
    /// Release a step that the session wrote and holds.
    Release(StepId),
    /// Remove a pending step.
    Remove(StepId),
    /// Change the order; contains all steps.
    Reorder(Vec<StepId>),
    /// Complete a step.
    Complete(StepId),
    /// Claim a pending step, or take over an abandoned one.
    Start(StepId),
}

/// The changes that make the plan equal to the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    /// The changes, in the order in which they are executed. Steps are added before others are
    /// removed or completed, so that the plan does not end early.
    pub edits: Vec<Edit>,
    /// The step of each task.
    pub steps: Vec<StepId>,
}

/// Compares the list with the steps of the plan, which are in order.
pub fn diff(steps: &[CapturedStep], tasks: &[Task], mut new_id: impl FnMut() -> StepId) -> Diff {
    let assigned = assign(steps, tasks);
    let mut edits = Vec::new();
    let mut added = Vec::new();
    let mut ids = Vec::new();
    for (task, assigned) in tasks.iter().zip(&assigned) {
        if let Some(step) = assigned.and_then(|index| steps.get(index)) {
            ids.push(step.id);
            if step.is_own && step.title != task.title && !step.status.is_terminal() {
                edits.push(Edit::Rename {
                    step: step.id,
                    title: task.title.clone(),
                    instructions: task.instructions(),
                });
            }
        } else {
            let spec = task.spec(new_id());
            ids.push(spec.id);
            added.push(spec);
        }
    }
    let mut order: Vec<StepId> = steps.iter().map(|step| step.id).collect();
    order.extend(added.iter().map(|spec| spec.id));
    if !added.is_empty() {
        edits.push(Edit::Add(added));
    }
    let dropped = |step: &&CapturedStep| step.is_own && !ids.contains(&step.id);
    for step in steps.iter().filter(dropped) {
        match step.status {
            StepStatus::Pending => {}
            StepStatus::InProgress if step.is_held => edits.push(Edit::Release(step.id)),
            // Another session works on it.
            StepStatus::InProgress
            | StepStatus::AwaitingInput
            | StepStatus::Completed
            | StepStatus::Skipped
            | StepStatus::Failed => continue,
        }
        edits.push(Edit::Remove(step.id));
        order.retain(|id| *id != step.id);
    }
    let wanted = reordered(&order, &ids);
    if wanted != order {
        edits.push(Edit::Reorder(wanted));
    }
    let status_edits = tasks.iter().zip(&ids).flat_map(|(task, id)| {
        let step = steps.iter().find(|step| step.id == *id);
        status_edits(task.status, *id, step)
    });
    let (completed, others): (Vec<Edit>, Vec<Edit>) =
        status_edits.partition(|edit| matches!(edit, Edit::Complete(_)));
    // Completing the last open step ends the plan, so the others are first.
    edits.extend(others);
    edits.extend(completed);
    Diff { edits, steps: ids }
}

/// The changes of a step's status. `None` is a new step.
fn status_edits(task: TaskStatus, id: StepId, step: Option<&CapturedStep>) -> Vec<Edit> {
    let status = step.map_or(StepStatus::Pending, |step| step.status);
    let can_release = step.is_some_and(|step| step.is_own && step.is_held);
    let is_abandoned = step.is_some_and(|step| step.is_abandoned && !step.is_held);
    match (status, task) {
        (StepStatus::Pending, TaskStatus::InProgress) => vec![Edit::Start(id)],
        (StepStatus::Pending | StepStatus::InProgress, TaskStatus::Completed) => {
            vec![Edit::Complete(id)]
        }
        (StepStatus::InProgress, TaskStatus::Pending) if can_release => vec![Edit::Release(id)],
        (StepStatus::InProgress, TaskStatus::InProgress) if is_abandoned => vec![Edit::Start(id)],
        (StepStatus::InProgress, TaskStatus::InProgress | TaskStatus::Pending)
        | (StepStatus::Pending, TaskStatus::Pending)
        | (
            StepStatus::AwaitingInput
            | StepStatus::Completed
            | StepStatus::Skipped
            | StepStatus::Failed,
            _,
        ) => Vec::new(),
    }
}

/// The order in which the listed steps are as in the list, and all others keep their place.
fn reordered(order: &[StepId], listed: &[StepId]) -> Vec<StepId> {
    let mut next = listed.iter();
    let place = |id: &StepId| {
        if listed.contains(id) {
            next.next().copied().unwrap_or(*id)
        } else {
            *id
        }
    };
    order.iter().map(place).collect()
}

/// The index of the step of each task. No step is assigned twice.
fn assign(steps: &[CapturedStep], tasks: &[Task]) -> Vec<Option<usize>> {
    let mut assigned: Vec<Option<usize>> = vec![None; tasks.len()];
    let mut is_free = vec![true; steps.len()];
    let fits = |step: &CapturedStep, task: &Task| {
        !step.status.is_terminal() || task.status == TaskStatus::Completed
    };
    let mut assign_where = |matches: &dyn Fn(&CapturedStep, &Task) -> bool| {
        for (task, place) in tasks.iter().zip(&mut assigned) {
            if place.is_some() {
                continue;
            }
            let found = (steps.iter().zip(&is_free))
                .position(|(step, free)| *free && fits(step, task) && matches(step, task));
            if let Some(index) = found {
                is_free[index] = false;
                *place = Some(index);
            }
        }
    };
    assign_where(&|step, task| task.step == Some(step.id));
    assign_where(&|step, task| !step.status.is_terminal() && same_words(&step.title, &task.title));
    assign_where(&|step, task| same_words(&step.title, &task.title));
    let is_open = |step: &CapturedStep| !step.status.is_terminal();
    assign_where(&|step, task| is_open(step) && step.is_own && similar(&step.title, &task.title));
    assign_where(&|step, task| is_open(step) && is_same_task(&step.title, &task.title));
    assigned
}
