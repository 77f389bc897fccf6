//! Checks before a tool call: whether the turn may make another call, and which turn the call
//! belongs to. A turn that must end in text may not.

use onward_core::Timestamp;
use onward_core::role::Permission;
use onward_core::turn::escalation::{self, ToolGate};
use onward_core::turn::{LoopControl, TurnEnd};
use onward_store::{Turn, Tx};

use super::turns::{SessionState, TurnRecorder, is_current, load_session};
use super::{Admission, HookSource};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// Checks whether a call may run. `can_stop`: the caller can stop the agent, so the turn ends
    /// if the escalation stops it.
    pub async fn check_call(
        &self,
        caller: &Caller,
        source: HookSource,
        call: Option<String>,
        can_stop: bool,
        control: LoopControl,
    ) -> Result<Admission, Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        // In the common case the call is admitted, and nothing needs to be written.
        if !self.requires_text(caller, &source, control).await? {
            return Ok(admitted());
        }
        let now = self.now();
        let admission = self.store.write(&caller.tenant, move |tx| {
            let (source, call) = (source.clone(), call.clone());
            Box::pin(async move {
                let (admission, _) = admit(tx, &source, call, can_stop, control, now).await?;
                Ok::<_, Error>(admission)
            })
        });
        admission.await
    }

    /// Whether the next model step must be text. Read-only; for callers that can remove the tools
    /// from a request.
    pub async fn requires_text(
        &self,
        caller: &Caller,
        source: &HookSource,
        control: LoopControl,
    ) -> Result<bool, Error> {
        caller.allow(Permission::Record)?;
        let source = source.clone().sanitized()?;
        let closed = self.store.read(&caller.tenant, move |tx| {
            let source = source.clone();
            Box::pin(async move {
                let known = tx.known_session(&source.session, &source.subagent).await?;
                Ok::<_, Error>(known.is_some_and(|(session, turn)| {
                    !session.switched_off && must_be_text(turn.as_ref(), &source, control)
                }))
            })
        });
        closed.await
    }
}

/// Whether the current turn must end in text.
fn must_be_text(turn: Option<&Turn>, source: &HookSource, control: LoopControl) -> bool {
    let turn = turn.filter(|turn| is_current(turn, source));
    turn.is_some_and(|turn| control.is_text_only(&turn.standing))
}

/// Whether a call may run. If so, also returns its turn and its step number.
pub(crate) async fn admit(
    tx: &mut Tx,
    source: &HookSource,
    call: Option<String>,
    can_stop: bool,
    control: LoopControl,
    now: Timestamp,
) -> Result<(Admission, Option<(u32, u32)>), Error> {
    let known = load_session(tx, source, now).await?;
    if known.off || !must_be_text(known.turn.as_ref(), source, control) {
        let turn = current_turn(tx, source, known, control, now);
        return Ok((admitted(), Some((turn.number, turn.standing.steps + 1))));
    }
    let mut recorder = TurnRecorder::resume(tx, source, known, control, now);
    let gate = control.before_call(&mut recorder.turn.standing);
    recorder.record_call_id(call);
    if gate == ToolGate::Stop && can_stop {
        recorder.turn.ended.get_or_insert((now, TurnEnd::Stopped));
    }
    let escalation = recorder.turn.standing;
    let to_agent = escalation::rejection(&escalation, &recorder.watched.state.evidence);
    recorder.save(tx, source);
    let admission = Admission {
        gate,
        to_agent,
        to_user: escalation::for_user(&escalation),
    };
    Ok((admission, None))
}

/// The current turn. Writes it only if it is new.
fn current_turn(
    tx: &mut Tx,
    source: &HookSource,
    known: SessionState,
    control: LoopControl,
    now: Timestamp,
) -> Turn {
    match &known.turn {
        Some(turn) if is_current(turn, source) => turn.clone(),
        Some(_) | None => {
            let recorder = TurnRecorder::begin(tx, source, known, control, now);
            recorder.save(tx, source);
            recorder.turn
        }
    }
}

/// The number of the turn that an event belongs to: the given one, or the current turn. A turn that
/// is not recorded yet is started.
pub(crate) async fn resolve_turn(
    tx: &mut Tx,
    source: &HookSource,
    number: Option<u32>,
    now: Timestamp,
) -> Result<u32, Error> {
    let known = load_session(tx, source, now).await?;
    let control = LoopControl::default();
    let Some(number) = number else {
        return Ok(current_turn(tx, source, known, control, now).number);
    };
    let last = known.turn.as_ref().map(|turn| turn.number);
    if last == Some(number)
        || tx
            .turn(&source.session, &source.subagent, number)
            .await?
            .is_some()
    {
        return Ok(number);
    }
    let mut recorder = TurnRecorder::begin(tx, source, known, control, now);
    recorder.turn.number = number;
    recorder.watched.turn = number;
    recorder.save(tx, source);
    Ok(number)
}

fn admitted() -> Admission {
    Admission {
        gate: ToolGate::Allow,
        to_agent: String::new(),
        to_user: String::new(),
    }
}
