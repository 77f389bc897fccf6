//! Before a tool call: checks whether the turn may make another call, determines the turn that the
//! call belongs to, and records the call. A turn that must end in text may not make calls.

use onward_core::Timestamp;
use onward_core::role::Permission;
use onward_core::turn::escalation::{self, ToolGate};
use onward_core::turn::{LoopControl, TurnEnd};
use onward_store::{CallRecord, Sessions, ToolCalls, Turn, Tx};

use super::recorder::TurnRecorder;
use super::recorder::{SessionState, is_current};
use super::turns::load_session;
use crate::agent::activity;
use crate::agent::observed::HookSource;
use crate::agent::tool_calls::{InitialState, NewCall, record};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::CommandContext;

/// Whether a tool call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// The decision.
    pub gate: ToolGate,
    /// The reason for a rejection, for the agent.
    pub to_agent: String,
    /// The reason for a rejection, for the user.
    pub to_user: String,
}

impl Engine {
    /// Checks whether a call may run. If so, records it as running; otherwise it is not recorded.
    /// `can_stop`: the caller can stop the agent, so the turn ends if the escalation stops it.
    pub async fn admit_call(
        &self,
        caller: &Caller,
        source: HookSource,
        call: NewCall,
        can_stop: bool,
        control: LoopControl,
    ) -> Result<Admission, Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let admission = self.store.write(&caller.tenant, move |tx| {
            let (source, mut call, ctx) = (source.clone(), call.clone(), ctx.clone());
            Box::pin(async move {
                let (id, now) = (call.id.clone(), ctx.now);
                let (admission, turn) = admit(tx, &source, id, can_stop, control, &ctx).await?;
                if let Some((turn, batch)) = turn {
                    call.batch = Some(batch);
                    record::record(tx, &source, turn, call, InitialState::Running, now).await?;
                    ToolCalls(tx).keep_calls_due(&source.session);
                }
                Ok::<_, Error>(admission)
            })
        });
        admission.await
    }

    /// Records a call before it runs. Without `turn`, it belongs to the current turn. A turn that
    /// is not recorded yet is started.
    pub async fn record_call(
        &self,
        caller: &Caller,
        source: HookSource,
        turn: Option<u32>,
        call: NewCall,
        begins: InitialState,
    ) -> Result<CallRecord, Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let recorded = self.store.write(&caller.tenant, move |tx| {
            let (source, call, ctx) = (source.clone(), call.clone(), ctx.clone());
            Box::pin(async move {
                let turn = resolve_turn(tx, &source, turn, &ctx).await?;
                let record = record::record(tx, &source, turn, call, begins, ctx.now).await?;
                ToolCalls(tx).keep_calls_due(&source.session);
                Ok::<_, Error>(record)
            })
        });
        let record = recorded.await?;
        self.wake_sweep_for(&record);
        Ok(record)
    }

    /// Whether the next model step must be text; for callers that can remove the tools from a
    /// request. Writes nothing, unless the session's activity is to be recorded on its steps.
    pub async fn requires_text(
        &self,
        caller: &Caller,
        source: &HookSource,
        control: LoopControl,
    ) -> Result<bool, Error> {
        caller.allow(Permission::Record)?;
        let source = source.clone().sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let (session, read_ctx) = (source.session.clone(), ctx.clone());
        let closed = self.store.read(&caller.tenant, move |tx| {
            let (source, ctx) = (source.clone(), read_ctx.clone());
            Box::pin(async move {
                let known = Sessions(tx)
                    .session_and_turn(&source.session, &source.subagent)
                    .await?;
                let claims = known.as_ref().map(|(session, _)| session.claims.clone());
                let claims = claims.unwrap_or_default();
                let is_active = activity::is_due(tx, &source.session, &claims, &ctx).await?;
                let is_closed = known.is_some_and(|(session, turn)| {
                    !session.switched_off && must_be_text(turn.as_ref(), &source, control)
                });
                Ok::<_, Error>((is_closed, is_active.then_some(claims)))
            })
        });
        let (is_closed, active) = closed.await?;
        if let Some(claims) = active {
            let recorded = self.store.write(&caller.tenant, move |tx| {
                let (session, claims, ctx) = (session.clone(), claims.clone(), ctx.clone());
                Box::pin(async move { activity::record(tx, &session, &claims, &ctx).await })
            });
            recorded.await?;
        }
        Ok(is_closed)
    }
}

/// Whether the current turn must end in text.
fn must_be_text(turn: Option<&Turn>, source: &HookSource, control: LoopControl) -> bool {
    let turn = turn.filter(|turn| is_current(turn, source));
    turn.is_some_and(|turn| control.is_text_only(&turn.standing))
}

/// Whether a call may run. If so, also returns its turn and its step number.
async fn admit(
    tx: &mut Tx,
    source: &HookSource,
    call: Option<String>,
    can_stop: bool,
    control: LoopControl,
    ctx: &CommandContext,
) -> Result<(Admission, Option<(u32, u32)>), Error> {
    let now = ctx.now;
    let known = load_session(tx, source, ctx).await?;
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
async fn resolve_turn(
    tx: &mut Tx,
    source: &HookSource,
    number: Option<u32>,
    ctx: &CommandContext,
) -> Result<u32, Error> {
    let now = ctx.now;
    let known = load_session(tx, source, ctx).await?;
    let control = LoopControl::default();
    let Some(number) = number else {
        return Ok(current_turn(tx, source, known, control, now).number);
    };
    let last = known.turn.as_ref().map(|turn| turn.number);
    if last == Some(number)
        || Sessions(tx)
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
