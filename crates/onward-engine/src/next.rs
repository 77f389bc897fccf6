//! Hand out the next step, or say why there is none.

use std::time::Duration;

use onward_core::command::StartNext;
use onward_core::decide::start_next::handed_out;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::plan::{PlanFailure, PlanState};
use onward_core::policy::stall_threshold;
use onward_core::role::Permission;
use onward_core::step::{Review, StepState};
use onward_core::{PlanHead, PlanId, PlanStatus, Step, StepId, StepType, Timestamp};
use onward_store::{StepLine, Tx, Which};

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{Done, Moment, Outcome, Target, run};
use crate::skill;
use crate::status::silent_since;

/// How many steps in progress an answer names.
const NAMED: u32 = 50;

/// What a call for the next step led to.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// A step to work on.
    Started(Box<Handed>),
    /// Every step is terminal.
    Complete(FormattingNotes),
    /// The plan was given up.
    Failed {
        /// Why.
        reason: PlanFailure,
    },
    /// A person decides first.
    AwaitingReview {
        /// About which step.
        step: StepId,
        /// What they are asked.
        review: Review,
    },
    /// Nothing can be handed out at the moment.
    NoPendingSteps {
        /// Steps that others work on.
        in_progress: u32,
        /// Steps that were given up.
        failed: u32,
        /// Pending steps that wait for others.
        blocked: u32,
        /// The first of those that others work on.
        working: Vec<Working>,
    },
}

/// A step, handed out under a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handed {
    /// Of which plan.
    pub plan: PlanId,
    /// Which step.
    pub step: StepId,
    /// Its place.
    pub order: u32,
    /// What kind of work.
    pub step_type: StepType,
    /// A short name for people.
    pub title: Option<String>,
    /// What to do.
    pub instructions: String,
    /// Which attempt it is.
    pub attempt: u32,
    /// What proves the claim.
    pub token: ClaimToken,
    /// How long it may stay silent.
    pub stall_threshold: Duration,
    /// How many steps the plan has.
    pub total: u32,
    /// How far the plan is, in percent.
    pub progress: u32,
}

/// How the output of a finished plan should look, as its skills, its author and its steps said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormattingNotes {
    /// What kind of text it is, as a skill that the plan is linked to said.
    pub media_type: Option<String>,
    /// How it should look, as a skill that the plan is linked to said.
    pub instructions: Option<String>,
    /// The plan's.
    pub plan: Option<String>,
    /// Each step's, with its id and place.
    pub steps: Vec<(StepId, u32, String)>,
}

/// A step that somebody works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Working {
    /// Which step.
    pub step: StepId,
    /// Its place.
    pub order: u32,
    /// How long ago the last sign of life was.
    pub elapsed: Duration,
    /// Whether that is longer than its threshold.
    pub stalled: bool,
    /// Whose it is, where the agent said so.
    pub session: Option<SessionId>,
}

impl Working {
    pub(crate) fn of(line: &StepLine, now: Timestamp) -> Self {
        Self {
            step: line.id,
            order: line.order,
            elapsed: now.since(silent_since(line)),
            stalled: line.stalls_at.is_some_and(|at| now > at),
            session: line.session.clone(),
        }
    }
}

impl Engine {
    /// Hands out the next step of a plan. With `include_stalled`, a step past its threshold comes
    /// first, under the next attempt.
    pub async fn next_step(
        &self,
        caller: &Caller,
        plan: PlanId,
        session: Option<SessionId>,
        include_stalled: bool,
    ) -> Result<Next, Error> {
        caller.allow(Permission::Work)?;
        let session = clean::session(session);
        let moment = self.moment(caller, session.as_ref());
        let command = StartNext {
            token: self.fresh.claim_token(),
            session,
            include_stalled,
        };
        let answer = self.store.advance(&caller.tenant, move |tx| {
            let (command, moment) = (command.clone(), moment.clone());
            Box::pin(async move {
                let handed = hand_out(tx, plan, command, &moment, None).await?;
                handed.ok_or_else(|| Error::PlanNotFound(plan.to_string()))
            })
        });
        let (done, next) = answer.await?;
        self.alarm.ring(done.due);
        Ok(next)
    }
}

/// What would be handed out, were it asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Peek {
    /// This step.
    Step(Box<Step>),
    /// None, and why.
    None(Next),
}

impl Engine {
    /// What comes next, without handing it out.
    pub async fn peek(&self, caller: &Caller, plan: PlanId) -> Result<Peek, Error> {
        caller.allow(Permission::Read)?;
        let now = self.now();
        let peek = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let sheet = tx.sheet(plan).await?;
                let sheet = sheet.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let head = sheet.head;
                let hands_out = match head.status() {
                    PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled => true,
                    PlanStatus::AwaitingReview | PlanStatus::Completed | PlanStatus::Failed => {
                        false
                    }
                };
                let step = match hands_out {
                    true => tx.first_ready(plan).await?,
                    false => None,
                };
                Ok::<Peek, Error>(match step {
                    Some(step) => Peek::Step(Box::new(step)),
                    None => Peek::None(describe(tx, &head, now).await?),
                })
            })
        });
        peek.await
    }
}

/// Runs the command and says what it led to. None where there is no such plan.
pub(crate) async fn hand_out(
    tx: &mut Tx,
    plan: PlanId,
    command: StartNext,
    moment: &Moment,
    commit_seq: Option<u64>,
) -> Result<Option<(Done, Next)>, Error> {
    let command = command.into();
    match run(tx, Target::Plan(plan), &command, moment, commit_seq).await? {
        Outcome::NotFound => Ok(None),
        Outcome::Refused { refusal, .. } => Err(refusal.into()),
        Outcome::Done(done) => {
            let step = handed_out(&done.events).and_then(|id| done.step(id));
            let next = match step.and_then(|step| handed(&done.head, step)) {
                Some(handed) => Next::Started(Box::new(handed)),
                None => describe(tx, &done.head, moment.now).await?,
            };
            Ok(Some((done, next)))
        }
    }
}

/// A step that was handed out.
pub(crate) fn handed(head: &PlanHead, step: &Step) -> Option<Handed> {
    let claim = step.claim()?;
    Some(Handed {
        plan: head.id,
        step: step.id(),
        order: step.order,
        step_type: step.spec.step_type,
        title: step.spec.title.clone(),
        instructions: step.spec.instructions.clone(),
        attempt: claim.attempt,
        token: claim.token.clone(),
        stall_threshold: stall_threshold(None, step.spec.stall_threshold, head.stall_threshold),
        total: head.counts.total(),
        progress: head.counts.progress(),
    })
}

/// Why nothing was handed out.
pub(crate) async fn describe(tx: &mut Tx, head: &PlanHead, now: Timestamp) -> Result<Next, Error> {
    Ok(match &head.state {
        PlanState::Completed { .. } => Next::Complete(formatting_notes(tx, head.id).await?),
        PlanState::Failed { reason, .. } => Next::Failed {
            reason: reason.clone(),
        },
        PlanState::AwaitingReview { step, .. } => {
            let facts = tx.sheet_of_step(*step).await?;
            match facts.map(|(_, step)| step.state) {
                Some(StepState::AwaitingInput { review, .. }) => Next::AwaitingReview {
                    step: *step,
                    review,
                },
                Some(_) | None => {
                    return Err(Error::Store(onward_store::Error::Refused(format!(
                        "plan `{}` awaits a review that step `{step}` does not have",
                        head.id
                    ))));
                }
            }
        }
        PlanState::Planning | PlanState::Executing | PlanState::Stalled { .. } => {
            let in_progress = onward_core::StepStatus::InProgress;
            let lines = tx.step_lines(head.id, Which::In(in_progress), 0, NAMED);
            let working = lines
                .await?
                .iter()
                .map(|line| Working::of(line, now))
                .collect();
            Next::NoPendingSteps {
                in_progress: head.counts.in_progress,
                failed: head.counts.failed,
                blocked: tx.count_blocked(head.id).await?,
                working,
            }
        }
    })
}

async fn formatting_notes(tx: &mut Tx, plan: PlanId) -> Result<FormattingNotes, Error> {
    let said = tx.output_notes(plan, skill::ASKED).await?;
    let (media_type, instructions) = skill::output(&said.skills);
    Ok(FormattingNotes {
        media_type,
        instructions,
        plan: said.plan,
        steps: said.steps,
    })
}
