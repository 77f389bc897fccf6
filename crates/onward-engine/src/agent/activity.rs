//! Session activity, which counts as activity on the steps that the session holds.
//!
//! Every event that hooks, the proxy or a harness report for a session restarts the stall threshold
//! of its steps in progress. The core limits how often this is recorded; between the records, an
//! event costs one index lookup. A step belongs to a session if the agent passed the session's id
//! when it claimed the step, or if a hook or the proxy found the claim in the result of a call:
//! most agents do not know the id that their hooks report.

use onward_core::command::{OrphanStep, ReportProgress};
use onward_core::event::ProgressSource;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::{Command, StepId, StepStatus};
use onward_store::{SeenClaim, StepLine, Steps, Tx};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{CommandContext, Target, run};

/// Maximum number of a session's steps that one event is recorded for.
const MAX_STEPS: u32 = 100;

impl Engine {
    /// Time and author of an event of a session.
    pub(super) fn session_context(&self, caller: &Caller, session: &str) -> CommandContext {
        self.command_context(caller, Some(&SessionId::new(session)))
    }
}

/// Records activity of a session on the steps that it holds. Locks their plans; a caller that also
/// locks the session does so first. `seen` are the claims in the results of the session's calls.
pub(super) async fn record(
    tx: &mut Tx,
    session: &str,
    seen: &[SeenClaim],
    ctx: &CommandContext,
) -> Result<(), Error> {
    for (step, token) in due_steps(tx, session, seen, ctx).await? {
        let command = Command::from(ReportProgress {
            step,
            source: ProgressSource::Seen,
            note: None,
            percent: None,
            token,
            session: Some(SessionId::new(session)),
        });
        // Implicit activity is never rejected.
        run(tx, Target::Step(step), &command, ctx, None).await?;
    }
    Ok(())
}

/// Whether activity of a session would be recorded now. Read-only.
pub(super) async fn is_due(
    tx: &mut Tx,
    session: &str,
    seen: &[SeenClaim],
    ctx: &CommandContext,
) -> Result<bool, Error> {
    Ok(!due_steps(tx, session, seen, ctx).await?.is_empty())
}

/// Records that a session has ended: other sessions can take over its steps immediately.
pub(super) async fn orphan_steps(
    tx: &mut Tx,
    session: &str,
    seen: &[SeenClaim],
    ctx: &CommandContext,
) -> Result<(), Error> {
    let held = Steps(tx).claimed_by(session, MAX_STEPS).await?;
    let others = seen.iter().cloned();
    let others = others.filter(|claim| !held.contains(&claim.step));
    let others: Vec<SeenClaim> = others.collect();
    let held = held.into_iter().map(|step| (step, None));
    let others = others
        .into_iter()
        .map(|claim| (claim.step, Some(claim.token)));
    for (step, token) in held.chain(others) {
        let session = SessionId::new(session);
        let command = Command::from(OrphanStep {
            step,
            session,
            token,
        });
        run(tx, Target::Step(step), &command, ctx, None).await?;
    }
    Ok(())
}

/// The steps of a session whose last recorded activity is old enough to record the next one. The
/// core checks this again. A step claimed without the session's id is found by the claim in the
/// result of a call; its token must match.
async fn due_steps(
    tx: &mut Tx,
    session: &str,
    seen: &[SeenClaim],
    ctx: &CommandContext,
) -> Result<Vec<(StepId, Option<ClaimToken>)>, Error> {
    let held = Steps(tx).held_by(session, MAX_STEPS).await?;
    let is_listed = |claim: &&SeenClaim| held.iter().any(|line| line.id == claim.step);
    let others: Vec<&SeenClaim> = seen.iter().filter(|claim| !is_listed(claim)).collect();
    let ids: Vec<StepId> = others.iter().map(|claim| claim.step).collect();
    let lines = if ids.is_empty() {
        Vec::new()
    } else {
        Steps(tx).lines_of(&ids).await?
    };
    let mut due: Vec<(StepId, Option<ClaimToken>)> = Vec::new();
    let held = held.iter().filter(|line| is_line_due(line, ctx));
    due.extend(held.map(|line| (line.id, None)));
    for claim in others {
        let line = lines.iter().find(|line| line.id == claim.step);
        if line.is_some_and(|line| is_line_due(line, ctx)) {
            due.push((claim.step, Some(claim.token.clone())));
        }
    }
    Ok(due)
}

fn is_line_due(line: &StepLine, ctx: &CommandContext) -> bool {
    if line.status != StepStatus::InProgress {
        return false;
    }
    // The session had ended, or it has claimed the step without its id.
    if line.orphaned_at.is_some() || (line.session.is_none() && !line.monitored) {
        return true;
    }
    let times = line.timestamp();
    // Only a step in progress has a stall time.
    line.stalls_at.is_some_and(|stalls_at| {
        let limit = stalls_at.since(times.reference());
        times.records_event(limit, line.monitored, ctx.now)
    })
}
