//! Submits step results. A repeated submission of the same result gets the same response, including
//! the next step and its token: it is rebuilt by replaying the audit trail up to the first
//! submission.

use std::sync::Arc;

use onward_core::branch::{BranchVerdict, Effect};
use onward_core::command::{StartNext, SubmitResult};
use onward_core::decide::With;
use onward_core::decide::start_next::assigned_step;
use onward_core::id::{BranchId, ClaimToken, SessionId};
use onward_core::role::Permission;
use onward_core::step::StepResult;
use onward_core::transition::Due;
use onward_core::{Command, Event, Plan, PlanHead, PlanId, PlanStatus, Refusal, StepId};
use onward_store::{AuditTrail, Entry, Facts, Tx};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::plan::late_results;
use crate::plan::next_step::{NextStep, assign_next, replayed_step, started};
use crate::run::{Applied, CommandOutcome, run_and_claim};
use crate::sanitize;

/// A step result from an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// The step.
    pub step: StepId,
    /// The result.
    pub result: StepResult,
    /// The claim token, if the agent sent it.
    pub token: Option<ClaimToken>,
    /// The submitting session.
    pub session: Option<SessionId>,
    /// Assign the next step in the same transaction.
    pub claim_next: bool,
}

/// Response to a submission.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmitResponse {
    /// The completed step.
    pub step: StepId,
    /// Its plan.
    pub plan: PlanId,
    /// The plan's status.
    pub plan_status: PlanStatus,
    /// The plan's progress in percent.
    pub progress: u32,
    /// The verdict on each evaluated branch.
    pub verdicts: Vec<BranchVerdict>,
    /// The branch that was taken and its effect.
    pub taken_branch: Option<(BranchId, Effect)>,
    /// The next step, if it was requested.
    pub next_step: Option<NextStep>,
}

/// Result of the transaction.
enum TxOutcome {
    Accepted(Box<SubmitResponse>, Due),
    /// The same result was accepted earlier.
    Duplicate(PlanId),
    Rejected(Error),
}

impl Engine {
    /// Submits a result. A rejected result is stored as an artifact, which the error names.
    pub async fn submit(
        &self,
        caller: &Caller,
        submission: Submission,
    ) -> Result<SubmitResponse, Error> {
        caller.allow(Permission::Work)?;
        let Submission {
            step,
            result,
            token,
            session,
            claim_next,
        } = submission;
        let (token, session) = (sanitize::token(token), sanitize::session(session));
        let mut result = Arc::new(result);
        // Rejected inside the transaction, which also stores the rejected result.
        let invalid = sanitize::result(&mut result).err();
        let ctx = self.command_context(caller, session.as_ref());
        let command = Command::from(SubmitResult {
            step,
            result,
            token,
            fresh_token: self.ids.claim_token(),
            session: session.clone(),
        });
        let next = claim_next.then(|| StartNext {
            token: self.ids.claim_token(),
            session: session.clone(),
            include_stalled: false,
        });
        let command = Arc::new(command);
        let response = self.store.transition(&caller.tenant, move |tx| {
            let (command, next, ctx) = (Arc::clone(&command), next.clone(), ctx.clone());
            let invalid = invalid.clone();
            Box::pin(async move {
                let outcome = match invalid {
                    Some(refusal) => reject_invalid(tx, step, refusal).await?,
                    None => run_and_claim(tx, step, &command, next.as_ref(), &ctx).await?,
                };
                let done = match outcome {
                    CommandOutcome::NotFound => {
                        let code = onward_core::Code::StepNotFound;
                        let kept =
                            late_results::store_rejected(tx, &command, None, code, &ctx, None)
                                .await?;
                        let step = step.to_string();
                        return Ok(TxOutcome::Rejected(Error::StepNotFound { step, kept }));
                    }
                    CommandOutcome::Rejected { refusal, head } => {
                        let (plan, code) = (Some(head.id), refusal.code());
                        let kept =
                            late_results::store_rejected(tx, &command, plan, code, &ctx, None)
                                .await?;
                        return Ok(TxOutcome::Rejected(Error::Rejected { refusal, kept }));
                    }
                    CommandOutcome::Applied(done) if done.events.is_empty() => {
                        return Ok(TxOutcome::Duplicate(done.head.id));
                    }
                    CommandOutcome::Applied(done) => done,
                };
                let (mut submitted, mut due) = (response(step, &done.head, &done.events), done.due);
                if let Some(claimed) = claimed_next(tx, &done, step).await? {
                    submitted.next_step = Some(claimed);
                } else if let Some(next) = next {
                    let plan = done.head.id;
                    let claimed = assign_next(tx, plan, next, &ctx, Some(done.commit_seq)).await?;
                    if let Some((claimed, next)) = claimed {
                        submitted.plan_status = claimed.head.status();
                        submitted.next_step = Some(next);
                        due = earlier(due, claimed.due);
                    }
                }
                Ok::<TxOutcome, Error>(TxOutcome::Accepted(Box::new(submitted), due))
            })
        });
        match response.await? {
            TxOutcome::Accepted(submitted, due) => {
                self.sweep_waker.wake_by(due);
                Ok(*submitted)
            }
            TxOutcome::Rejected(error) => Err(error),
            TxOutcome::Duplicate(plan) => {
                self.repeat_response(caller, plan, step, session, claim_next)
                    .await
            }
        }
    }

    /// Rebuilds the response to the first submission of the same result.
    async fn repeat_response(
        &self,
        caller: &Caller,
        plan: PlanId,
        step: StepId,
        session: Option<SessionId>,
        claim_next: bool,
    ) -> Result<SubmitResponse, Error> {
        let entries = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let completed = AuditTrail(tx).completion(plan, step).await?;
                let last = completed.last().map_or(0, |last| last.seq);
                let mut entries = AuditTrail(tx).whole_trail(plan).await?;
                entries.retain(|entry| entry.seq <= last);
                Ok::<_, onward_store::Error>((completed, entries))
            })
        });
        let (completed, entries) = entries.await?;
        let replayed = replay(&entries)?;
        let events: Vec<Event> = completed.into_iter().map(|entry| entry.event).collect();
        let mut submitted = response(step, replayed.head(), &events);
        if claim_next {
            // The next step's claim is after the completion: if the step was completed without a
            // prior claim, its own claim is in the same commit, before the completion.
            let completed = events
                .iter()
                .position(|event| matches!(event, Event::StepCompleted { .. }));
            let after = completed.and_then(|place| events.get(place..));
            let claimed = after
                .and_then(assigned_step)
                .and_then(|id| replayed.step(id));
            submitted.next_step = Some(
                match claimed.and_then(|step| replayed_step(&replayed, step)) {
                    Some(assigned) => NextStep::Started(Box::new(assigned)),
                    None => self.next_step(caller, plan, session, false).await?,
                },
            );
        }
        Ok(submitted)
    }
}

/// The next step, if it was assigned in the same commit. A step that is completed without a prior
/// claim is also claimed in it.
async fn claimed_next(
    tx: &mut Tx,
    done: &Applied,
    submitted: StepId,
) -> Result<Option<NextStep>, Error> {
    let id = assigned_step(&done.events).filter(|id| *id != submitted);
    match id.and_then(|id| done.step(id)) {
        Some(step) => started(tx, &done.head, step).await,
        None => Ok(None),
    }
}

/// The outcome for a result that fails validation, before any plan rule is evaluated.
async fn reject_invalid(
    tx: &mut Tx,
    step: StepId,
    refusal: Refusal,
) -> Result<CommandOutcome, Error> {
    let facts = Facts(tx).step(step, With::Head).await?;
    Ok(
        facts.map_or(CommandOutcome::NotFound, |facts| CommandOutcome::Rejected {
            refusal,
            head: facts.head,
        }),
    )
}

fn earlier(one: Due, other: Due) -> Due {
    match (one, other) {
        (Due::By(one), Due::By(other)) => Due::By(one.min(other)),
        (Due::Unchanged | Due::Never, due) | (due, _) => due,
    }
}

/// Rebuilds a plan from its audit trail.
pub(crate) fn replay(entries: &[Entry]) -> Result<Plan, Error> {
    Plan::replay(entries.iter().map(|entry| (&entry.event, entry.at))).map_err(|error| {
        Error::Store(onward_store::Error::Refused(format!(
            "the audit trail does not replay: {error}"
        )))
    })
}

fn response(step: StepId, head: &PlanHead, events: &[Event]) -> SubmitResponse {
    let verdicts = events.iter().find_map(|event| {
        if let Event::StepCompleted { verdicts, .. } = event {
            Some(verdicts.clone())
        } else {
            None
        }
    });
    SubmitResponse {
        step,
        plan: head.id,
        plan_status: head.status(),
        progress: head.counts.progress(),
        verdicts: verdicts.unwrap_or_default(),
        taken_branch: taken_branch(events),
        next_step: None,
    }
}

/// The branch that these events took, and its effect.
pub(crate) fn taken_branch(events: &[Event]) -> Option<(BranchId, Effect)> {
    events.iter().find_map(|event| {
        if let Event::BranchTaken { branch, effect, .. } = event {
            Some((*branch, effect.clone()))
        } else {
            None
        }
    })
}
