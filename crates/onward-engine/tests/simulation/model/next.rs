//! The next step, by the model: first a step whose instructions a person changed, once; then, for
//! whoever asks, one past its threshold; then the first pending one that waits for nothing.

use onward_core::id::ClaimToken;
use onward_core::plan::PlanFailure;
use onward_core::{PlanStatus, StepStatus, Timestamp};
use onward_engine::next::{FormattingNotes, Handed, Next, Working};

use super::step::Held;
use super::{Moment, Plan, Step};
use crate::said::Said;

impl Plan {
    pub(crate) fn next(&mut self, include_stalled: bool, at: &Moment<'_>) -> Next {
        match self.status {
            PlanStatus::AwaitingReview | PlanStatus::Completed | PlanStatus::Failed => {}
            PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled => {
                if self.status == PlanStatus::Stalled {
                    self.resume("next_step", at);
                }
                if let Some(place) = self.choose(include_stalled, at) {
                    return Next::Started(Box::new(self.handed(place)));
                }
                self.settle(at);
            }
        }
        self.nothing(at.now)
    }

    /// Gives a step out, and says which.
    fn choose(&mut self, include_stalled: bool, at: &Moment<'_>) -> Option<usize> {
        let untold = |step: &Step| {
            step.status == StepStatus::InProgress && step.held().is_some_and(|held| held.untold)
        };
        let stalled = |plan: &Plan, place| include_stalled && plan.is_stalled(place, at.now);
        if let Some(place) = self.steps.iter().position(untold)
            && !stalled(self, place)
        {
            let held = self.steps[place].held_mut();
            held.untold = false;
            held.alive(at.now);
            let id = self.steps[place].id();
            self.note("step_progressed", Some("feedback_delivered"), Some(id), at);
            self.worked_on(at);
            return Some(place);
        }
        for place in 0..self.steps.len() {
            if stalled(self, place) {
                self.hand_back(place, "taken_over", at);
                if self.steps[place].status == StepStatus::Pending {
                    self.claim(place, at.heard.and_then(Said::token).cloned(), at);
                    return Some(place);
                }
            }
        }
        let free = |step: &Step| step.status == StepStatus::Pending && !self.is_blocked(step);
        let place = self.steps.iter().position(free)?;
        self.claim(place, at.heard.and_then(Said::token).cloned(), at);
        Some(place)
    }

    /// Somebody takes a pending step on.
    pub(crate) fn claim(&mut self, place: usize, token: Option<ClaimToken>, at: &Moment<'_>) {
        if self.status == PlanStatus::Planning {
            self.status = PlanStatus::Executing;
        }
        let step = &mut self.steps[place];
        step.status = StepStatus::InProgress;
        step.claims.push(Held {
            token,
            session: at.session.cloned(),
            started_at: at.now,
            last_sign: None,
            marked: None,
            untold: false,
            handed_back: false,
        });
        let id = step.id();
        self.note("step_started", None, Some(id), at);
        self.worked_on(at);
    }

    fn handed(&self, place: usize) -> Handed {
        let step = &self.steps[place];
        let held = step.held().expect("it was handed out");
        Handed {
            plan: self.id,
            step: step.id(),
            order: self.order(place),
            step_type: step.spec.step_type,
            title: step.spec.title.clone(),
            instructions: step.spec.instructions.clone(),
            attempt: step.attempt(),
            token: held.token.clone().unwrap_or(ClaimToken::new("unseen")),
            stall_threshold: step.threshold(self.threshold),
            total: self.total(),
            progress: self.progress_percent(),
        }
    }

    /// Why nothing was handed out.
    pub(crate) fn nothing(&self, now: Timestamp) -> Next {
        let waits = |step: &&Step| step.status == StepStatus::AwaitingInput;
        let steps = || self.steps.iter().enumerate();
        match self.status {
            PlanStatus::Completed => Next::Complete(FormattingNotes {
                // Nobody here runs a skill.
                media_type: None,
                instructions: None,
                plan: self.brief.output_formatting_notes.clone(),
                steps: steps()
                    .filter_map(|(place, step)| {
                        let notes = step.result.as_ref()?.formatting_notes.clone()?;
                        Some((step.id(), self.order(place), notes))
                    })
                    .collect(),
            }),
            PlanStatus::Failed => Next::Failed {
                reason: self.failure.clone().unwrap_or(PlanFailure::Abandoned(None)),
            },
            PlanStatus::AwaitingReview => {
                let step = self.steps.iter().find(waits).expect("a step awaits input");
                Next::AwaitingReview {
                    step: step.id(),
                    review: step.review.clone().expect("it has a review"),
                }
            }
            PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled => {
                let working = steps().filter(|(_, step)| step.status == StepStatus::InProgress);
                let blocked = self.steps.iter().filter(|step| self.is_blocked(step));
                Next::NoPendingSteps {
                    in_progress: self.count(StepStatus::InProgress),
                    failed: self.count(StepStatus::Failed),
                    blocked: u32::try_from(blocked.count()).expect("few steps"),
                    working: working
                        .map(|(place, step)| {
                            let held = step.held().expect("somebody works on it");
                            Working {
                                step: step.id(),
                                order: self.order(place),
                                elapsed: now.since(held.silent_since()),
                                stalled: self.is_stalled(place, now),
                                session: held.session.clone(),
                            }
                        })
                        .collect(),
                }
            }
        }
    }
}
