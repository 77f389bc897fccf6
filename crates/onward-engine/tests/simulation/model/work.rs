//! What happens to a step while somebody has it, by the model: signs of life, a question to a person,
//! and what the person decides.

use std::time::Duration;

use onward_core::event::{Decision, Sign};
use onward_core::id::ReviewId;
use onward_core::plan::PlanFailure;
use onward_core::step::{FailReason, Review, SkipCause, StepResult};
use onward_core::{Code, PlanStatus, StepStatus};
use onward_engine::step::{Asked, Progress, Progressed, Question, Reviewed};

use super::{Moment, Plan};
use crate::said::Said;

impl Plan {
    pub(crate) fn progress(
        &mut self,
        place: usize,
        progress: &Progress,
        at: &Moment<'_>,
    ) -> Result<Progressed, Code> {
        if progress
            .percent
            .is_some_and(|far| !(0.0..=100.0).contains(&far))
        {
            return Err(Code::InvalidInput);
        }
        self.may_speak(place, progress.token.as_ref())?;
        if self.is_over() {
            return Err(Code::PlanIsTerminal);
        }
        if self.status == PlanStatus::Stalled {
            self.resume("progress", at);
        }
        self.come_back(place, progress.token.as_ref(), at)?;
        self.steps[place].held_mut().alive(at.now);
        let id = self.steps[place].id();
        self.note("step_progressed", Some("reported"), Some(id), at);
        self.worked_on(at);
        let step = &self.steps[place];
        Ok(Progressed {
            step: id,
            last_progress_at: step.held().and_then(|held| held.last_sign).expect("a sign"),
            stalls_at: step.alive_until(self.threshold),
            plan_status: self.status,
        })
    }

    /// Whoever had a step before, and comes back while nobody has it, takes it up again. Else it must
    /// be in progress.
    fn come_back(
        &mut self,
        place: usize,
        token: Option<&onward_core::id::ClaimToken>,
        at: &Moment<'_>,
    ) -> Result<(), Code> {
        let step = &self.steps[place];
        match step.status {
            StepStatus::InProgress => Ok(()),
            StepStatus::Pending if step.knows(token) => {
                self.claim(place, token.cloned(), at);
                Ok(())
            }
            _ => Err(Code::IllegalTransition),
        }
    }

    /// Recorded once in 10 seconds or a quarter of the threshold, whichever is less; never refused.
    pub(crate) fn notice(&mut self, place: usize, sign: Sign, at: &Moment<'_>) {
        let step = &self.steps[place];
        if self.is_over() || step.status != StepStatus::InProgress {
            return;
        }
        let held = step.held().expect("somebody works on it");
        let foreign =
            held.session.is_some() && at.session.is_some() && held.session.as_ref() != at.session;
        if sign == Sign::Seen && foreign {
            return;
        }
        let quarter = step.threshold(self.threshold) / 4;
        let gap = quarter
            .min(Duration::from_secs(10))
            .max(Duration::from_millis(1));
        if at.now.since(held.silent_since()) < gap {
            return;
        }
        let id = step.id();
        self.steps[place].held_mut().alive(at.now);
        self.note("step_progressed", Some(sign.as_str()), Some(id), at);
        self.worked_on(at);
    }

    pub(crate) fn ask(
        &mut self,
        place: usize,
        question: &Question,
        at: &Moment<'_>,
    ) -> Result<Asked, Code> {
        if question.summary.trim().is_empty() {
            return Err(Code::InvalidInput);
        }
        self.may_speak(place, question.token.as_ref())?;
        if self.is_over() {
            return Err(Code::PlanIsTerminal);
        }
        self.come_back(place, question.token.as_ref(), at)?;
        if self.status != PlanStatus::Executing {
            return Err(Code::IllegalTransition);
        }
        let review = at.heard.and_then(Said::review);
        let review = review.unwrap_or(ReviewId::from_u128(0));
        self.status = PlanStatus::AwaitingReview;
        let step = &mut self.steps[place];
        step.status = StepStatus::AwaitingInput;
        step.review = Some(Review {
            id: review,
            summary: question.summary.clone(),
            questions: question.questions.clone(),
            requested_at: at.now,
        });
        let id = step.id();
        self.note("user_reviewed", Some("review_requested"), Some(id), at);
        self.worked_on(at);
        Ok(Asked {
            review,
            step: id,
            plan: self.id,
        })
    }

    pub(crate) fn decide(
        &mut self,
        place: usize,
        decision: Decision,
        words: Option<&str>,
        at: &Moment<'_>,
    ) -> Result<Reviewed, Code> {
        if self.is_over() {
            return Err(Code::PlanIsTerminal);
        }
        let step = &self.steps[place];
        let id = step.id();
        if step.status != StepStatus::AwaitingInput {
            return Err(Code::IllegalTransition);
        }
        let review = step.review.clone().expect("it has a review");
        let words = words.filter(|words| !words.trim().is_empty());
        if decision == Decision::Modify && words.is_none() {
            return Err(Code::FeedbackRequired);
        }
        self.note("user_reviewed", Some(decision.as_str()), Some(id), at);
        self.status = PlanStatus::Executing;
        let mut instructions = None;
        match decision {
            Decision::Approve => {
                self.complete(place, StepResult::of_summary(review.summary), at);
            }
            Decision::Reject => {
                let words = words.map(str::to_owned);
                self.fail_step(place, FailReason::Rejected(words.clone()), at);
                self.fail(PlanFailure::Rejected(words), at);
            }
            Decision::Skip => {
                self.skip_step(place, SkipCause::Review(review.id), at);
                self.settle(at);
            }
            Decision::Modify => {
                let step = &mut self.steps[place];
                step.status = StepStatus::InProgress;
                step.review = None;
                step.held_mut().untold = true;
                step.held_mut().alive(at.now);
                let words = words.expect("there are words");
                let before = &step.spec.instructions;
                let after = format!("{before}\n\n---\n\nUser feedback: {words}");
                step.spec.instructions.clone_from(&after);
                instructions = Some(after);
            }
        }
        let place = self.place(id).expect("a reviewed step stays");
        Ok(Reviewed {
            step: id,
            step_status: self.steps[place].status,
            plan: self.id,
            plan_status: self.status,
            instructions,
        })
    }
}
