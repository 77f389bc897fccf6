//! The audit trail in sentences, for the terminal and the dashboard.
//!
//! A sentence has no subject: the author is printed before it. Events that repeat the previous one
//! in other words have no sentence. JSON contains every event.

use std::collections::HashMap;

use onward_core::branch::{BranchVerdict, Effect};
use onward_core::event::{
    Change, DecidedBy, Decision, ProgressSource, RequeueReason, ResumedBy, ReviewAction,
};
use onward_core::step::{ReviewScope, SkipCause};
use onward_core::{Event, StepId, Timestamp};

use super::budget::{exhausted_text, limits_text};
use super::format::{self, count, duration, short_id};

/// Author of the changes that Onward makes.
const SWEEP: &str = "sweep";

/// The names of the steps, and the state that sentences refer to.
#[derive(Default)]
pub(crate) struct Trail {
    /// Order and title. Removed steps are missing.
    steps: HashMap<StepId, (u32, Option<String>)>,
    started: HashMap<StepId, Timestamp>,
}

/// The author of an event: a person, an agent with its session, or Onward.
pub(crate) fn author(name: &str, session: Option<&str>) -> String {
    if name == SWEEP {
        return "Onward".to_owned();
    }
    let person = format::person(name);
    match session {
        Some(session) => format!("{person}·{}", format::session_id(session)),
        None => person,
    }
}

/// The author of a decision, and its link if there is one.
pub(crate) fn decider(name: &str, by: &DecidedBy) -> String {
    match by {
        DecidedBy::Reviewer | DecidedBy::Policy => author(name, None),
        DecidedBy::Link { recipient } => {
            format!("{} (with a decision link)", format::person(recipient))
        }
    }
}

impl Trail {
    pub(crate) fn new(steps: impl IntoIterator<Item = (StepId, u32, Option<String>)>) -> Self {
        let steps = steps.into_iter();
        Self {
            steps: steps
                .map(|(id, order, title)| (id, (order, title)))
                .collect(),
            started: HashMap::new(),
        }
    }

    /// The sentence of an event; `None` if the previous event implies it. Events must be passed in
    /// order, because the duration of a step is the time since its start.
    pub(crate) fn sentence(&mut self, event: &Event, at: Timestamp) -> Option<String> {
        Some(match event {
            Event::PlanModified { change, rationale } => {
                with_reason(self.changed(change)?, rationale.as_deref())
            }
            Event::StepStarted { step, claim } => {
                self.started.insert(*step, at);
                let attempt = match claim.attempt {
                    1 => String::new(),
                    attempt => format!(" (attempt {attempt})"),
                };
                format!("started {}{attempt}", self.step(*step))
            }
            Event::StepCompleted {
                step,
                result,
                verdicts,
                ..
            } => {
                let facts = self.facts(*step, at, result.confidence);
                let summary = completed(&result.summary, verdicts);
                format!("finished {}{facts}: {summary}", self.order(*step))
            }
            Event::StepFailed { step, reason, .. } => {
                format!("{} failed: {reason}", self.order(*step))
            }
            Event::StepSkipped { step, by, .. } => {
                let by = match by {
                    SkipCause::Branch(_) => "a branch",
                    SkipCause::Review(_) => "a reviewer",
                    SkipCause::Person => "a person",
                };
                format!("skipped {} (by {by})", self.step(*step))
            }
            Event::StepRequeued {
                step,
                attempt,
                reason,
            } => {
                let reason = match reason {
                    // The change of the plan is a sentence already.
                    RequeueReason::Manual => return None,
                    RequeueReason::Stalled => "stuck",
                    RequeueReason::TakenOver => "taken over by another agent",
                    RequeueReason::Approved => {
                        return Some(format!(
                            "the start of the plan is approved: {} can be assigned",
                            self.order(*step)
                        ));
                    }
                };
                let step = self.order(*step);
                format!("released {step} ({reason}); next is attempt {attempt}")
            }
            Event::StepProgressed {
                step,
                source,
                note,
                percent,
                ..
            } => {
                let text = progressed(*source, note.as_deref(), *percent);
                format!("{}: {text}", self.order(*step))
            }
            Event::FeedbackDelivered { step, .. } => {
                format!("received new instructions for {}", self.order(*step))
            }
            Event::StepOrphaned { step, .. } => {
                format!("{}: its session ended", self.order(*step))
            }
            Event::BranchTaken { step, effect, .. } => {
                format!(
                    "branch after {}: {}",
                    self.order(*step),
                    branch_taken(effect)
                )
            }
            Event::UserReviewed { step, action, .. } => self.reviewed(*step, action),
            Event::SessionResumed { session } => {
                let session = format::session_id(session.as_str());
                format!("continued the plan in session {session}")
            }
            Event::SkillStarted { skill, .. } => format!("started skill {skill}"),
            Event::SkillCompleted { skill, error, .. } => match error {
                Some(error) => format!("skill {skill} failed: {error}"),
                None => format!("finished skill {skill}"),
            },
            Event::BudgetExhausted { exhausted } => {
                format!("the budget is exhausted: {}", exhausted_text(exhausted))
            }
            // The exhausted budget is a sentence already.
            Event::PlanStalled { stalls } if stalls.is_empty() => return None,
            Event::PlanStalled { stalls } => {
                let orders = stalls.iter().map(|stall| self.number(stall.step)).collect();
                let longest = stalls.iter().map(|stall| at.since(stall.since)).max();
                let longest = longest.map_or(String::new(), |longest| {
                    format!(" (no update for {})", format::age(longest))
                });
                format!("{} stuck{longest}", plural(orders))
            }
            Event::PlanResumed { by } => match by {
                ResumedBy::NextStep => "plan continues: an agent requested a step",
                ResumedBy::LateResult => "plan continues: a late result arrived",
                ResumedBy::Progress => "plan continues: progress reported",
                ResumedBy::User => "snoozed the plan",
                ResumedBy::Review => "plan continues: a review was decided",
                ResumedBy::Budget => "plan continues: the budget was raised",
            }
            .to_owned(),
            Event::PlanCompleted => "the plan is done: all steps ended".to_owned(),
            Event::PlanFailed { reason, .. } => format!("the plan failed: {reason}"),
            Event::PlanStatusChanged { .. } => return None,
            Event::LateResultKept {
                step,
                artifact,
                rejection,
                ..
            } => {
                let (step, artifact) = (self.order(*step), format::short_id(artifact));
                format!("late result of {step} rejected ({rejection}), kept as artifact {artifact}")
            }
        })
    }

    /// "step 6", or the beginning of the id of a removed step.
    fn order(&self, step: StepId) -> String {
        format!("step {}", self.number(step))
    }

    fn number(&self, step: StepId) -> String {
        match self.steps.get(&step) {
            Some((order, _)) => order.to_string(),
            None => format::short_id(step),
        }
    }

    /// "step 6, Review the diff".
    fn step(&self, step: StepId) -> String {
        match self.steps.get(&step) {
            Some((order, Some(title))) => format!("step {order}, {title}"),
            Some((order, None)) => format!("step {order}"),
            None => self.order(step),
        }
    }

    /// Duration and confidence of a completed step.
    fn facts(&self, step: StepId, at: Timestamp, confidence: Option<f64>) -> String {
        let took = self
            .started
            .get(&step)
            .map(|started| duration(at.since(*started)));
        let confidence = confidence.map(|confidence| format!("confidence {confidence}"));
        let facts: Vec<String> = took.into_iter().chain(confidence).collect();
        if facts.is_empty() {
            String::new()
        } else {
            format!(" ({})", facts.join(", "))
        }
    }

    fn changed(&self, change: &Change) -> Option<String> {
        let number = |all: usize| u64::try_from(all).unwrap_or(u64::MAX);
        Some(match change {
            Change::Created(created) => {
                let steps = count(number(created.steps.len()), "step", "steps");
                if let Some(source) = &created.brief.forked_from {
                    let (plan, order) = (short_id(source.plan), source.step_order);
                    return Some(format!(
                        "forked the plan from step {order} of plan {plan}: {steps}"
                    ));
                }
                match created.branches.len() {
                    0 => format!("created the plan: {steps}"),
                    branches => {
                        let branches = count(number(branches), "branch", "branches");
                        format!("created the plan: {steps}, {branches}")
                    }
                }
            }
            Change::StepsAdded { after, steps } => {
                let steps = count(number(steps.len()), "step", "steps");
                format!("added {steps} after step {after}")
            }
            Change::StepRemoved { step, .. } => format!("removed {}", self.order(*step)),
            Change::StepsReordered { .. } => "reordered the steps".to_owned(),
            Change::InstructionsUpdated { step, .. } => {
                format!("changed the instructions of {}", self.order(*step))
            }
            Change::StepRenamed { step, title, .. } => {
                format!("renamed {} to {title}", self.order(*step))
            }
            Change::PlanUpdated { routing } => {
                let project = routing.project_key.as_deref().unwrap_or("none");
                let labels = if routing.labels.is_empty() {
                    "none".to_owned()
                } else {
                    routing.labels.join(", ")
                };
                let priority = routing.priority;
                format!("changed the plan: project {project}, labels {labels}, priority {priority}")
            }
            Change::BudgetSet { budget: None, .. } => "removed the budget".to_owned(),
            Change::BudgetSet {
                budget: Some(limits),
                ..
            } => format!("set the budget: {}", limits_text(limits)),
            Change::StepUpdated { step } => format!("changed {}", self.order(step.id)),
            // The failure of the step is the next event, with its reason.
            Change::StepFailed { .. } | Change::StepSkipped { .. } => return None,
            Change::StepRequeued { step, .. } => format!("released {}", self.step(*step)),
            Change::StepRedone {
                step,
                reason,
                successors,
            } => {
                let others = successors.len().saturating_sub(1);
                let others = match others {
                    0 => String::new(),
                    others => format!(
                        " and {}",
                        count(number(others), "dependent step", "dependent steps")
                    ),
                };
                format!(
                    "requested a redo of {}{others}: {reason}",
                    self.order(*step)
                )
            }
            Change::BranchAdded { branch } => {
                let condition = branch.condition.source();
                format!("added a branch: {} if {condition}", branch.action)
            }
        })
    }

    fn reviewed(&self, step: StepId, action: &ReviewAction) -> String {
        let step = self.order(step);
        match action {
            ReviewAction::Requested {
                summary,
                result: Some(_),
                ..
            } => format!("submitted the result of {step} for review: {summary}"),
            ReviewAction::Requested {
                summary,
                scope: ReviewScope::Start,
                ..
            } => format!("requested the approval of the plan: {summary}"),
            ReviewAction::Requested { summary, .. } => {
                format!("requested a review of {step}: {summary}")
            }
            ReviewAction::Decided {
                decision,
                feedback,
                answers,
                by,
            } => {
                let decided = match decision {
                    Decision::Approve => format!("approved {step}"),
                    Decision::Reject => format!("rejected {step}"),
                    Decision::Modify => format!("requested changes to {step}"),
                    Decision::Skip => format!("decided to skip {step}"),
                };
                let decided = match by {
                    DecidedBy::Reviewer => decided,
                    DecidedBy::Policy => format!("{decided} by policy, at the deadline"),
                    // The author names the recipient.
                    DecidedBy::Link { .. } => format!("{decided} with a decision link"),
                };
                // The feedback of requested changes contains the answers.
                let answers = answers.as_ref().filter(|_| *decision != Decision::Modify);
                let decided = match answers {
                    Some(answers) => format!("{decided} with the answers {}", answers.as_str()),
                    None => decided,
                };
                with_reason(decided, feedback.as_deref())
            }
        }
    }
}

/// "step 6 is", "steps 6 and 7 are".
fn plural(mut orders: Vec<String>) -> String {
    match orders.pop() {
        None => "the plan is".to_owned(),
        Some(last) if orders.is_empty() => format!("step {last} is"),
        Some(last) => format!("steps {} and {last} are", orders.join(", ")),
    }
}

fn with_reason(text: String, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{text}: {reason}"),
        None => text,
    }
}

fn completed(summary: &str, verdicts: &[BranchVerdict]) -> String {
    let mut text = summary.to_owned();
    for verdict in verdicts {
        if let Some(error) = &verdict.error {
            text = format!(
                "{text}; condition `{}` failed and counts as false: {error}",
                verdict.condition
            );
        }
    }
    text
}

fn progressed(source: ProgressSource, note: Option<&str>, percent: Option<f64>) -> String {
    let text = match source {
        ProgressSource::Reported => "progress",
        ProgressSource::Written => "data stored",
        ProgressSource::Seen => "session active",
    };
    let text = match percent {
        Some(percent) => format!("{text} {percent} %"),
        None => text.to_owned(),
    };
    match note {
        Some(note) => format!("{text}, {note}"),
        None => text,
    }
}

fn branch_taken(effect: &Effect) -> String {
    let number = |all: usize| u64::try_from(all).unwrap_or(u64::MAX);
    match effect {
        Effect::Continued => "continue".to_owned(),
        Effect::Skipped { steps, .. } => {
            let steps = count(number(steps.len()), "step", "steps");
            format!("{steps} skipped")
        }
        Effect::Added { steps } => {
            format!("{} added", count(number(steps.len()), "step", "steps"))
        }
        Effect::FailedPlan { reason } => with_reason("plan failed".to_owned(), reason.as_deref()),
        Effect::Nothing { reason } => format!("no effect, {reason}"),
    }
}
