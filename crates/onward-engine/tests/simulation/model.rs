//! The rules of the plans once more, as plainly as they can be written: lists in memory, no index, no
//! cache, no events that state follows from. Slow, and easy to hold against `spec/plans.md`.
//!
//! It foretells what the engine answers to a command and what its rows say afterwards. What is
//! random (tokens, the ids of reviews and artifacts) it takes from the answer that was heard; where
//! nobody heard one, from the rows. It shares the words of the core (statuses, specs, codes), and
//! none of its decisions.

mod create;
mod modify;
mod next;
mod plan;
mod shape;
mod step;
mod submit;
mod sweep;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

use onward_core::id::{ArtifactId, SessionId};
use onward_core::step::StepResult;
use onward_core::{Code, PlanId, StepId, Timestamp};

pub(crate) use plan::{Entry, Late, Plan};
pub(crate) use step::{Held, Step};

use crate::ask::{Ask, What};
use crate::said::{Key, Said};

/// All plans of all tenants of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) plans: BTreeMap<Key, Plan>,
    /// Which plan was made under a key, and from what.
    keys: BTreeMap<(Arc<str>, String), (PlanId, String)>,
    /// What was refused, for which step, and where it is kept.
    kept: BTreeMap<(Arc<str>, StepId, String), Option<ArtifactId>>,
    pub(crate) watch: sweep::Watch,
}

/// When something is asked, by whom, and what the engine answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub(crate) now: Timestamp,
    pub(crate) who: &'a str,
    pub(crate) session: Option<&'a SessionId>,
    pub(crate) heard: Option<&'a Said>,
}

impl Model {
    /// What the engine must answer; and the model goes on to where the engine must stand then.
    pub(crate) fn follow(&mut self, ask: &Ask, now: Timestamp, heard: Option<&Said>) -> Said {
        let session = match &ask.what {
            What::Create(command, _) => command.session.as_ref(),
            What::Next { session, .. } | What::Notice(_, _, session) => session.as_ref(),
            What::Submit(submission) => submission.session.as_ref(),
            What::Progress(progress) => progress.session.as_ref(),
            What::Question(question) => question.session.as_ref(),
            What::TakeUp(_, session) => Some(session),
            _ => None,
        };
        let at = &Moment {
            now,
            who: &ask.who,
            session,
            heard,
        };
        let tenant = &ask.tenant;
        match &ask.what {
            What::Create(command, key) => self.create(tenant, command, key.as_deref(), at),
            What::Next {
                plan,
                include_stalled,
                ..
            } => self.on_plan(tenant, *plan, |plan| {
                Ok(Said::Next(Box::new(plan.next(*include_stalled, at))))
            }),
            What::Submit(submission) => {
                let late = Some(submission.result.clone());
                self.on_step(tenant, submission.step, late, at, |plan, place| {
                    let answer = plan.submit(place, submission, at)?;
                    Ok(Said::Submitted(Box::new(answer)))
                })
            }
            What::Progress(progress) => {
                let percent = progress
                    .percent
                    .map(|percent| format!("{percent} percent done"));
                let words = progress.note.clone().or(percent);
                let late = words.map(StepResult::of_summary);
                self.on_step(tenant, progress.step, late, at, |plan, place| {
                    Ok(Said::Progressed(plan.progress(place, progress, at)?))
                })
            }
            What::Notice(step, sign, _) => self.on_step(tenant, *step, None, at, |plan, place| {
                plan.notice(place, *sign, at);
                Ok(Said::Done)
            }),
            What::Question(question) => {
                let questions = serde_json::json!({ "questions": question.questions });
                let late = StepResult {
                    data: Some(questions),
                    ..StepResult::of_summary(question.summary.clone())
                };
                self.on_step(tenant, question.step, Some(late), at, |plan, place| {
                    Ok(Said::Asked(plan.ask(place, question, at)?))
                })
            }
            What::Decide(step, decision, feedback) => {
                self.on_step(tenant, *step, None, at, |plan, place| {
                    let words = feedback.as_deref();
                    Ok(Said::Reviewed(plan.decide(place, *decision, words, at)?))
                })
            }
            What::Modify {
                plan,
                modification,
                resume,
            } => self.on_plan(tenant, *plan, |plan| {
                plan.modify(modification, *resume, at)?;
                Ok(Said::Modified(Box::new(plan.head()), plan.lines()))
            }),
            What::Resume(plan) => self.on_plan(tenant, *plan, |plan| plan.resume_by_hand(at)),
            What::Abandon(plan, reason) => {
                self.on_plan(tenant, *plan, |plan| plan.abandon(reason.as_ref(), at))
            }
            What::TakeUp(plan, session) => self.on_plan(tenant, *plan, |plan| {
                plan.take_up(session, at);
                Ok(Said::Done)
            }),
            What::Delete(plan) => match self.plans.remove(&(Arc::clone(tenant), *plan)) {
                Some(plan) => {
                    self.forget_keys(tenant, plan.id);
                    Said::Deleted(Box::new(plan.head()))
                }
                None => Said::Refused(Code::PlanNotFound, None),
            },
            What::Move(plan, to) => self.copy(tenant, *plan, to),
            What::Sweep { fresh } => self.sweep(*fresh, at),
        }
    }

    fn on_plan(
        &mut self,
        tenant: &Arc<str>,
        plan: PlanId,
        act: impl FnOnce(&mut Plan) -> Result<Said, Code>,
    ) -> Said {
        match self.plans.get_mut(&(Arc::clone(tenant), plan)) {
            None => Said::Refused(Code::PlanNotFound, None),
            Some(plan) => plan
                .try_to(act)
                .unwrap_or_else(|code| Said::Refused(code, None)),
        }
    }

    /// What is refused changes nothing, but that what it brought is kept.
    fn on_step(
        &mut self,
        tenant: &Arc<str>,
        step: StepId,
        late: Option<StepResult>,
        at: &Moment<'_>,
        act: impl FnOnce(&mut Plan, usize) -> Result<Said, Code>,
    ) -> Said {
        let mut own = self.plans.iter_mut().filter(|((of, _), _)| of == tenant);
        let found = own.find_map(|(_, plan)| Some((plan.place(step)?, plan)));
        let (plan, code) = match found {
            None => (None, Code::StepNotFound),
            Some((place, plan)) => match plan.try_to(|plan| act(plan, place)) {
                Ok(said) => return said,
                Err(code) => (Some(plan), code),
            },
        };
        let kept = late.map(|late| {
            let name = (Arc::clone(tenant), step, format!("{late:?}"));
            let heard = at.heard.and_then(Said::kept);
            let known = self.kept.get(&name).copied();
            if let (None, Some(plan)) = (known, plan) {
                plan.begin_command();
                plan.note("late_result_kept", None, Some(step), at);
                plan.late.push(Late {
                    step,
                    code,
                    summary: late.summary,
                    id: heard,
                });
            }
            let id = known.flatten().or(heard);
            self.kept.insert(name, id);
            id.unwrap_or(ArtifactId::from_u128(0))
        });
        Said::Refused(code, kept)
    }

    /// A plan moves with everything that it has; a tenant that has it already keeps its own.
    fn copy(&mut self, from: &Arc<str>, plan: PlanId, to: &Arc<str>) -> Said {
        let Some(copied) = self.plans.get(&(Arc::clone(from), plan)).cloned() else {
            return Said::Refused(Code::PlanNotFound, None);
        };
        let there = (Arc::clone(to), plan);
        if self.plans.contains_key(&there) {
            return Said::Refused(Code::Conflict, None);
        }
        let of_plan = |step: &StepId| copied.late.iter().any(|late| late.step == *step);
        let kept = self.kept.clone().into_iter();
        for ((tenant, step, content), id) in kept {
            if tenant == *from && of_plan(&step) {
                let name = (Arc::clone(to), step, content);
                self.kept.entry(name).or_insert(id);
            }
        }
        self.plans.insert(there, copied);
        Said::Moved(plan)
    }

    /// Beside the plans, everything is as it is there.
    pub(crate) fn remember_as(&mut self, other: &Model) {
        self.keys.clone_from(&other.keys);
        self.kept.clone_from(&other.kept);
    }
}
