//! Whether a task list is about the steps of a plan.
//!
//! Only the words count that identify a task ([`title`](super::title)) and do not occur in other
//! lists of the project. If the evidence is weak, the list is another one: a duplicate plan is better
//! than a lost step.

use std::collections::BTreeSet;

use super::diff::CapturedStep;
use super::list::{Task, TaskStatus};
use super::title::{Title, same_words};
use crate::id::PlanId;
use crate::search::index_text;

/// Minimum number of characters of a plan's id in a prompt.
const MIN_ID_CHARS: usize = 8;

/// Whether the list of another session continues the plan: each of its unfinished, specific tasks is
/// an open step of the plan, and it has such a task. `others` are the titles of other captured plans
/// of the project: their words do not count.
pub fn continues_plan(steps: &[CapturedStep], tasks: &[Task], others: &[Vec<String>]) -> bool {
    let common = common_words(steps, others);
    let open: Vec<Title> = (steps.iter())
        .filter(|step| !step.status.is_terminal())
        .map(|step| Title::new(&step.title).without(&common))
        .collect();
    let unfinished: Vec<Title> = (tasks.iter())
        .filter(|task| task.status != TaskStatus::Completed)
        .map(|task| Title::new(&task.title))
        .filter(Title::is_specific)
        .map(|title| title.without(&common))
        .collect();
    let is_known = |task: &Title| open.iter().any(|step| step.matches(task));
    let has_specific = unfinished.iter().any(Title::is_specific);
    // A task whose words are all common is neither evidence for the plan nor against it.
    has_specific && (unfinished.iter().filter(|task| task.is_specific())).all(is_known)
}

/// Whether a list that the session itself wrote before, in an earlier turn, continues its plan.
///
/// The session may rename and remove its own steps, so the list must not be about something else:
/// it is linked to the plan by the agent's ids, contains all specific open steps, or has no specific
/// task that the plan does not have.
pub fn rewrites_plan(steps: &[CapturedStep], tasks: &[Task]) -> bool {
    let is_linked = |task: &Task| steps.iter().any(|step| task.step == Some(step.id));
    if tasks.iter().any(is_linked) || continues_plan(steps, tasks, &[]) {
        return true;
    }
    let listed: Vec<Title> = tasks.iter().map(|task| Title::new(&task.title)).collect();
    let mut open = (steps.iter())
        .filter(|step| !step.status.is_terminal())
        .map(|step| Title::new(&step.title))
        .filter(Title::is_specific)
        .peekable();
    if open.peek().is_some() {
        return open.all(|step| listed.iter().any(|task| task.matches(&step)));
    }
    let is_unfinished = |task: &&Task| task.status != TaskStatus::Completed;
    let mut unfinished = tasks.iter().filter(is_unfinished);
    if unfinished.any(|task| Title::new(&task.title).is_specific()) {
        return false;
    }
    // Only generic tasks: most of them are steps of the plan.
    let is_step = |task: &&Task| (steps.iter()).any(|step| same_words(&step.title, &task.title));
    2 * tasks.iter().filter(is_step).count() > tasks.len()
}

/// Whether a prompt names a plan: by its id, or by its whole name if that has specific words.
pub fn names_plan(prompt: &str, id: PlanId, name: &str) -> bool {
    let id = id.to_string();
    let is_id = |word: &str| word.len() >= MIN_ID_CHARS && id.starts_with(word);
    let mut ids = prompt.split(|char: char| !char.is_ascii_hexdigit() && char != '-');
    if ids.any(is_id) {
        return true;
    }
    let name = name.trim_end_matches('…');
    let contains = format!(" {} ", index_text(prompt)).contains(&format!(" {} ", index_text(name)));
    contains && Title::new(name).is_specific()
}

/// The words that the plan has in common with other lists. A list with mostly the same words is the
/// same list again, and says nothing about its words.
fn common_words(steps: &[CapturedStep], others: &[Vec<String>]) -> BTreeSet<String> {
    let own = list_words(steps.iter().map(|step| step.title.as_str()));
    let mut common = BTreeSet::new();
    for other in others {
        let other = list_words(other.iter().map(String::as_str));
        let shared: BTreeSet<&String> = own.intersection(&other).collect();
        let all = own.len() + other.len() - shared.len();
        if 2 * shared.len() < all {
            common.extend(shared.into_iter().cloned());
        }
    }
    common
}

fn list_words<'t>(titles: impl Iterator<Item = &'t str>) -> BTreeSet<String> {
    titles
        .flat_map(|title| Title::new(title).specific)
        .collect()
}
