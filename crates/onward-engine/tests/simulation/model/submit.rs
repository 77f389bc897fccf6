//! A result, by the model: under which claim it comes, whether it came before, and which branch it
//! leads into.

use onward_core::branch::{Action, Effect, NoEffect, Verdict};
use onward_core::id::{BranchId, ClaimToken};
use onward_core::plan::PlanFailure;
use onward_core::step::{SkipCause, StepResult};
use onward_core::{Code, PlanStatus, StepStatus};
use onward_engine::next::Next;
use onward_engine::submit::{Submission, Submitted};

use super::{Moment, Plan, Step};
use crate::conditions::{self, Seen};
use crate::said::Said;

/// What completing a step led to.
pub(super) type Came = (Vec<Verdict>, Option<(BranchId, Effect)>);

impl Plan {
    pub(crate) fn submit(
        &mut self,
        place: usize,
        submission: &Submission,
        at: &Moment<'_>,
    ) -> Result<Submitted, Code> {
        let Submission {
            result,
            token,
            claim_next,
            ..
        } = submission;
        let token = token.as_ref();
        let step = &self.steps[place];
        let same_claim =
            token.is_none() || step.held().and_then(|held| held.token.as_ref()) == token;
        if step.status == StepStatus::Completed
            && same_claim
            && step.result.as_ref() == Some(result)
        {
            return Ok(self.answer_again(place, *claim_next, at));
        }
        if result.summary.trim().is_empty()
            || result
                .confidence
                .is_some_and(|sure| !(0.0..=1.0).contains(&sure))
            || result.data.as_ref().is_some_and(|data| !data.is_object())
        {
            return Err(Code::InvalidInput);
        }
        self.may_speak(place, token)?;
        if self.is_over() {
            return Err(Code::PlanIsTerminal);
        }
        if self.status == PlanStatus::Stalled {
            self.resume("late_result", at);
        }
        let step = &self.steps[place];
        match step.status {
            StepStatus::Pending => {
                if self.status == PlanStatus::AwaitingReview && !step.knows(token) {
                    return Err(Code::IllegalTransition);
                }
                self.claim(place, token.cloned(), at);
            }
            StepStatus::InProgress => {}
            _ => return Err(Code::IllegalTransition),
        }
        self.complete(place, result.clone(), at);
        if !*claim_next {
            return Ok(self.answer(place));
        }
        // The completed step may have moved nowhere, but others may stand behind it by then.
        let id = self.steps[place].id();
        let next = self.next(false, at);
        let place = self.place(id).expect("a completed step stays");
        let status = self.status;
        let step = &mut self.steps[place];
        if let Next::Started(handed) = &next {
            step.gave = Some(handed.as_ref().clone());
        }
        step.answer.as_mut().expect("it was answered").plan_status = status;
        let mut answer = self.answer(place);
        answer.next_step = Some(next);
        Ok(answer)
    }

    /// With the current token, without any, or while nobody has the step.
    pub(crate) fn may_speak(&self, place: usize, token: Option<&ClaimToken>) -> Result<(), Code> {
        let step = &self.steps[place];
        let current = step.held().and_then(|held| held.token.as_ref());
        match step.status {
            StepStatus::Pending => Ok(()),
            _ if token.is_none() || (current.is_some() && current == token) => Ok(()),
            _ => Err(Code::ClaimSuperseded),
        }
    }

    fn answer(&self, place: usize) -> Submitted {
        self.steps[place].answer.clone().expect("it was answered")
    }

    /// The same answer; and the same next step, where one was handed out with it.
    fn answer_again(&mut self, place: usize, claim_next: bool, at: &Moment<'_>) -> Submitted {
        let mut answer = self.answer(place);
        if !claim_next {
            return answer;
        }
        let next = match self.steps[place].gave.clone() {
            Some(mut handed) => {
                handed.token = self.token_of(&handed, at);
                Next::Started(Box::new(handed))
            }
            None => self.next(false, at),
        };
        answer.next_step = Some(next);
        answer
    }

    /// The token that was handed out then, whether or not somebody was told.
    fn token_of(&self, handed: &onward_engine::next::Handed, at: &Moment<'_>) -> ClaimToken {
        if handed.token.as_str() != "unseen" {
            return handed.token.clone();
        }
        let attempt = usize::try_from(handed.attempt).expect("few attempts");
        let step = self.place(handed.step).map(|place| &self.steps[place]);
        let claim = step.and_then(|step| step.claims.get(attempt - 1));
        let known = claim.and_then(|claim| claim.token.clone());
        known
            .or(at.heard.and_then(Said::token).cloned())
            .unwrap_or(handed.token.clone())
    }

    /// The step is done: its branches are tried, the first that is true decides.
    pub(super) fn complete(&mut self, place: usize, result: StepResult, at: &Moment<'_>) {
        let step = &mut self.steps[place];
        let id = step.id();
        step.status = StepStatus::Completed;
        step.ended_at = Some(at.now);
        step.review = None;
        step.result = Some(result);
        self.note("step_completed", None, Some(id), at);
        self.worked_on(at);
        let (verdicts, taken) = self.branch(place, at);
        if self.status != PlanStatus::Failed {
            self.settle(at);
        }
        let answer = Submitted {
            step: id,
            plan: self.id,
            plan_status: self.status,
            progress: self.progress_percent(),
            verdicts,
            taken,
            next_step: None,
        };
        let place = self.place(id).expect("a completed step stays");
        self.steps[place].answer = Some(answer);
    }

    fn branch(&mut self, place: usize, at: &Moment<'_>) -> Came {
        let step = &self.steps[place];
        let id = step.id();
        let seen = Seen {
            result: step.result.as_ref().expect("it has a result"),
            order: self.order(place),
            step_type: step.spec.step_type.as_str(),
            attempt: step.attempt(),
            progress: self.progress_percent(),
            completed: self.count(StepStatus::Completed),
            failed: self.count(StepStatus::Failed),
            pending: self.count(StepStatus::Pending),
        };
        let mut verdicts = Vec::new();
        let mut taken = None;
        for branch in self.branches.iter().filter(|branch| branch.after == id) {
            let truth = conditions::truth(&branch.condition, &seen);
            verdicts.push(Verdict {
                branch: branch.id,
                condition: branch.condition.clone(),
                matched: truth == Some(true),
                error: truth.is_none().then(String::new),
            });
            if truth == Some(true) {
                taken = Some(branch.clone());
                break;
            }
        }
        let taken =
            taken.map(|branch| (branch.id, self.take(place, branch.id, &branch.action, at)));
        (verdicts, taken)
    }

    fn take(&mut self, place: usize, by: BranchId, action: &Action, at: &Moment<'_>) -> Effect {
        let id = Some(self.steps[place].id());
        let noted = |plan: &mut Plan| plan.note("branch_taken", Some(action.as_str()), id, at);
        match action {
            Action::Continue => {
                noted(self);
                Effect::Continued
            }
            Action::Fail { reason } => {
                noted(self);
                self.fail(PlanFailure::Branch(reason.clone()), at);
                let reason = reason.clone();
                Effect::FailedPlan { reason }
            }
            Action::AddSteps { steps } => {
                noted(self);
                for (behind, spec) in steps.iter().enumerate() {
                    self.steps
                        .insert(place + 1 + behind, Step::new(spec.clone()));
                }
                let steps = steps.clone();
                Effect::Added { steps }
            }
            Action::SkipTo { target } => {
                noted(self);
                let why = match self.place(*target) {
                    None => Some(NoEffect::TargetGone),
                    Some(there) if self.steps[there].status != StepStatus::Pending => {
                        Some(NoEffect::TargetNotPending)
                    }
                    Some(there) if there <= place => Some(NoEffect::TargetNotAfter),
                    Some(_) => None,
                };
                if let Some(why) = why {
                    return Effect::Nothing { why };
                }
                let there = self.place(*target).expect("it is there");
                let mut steps = Vec::new();
                for between in place + 1..there {
                    if self.steps[between].status == StepStatus::Pending {
                        steps.push(self.steps[between].id());
                        self.skip_step(between, SkipCause::Branch(by), at);
                    }
                }
                let target = *target;
                Effect::Skipped { target, steps }
            }
        }
    }

    pub(super) fn skip_step(&mut self, place: usize, by: SkipCause, at: &Moment<'_>) {
        let step = &mut self.steps[place];
        step.status = StepStatus::Skipped;
        step.skipped_by = Some(by);
        step.ended_at = Some(at.now);
        step.review = None;
        let id = step.id();
        self.note("step_skipped", None, Some(id), at);
    }
}
