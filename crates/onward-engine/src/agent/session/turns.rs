//! Handles hook events: prompts, steps, and the end of turns and sessions. Checks before a call are
//! in `admission.rs`.
//!
//! A turn begins with a prompt, or with its first event if the prompt was missed. A prompt that is
//! reported again before the first step does not begin another turn. A rejected call is not a step.
//! A call reported twice, alone and in its batch, counts once. A stopped turn stays closed until
//! the next prompt: calls of one batch are checked concurrently, and the last one must not be
//! admitted.

use std::sync::Arc;

use onward_core::call::Timeouts;
use onward_core::role::Permission;
use onward_core::turn::{
    IdleReason, Judgement, LoopControl, OnStall, ProgressDetector, State, TurnEnd, Verdict, preview,
};
use onward_core::{PlanId, Timestamp};
use onward_store::{CallLine, CallRecord, Plans, SeenClaim, Sessions, Sheet, TurnStep, Tx};

use super::recorder::{SessionState, TurnRecorder, is_current};
use crate::agent::activity;
use crate::agent::observed::{Fingerprint, HookSource, ObservedCall, ObservedStep};
use crate::agent::tool_calls::{hooks, recover};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::CommandContext;
use crate::sanitize;

/// Number of recent claims that are stored. An agent works on few steps at a time.
const MAX_SEEN_CLAIMS: usize = 16;
/// Maximum number of a step's calls that are stored.
const MAX_CALLS_PER_STEP: usize = 32;

/// Messages after a step, if any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepMessages {
    /// For the agent.
    pub to_agent: Option<String>,
    /// For the user.
    pub to_user: Option<String>,
    /// Why the stored state of the turn could not be read; it was reset.
    pub unreadable: Option<String>,
}

/// Information for a session that starts or resumes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionStart {
    /// The open plan that was most recently worked on from the session's directory.
    pub plan: Option<Sheet>,
    /// Interrupted calls of the session that have not been reported to the agent.
    pub interrupted: Vec<CallRecord>,
}

impl Engine {
    /// A user's prompt: begins a turn and returns its number. The fingerprint is the turn's
    /// baseline.
    pub async fn begin_turn(
        &self,
        caller: &Caller,
        source: HookSource,
        fingerprint: Fingerprint,
        control: LoopControl,
    ) -> Result<u32, Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let started = self.store.write(&caller.tenant, move |tx| {
            let (source, fingerprint) = (source.clone(), fingerprint.clone());
            let ctx = ctx.clone();
            Box::pin(async move {
                let known = load_session(tx, &source, &ctx).await?;
                begin(tx, &source, known, &fingerprint, control, ctx.now).await
            })
        });
        started.await
    }

    /// A message about a background task. `ended` is the task's id if it has ended. Such a message
    /// counts as progress and continues the current turn; if there is none, it begins one.
    pub async fn record_task_message(
        &self,
        caller: &Caller,
        source: HookSource,
        ended: Option<String>,
        fingerprint: Fingerprint,
        control: LoopControl,
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let recorded = self.store.write(&caller.tenant, move |tx| {
            let (source, fingerprint) = (source.clone(), fingerprint.clone());
            let (ended, ctx) = (ended.clone(), ctx.clone());
            Box::pin(async move {
                let now = ctx.now;
                let known = load_session(tx, &source, &ctx).await?;
                let turn = known.turn.as_ref();
                if !turn.is_some_and(|turn| turn.ended.is_none() && is_current(turn, &source)) {
                    begin(tx, &source, known, &fingerprint, control, now).await?;
                    return Ok(());
                }
                let mut recorder = TurnRecorder::resume(tx, &source, known, control, now);
                let state = std::mem::take(&mut recorder.watched.state);
                let mut detector = ProgressDetector::resume(control.turn, state);
                detector.record_task_notification(ended.as_deref(), Some(now));
                recorder.watched.state = detector.state();
                recorder.turn.standing.reset();
                recorder.turn.progressed_at = Some(now);
                recorder.save(tx, &source);
                Ok::<(), Error>(())
            })
        });
        recorded.await
    }

    /// A step, or a single call if the agent reports each call separately. Returns messages for the
    /// agent or the user.
    pub async fn observe_step(
        &self,
        caller: &Caller,
        source: HookSource,
        step: ObservedStep,
        control: LoopControl,
    ) -> Result<StepMessages, Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let messages = self.store.write(&caller.tenant, move |tx| {
            let (source, step, ctx) = (source.clone(), step.clone(), ctx.clone());
            Box::pin(async move { observe(tx, &source, step, control, &ctx).await })
        });
        messages.await
    }

    /// The agent has answered: ends the turn.
    pub async fn end_turn(&self, caller: &Caller, source: HookSource) -> Result<(), Error> {
        self.end_turn_unless_running(caller, source, &[]).await
    }

    /// [`Self::end_turn`] for an agent whose event does not distinguish its own answer from a
    /// subagent's. While a call of one of these tools is running, the answer is the subagent's, and
    /// the turn continues.
    pub async fn end_turn_unless_running(
        &self,
        caller: &Caller,
        source: HookSource,
        tools: &'static [&'static str],
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let ended = self.store.write(&caller.tenant, move |tx| {
            let (source, ctx) = (source.clone(), ctx.clone());
            Box::pin(async move {
                let now = ctx.now;
                let known = load_session(tx, &source, &ctx).await?;
                if hooks::runs_any_of(tx, &source, tools).await? {
                    return Ok(());
                }
                if let Some(mut turn) = known.turn.filter(|turn| turn.ended.is_none()) {
                    turn.ended = Some((now, TurnEnd::Answered));
                    Sessions(tx).write_turn(&source.session, &turn);
                    hooks::end_turn(tx, &source, turn.number, now).await?;
                }
                if let Some(mut watched) = known.watched {
                    watched.state = State::default();
                    Sessions(tx).keep_watched(&source.session, &watched);
                }
                Ok::<(), Error>(())
            })
        });
        ended.await
    }

    /// A session starts or resumes. Interrupts calls whose result can no longer arrive: in this
    /// session by timeout and exited owner, in other sessions on this host by exited owner.
    /// `can_report` is false if the caller cannot pass messages to the agent; the interrupted calls
    /// are then reported later.
    pub async fn begin_session(
        &self,
        caller: &Caller,
        source: HookSource,
        can_report: bool,
    ) -> Result<SessionStart, Error> {
        caller.allow(Permission::Record)?;
        let (source, environment) = (source.sanitized()?, self.environment());
        let ctx = self.session_context(caller, &source.session);
        let started = self.store.write(&caller.tenant, move |tx| {
            let (source, environment) = (source.clone(), Arc::clone(&environment));
            let ctx = ctx.clone();
            Box::pin(async move {
                let now = ctx.now;
                load_session(tx, &source, &ctx).await?;
                recover(tx, &source.session, &*environment, Timeouts::Enforced, now).await?;
                let mut started = SessionStart::default();
                if can_report {
                    started.interrupted = hooks::take_unreported(tx, &source.session).await?;
                }
                if let Some(directory) = &source.directory
                    && let Some(plan) = Sessions(tx).plan_of_directory(directory).await?
                {
                    started.plan = Plans(tx).sheet(plan).await?;
                }
                Ok::<_, Error>(started)
            })
        });
        let started = started.await?;
        self.recover_host().await?;
        Ok(started)
    }

    /// Ends a session and its turns.
    pub async fn end_session(&self, caller: &Caller, source: HookSource) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let (source, now) = (source.sanitized()?, self.now());
        let ended = self.store.write(&caller.tenant, move |tx| {
            let source = source.clone();
            Box::pin(async move {
                record_session_activity(tx, &source, now).await?;
                hooks::end_session(tx, &source.session, now).await?;
                Sessions(tx).end_session(&source.session, now);
                Ok::<(), Error>(())
            })
        });
        ended.await
    }
}

/// Records an event of a session, which also counts as activity on the steps that it holds, and
/// loads the session.
pub(super) async fn load_session(
    tx: &mut Tx,
    source: &HookSource,
    ctx: &CommandContext,
) -> Result<SessionState, Error> {
    let known = record_session_activity(tx, source, ctx.now).await?;
    activity::record(tx, &source.session, &known.claims, ctx).await?;
    Ok(known)
}

async fn record_session_activity(
    tx: &mut Tx,
    source: &HookSource,
    now: Timestamp,
) -> Result<SessionState, Error> {
    let directory = source.directory.as_deref();
    let (session, watched, turn) = Sessions(tx)
        .record_session_activity(
            &source.session,
            &source.agent,
            directory,
            &source.subagent,
            now,
        )
        .await?;
    Ok(SessionState {
        off: session.switched_off,
        claims: session.claims,
        watched,
        turn,
    })
}

/// Begins a turn and returns its number.
async fn begin(
    tx: &mut Tx,
    source: &HookSource,
    known: SessionState,
    fingerprint: &Fingerprint,
    control: LoopControl,
    now: Timestamp,
) -> Result<u32, Error> {
    let last = known.turn.as_ref();
    let is_repeat = last.is_some_and(|turn| {
        let same = turn.key.is_some() && turn.key == source.turn;
        same && turn.ended.is_none() && turn.standing.steps == 0
    });
    let last = last.map(|turn| turn.number).filter(|_| !is_repeat);
    let mut recorder = if is_repeat {
        TurnRecorder::resume(tx, source, known, control, now)
    } else {
        TurnRecorder::begin(tx, source, known, control, now)
    };
    recorder.set_baseline(fingerprint);
    recorder.save(tx, source);
    if let Some(last) = last {
        hooks::end_turn(tx, source, last, now).await?;
    }
    Ok(recorder.turn.number)
}

async fn observe(
    tx: &mut Tx,
    source: &HookSource,
    step: ObservedStep,
    mut control: LoopControl,
    ctx: &CommandContext,
) -> Result<StepMessages, Error> {
    let now = ctx.now;
    let known = load_session(tx, source, ctx).await?;
    hooks::store_results(tx, source, &step.calls, now).await?;
    keep_claims(tx, source, &known.claims, &step.claims);
    if known.off {
        control.on_stall = OnStall::Off;
    }
    let mut recorder = TurnRecorder::resume(tx, source, known, control, now);
    link_plans(tx, source, &step.plans, now);
    let unreadable = recorder.watched.unreadable.take();
    let calls = recorder.take_calls(step.calls, step.report);
    if calls.is_empty() || recorder.turn.ended.is_some() {
        recorder.save(tx, source);
        return Ok(StepMessages {
            unreadable,
            ..StepMessages::default()
        });
    }
    let judged = match step.judged {
        Some(judged) => judged,
        None => recorder.judge(&calls, &step.fingerprint, control, now),
    };
    recorder.set_state(judged.state, judged.escalation);
    let idle = idle_reasons(&recorder.watched.state);
    record_step(
        tx,
        source,
        &mut recorder,
        &judged.verdict,
        &calls,
        &idle,
        now,
    );
    recorder.save(tx, source);
    Ok(StepMessages {
        to_agent: judged.to_agent,
        to_user: judged.to_user,
        unreadable,
    })
}

/// Why the calls of the last step are idle, in order.
fn idle_reasons(state: &State) -> Vec<IdleReason> {
    let last = state.evidence.iter().filter(|call| call.step == state.step);
    last.map(|call| call.reason).collect()
}

/// The distinct reasons of an idle step.
fn describe(reasons: &[IdleReason]) -> Option<String> {
    let mut texts: Vec<String> = Vec::new();
    for reason in reasons {
        let text = reason.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Records a judged step.
fn record_step(
    tx: &mut Tx,
    source: &HookSource,
    recorder: &mut TurnRecorder,
    verdict: &Verdict,
    calls: &[ObservedCall],
    idle: &[IdleReason],
    now: Timestamp,
) {
    let Some(judgement) = Judgement::from_verdict(verdict) else {
        return;
    };
    recorder.turn.judgement = Some(judgement);
    let reason = match verdict {
        Verdict::Progress { reason } => Some(reason.to_string()),
        Verdict::Idle { .. } | Verdict::Stalled { .. } => describe(idle),
        Verdict::Unjudged { .. } | Verdict::Ended => None,
    };
    // The reasons are those of the last calls.
    let is_idle = matches!(judgement, Judgement::Idle | Judgement::Stalled);
    let without = calls.len().saturating_sub(idle.len());
    let idle_reason = |at: usize| {
        let at = at.checked_sub(without).filter(|_| is_idle)?;
        idle.get(at).copied()
    };
    if judgement == Judgement::Progress {
        recorder.turn.progressed_at = Some(now);
    }
    let step = TurnStep {
        number: recorder.turn.standing.steps,
        at: now,
        judgement,
        why: reason,
        idle_steps: recorder.turn.standing.idle_steps,
        calls: calls
            .iter()
            .enumerate()
            .take(MAX_CALLS_PER_STEP)
            .map(|(at, call)| call_line(call, idle_reason(at)))
            .collect(),
    };
    Sessions(tx).add_turn_step(&source.session, &recorder.turn, &step);
}

/// Adds new claims to the known ones of the session.
fn keep_claims(tx: &mut Tx, source: &HookSource, known: &[SeenClaim], seen: &[SeenClaim]) {
    let new = seen.iter().filter(|claim| !known.contains(claim)).cloned();
    let mut claims = known.to_vec();
    claims.extend(new);
    if claims.len() > known.len() {
        let surplus = claims.len().saturating_sub(MAX_SEEN_CLAIMS);
        claims.drain(..surplus);
        Sessions(tx).keep_claims(&source.session, &claims);
    }
}

fn link_plans(tx: &mut Tx, source: &HookSource, plans: &[PlanId], now: Timestamp) {
    if let Some(directory) = &source.directory {
        for plan in plans {
            Sessions(tx).link_directory(directory, *plan, now);
        }
    }
}

/// The stored form of a call: truncated, with secrets masked.
fn call_line(call: &ObservedCall, idle: Option<IdleReason>) -> CallLine {
    let short = |text: &str| {
        let mut short = preview(text);
        sanitize::text(&mut short);
        short
    };
    CallLine {
        tool: short(&call.tool),
        input: short(&call.command_line()),
        ok: call.ok,
        output: short(&call.output),
        idle,
    }
}
