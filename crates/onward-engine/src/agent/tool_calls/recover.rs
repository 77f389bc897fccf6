//! Interrupts calls whose result can no longer arrive: each gets one synthetic result, stored with
//! its state.
//!
//! That an owner process has exited can only be verified on its own host, so every process checks
//! the calls of its host ([`Engine::run_recovery`]). Timeouts are checked by the sweep, which
//! accounts for machine sleep, and at the start of a session for that session. A user may interrupt
//! a call manually.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use onward_core::Timestamp;
use onward_core::call::owner::owner_exit;
use onward_core::call::{
    CallTransition, Cause, InterruptDecision, OpenCall, OwnerExit, Timeouts, calls_to_interrupt,
    message,
};
use onward_core::role::Permission;
use onward_core::watcher::Watcher;
use onward_store::{CallKey, CallRecord, DueSession, Sessions, Synthetic, ToolCalls, Tx};
use tokio::sync::watch;

use super::record::{POLICY, complete_in_background, load_call, sanitized_key, session_not_found};
use crate::agent::activity;
use crate::caller::Caller;
use crate::engine::Engine;
use crate::environment::Environment;
use crate::error::Error;
use crate::run::CommandContext;

/// Delay before a session or plan that could not be checked is checked again.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(600);
/// Interval between checks of the owner processes on this host.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Number of sessions that are recovered at the same time.
const CONCURRENT: usize = 4;

/// Result of a recovery run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Affected sessions, each with its number of interrupted calls.
    pub sessions: Vec<(DueSession, usize)>,
    /// Sessions that could not be checked, with the error.
    pub failed: Vec<(DueSession, String)>,
    /// Number of sessions that have ended, because their process has exited.
    pub ended: usize,
}

impl RecoveryReport {
    pub(crate) fn add(&mut self, other: Self) {
        self.sessions.extend(other.sessions);
        self.failed.extend(other.failed);
        self.ended += other.ended;
    }
}

/// Result of the recovery of one session.
struct Recovered {
    calls: usize,
    has_ended: bool,
}

impl Engine {
    /// Interrupts the calls of a session that have timed out or whose owner process has exited.
    pub async fn recover_session(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Vec<CallRecord>, Error> {
        caller.allow(Permission::Record)?;
        let (id, now, environment) = (id.to_owned(), self.now(), self.environment());
        let recovered = self.store.write(&caller.tenant, move |tx| {
            let (id, environment) = (id.clone(), Arc::clone(&environment));
            Box::pin(async move {
                let session = Sessions(tx).hold_session(&id).await?;
                session.ok_or_else(|| session_not_found(&id))?;
                let interrupted = recover(tx, &id, &*environment, Timeouts::Enforced, now).await?;
                if !interrupted.is_empty() {
                    Sessions(tx).bump_session(&id, now);
                }
                Ok::<_, Error>(interrupted)
            })
        });
        recovered.await
    }

    /// Interrupts a call on a user's request.
    pub async fn interrupt_call(&self, caller: &Caller, key: CallKey) -> Result<CallRecord, Error> {
        caller.allow(Permission::Intervene)?;
        let (key, now, name) = (sanitized_key(key), self.now(), caller.actor());
        let closed = self.store.write(&caller.tenant, move |tx| {
            let (key, name) = (key.clone(), name.clone());
            Box::pin(async move {
                let (_, mut record) = load_call(tx, &key).await?;
                let cause = record.call.state.cause_after_owner_exit();
                interrupt_because(
                    &mut record,
                    cause.unwrap_or(Cause::OutcomeUnknown),
                    &format!("closed manually by `{name}`"),
                    now,
                )?;
                ToolCalls(tx).keep_call(&record, POLICY);
                ToolCalls(tx).keep_calls_due(&key.session);
                Sessions(tx).bump_session(&key.session, now);
                Ok::<_, Error>(record)
            })
        });
        closed.await
    }

    /// Interrupts the calls, and ends the sessions, of all tenants whose process ran on this host and
    /// has exited.
    pub async fn recover_host(&self) -> Result<RecoveryReport, Error> {
        let environment = self.environment();
        let host = environment.process_state(std::process::id()).host;
        if host.is_empty() {
            return Ok(RecoveryReport::default());
        }
        let owners = self.store.read_nodes(move |tx| {
            let host = host.clone();
            Box::pin(async move { ToolCalls(tx).owners_on(&host).await })
        });
        let owners = owners.await?.into_iter();
        let dead: BTreeSet<DueSession> = owners
            .flat_map(|of_node| of_node.read)
            .filter(|(_, owner)| {
                owner_exit(Some(owner), &environment.process_state(owner.process)).is_some()
            })
            .map(|(due, _)| due)
            .collect();
        self.recover_all(dead, None).await
    }

    /// Runs [`Self::recover_host`] immediately and then every few seconds, until stopped.
    pub async fn run_recovery(&self, mut stop: watch::Receiver<bool>) {
        loop {
            // Errors are ignored: an unavailable database is retried in the next round.
            drop(self.refresh_clock().await);
            drop(self.recover_host().await);
            tokio::select! {
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// The sweep's part: checks the sessions that are due by `until`, and interrupts calls that have
    /// timed out. The watcher accounts for machine sleep.
    pub(crate) async fn sweep_calls(
        &self,
        watcher: Watcher,
        until: Timestamp,
        batch_size: u32,
    ) -> Result<RecoveryReport, Error> {
        let mut all = RecoveryReport::default();
        let size = usize::try_from(batch_size).unwrap_or(usize::MAX);
        loop {
            let due = self.store.read_nodes(move |tx| {
                Box::pin(async move { ToolCalls(tx).calls_due_until(until, batch_size).await })
            });
            let (mut full, mut batch) = (false, RecoveryReport::default());
            for of_node in due.await? {
                full |= of_node.read.len() >= size;
                // Until the node responded again, no agent could report the end of a call.
                let since = of_node.reachable_since(self.now());
                let watcher = since.map_or(watcher, |at| watcher.resumed_at(at));
                batch.add(self.recover_all(of_node.read, Some(watcher)).await?);
            }
            // A session that cannot be reached stays due until the next round.
            let ends = !full || !batch.failed.is_empty();
            all.add(batch);
            if ends {
                return Ok(all);
            }
        }
    }

    async fn recover_all(
        &self,
        sessions: impl IntoIterator<Item = DueSession>,
        watcher: Option<Watcher>,
    ) -> Result<RecoveryReport, Error> {
        let mut all = RecoveryReport::default();
        let mut sessions = sessions.into_iter();
        let mut running = FuturesUnordered::new();
        loop {
            running.extend(
                (sessions.by_ref().take(CONCURRENT - running.len()))
                    .map(|due| self.recover_one(due, watcher).boxed()),
            );
            let Some((due, recovered)) = running.next().await else {
                return Ok(all);
            };
            match recovered {
                Ok(Recovered { calls, has_ended }) => {
                    all.ended += usize::from(has_ended);
                    if calls > 0 {
                        all.sessions.push((due, calls));
                    }
                }
                // One session that is damaged or cannot be reached must not prevent checks of the others.
                Err(error) => {
                    let is_damaged =
                        !matches!(error, Error::Store(onward_store::Error::Unavailable { .. }));
                    if is_damaged {
                        self.postpone_session(&due).await?;
                    }
                    all.failed.push((due, error.to_string()));
                }
            }
        }
    }

    async fn recover_one(
        &self,
        due: DueSession,
        watcher: Option<Watcher>,
    ) -> (DueSession, Result<Recovered, Error>) {
        let recovered = self.recover_due_session(&due, watcher).await;
        (due, recovered)
    }

    /// Recovers one session. Timeouts apply only with a
    /// watcher.
    async fn recover_due_session(
        &self,
        due: &DueSession,
        watcher: Option<Watcher>,
    ) -> Result<Recovered, Error> {
        let (id, now, environment) = (due.session.clone(), self.now(), self.environment());
        let caller = Caller::internal(Arc::clone(&due.tenant), "recovery");
        let ctx = self.session_context(&caller, &due.session);
        let recovered = self.store.write(&due.tenant, move |tx| {
            let (id, environment) = (id.clone(), Arc::clone(&environment));
            let ctx = ctx.clone();
            Box::pin(async move {
                let Some(session) = Sessions(tx).hold_session(&id).await? else {
                    ToolCalls(tx).keep_calls_due(&id);
                    return Ok(Recovered {
                        calls: 0,
                        has_ended: false,
                    });
                };
                let timeouts = watcher
                    .as_ref()
                    .map_or(Timeouts::Ignored, Timeouts::Watched);
                let interrupted = recover(tx, &id, &*environment, timeouts, now).await?;
                if !interrupted.is_empty() {
                    Sessions(tx).bump_session(&id, now);
                }
                let owner = session
                    .owner
                    .as_ref()
                    .filter(|_| session.ended_at.is_none());
                let process = owner.map(|owner| environment.process_state(owner.process));
                let has_ended =
                    process.is_some_and(|process| owner_exit(owner, &process).is_some());
                if has_ended {
                    end_session(tx, &id, &ctx).await?;
                    Sessions(tx).bump_session(&id, now);
                }
                Ok::<_, Error>(Recovered {
                    calls: interrupted.len(),
                    has_ended,
                })
            })
        });
        recovered.await
    }

    async fn postpone_session(&self, due: &DueSession) -> Result<(), Error> {
        let id = due.session.clone();
        let now = self.now();
        let until = now.checked_add(RETRY_AFTER);
        let until = until.unwrap_or(Timestamp::MAX);
        let put_off = self.store.write(&due.tenant, move |tx| {
            let id = id.clone();
            Box::pin(async move {
                ToolCalls(tx).postpone_calls(&id, until, now);
                Ok::<(), onward_store::Error>(())
            })
        });
        Ok(put_off.await?)
    }

    pub(crate) fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.ids.environment)
    }
}

/// Interrupts the calls of a locked session that must be interrupted, and schedules the next check.
pub(crate) async fn recover(
    tx: &mut Tx,
    session: &str,
    environment: &dyn Environment,
    timeouts: Timeouts<'_>,
    now: Timestamp,
) -> Result<Vec<CallRecord>, Error> {
    let open = ToolCalls(tx).open_calls(session).await?;
    let exits: Vec<Option<OwnerExit>> = open
        .iter()
        .map(|record| {
            let owner = record.call.owner.as_ref()?;
            owner_exit(Some(owner), &environment.process_state(owner.process))
        })
        .collect();
    let calls: Vec<_> = open
        .iter()
        .zip(&exits)
        .map(|(record, exit)| OpenCall {
            call: &record.call,
            batch: (&record.key.agent, record.key.turn, record.batch),
            owner_exit: *exit,
        })
        .collect();
    let decisions = calls_to_interrupt(&calls, now, POLICY, timeouts);
    let mut interrupted = Vec::new();
    let mut next_check: Option<Timestamp> = None;
    for (mut record, decision) in open.into_iter().zip(decisions) {
        match decision {
            Some(_) if record.call.has_yielded(now) => {
                complete_in_background(&mut record, now)?;
                ToolCalls(tx).keep_call(&record, POLICY);
            }
            Some(decision) => {
                interrupt(&mut record, decision, now)?;
                ToolCalls(tx).keep_call(&record, POLICY);
                interrupted.push(record);
            }
            None => {
                let at = grace_ends_at(&record, timeouts).map(Timestamp::next);
                next_check = next_check.into_iter().chain(at).min();
            }
        }
    }
    ToolCalls(tx).keep_calls_due(session);
    if let Some(at) = next_check {
        // Timed-out calls in a grace period, because the watcher slept, must not be due again
        // immediately.
        ToolCalls(tx).postpone_calls(session, at, now);
    }
    Ok(interrupted)
}

/// The end of a call's grace period, for a watcher that may have slept.
fn grace_ends_at(record: &CallRecord, timeouts: Timeouts<'_>) -> Option<Timestamp> {
    match timeouts {
        Timeouts::Watched(watcher) => record.call.timestamp().deadline(POLICY, watcher),
        Timeouts::Ignored | Timeouts::Enforced => None,
    }
}

fn interrupt(
    record: &mut CallRecord,
    decision: InterruptDecision,
    now: Timestamp,
) -> Result<(), Error> {
    let explanation =
        message::for_operator(&record.call, decision.cause, POLICY, decision.owner_exit);
    set_interrupted(record, decision.cause, explanation, now)
}

/// Interrupts a call for a reason other than a detector finding.
pub(super) fn interrupt_because(
    record: &mut CallRecord,
    cause: Cause,
    reason: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let explanation = message::for_operator(&record.call, cause, POLICY, None);
    set_interrupted(record, cause, format!("{reason}; {explanation}"), now)
}

fn set_interrupted(
    record: &mut CallRecord,
    cause: Cause,
    to_operator: String,
    now: Timestamp,
) -> Result<(), Error> {
    record.call.apply(CallTransition::Interrupt(cause), now)?;
    record.synthetic = Some(Synthetic {
        to_model: message::for_model(cause, POLICY.timeout(record.call.limit)),
        to_operator,
    });
    Ok(())
}

/// Ends a locked session with its turns and calls, and leaves its steps to other sessions.
pub(crate) async fn end_session(
    tx: &mut Tx,
    session: &str,
    ctx: &CommandContext,
) -> Result<(), Error> {
    let known = Sessions(tx).session(session).await?;
    let claims = known.map_or_else(Vec::new, |session| session.claims);
    Sessions(tx).end_session(session, ctx.now);
    for mut record in ToolCalls(tx).open_calls(session).await? {
        close(&mut record, "the session ended", ctx.now)?;
        ToolCalls(tx).keep_call(&record, POLICY);
    }
    ToolCalls(tx).keep_calls_due(session);
    activity::orphan_steps(tx, session, &claims, ctx).await
}

/// Ends a call whose turn or session has ended. A background task continues.
pub(super) fn close(record: &mut CallRecord, reason: &str, now: Timestamp) -> Result<(), Error> {
    if record.call.has_yielded(now) {
        return complete_in_background(record, now);
    }
    let cause = record.call.state.cause_after_owner_exit();
    interrupt_because(record, cause.unwrap_or(Cause::OutcomeUnknown), reason, now)
}
