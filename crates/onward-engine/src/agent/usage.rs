//! Token counts of sessions, as hooks and the proxy report them.
//!
//! The first source that reports tokens of a session counts; reports of the other one are ignored, so
//! that no response counts twice. The tokens belong to the step that the session holds when they are
//! reported: of several, the one claimed last. Without a step, they belong to the session only.

use std::sync::Arc;

use onward_core::command::CountTokens;
use onward_core::role::Permission;
use onward_core::usage::TokenUsage;
use onward_core::{Command, PlanHead, Step, StepId, Timestamp};
use onward_store::{
    Plans, SeenClaim, SessionUsage, Sessions, Steps, TranscriptPosition, Tx, UsageSource, Usages,
};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{CommandOutcome, Target, run};

/// Maximum number of a session's steps that are considered.
const MAX_STEPS: u32 = 100;

/// Maximum number of claims in the results of a session's calls that are considered, the last ones.
const MAX_CLAIMS: usize = 8;

/// Reads the tokens after a position, and moves it. `None` if there is nothing new to read.
pub type ReadTranscript = Arc<dyn Fn(&mut TranscriptPosition) -> Option<TokenUsage> + Send + Sync>;

/// Tokens of a session that were not counted before.
#[derive(Clone)]
pub enum UsageReport {
    /// Tokens of a response that the proxy forwarded.
    Response(TokenUsage),
    /// Tokens in new lines of a transcript.
    Transcript {
        /// The path of the file, which identifies the transcript.
        path: String,
        /// Reads the file from the stored position.
        read: ReadTranscript,
    },
}

impl UsageReport {
    const fn source(&self) -> UsageSource {
        match self {
            Self::Response(_) => UsageSource::Proxy,
            Self::Transcript { .. } => UsageSource::Transcript,
        }
    }

    /// The new tokens. Moves the position in the transcript.
    fn read(&self, usage: &mut SessionUsage) -> Option<TokenUsage> {
        match self {
            Self::Response(tokens) => Some(*tokens),
            Self::Transcript { path, read } => {
                let known = usage.files.iter().find(|file| file.path == *path);
                let mut position = known.cloned().unwrap_or_else(|| TranscriptPosition {
                    path: path.clone(),
                    ..TranscriptPosition::default()
                });
                let tokens = read(&mut position)?;
                usage.set_position(position);
                Some(tokens)
            }
        }
    }
}

impl Engine {
    /// The tokens of a step. `None` if no count is known.
    pub async fn step_tokens(&self, caller: &Caller, step: StepId) -> Result<Option<u64>, Error> {
        caller.allow(Permission::Read)?;
        let tokens = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Usages(tx).of_step(step).await })
        });
        Ok(tokens.await?)
    }

    /// Adds tokens to a session, to the step that it holds and to the plan of the step, and compares
    /// the sum of the plan with its budget. A session that is not recorded is ignored.
    pub async fn record_usage(
        &self,
        caller: &Caller,
        session: &str,
        report: UsageReport,
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let session = session.to_owned();
        let ctx = self.session_context(caller, &session);
        let recorded = self.store.write(&caller.tenant, move |tx| {
            let (session, report, ctx) = (session.clone(), report.clone(), ctx.clone());
            Box::pin(async move {
                let Some(stored) = Sessions(tx).hold_session(&session).await? else {
                    return Ok(None);
                };
                let source = report.source();
                let usage = Usages(tx).of_session(&session).await?;
                let mut usage = usage.unwrap_or(SessionUsage {
                    source,
                    tokens: TokenUsage::default(),
                    files: Vec::new(),
                });
                if usage.source != source {
                    return Ok(None);
                }
                let Some(tokens) = report.read(&mut usage) else {
                    return Ok(None);
                };
                usage.tokens = usage.tokens.plus(tokens);
                Usages(tx).keep(&session, &usage)?;
                let tokens = tokens.total();
                let held = held_step(tx, &session, &stored.claims).await?;
                let Some((plan, step)) = held.filter(|_| tokens > 0) else {
                    return Ok(None);
                };
                let total = Usages(tx).of_plan(plan.id).await?.unwrap_or(0);
                Usages(tx).add_to_step(step, tokens);
                Usages(tx).add_to_plan(plan.id, tokens);
                if plan
                    .budget
                    .is_none_or(|budget| budget.limits.max_tokens.is_none())
                {
                    return Ok(None);
                }
                let total = total.saturating_add(tokens);
                let command = Command::from(CountTokens { total });
                match run(tx, Target::Plan(plan.id), &command, &ctx, None).await? {
                    CommandOutcome::Applied(done) => Ok(Some(done.due)),
                    CommandOutcome::Rejected { refusal, .. } => Err(Error::from(refusal)),
                    CommandOutcome::NotFound => Ok(None),
                }
            })
        });
        if let Some(due) = recorded.await? {
            self.sweep_waker.wake_by(due);
        }
        Ok(())
    }
}

/// The step that a session holds, and its plan: of several, the one claimed last. A step claimed
/// without the session's id is found by the claim in the result of a call; its token must match.
async fn held_step(
    tx: &mut Tx,
    session: &str,
    seen: &[SeenClaim],
) -> Result<Option<(PlanHead, StepId)>, Error> {
    let own = Steps(tx).held_by(session, MAX_STEPS).await?;
    let last = own.iter().max_by_key(|line| line.started_at);
    let last = last.map(|line| (line.id, None));
    let seen = seen.iter().rev().take(MAX_CLAIMS);
    let seen = seen.map(|claim| (claim.step, Some(claim)));
    let steps: Vec<(StepId, Option<&SeenClaim>)> = last.into_iter().chain(seen).collect();
    let mut held: Option<(Timestamp, PlanHead, StepId)> = None;
    for (id, claim) in steps {
        let Some((sheet, step)) = Plans(tx).sheet_of_step(id).await? else {
            continue;
        };
        let Some(since) = held_since(&step, claim) else {
            continue;
        };
        if held.as_ref().is_none_or(|(last, ..)| since > *last) {
            held = Some((since, sheet.head, id));
        }
    }
    Ok(held.map(|(_, plan, step)| (plan, step)))
}

fn held_since(step: &Step, claim: Option<&SeenClaim>) -> Option<Timestamp> {
    let work = step.work()?;
    let is_own = claim.is_none_or(|claim| claim.token == work.claim.token);
    let is_open = step.status() == onward_core::StepStatus::InProgress;
    (is_own && is_open).then_some(work.started_at)
}
