//! What hooks tell of calls, in the transaction of whatever else they tell.
//!
//! Hooks see a call before it is made and after it was answered, some of them also that a person is
//! asked. They know it by its id; where an agent gives none, by its tool and its input. A result is given
//! to the first call that waits for it, in order; what was answered already, or never recorded, is left
//! alone: agents tell of some calls twice. When a turn or a session ends, nothing of it will be answered
//! any more.

use onward_core::Timestamp;
use onward_core::call::{CallState, Cause};
use onward_core::role::Permission;
use onward_core::turn::LoopControl;
use onward_store::{CallRecord, Tx};
use serde_json::Value;

use super::{
    Begins, Change, NewCall, POLICY, apply, digest, named, record, recover, takes_results,
};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::session::{Gated, Heard, SeenCall, gate};

/// How many calls an agent is told of by name.
const NAMED: u32 = 20;

/// A call of which a person is asked, or has decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The id that the agent gives.
    pub id: Option<String>,
    /// Which tool.
    pub tool: String,
    /// What it is asked.
    pub input: Value,
}

impl Asked {
    /// With names as they are stored.
    fn cleaned(mut self) -> Self {
        self.id.iter_mut().for_each(named);
        named(&mut self.tool);
        self
    }
}

/// What a person said to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// Nothing yet.
    Nothing,
    /// It may be made.
    Yes,
    /// It may not.
    No,
}

impl Engine {
    /// A call is about to be made. Where the turn may go on, it is recorded as running; where it may
    /// not, it never begins. Who can stop the turn says so, and the turn is then over.
    pub async fn gate_call(
        &self,
        caller: &Caller,
        heard: Heard,
        call: NewCall,
        can_stop: bool,
        control: LoopControl,
    ) -> Result<Gated, Error> {
        caller.allow(Permission::Record)?;
        let (heard, now) = (heard.cleaned()?, self.now());
        let gated = self.store.write(&caller.tenant, move |tx| {
            let (heard, mut call) = (heard.clone(), call.clone());
            Box::pin(async move {
                let id = call.id.clone();
                let (gated, turn) = gate(tx, &heard, id, can_stop, control, now).await?;
                if let Some((turn, batch)) = turn {
                    call.batch = Some(batch);
                    record(tx, &heard, turn, call, Begins::Running, now).await?;
                    tx.keep_calls_due(&heard.session);
                }
                Ok::<_, Error>(gated)
            })
        });
        gated.await
    }

    /// A person is asked whether a call may be made, or has answered.
    pub async fn call_asked(
        &self,
        caller: &Caller,
        heard: Heard,
        asked: Asked,
        said: Said,
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let (heard, now) = (heard.cleaned()?, self.now());
        let noted = self.store.write(&caller.tenant, move |tx| {
            let (heard, asked) = (heard.clone(), asked.clone().cleaned());
            Box::pin(async move {
                let session = &heard.session;
                if tx.hold_session(session).await?.is_none() {
                    return Ok(());
                }
                let mut open = tx.open_calls(session).await?;
                let Some(place) = find(&open, &heard, &asked) else {
                    return Ok(());
                };
                let record = &mut open[place];
                let change = match said {
                    Said::Nothing => Change::AskApproval,
                    Said::Yes => Change::Start,
                    Said::No => Change::Deny,
                };
                // Asked twice, or allowed while it runs: that changes nothing.
                if apply(record, change, now).is_ok() {
                    tx.keep_call(record, POLICY);
                    tx.keep_calls_due(session);
                    tx.bump_session(session, now);
                }
                Ok::<(), Error>(())
            })
        });
        noted.await
    }

    /// Results of calls, for an agent whose turns nobody watches.
    pub async fn settle_calls(
        &self,
        caller: &Caller,
        heard: Heard,
        calls: Vec<SeenCall>,
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let (heard, now) = (heard.cleaned()?, self.now());
        let settled = self.store.write(&caller.tenant, move |tx| {
            let (heard, calls) = (heard.clone(), calls.clone());
            Box::pin(async move {
                if tx.hold_session(&heard.session).await?.is_some() {
                    take_results(tx, &heard, &calls, now).await?;
                    tx.bump_session(&heard.session, now);
                }
                Ok::<(), Error>(())
            })
        });
        settled.await
    }

    /// Calls of a session that were given up without its agent knowing. It knows from now on.
    pub async fn tell_interrupted(
        &self,
        caller: &Caller,
        heard: &Heard,
    ) -> Result<Vec<CallRecord>, Error> {
        caller.allow(Permission::Record)?;
        let heard = heard.clone().cleaned()?;
        let told = self.store.write(&caller.tenant, move |tx| {
            let heard = heard.clone();
            Box::pin(async move { tell(tx, &heard.session).await })
        });
        told.await
    }
}

/// The same within a transaction.
pub(crate) async fn tell(tx: &mut Tx, session: &str) -> Result<Vec<CallRecord>, Error> {
    let untold = tx.untold_calls(session, NAMED).await?;
    if !untold.is_empty() {
        tx.tell_calls(session);
    }
    Ok(untold)
}

/// The open call of the agent that this is about. An id may come again: it is the one of the latest
/// response that used it, and of that response the first. Where one side has no id, it is the first call
/// that asks the same.
fn find(open: &[CallRecord], heard: &Heard, asked: &Asked) -> Option<usize> {
    let own = |record: &CallRecord| record.key.agent == heard.subagent;
    let named = |record: &CallRecord| own(record) && asked.id.is_some() && record.id == asked.id;
    let response = |record: &CallRecord| (record.key.turn, record.batch);
    let latest = open.iter().filter(|one| named(one)).map(response).max();
    if latest.is_some() {
        return open
            .iter()
            .position(|one| named(one) && Some(response(one)) == latest);
    }
    let digest = digest(&asked.input);
    let alike = |record: &CallRecord| record.tool == asked.tool && record.input_digest == digest;
    let unnamed = |record: &CallRecord| asked.id.is_none() || record.id.is_none();
    open.iter()
        .position(|one| own(one) && unnamed(one) && alike(one))
}

/// Gives results to the calls that wait for them.
pub(crate) async fn take_results(
    tx: &mut Tx,
    heard: &Heard,
    results: &[SeenCall],
    now: Timestamp,
) -> Result<(), Error> {
    if results.is_empty() {
        return Ok(());
    }
    let mut open = tx.open_calls(&heard.session).await?;
    let mut changed = false;
    for result in results {
        let asked = Asked {
            id: result.id.clone(),
            tool: result.tool.clone(),
            input: result.input.clone(),
        };
        let asked = asked.cleaned();
        let mut record = match find(&open, heard, &asked) {
            Some(place) => open.remove(place),
            None => match late(tx, heard, &asked).await? {
                Some(record) => record,
                None => continue,
            },
        };
        let change = match result.ok {
            Some(false) => Change::Fail(result.output.clone()),
            Some(true) | None => Change::Complete(result.output.clone()),
        };
        apply(&mut record, change, now)?;
        tx.keep_call(&record, POLICY);
        changed = true;
    }
    if changed {
        tx.keep_calls_due(&heard.session);
    }
    Ok(())
}

/// The call that was given up and is answered after all.
async fn late(tx: &mut Tx, heard: &Heard, asked: &Asked) -> Result<Option<CallRecord>, Error> {
    let Some(id) = &asked.id else {
        return Ok(None);
    };
    let same = tx.calls_by_id(&heard.session, &heard.subagent, id).await?;
    // Of the latest turn alone: an older one of the same id is another call.
    let turn = same.first().map(|record| record.key.turn);
    let mut of_turn = same
        .into_iter()
        .filter(|record| Some(record.key.turn) == turn);
    Ok(of_turn.find(takes_results))
}

/// Whether a call of one of these tools runs.
pub(crate) async fn calls_one_of(
    tx: &mut Tx,
    heard: &Heard,
    tools: &[&str],
) -> Result<bool, Error> {
    if tools.is_empty() {
        return Ok(false);
    }
    let open = tx.open_calls(&heard.session).await?;
    Ok(open.iter().any(|record| {
        let runs = matches!(record.call.state, CallState::Running(_));
        runs && record.key.agent == heard.subagent && tools.contains(&record.tool.as_str())
    }))
}

/// Settles what is left of a turn that is over: a person who was asked has said no, and of the rest
/// nobody will hear. The model has gone on, and is not told.
pub(crate) async fn end_turn(
    tx: &mut Tx,
    heard: &Heard,
    turn: u32,
    now: Timestamp,
) -> Result<(), Error> {
    let open = tx.open_calls(&heard.session).await?;
    let of_turn = open
        .into_iter()
        .filter(|record| record.key.agent == heard.subagent && record.key.turn <= turn);
    let mut changed = false;
    for mut record in of_turn {
        match record.call.state {
            CallState::AwaitingApproval { .. } => apply(&mut record, Change::Deny, now)?,
            CallState::Requested
            | CallState::Running(_)
            | CallState::Completed(_)
            | CallState::Failed(_)
            | CallState::Denied { .. }
            | CallState::Cancelled { .. }
            | CallState::Interrupted(_) => {
                give_up(&mut record, "the turn ended without its result", now)?;
                record.told = true;
            }
        }
        tx.keep_call(&record, POLICY);
        changed = true;
    }
    if changed {
        tx.keep_calls_due(&heard.session);
    }
    Ok(())
}

/// Settles what is left of a session that is over.
pub(crate) async fn end_session(tx: &mut Tx, session: &str, now: Timestamp) -> Result<(), Error> {
    for mut record in tx.open_calls(session).await? {
        give_up(&mut record, "the session ended", now)?;
        tx.keep_call(&record, POLICY);
    }
    tx.keep_calls_due(session);
    Ok(())
}

fn give_up(record: &mut CallRecord, why: &str, now: Timestamp) -> Result<(), Error> {
    let cause = record.call.state.cause_of_death();
    recover::close(record, cause.unwrap_or(Cause::OutcomeUnknown), why, now)
}
