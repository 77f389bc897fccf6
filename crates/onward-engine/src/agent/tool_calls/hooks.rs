//! Tool calls reported by hooks, in the same transaction as the hook's other data.
//!
//! Hooks report a call before it runs and after it returns; some also report approval requests. A
//! call is identified by its id, or by tool and input if the agent sends no id. A result goes to
//! the first matching open call. Results for unrecorded or completed calls are ignored, because
//! agents report some calls twice. At the end of a turn or session its open calls are interrupted.

use onward_core::Timestamp;
use onward_core::call::CallState;
use onward_core::role::Permission;
use onward_store::{CallRecord, Sessions, ToolCalls, Tx};

use super::record::{CallRef, Change, POLICY, accepts_result, apply, digest};
use super::recover;
use crate::agent::activity;
use crate::agent::observed::{HookSource, ObservedCall};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// Maximum number of interrupted calls listed for an agent.
const MAX_LISTED: u32 = 20;

/// State of a user's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// Requested, not decided.
    Pending,
    /// Granted.
    Granted,
    /// Denied.
    Denied,
}

impl Engine {
    /// Records that a user was asked to approve a call, or has decided.
    pub async fn record_approval(
        &self,
        caller: &Caller,
        source: HookSource,
        call_ref: CallRef,
        approval: Approval,
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let recorded = self.store.write(&caller.tenant, move |tx| {
            let (source, call_ref) = (source.clone(), call_ref.clone().sanitized());
            let ctx = ctx.clone();
            Box::pin(async move {
                let (session, now) = (&source.session, ctx.now);
                let known = Sessions(tx).hold_session(session).await?;
                let claims = known.as_ref().map_or(&[][..], |session| &session.claims);
                activity::record(tx, session, claims, &ctx).await?;
                if known.is_none() {
                    return Ok(());
                }
                let mut open = ToolCalls(tx).open_calls(session).await?;
                let Some(index) = find(&open, &source, &call_ref) else {
                    return Ok(());
                };
                let record = &mut open[index];
                let change = match approval {
                    Approval::Pending => Change::AskApproval,
                    Approval::Granted => Change::Start,
                    Approval::Denied => Change::Deny,
                };
                // Repeated requests, and approval of a running call, are not transitions and change
                // nothing.
                if apply(record, change, now).is_ok() {
                    ToolCalls(tx).keep_call(record, POLICY);
                    ToolCalls(tx).keep_calls_due(session);
                    Sessions(tx).bump_session(session, now);
                }
                Ok::<(), Error>(())
            })
        });
        recorded.await
    }

    /// Records results of calls for an agent whose turns are not monitored.
    pub async fn record_results(
        &self,
        caller: &Caller,
        source: HookSource,
        calls: Vec<ObservedCall>,
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let settled = self.store.write(&caller.tenant, move |tx| {
            let (source, calls, ctx) = (source.clone(), calls.clone(), ctx.clone());
            Box::pin(async move {
                let now = ctx.now;
                let known = Sessions(tx).hold_session(&source.session).await?;
                let claims = known.as_ref().map_or(&[][..], |session| &session.claims);
                activity::record(tx, &source.session, claims, &ctx).await?;
                if known.is_some() {
                    store_results(tx, &source, &calls, now).await?;
                    Sessions(tx).bump_session(&source.session, now);
                }
                Ok::<(), Error>(())
            })
        });
        settled.await
    }

    /// Records that a subagent of the session is active: the calls of other agents of the session
    /// that are running may be waiting for it.
    pub async fn record_subagent_activity(
        &self,
        caller: &Caller,
        source: HookSource,
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        let now = self.now();
        let recorded = self.store.write(&caller.tenant, move |tx| {
            let source = source.clone();
            Box::pin(async move {
                let session = &source.session;
                if Sessions(tx).hold_session(session).await?.is_none() {
                    return Ok(());
                }
                let open = ToolCalls(tx).open_calls(session).await?;
                let waiting = open.into_iter().filter(|record| {
                    let runs = matches!(record.call.state, CallState::Running(_));
                    runs && record.key.agent != source.subagent
                });
                let mut changed = false;
                for mut record in waiting {
                    apply(&mut record, Change::Progress, now)?;
                    ToolCalls(tx).keep_call(&record, POLICY);
                    changed = true;
                }
                if changed {
                    ToolCalls(tx).keep_calls_due(session);
                }
                Ok::<(), Error>(())
            })
        });
        recorded.await
    }

    /// Returns interrupted calls that have not been reported to the agent, and marks them as
    /// reported.
    pub async fn take_interrupted_calls(
        &self,
        caller: &Caller,
        source: &HookSource,
    ) -> Result<Vec<CallRecord>, Error> {
        caller.allow(Permission::Record)?;
        let source = source.clone().sanitized()?;
        let reported = self.store.write(&caller.tenant, move |tx| {
            let source = source.clone();
            Box::pin(async move { take_unreported(tx, &source.session).await })
        });
        reported.await
    }
}

/// [`Engine::take_interrupted_calls`] within a transaction.
pub(crate) async fn take_unreported(tx: &mut Tx, session: &str) -> Result<Vec<CallRecord>, Error> {
    let unreported = ToolCalls(tx).unreported(session, MAX_LISTED).await?;
    if !unreported.is_empty() {
        ToolCalls(tx).set_reported(session);
    }
    Ok(unreported)
}

/// Finds the open call that an event refers to. Ids may repeat: the latest model response that used
/// the id wins, and within it the first call. If either side has no id, the first call with the
/// same tool and input matches.
fn find(open: &[CallRecord], source: &HookSource, call_ref: &CallRef) -> Option<usize> {
    let same_agent = |record: &CallRecord| record.key.agent == source.subagent;
    let same_id = |record: &CallRecord| {
        same_agent(record) && call_ref.id.is_some() && record.id == call_ref.id
    };
    let response = |record: &CallRecord| (record.key.turn, record.batch);
    let latest_response = open.iter().filter(|one| same_id(one)).map(response).max();
    if latest_response.is_some() {
        return open
            .iter()
            .position(|one| same_id(one) && Some(response(one)) == latest_response);
    }
    let digest = digest(&call_ref.input);
    let same_input =
        |record: &CallRecord| record.tool == call_ref.tool && record.input_digest == digest;
    let lacks_id = |record: &CallRecord| call_ref.id.is_none() || record.id.is_none();
    open.iter()
        .position(|one| same_agent(one) && lacks_id(one) && same_input(one))
}

/// Stores results in the calls that are waiting for them.
pub(crate) async fn store_results(
    tx: &mut Tx,
    source: &HookSource,
    results: &[ObservedCall],
    now: Timestamp,
) -> Result<(), Error> {
    if results.is_empty() {
        return Ok(());
    }
    let mut open = ToolCalls(tx).open_calls(&source.session).await?;
    let mut changed = false;
    for result in results {
        let call_ref = CallRef {
            id: result.id.clone(),
            tool: result.tool.clone(),
            input: result.input.clone(),
        };
        let call_ref = call_ref.sanitized();
        let mut record = match find(&open, source, &call_ref) {
            Some(index) => open.remove(index),
            None => match find_late_call(tx, source, &call_ref).await? {
                Some(record) => record,
                None => continue,
            },
        };
        let change = match result.ok {
            Some(false) => Change::Fail(result.output.clone()),
            Some(true) | None => Change::Complete(result.output.clone()),
        };
        apply(&mut record, change, now)?;
        ToolCalls(tx).keep_call(&record, POLICY);
        changed = true;
    }
    if changed {
        ToolCalls(tx).keep_calls_due(&source.session);
    }
    Ok(())
}

/// An interrupted call whose result arrives late.
async fn find_late_call(
    tx: &mut Tx,
    source: &HookSource,
    call_ref: &CallRef,
) -> Result<Option<CallRecord>, Error> {
    let Some(id) = &call_ref.id else {
        let digest = digest(&call_ref.input);
        let (session, agent) = (&source.session, &source.subagent);
        return Ok(ToolCalls(tx)
            .interrupted_call_by_input(session, agent, &call_ref.tool, &digest)
            .await?);
    };
    let same = ToolCalls(tx)
        .calls_by_id(&source.session, &source.subagent, id)
        .await?;
    // Only the latest turn: in an older turn the same id is a different call.
    let turn = same.first().map(|record| record.key.turn);
    let mut in_turn = same
        .into_iter()
        .filter(|record| Some(record.key.turn) == turn);
    Ok(in_turn.find(accepts_result))
}

/// Whether a call of one of these tools is running.
pub(crate) async fn runs_any_of(
    tx: &mut Tx,
    source: &HookSource,
    tools: &[&str],
) -> Result<bool, Error> {
    if tools.is_empty() {
        return Ok(false);
    }
    let open = ToolCalls(tx).open_calls(&source.session).await?;
    Ok(open.iter().any(|record| {
        let runs = matches!(record.call.state, CallState::Running(_));
        runs && record.key.agent == source.subagent && tools.contains(&record.tool.as_str())
    }))
}

/// Closes the open calls of an ended turn: pending approvals are denied, other calls are
/// interrupted. The model has already continued, so these interruptions are not reported to it.
pub(crate) async fn end_turn(
    tx: &mut Tx,
    source: &HookSource,
    turn: u32,
    now: Timestamp,
) -> Result<(), Error> {
    let open = ToolCalls(tx).open_calls(&source.session).await?;
    let in_turn = open
        .into_iter()
        .filter(|record| record.key.agent == source.subagent && record.key.turn <= turn);
    let mut changed = false;
    for mut record in in_turn {
        match record.call.state {
            CallState::AwaitingApproval { .. } => apply(&mut record, Change::Deny, now)?,
            CallState::Requested
            | CallState::Running(_)
            | CallState::Completed(_)
            | CallState::Failed(_)
            | CallState::Denied { .. }
            | CallState::Cancelled { .. }
            | CallState::Interrupted(_) => {
                recover::close(&mut record, "the turn ended without its result", now)?;
                record.reported_to_agent = true;
            }
        }
        ToolCalls(tx).keep_call(&record, POLICY);
        changed = true;
    }
    if changed {
        ToolCalls(tx).keep_calls_due(&source.session);
    }
    Ok(())
}
