//! Submit a step's result. Submitted again, the same result gets the same answer again, with the same
//! next step and token: it is made anew from the plan as it was right after the first time.

use std::sync::Arc;

use onward_core::branch::{Effect, Verdict};
use onward_core::command::{StartNext, SubmitResult};
use onward_core::decide::start_next::handed_out;
use onward_core::id::{BranchId, ClaimToken, SessionId};
use onward_core::role::Permission;
use onward_core::step::StepResult;
use onward_core::{Command, Event, Plan, PlanHead, PlanId, PlanStatus, Refusal, StepId};
use onward_store::{Due, Entry, Tx, With};

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::late;
use crate::next::{Next, hand_out, handed};
use crate::run::{Done, Outcome, Target, run, run_and_claim};

/// A result, as an agent submits it.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// For which step.
    pub step: StepId,
    /// What came out.
    pub result: StepResult,
    /// The claim that it is submitted under; agents forget it.
    pub token: Option<ClaimToken>,
    /// Who submits it.
    pub session: Option<SessionId>,
    /// Hand out the next step in the same transaction.
    pub claim_next: bool,
}

/// What a result led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Submitted {
    /// Which step was completed.
    pub step: StepId,
    /// Of which plan.
    pub plan: PlanId,
    /// Where the plan stands.
    pub plan_status: PlanStatus,
    /// How far it is, in percent.
    pub progress: u32,
    /// What came of each branch that was tried.
    pub verdicts: Vec<Verdict>,
    /// The branch that was taken, and what it did.
    pub taken: Option<(BranchId, Effect)>,
    /// The next step, where it was asked for.
    pub next_step: Option<Next>,
}

/// What the transaction led to.
enum Answer {
    New(Box<Submitted>, Due),
    /// The same result was accepted before.
    Repeated(PlanId),
    Refused(Error),
}

impl Engine {
    /// Submits a result. What is refused is kept, and the refusal says where.
    pub async fn submit(
        &self,
        caller: &Caller,
        submission: Submission,
    ) -> Result<Submitted, Error> {
        caller.allow(Permission::Work)?;
        let Submission {
            step,
            result,
            token,
            session,
            claim_next,
        } = submission;
        let (token, session) = (clean::token(token), clean::session(session));
        let mut result = Arc::new(result);
        // Refused in the transaction that keeps it.
        let unfit = clean::result(&mut result).err();
        let moment = self.moment(caller, session.as_ref());
        let command = Command::from(SubmitResult {
            step,
            result,
            token,
            fresh_token: self.fresh.claim_token(),
            session: session.clone(),
        });
        let next = claim_next.then(|| StartNext {
            token: self.fresh.claim_token(),
            session: session.clone(),
            include_stalled: false,
        });
        let command = Arc::new(command);
        let answer = self.store.advance(&caller.tenant, move |tx| {
            let (command, next, moment) = (Arc::clone(&command), next.clone(), moment.clone());
            let unfit = unfit.clone();
            Box::pin(async move {
                let (outcome, claimed) = match (unfit, &next) {
                    (Some(refusal), _) => (refused(tx, step, refusal).await?, false),
                    (None, Some(next)) => run_and_claim(tx, step, &command, next, &moment).await?,
                    (None, None) => {
                        let outcome = run(tx, Target::Step(step), &command, &moment, None);
                        (outcome.await?, false)
                    }
                };
                let done = match outcome {
                    Outcome::NotFound => {
                        let code = onward_core::Code::StepNotFound;
                        let kept = late::keep(tx, &command, None, code, &moment, None).await?;
                        let step = step.to_string();
                        return Ok(Answer::Refused(Error::StepNotFound { step, kept }));
                    }
                    Outcome::Refused { refusal, head } => {
                        let (plan, code) = (Some(head.id), refusal.code());
                        let kept = late::keep(tx, &command, plan, code, &moment, None).await?;
                        return Ok(Answer::Refused(Error::Refused { refusal, kept }));
                    }
                    Outcome::Done(done) if done.events.is_empty() => {
                        return Ok(Answer::Repeated(done.head.id));
                    }
                    Outcome::Done(done) => done,
                };
                let (mut submitted, mut due) = (answer(step, &done.head, &done.events), done.due);
                if claimed {
                    submitted.next_step = claimed_next(&done);
                } else if let Some(next) = next {
                    let plan = done.head.id;
                    let claimed = hand_out(tx, plan, next, &moment, Some(done.commit_seq)).await?;
                    if let Some((claimed, next)) = claimed {
                        submitted.plan_status = claimed.head.status();
                        submitted.next_step = Some(next);
                        due = sooner(due, claimed.due);
                    }
                }
                Ok::<Answer, Error>(Answer::New(Box::new(submitted), due))
            })
        });
        match answer.await? {
            Answer::New(submitted, due) => {
                self.alarm.ring(due);
                Ok(*submitted)
            }
            Answer::Refused(why) => Err(why),
            Answer::Repeated(plan) => {
                self.answer_again(caller, plan, step, session, claim_next)
                    .await
            }
        }
    }

    /// The answer to the first submission of the same result.
    async fn answer_again(
        &self,
        caller: &Caller,
        plan: PlanId,
        step: StepId,
        session: Option<SessionId>,
        claim_next: bool,
    ) -> Result<Submitted, Error> {
        let trail = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let completed = tx.completion(plan, step).await?;
                let last = completed.last().map_or(0, |last| last.seq);
                let mut trail = tx.whole_trail(plan).await?;
                trail.retain(|entry| entry.seq <= last);
                Ok::<_, onward_store::Error>((completed, trail))
            })
        });
        let (completed, trail) = trail.await?;
        let then = replay(&trail)?;
        let events: Vec<Event> = completed.into_iter().map(|entry| entry.event).collect();
        let mut submitted = answer(step, then.head(), &events);
        if claim_next {
            // The claim stands behind the completion: a step that was completed without ever
            // having been claimed was claimed in front of it.
            let completed = events
                .iter()
                .position(|event| matches!(event, Event::StepCompleted { .. }));
            let behind = completed.and_then(|place| events.get(place..));
            let claimed = behind.and_then(handed_out).and_then(|id| then.step(id));
            submitted.next_step = Some(match claimed.and_then(|step| handed(then.head(), step)) {
                Some(handed) => Next::Started(Box::new(handed)),
                None => self.next_step(caller, plan, session, false).await?,
            });
        }
        Ok(submitted)
    }
}

/// The step that was handed out in the same commit.
fn claimed_next(done: &Done) -> Option<Next> {
    let step = handed_out(&done.events).and_then(|id| done.step(id))?;
    handed(&done.head, step).map(|handed| Next::Started(Box::new(handed)))
}

/// What is refused before anybody looks at the plan.
async fn refused(tx: &mut Tx, step: StepId, refusal: Refusal) -> Result<Outcome, Error> {
    let facts = tx.step(step, With::Head).await?;
    Ok(facts.map_or(Outcome::NotFound, |facts| Outcome::Refused {
        refusal,
        head: facts.head,
    }))
}

fn sooner(one: Due, other: Due) -> Due {
    match (one, other) {
        (Due::By(one), Due::By(other)) => Due::By(one.min(other)),
        (Due::Unchanged | Due::Never, due) | (due, _) => due,
    }
}

/// The plan that a trail makes.
pub(crate) fn replay(trail: &[Entry]) -> Result<Plan, Error> {
    Plan::replay(trail.iter().map(|entry| (&entry.event, entry.at))).map_err(|why| {
        Error::Store(onward_store::Error::Refused(format!(
            "the audit trail does not replay: {why}"
        )))
    })
}

fn answer(step: StepId, head: &PlanHead, events: &[Event]) -> Submitted {
    let mut verdicts = Vec::new();
    let mut taken = None;
    for event in events {
        if let Event::StepCompleted { verdicts: all, .. } = event {
            verdicts.clone_from(all);
        } else if let Event::BranchTaken { branch, effect, .. } = event {
            taken = Some((*branch, effect.clone()));
        }
    }
    Submitted {
        step,
        plan: head.id,
        plan_status: head.status(),
        progress: head.counts.progress(),
        verdicts,
        taken,
        next_step: None,
    }
}
