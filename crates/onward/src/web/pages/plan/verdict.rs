//! The verdict of a plan page: one sentence about what the plan needs, and the actions that help.

use std::time::Duration;

use onward_core::attention::Word;
use onward_core::plan::PlanState;
use onward_core::policy::stall_threshold;
use onward_core::{StepStatus, Timestamp};
use onward_engine::StepLine;
use onward_engine::list::OpenReview;
use onward_engine::status::{StalledStep, Status};

use super::{note_text, step_name};
use crate::output::budget::exhausted_text;
use crate::output::format;
use crate::web::pages::format::{Age, Clock, RelativeTime, one_line};
use crate::web::pages::markdown_html;
use crate::web::pages::who::Who;

/// A piece of a sentence.
pub(super) enum Part {
    Text(String),
    Clock(Clock),
    Age(Age),
    Ago(RelativeTime),
}

/// The verdict.
pub(super) struct Verdict {
    /// The CSS class.
    pub(super) class: &'static str,
    pub(super) sentence: Vec<Part>,
    pub(super) detail: Option<String>,
    /// The stuck steps, if there are several: id, name and age.
    pub(super) steps: Vec<(String, String, Age)>,
    /// The label of the button that releases all stuck steps.
    pub(super) release: Option<String>,
    /// The label of the button that fails them.
    pub(super) fail: Option<String>,
    /// The label of the button that postpones the next alert.
    pub(super) snooze: Option<String>,
    /// The open review.
    pub(super) review: Option<String>,
    /// The text that starts an agent on the plan.
    pub(super) prompt: Option<String>,
    /// Whether only a higher budget lets the plan continue.
    pub(super) raise_budget: bool,
    /// The failed steps of a blocked plan: id and order. A new attempt can start immediately.
    pub(super) retry: Vec<(String, u32)>,
    /// Whether the plan may have to be cancelled.
    pub(super) cancel: bool,
}

/// What a verdict is derived from.
pub(super) struct Facts<'a> {
    pub(super) status: &'a Status,
    /// Steps in progress.
    pub(super) working: &'a [StepLine],
    /// The pending review to decide first.
    pub(super) review: Option<&'a OpenReview>,
    pub(super) failed: &'a [StepLine],
    /// Number of steps left that depend on a stuck step.
    pub(super) blocked: usize,
    pub(super) now: Timestamp,
}

/// "step 6", "steps 6 and 7", "steps 6, 7 and 2 more".
pub(in crate::web::pages) fn steps_text(orders: &[u32]) -> String {
    const MAX_NAMED: usize = 6;
    let named: Vec<String> = orders.iter().take(MAX_NAMED).map(u32::to_string).collect();
    match (named.as_slice(), orders.len().saturating_sub(MAX_NAMED)) {
        ([], _) => "no step".to_owned(),
        ([one], 0) => format!("step {one}"),
        ([first @ .., last], 0) => format!("steps {} and {last}", first.join(", ")),
        (all, more) => format!("steps {} and {more} more", all.join(", ")),
    }
}

/// The prompt that makes an agent continue a plan.
pub(in crate::web::pages) fn prompt(plan: impl ToString) -> String {
    format!("Continue the Onward plan {}.", plan.to_string())
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

fn text(text: impl Into<String>) -> Part {
    Part::Text(text.into())
}

impl Verdict {
    pub(super) fn new(facts: &Facts<'_>) -> Self {
        let attention = facts.status.attention;
        let head = &facts.status.sheet.head;
        let mut verdict = Self {
            class: attention.word.as_str(),
            sentence: Vec::new(),
            detail: None,
            steps: Vec::new(),
            release: None,
            fail: None,
            snooze: None,
            review: None,
            prompt: None,
            raise_budget: false,
            retry: Vec::new(),
            cancel: false,
        };
        let since = attention.since;
        let (clock, age) = (Clock::new(since, facts.now), Age::new(since, facts.now));
        match attention.word {
            Word::Stuck => verdict.stuck(facts),
            Word::NeedsYou => verdict.needs_you(facts),
            Word::NoAgent => {
                let sentence = if matches!(head.state, PlanState::Planning) {
                    "No agent has started this plan since "
                } else {
                    "No agent has worked on this plan since "
                };
                verdict.sentence = vec![
                    text(sentence),
                    Part::Clock(clock),
                    text(" ("),
                    Part::Age(age),
                    text(")."),
                ];
                verdict.detail = Some(format!(
                    "{} left. Copy the prompt into an agent to continue.",
                    format::count(head.counts.pending, "step is", "steps are")
                ));
                verdict.prompt = Some(prompt(head.id));
            }
            Word::Blocked => {
                verdict.sentence = vec![text(
                    "No step can start: every pending step depends on a step that failed.",
                )];
                let failed = facts
                    .failed
                    .iter()
                    .filter(|line| line.superseded_by.is_none());
                verdict.retry = failed
                    .map(|line| (line.id.to_string(), line.order))
                    .collect();
                verdict.detail = Some(
                    "Retry or skip a failed step, or open a waiting step to let it continue."
                        .to_owned(),
                );
                verdict.cancel = true;
            }
            Word::Working => verdict.working(facts),
            Word::NotStarted => {
                verdict.sentence = vec![
                    text("No step has started yet. Created "),
                    Part::Ago(RelativeTime::new(since, facts.now)),
                    text("."),
                ];
                verdict.prompt = Some(prompt(head.id));
            }
            Word::UnfinishedList => {
                verdict.sentence = vec![
                    text("An agent's own list. Last activity "),
                    Part::Ago(RelativeTime::new(since, facts.now)),
                    text("."),
                ];
                let counts = &head.counts;
                let left = counts.pending + counts.in_progress;
                verdict.detail = Some(format!(
                    "{} left. Copy the prompt into an agent to continue, or cancel the plan.",
                    format::count(left, "task is", "tasks are")
                ));
                verdict.prompt = Some(prompt(head.id));
                verdict.cancel = true;
            }
            Word::Done => {
                let took = format::duration(since.since(facts.status.sheet.created_at));
                verdict.sentence = vec![
                    text("Done at "),
                    Part::Clock(clock),
                    text(format!(", after {took}.")),
                ];
            }
            Word::DoneWithFailures => {
                let failures = format::count(head.counts.failed, "failure", "failures");
                let orders: Vec<u32> = facts.failed.iter().map(|line| line.order).collect();
                let steps = steps_text(&orders);
                verdict.sentence = vec![
                    text(format!("Done with {failures} at ")),
                    Part::Clock(clock),
                    text(format!(": {steps} failed.")),
                ];
            }
            Word::Failed | Word::Cancelled => {
                let word = capitalized(attention.word.label());
                verdict.sentence = vec![text(format!("{word} at ")), Part::Clock(clock), text(".")];
                if let PlanState::Failed { reason, .. } = &head.state {
                    verdict.detail = Some(one_line(&reason.to_string(), 1_000));
                }
            }
        }
        verdict
    }

    fn stuck(&mut self, facts: &Facts<'_>) {
        let status = facts.status;
        let head = &status.sheet.head;
        let exhausted = status.exhausted.filter(|_| status.stopped_by_budget);
        if let Some(exhausted) = exhausted.filter(|_| status.stalled.is_empty()) {
            self.sentence = vec![text(format!(
                "The budget is exhausted: {}.",
                exhausted_text(&exhausted)
            ))];
            let left = format::count(head.counts.pending, "step is", "steps are");
            self.detail = Some(format!("{left} left. Raise the budget to continue."));
            self.raise_budget = true;
            return;
        }
        let orders: Vec<u32> = status.stalled.iter().map(|stalled| stalled.order).collect();
        let since = facts.status.attention.since;
        let limits: Vec<Duration> = status
            .stalled
            .iter()
            .map(|stalled| stalled.threshold)
            .collect();
        let limit = limits.iter().min().copied().unwrap_or_default();
        self.sentence = vec![
            text(format!("{} stopped at ", capitalized(&steps_text(&orders)))),
            Part::Clock(Clock::new(since, facts.now)),
            text(": no update for "),
            Part::Age(Age::new(since, facts.now)),
            text(format!(" (limit {}).", format::duration(limit))),
        ];
        let alive = facts.working.iter();
        let alive = alive.filter(|line| !line.is_stalled(facts.now));
        let alive: Vec<u32> = alive.map(|line| line.order).collect();
        let mut details = Vec::new();
        if !alive.is_empty() {
            details.push(format!(
                "{} still working.",
                format::count(
                    u64::try_from(alive.len()).unwrap_or(0),
                    "other step is",
                    "other steps are"
                )
            ));
        }
        let left = head.counts.pending;
        details.push(match facts.blocked {
            0 => "No other step depends on them.".to_owned(),
            blocked => format!("{blocked} of the {left} steps that are left depend on them."),
        });
        if orders.len() == 1 {
            for detail in &mut details {
                *detail = detail.replace("on them", "on it");
            }
        }
        self.detail = Some(details.join(" "));
        if status.stalled.len() > 1 {
            let step = |stalled: &StalledStep| {
                let line = facts.working.iter().find(|line| line.id == stalled.step);
                let name = line.map_or_else(String::new, |line| one_line(&step_name(line), 40));
                let age = Age::new(stalled.since, facts.now);
                (
                    stalled.step.to_string(),
                    format!("{} {name}", stalled.order),
                    age,
                )
            };
            self.steps = status.stalled.iter().map(step).collect();
        }
        self.release = Some(match orders.len() {
            1 => "Release step".to_owned(),
            2 => "Release both steps".to_owned(),
            many => format!("Release {many} steps"),
        });
        self.fail = Some(
            if orders.len() == 1 {
                "Fail step"
            } else {
                "Fail steps"
            }
            .to_owned(),
        );
        if let PlanState::Stalled { .. } = head.state {
            self.snooze = Some(format!("Snooze {}", format::duration(limit)));
        }
        self.prompt = Some(prompt(head.id));
    }

    fn needs_you(&mut self, facts: &Facts<'_>) {
        let since = facts.status.attention.since;
        let when = |before: String| {
            vec![
                text(before),
                Part::Clock(Clock::new(since, facts.now)),
                text(" ("),
                Part::Age(Age::new(since, facts.now)),
                text(")."),
            ]
        };
        let Some(open) = facts.review else {
            self.sentence = when("A step waits for your decision, since ".to_owned());
            return;
        };
        let number = open.review.asked().count();
        let asked = match number {
            0 => "waits for your decision".to_owned(),
            1 => "asks you a question".to_owned(),
            many => format!("asks you {many} questions"),
        };
        let others = match facts.status.reviews.len() {
            0 | 1 => String::new(),
            many => format!(" ({} more in the inbox)", many - 1),
        };
        self.sentence = when(format!("Step {} {asked}{others}, since ", open.order));
        let question = |(position, question): (u32, &str)| {
            // A number in the text would count as a list.
            let text = one_line(&markdown_html::plain_text(question), 200);
            if number == 1 {
                text
            } else {
                format!("{position}. {text}")
            }
        };
        let questions = (1..).zip(open.review.asked()).map(question);
        let summary = format!(
            "“{}”",
            one_line(&markdown_html::plain_text(&open.review.summary), 240)
        );
        let all: Vec<String> = std::iter::once(summary).chain(questions).collect();
        self.detail = Some(all.join(" · "));
        self.review = Some(open.id.to_string());
    }

    fn working(&mut self, facts: &Facts<'_>) {
        let who = Who::new(&facts.status.sheet.owner).short();
        let Some(line) = facts.working.first() else {
            let since = facts.status.attention.since;
            self.sentence = vec![
                text(format!("{who} was active ")),
                Part::Ago(RelativeTime::new(since, facts.now)),
                text("; no step is in progress."),
            ];
            return;
        };
        let orders: Vec<u32> = facts.working.iter().map(|line| line.order).collect();
        let updated = line.last_progress_at.max(line.started_at);
        self.sentence = vec![text(format!(
            "{who} is working on {}; last update ",
            steps_text(&orders)
        ))];
        let last = facts
            .working
            .iter()
            .filter_map(|line| line.last_progress_at.max(line.started_at))
            .max();
        if let Some(at) = last.or(updated) {
            self.sentence
                .push(Part::Ago(RelativeTime::new(at, facts.now)));
        }
        let notes = facts.working.iter().filter_map(|line| line.note.as_ref());
        let note = notes.max_by_key(|note| note.at).map(note_text);
        self.sentence.push(text(match note {
            Some(note) => format!(": {note}"),
            None => ".".to_owned(),
        }));
        let plan_threshold = facts.status.sheet.head.stall_threshold;
        let threshold = stall_threshold(None, line.stall_threshold, plan_threshold);
        if line.status == StepStatus::InProgress {
            self.detail = Some(format!(
                "Counts as stuck after {} without an update.",
                format::duration(threshold)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_steps_are_truncated() {
        assert_eq!(steps_text(&[6]), "step 6");
        assert_eq!(steps_text(&[6, 7]), "steps 6 and 7");
        assert_eq!(steps_text(&[1, 2, 3]), "steps 1, 2 and 3");
        let many: Vec<u32> = (1..=9).collect();
        assert_eq!(steps_text(&many), "steps 1, 2, 3, 4, 5, 6 and 3 more");
    }
}
