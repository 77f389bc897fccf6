//! Submits step results. A repeated submission of the same result gets the same response, including
//! the next step and its token: it is rebuilt by replaying the audit trail up to the first
//! submission.

use std::collections::HashSet;
use std::sync::Arc;

use onward_core::branch::{BranchVerdict, Effect};
use onward_core::command::{StartNext, SubmitResult};
use onward_core::decide::With;
use onward_core::decide::start_next::{assigned_step, is_assignable};
use onward_core::event::ReviewAction;
use onward_core::id::{BranchId, ClaimToken, ReviewId, SessionId};
use onward_core::next_check::Due;
use onward_core::role::Permission;
use onward_core::step::StepResult;
use onward_core::{
    Command, Event, Plan, PlanHead, PlanId, PlanStatus, Refusal, Step, StepId, StepStatus,
    Timestamp,
};
use onward_store::{AuditTrail, Cached, Entry, Facts, Tx};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::plan::late_results;
use crate::plan::next_step::{
    NextStep, PlanView, assign_next, delivers_instructions, no_step, started,
};
use crate::run::{Applied, CommandOutcome, run_and_claim};
use crate::sanitize;

/// Entries of a page of the audit trail, and their bytes.
const PAGE_ROWS: u32 = 1_000;
const PAGE_BYTES: u64 = 1024 * 1024;

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
    /// The step.
    pub step: StepId,
    /// Its status: completed, or awaiting input if the result must be reviewed.
    pub step_status: StepStatus,
    /// The review of the result, if it must be reviewed.
    pub review: Option<ReviewId>,
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
    /// The step's instructions, if they changed after they were last delivered to the agent.
    pub changed_instructions: Option<String>,
    /// The next step, if it was requested. A repeated submission claims nothing: if the first one
    /// did not request the next step and one was ready, this is empty.
    pub next_step: Option<NextStep>,
}

/// Result of the transaction.
enum TxOutcome {
    Accepted(Box<SubmitResponse>, Due),
    /// The same result was accepted earlier.
    Duplicate(PlanId),
    /// The same result is under review.
    UnderReview(Box<SubmitResponse>),
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
        let session = sanitize::session(session);
        let mut result = Arc::new(result);
        // Rejected inside the transaction, which also stores the rejected result.
        let invalid = sanitize::result(&mut result).err();
        let ctx = self.command_context(caller, session.as_ref());
        let command = Command::from(SubmitResult {
            step,
            result,
            token,
            fresh_token: self.ids.claim_token(),
            review: ReviewId::new(self.ids.ordered_id(ctx.now)),
            session: session.clone(),
        });
        let next = claim_next.then(|| StartNext {
            token: self.ids.claim_token(),
            session: session.clone(),
            include_stalled: false,
            labels: None,
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
                        let submitted = done.step(step);
                        if submitted.is_some_and(|step| step.status().is_terminal()) {
                            return Ok(TxOutcome::Duplicate(done.head.id));
                        }
                        // The caller asks for the next step with another call.
                        let repeated = response(step, &done.head, submitted, &[]);
                        return Ok(TxOutcome::UnderReview(Box::new(repeated)));
                    }
                    CommandOutcome::Applied(done) => done,
                };
                let completed = done.step(step);
                let mut submitted = response(step, &done.head, completed, &done.events);
                let mut due = done.due;
                if let Some(claimed) = claimed_next(tx, &done, step).await? {
                    submitted.next_step = Some(claimed);
                } else if let Some(next) = next {
                    let plan = done.head.id;
                    let session = done.session.clone();
                    let labels = done.step(step).map(|step| step.spec.labels.clone());
                    let next = StartNext {
                        session,
                        labels,
                        ..next
                    };
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
            TxOutcome::UnderReview(submitted) => Ok(*submitted),
            TxOutcome::Rejected(error) => Err(error),
            TxOutcome::Duplicate(plan) => {
                self.repeat_response(caller, plan, step, claim_next).await
            }
        }
    }

    /// Rebuilds the response to the first submission of the same result.
    async fn repeat_response(
        &self,
        caller: &Caller,
        plan: PlanId,
        step: StepId,
        claim_next: bool,
    ) -> Result<SubmitResponse, Error> {
        let response = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let completed = AuditTrail(tx).completion(plan, step).await?;
                let (at, replayed) = replay_commit(tx, plan, &completed).await?;
                let events: Vec<Event> = completed.into_iter().map(|entry| entry.event).collect();
                let mut submitted = response(step, replayed.head(), replayed.step(step), &events);
                if claim_next {
                    submitted.next_step = repeat_next_step(tx, &replayed, &events, at).await?;
                }
                Ok::<_, Error>(submitted)
            })
        });
        response.await
    }
}

/// The next step in the response to the first submission. Claims nothing.
async fn repeat_next_step(
    tx: &mut Tx,
    replayed: &Plan,
    events: &[Event],
    at: Timestamp,
) -> Result<Option<NextStep>, Error> {
    // The next step's claim is after the completion: if the step was completed without a prior
    // claim, its own claim is in the same commit, before the completion.
    let completed = events
        .iter()
        .position(|event| matches!(event, Event::StepCompleted { .. }));
    let after = completed.and_then(|place| events.get(place..));
    let claimed = after
        .and_then(assigned_step)
        .and_then(|id| replayed.step(id));
    let view = PlanView::Replayed(replayed);
    if let Some(step) = claimed
        && let Some(started) = started(tx, view, step).await?
    {
        return Ok(Some(started));
    }
    // The session received a step again that it already held.
    let resumed = after.into_iter().flatten().find_map(|event| {
        if let Event::StepProgressed { step, .. } = event {
            replayed.step(*step)
        } else {
            None
        }
    });
    if let Some(step) = resumed
        && let Some(NextStep::Started(mut started)) = started(tx, view, step).await?
    {
        started.resumed = true;
        return Ok(Some(NextStep::Started(started)));
    }
    let completed = completed.and_then(|place| events.get(place)?.step());
    let completed = completed.and_then(|id| replayed.step(id));
    let labels = completed.map(|step| step.spec.labels.as_slice());
    let ready = replayed.ready_for(labels);
    if ready.is_some_and(|step| is_assignable(replayed.head(), step, at)) {
        return Ok(None);
    }
    let session = events.iter().find_map(|event| {
        if let Event::StepCompleted { session, .. } = event {
            session.as_ref()
        } else {
            None
        }
    });
    no_step(tx, view, session, at).await.map(Some)
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
        Some(step) => started(tx, PlanView::Stored(&done.head), step).await,
        None => Ok(None),
    }
}

/// The outcome for a result that fails validation, before any plan rule is evaluated.
async fn reject_invalid(
    tx: &mut Tx,
    step: StepId,
    refusal: Refusal,
) -> Result<CommandOutcome, Error> {
    let facts = Cached(Facts(tx)).step(step, With::Head).await?;
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

/// The plan as it was after a commit, and the time of the commit.
pub(crate) async fn replay_commit(
    tx: &mut Tx,
    plan: PlanId,
    commit: &[Entry],
) -> Result<(Timestamp, Plan), Error> {
    let (last, at) = commit
        .last()
        .map_or((0, Timestamp::MIN), |last| (last.seq, last.at));
    let mut entries = Vec::new();
    let mut behind = 0;
    while behind < last {
        let mut trail = AuditTrail(tx);
        let mut page = trail
            .trail_page(plan, behind, PAGE_ROWS, PAGE_BYTES)
            .await?;
        let Some(end) = page.last() else { break };
        behind = end.seq;
        page.retain(|entry| entry.seq <= last);
        entries.append(&mut page);
        remove_results(&mut entries);
    }
    Ok((at, replay(&entries)?))
}

/// Removes the results of completed steps and decided reviews: a response does not contain them, and
/// all of them together can be larger than memory.
fn remove_results(entries: &mut [Entry]) {
    let mut decided = HashSet::new();
    for entry in entries.iter_mut().rev() {
        if let Event::StepCompleted { result, .. } = &mut entry.event {
            *result = Arc::new(StepResult::from_summary(""));
        } else if let Event::UserReviewed { review, action, .. } = &mut entry.event {
            match action {
                ReviewAction::Decided { .. } => drop(decided.insert(*review)),
                ReviewAction::Requested { result, .. } if decided.contains(review) => {
                    *result = result
                        .as_ref()
                        .map(|_| Arc::new(StepResult::from_summary("")));
                }
                ReviewAction::Requested { .. } => {}
            }
        }
    }
}

/// Rebuilds a plan from its audit trail.
pub(crate) fn replay(entries: &[Entry]) -> Result<Plan, Error> {
    Plan::replay(entries.iter().map(|entry| (&entry.event, entry.at))).map_err(|error| {
        Error::Store(onward_store::Error::refused(format!(
            "the audit trail does not replay: {error}"
        )))
    })
}

fn response(
    step: StepId,
    head: &PlanHead,
    completed: Option<&Step>,
    events: &[Event],
) -> SubmitResponse {
    let verdicts = events.iter().find_map(|event| {
        if let Event::StepCompleted { verdicts, .. } = event {
            Some(verdicts.clone())
        } else {
            None
        }
    });
    let review = completed.and_then(Step::open_review);
    SubmitResponse {
        step,
        step_status: completed.map_or(StepStatus::Completed, Step::status),
        review: review.map(|review| review.id),
        plan: head.id,
        plan_status: head.status(),
        progress: head.counts.progress(),
        verdicts: verdicts.unwrap_or_default(),
        taken_branch: taken_branch(events),
        changed_instructions: completed
            .filter(|step| delivers_instructions(step.id(), events))
            .map(|step| step.spec.instructions.clone()),
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
