//! Gives up what will not answer: one synthetic result for each such call, written with its state.
//!
//! A dead owner is a proof, which only somebody on its own host can have, so every process looks after
//! the calls of its host ([`Engine::keep_recovering`]); the clock is looked after by the sweep, which
//! knows whether it slept, and by the start of a session for that session alone. A person may give up a
//! call by hand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::owner::death;
use onward_core::call::{CallMove, Cause, Clock, Death, Given, Up, give_up, words};
use onward_core::role::Permission;
use onward_core::watcher::Watcher;
use onward_store::{CallKey, CallRecord, DueSession, Synthetic, Tx};
use tokio::sync::watch;

use super::{POLICY, cleaned, held, no_session};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::world::World;

/// How often the owners on this host are looked after.
const OWNERS: Duration = Duration::from_secs(5);

/// What was given up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// In which sessions, and how many calls of each.
    pub sessions: Vec<(DueSession, usize)>,
    /// Sessions that could not be looked at, and why.
    pub failed: Vec<(DueSession, String)>,
}

impl Engine {
    /// Gives up every call of a session whose owner is dead or that is past its time.
    pub async fn recover_session(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Vec<CallRecord>, Error> {
        caller.allow(Permission::Record)?;
        let (id, now, world) = (id.to_owned(), self.now(), self.world());
        let recovered = self.store.write(&caller.tenant, move |tx| {
            let (id, world) = (id.clone(), Arc::clone(&world));
            Box::pin(async move {
                let session = tx.hold_session(&id).await?;
                session.ok_or_else(|| no_session(&id))?;
                let given_up = recover(tx, &id, &*world, Clock::Running, now).await?;
                if !given_up.is_empty() {
                    tx.bump_session(&id, now);
                }
                Ok::<_, Error>(given_up)
            })
        });
        recovered.await
    }

    /// Gives up a call because a person says so.
    pub async fn close_call(&self, caller: &Caller, key: CallKey) -> Result<CallRecord, Error> {
        caller.allow(Permission::Intervene)?;
        let (key, now, name) = (cleaned(key), self.now(), caller.signature());
        let closed = self.store.write(&caller.tenant, move |tx| {
            let (key, name) = (key.clone(), name.clone());
            Box::pin(async move {
                let mut record = held(tx, &key).await?;
                let cause = record.call.state.cause_of_death();
                close(
                    &mut record,
                    cause.unwrap_or(Cause::OutcomeUnknown),
                    &format!("closed by hand by `{name}`"),
                    now,
                )?;
                tx.keep_call(&record, POLICY);
                tx.keep_calls_due(&key.session);
                tx.bump_session(&key.session, now);
                Ok::<_, Error>(record)
            })
        });
        closed.await
    }

    /// Gives up the calls of every tenant whose owner was on this host and is dead.
    pub async fn recover_here(&self) -> Result<Recovered, Error> {
        let world = self.world();
        let host = world.look(std::process::id()).host;
        if host.is_empty() {
            return Ok(Recovered::default());
        }
        let nobody = Arc::from("");
        let owners = self.store.read(&nobody, move |tx| {
            let host = host.clone();
            Box::pin(async move { tx.owners_on(&host).await })
        });
        let owners = owners.await?;
        let dead: BTreeSet<DueSession> = owners
            .into_iter()
            .filter(|(_, owner)| death(Some(owner), &world.look(owner.process)).is_some())
            .map(|(due, _)| due)
            .collect();
        self.recover_all(dead, None).await
    }

    /// Does so at once and then every few seconds, until the end is told.
    pub async fn keep_recovering(&self, mut stop: watch::Receiver<bool>) {
        loop {
            // A database that is away is asked again.
            drop(self.look_at_clock().await);
            drop(self.recover_here().await);
            tokio::select! {
                () = tokio::time::sleep(OWNERS) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// The sweep's part: calls that are past their time, for a watcher that may have slept.
    pub(crate) async fn sweep_calls(
        &self,
        watcher: Watcher,
        now: Timestamp,
        piece: u32,
    ) -> Result<Recovered, Error> {
        let mut all = Recovered::default();
        let nobody = Arc::from("");
        loop {
            let due = self.store.read(&nobody, move |tx| {
                Box::pin(async move { tx.calls_due_until(now, piece).await })
            });
            let due = due.await?;
            let full = due.len() >= usize::try_from(piece).unwrap_or(usize::MAX);
            let round = self.recover_all(due, Some(watcher)).await?;
            all.sessions.extend(round.sessions);
            all.failed.extend(round.failed);
            if !full {
                return Ok(all);
            }
        }
    }

    async fn recover_all(
        &self,
        sessions: impl IntoIterator<Item = DueSession>,
        watcher: Option<Watcher>,
    ) -> Result<Recovered, Error> {
        let mut all = Recovered::default();
        for due in sessions {
            match self.recover_one(&due, watcher).await {
                Ok(0) => {}
                Ok(calls) => all.sessions.push((due, calls)),
                Err(why @ Error::Store(onward_store::Error::Unavailable { .. })) => {
                    return Err(why);
                }
                // One damaged session must not keep the others from being looked at.
                Err(why) => {
                    self.put_off_session(&due).await?;
                    all.failed.push((due, why.to_string()));
                }
            }
        }
        Ok(all)
    }

    /// How many calls of one session were given up: by the clock only where somebody watches it.
    async fn recover_one(
        &self,
        due: &DueSession,
        watcher: Option<Watcher>,
    ) -> Result<usize, Error> {
        let (id, now, world) = (due.session.clone(), self.now(), self.world());
        let recovered = self.store.write(&due.tenant, move |tx| {
            let (id, world) = (id.clone(), Arc::clone(&world));
            Box::pin(async move {
                if tx.hold_session(&id).await?.is_none() {
                    tx.keep_calls_due(&id);
                    return Ok(0);
                }
                let clock = watcher.as_ref().map_or(Clock::Stopped, Clock::Watched);
                let given_up = recover(tx, &id, &*world, clock, now).await?;
                if !given_up.is_empty() {
                    tx.bump_session(&id, now);
                }
                Ok::<_, Error>(given_up.len())
            })
        });
        recovered.await
    }

    async fn put_off_session(&self, due: &DueSession) -> Result<(), Error> {
        let id = due.session.clone();
        let now = self.now();
        let until = now.checked_add(crate::sweep::LATER);
        let until = until.unwrap_or(Timestamp::MAX);
        let put_off = self.store.write(&due.tenant, move |tx| {
            let id = id.clone();
            Box::pin(async move {
                tx.put_off_calls(&id, until, now);
                Ok::<(), onward_store::Error>(())
            })
        });
        Ok(put_off.await?)
    }

    pub(crate) fn world(&self) -> Arc<dyn World> {
        Arc::clone(&self.fresh.world)
    }
}

/// Gives up what must be, of a session that is held; and says when to look again.
pub(crate) async fn recover(
    tx: &mut Tx,
    session: &str,
    world: &dyn World,
    clock: Clock<'_>,
    now: Timestamp,
) -> Result<Vec<CallRecord>, Error> {
    let open = tx.open_calls(session).await?;
    let deaths: Vec<Option<Death>> = open
        .iter()
        .map(|record| {
            let owner = record.call.owner.as_ref()?;
            death(Some(owner), &world.look(owner.process))
        })
        .collect();
    let given: Vec<_> = open
        .iter()
        .zip(&deaths)
        .map(|(record, death)| Given {
            call: &record.call,
            batch: (&record.key.agent, record.key.turn, record.batch),
            death: *death,
        })
        .collect();
    let verdicts = give_up(&given, now, POLICY, clock);
    let mut given_up = Vec::new();
    let mut look_again: Option<Timestamp> = None;
    for (mut record, up) in open.into_iter().zip(verdicts) {
        match up {
            Some(up) => {
                interrupt(&mut record, up, now)?;
                tx.keep_call(&record, POLICY);
                given_up.push(record);
            }
            None => {
                let at = convicted_after(&record, clock).map(Timestamp::next);
                look_again = look_again.into_iter().chain(at).min();
            }
        }
    }
    tx.keep_calls_due(session);
    if let Some(at) = look_again {
        // What is past its time and let alone, because the watcher slept, is not due at once again.
        tx.put_off_calls(session, at, now);
    }
    Ok(given_up)
}

/// Until when a watcher that may have slept lets a call alone.
fn convicted_after(record: &CallRecord, clock: Clock<'_>) -> Option<Timestamp> {
    match clock {
        Clock::Watched(watcher) => record.call.timestamp().convicted_after(POLICY, watcher),
        Clock::Stopped | Clock::Running => None,
    }
}

fn interrupt(record: &mut CallRecord, up: Up, now: Timestamp) -> Result<(), Error> {
    let grounds = words::for_operator(&record.call, up.cause, POLICY, up.death, now);
    settle(record, up.cause, grounds, now)
}

/// Gives a call up for a reason that is no finding of the detector.
pub(super) fn close(
    record: &mut CallRecord,
    cause: Cause,
    why: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let grounds = words::for_operator(&record.call, cause, POLICY, None, now);
    settle(record, cause, format!("{why}; {grounds}"), now)
}

fn settle(
    record: &mut CallRecord,
    cause: Cause,
    to_operator: String,
    now: Timestamp,
) -> Result<(), Error> {
    record.call.apply(CallMove::Interrupt(cause), now)?;
    record.synthetic = Some(Synthetic {
        to_model: words::for_model(cause, POLICY.timeout(record.call.limit)),
        to_operator,
    });
    Ok(())
}
