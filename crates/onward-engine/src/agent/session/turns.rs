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
    IdleReason, Judgement, LoopControl, OnStall, State, TurnEnd, Verdict, preview,
};
use onward_core::{PlanId, Timestamp};
use onward_store::{
    CallLine, CallRecord, SeenClaim, Session, SessionActivity, Sessions, ToolCalls, TurnStep, Tx,
};

use super::primer::{self, ProjectState};
use super::recorder::{SessionState, TurnRecorder, is_current};
use crate::agent::activity;
use crate::agent::observed::{Fingerprint, HookSource, ObservedCall, ObservedStep, truncate_id};
use crate::agent::tool_calls::{end_session, hooks, recover};
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

/// A turn that a prompt has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BegunTurn {
    /// The turn's number, from 1.
    pub number: u32,
    /// Whether the agent must receive a summary of the project, because its context was compacted.
    pub is_primer_due: bool,
}

/// Information for a session that starts, resumes or has compacted its context.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionStart {
    /// The open plans of the session's project.
    pub project: ProjectState,
    /// Whether this event was already reported, by another hook.
    pub is_repeat: bool,
    /// Interrupted calls of the session that have not been reported to the agent.
    pub interrupted: Vec<CallRecord>,
}

impl Engine {
    /// A user's prompt: begins a turn. The fingerprint is the turn's baseline.
    pub async fn begin_turn(
        &self,
        caller: &Caller,
        source: HookSource,
        fingerprint: Fingerprint,
        control: LoopControl,
    ) -> Result<BegunTurn, Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let started = self.store.write(&caller.tenant, move |tx| {
            let (source, fingerprint) = (source.clone(), fingerprint.clone());
            let ctx = ctx.clone();
            Box::pin(async move {
                let known = load_session(tx, &source, &ctx).await?;
                let is_primer_due = known.is_primer_due;
                if source.process.is_some() && !source.is_subagent() {
                    // The exit of the process ends the session.
                    ToolCalls(tx).keep_calls_due(&source.session);
                }
                let number = begin(tx, &source, known, &fingerprint, control, ctx.now).await?;
                Ok::<_, Error>(BegunTurn {
                    number,
                    is_primer_due,
                })
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
                recorder.record_task_message(ended.as_deref(), control, now);
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
                    turn.answer.clone_from(&source.answer);
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

    /// A session starts, resumes or has compacted its context. Interrupts calls whose result can no
    /// longer arrive: in this session by timeout and exited owner, in other sessions on this host by
    /// exited owner. `event` is the event whose reply reaches the agent. It is `None` if the reply
    /// does not; the interrupted calls are then reported later.
    pub async fn begin_session(
        &self,
        caller: &Caller,
        source: HookSource,
        event: Option<&str>,
    ) -> Result<SessionStart, Error> {
        caller.allow(Permission::Record)?;
        let (source, environment) = (source.sanitized()?, self.environment());
        let mut event = event.map(str::to_owned);
        sanitize::optional_text(&mut event);
        event.iter_mut().for_each(truncate_id);
        let ctx = self.session_context(caller, &source.session);
        let archived_before = self.archived_before();
        let started = self.store.write(&caller.tenant, move |tx| {
            let (source, environment) = (source.clone(), Arc::clone(&environment));
            let (ctx, event) = (ctx.clone(), event.clone());
            Box::pin(async move {
                let now = ctx.now;
                let (_, session) = load_whole_session(tx, &source, &ctx).await?;
                recover(tx, &source.session, &*environment, Timeouts::Enforced, now).await?;
                let mut started = SessionStart::default();
                if let Some(event) = &event {
                    started.interrupted = hooks::take_unreported(tx, &source.session).await?;
                    started.is_repeat = primer::is_repeat(session.primed.as_ref(), event, now);
                    if !started.is_repeat {
                        Sessions(tx).prime_session(&source.session, event, now);
                    }
                }
                if let Some(project) = source.project() {
                    started.project = primer::load(tx, project, now, archived_before).await?;
                }
                if !source.is_subagent() {
                    let own = primer::own_steps(tx, &source.session, &session.claims).await?;
                    started.project.own = own;
                }
                Ok::<_, Error>(started)
            })
        });
        let started = started.await?;
        self.recover_host().await?;
        Ok(started)
    }

    /// The agent has compacted its context, and the reply to this event does not reach it. Its next
    /// prompt carries the summary of the project.
    pub async fn record_compaction(
        &self,
        caller: &Caller,
        source: HookSource,
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let recorded = self.store.write(&caller.tenant, move |tx| {
            let (source, ctx) = (source.clone(), ctx.clone());
            Box::pin(async move {
                load_session(tx, &source, &ctx).await?;
                Sessions(tx).prime_session(&source.session, primer::DUE, ctx.now);
                Ok::<(), Error>(())
            })
        });
        recorded.await
    }

    /// Ends a session with its turns. Other sessions can take over its steps immediately.
    pub async fn end_session(&self, caller: &Caller, source: HookSource) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let source = source.sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let ended = self.store.write(&caller.tenant, move |tx| {
            let (source, ctx) = (source.clone(), ctx.clone());
            Box::pin(async move {
                record_session_activity(tx, &source, &ctx.author.name, ctx.now).await?;
                end_session(tx, &source.session, &ctx).await
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
    Ok(load_whole_session(tx, source, ctx).await?.0)
}

/// [`load_session`] with the whole row of the session.
pub(super) async fn load_whole_session(
    tx: &mut Tx,
    source: &HookSource,
    ctx: &CommandContext,
) -> Result<(SessionState, Session), Error> {
    let (known, session) = record_session_activity(tx, source, &ctx.author.name, ctx.now).await?;
    activity::record(tx, &source.session, &known.claims, ctx).await?;
    Ok((known, session))
}

async fn record_session_activity(
    tx: &mut Tx,
    source: &HookSource,
    actor: &str,
    now: Timestamp,
) -> Result<(SessionState, Session), Error> {
    // The task of a subagent is not a prompt of the user.
    let prompt = source.prompt.as_deref();
    let activity = SessionActivity {
        id: &source.session,
        agent: &source.agent,
        directory: source.directory.as_deref(),
        subagent: &source.subagent,
        actor: Some(actor),
        prompt: prompt.filter(|_| !source.is_subagent()),
        owner: source.process.as_ref().filter(|_| !source.is_subagent()),
    };
    let (session, watched, turn) = Sessions(tx).record_session_activity(&activity, now).await?;
    let primed = session.primed.as_ref();
    let known = SessionState {
        off: session.switched_off,
        claims: session.claims.clone(),
        is_primer_due: primed.is_some_and(|primed| primed.event == primer::DUE),
        watched,
        turn,
    };
    Ok((known, session))
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
    if is_repeat {
        // Codex reports the start of a subagent, then its task: the subagent has done nothing yet.
        recorder.turn.seen_at = recorder.turn.began_at;
    }
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
    record_step(
        tx,
        source,
        &mut recorder,
        &judged.verdict,
        &calls,
        judged.to_agent.clone(),
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
    mut message: Option<String>,
    now: Timestamp,
) {
    let Some(judgement) = Judgement::from_verdict(verdict) else {
        return;
    };
    let idle = idle_reasons(&recorder.watched.state);
    recorder.turn.judgement = Some(judgement);
    let reason = match verdict {
        Verdict::Progress { reason } => Some(reason.to_string()),
        Verdict::Idle { .. } | Verdict::Stalled { .. } => describe(&idle),
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
    sanitize::optional_text(&mut message);
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
        message,
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
    if let Some(project) = source.project() {
        for plan in plans {
            Sessions(tx).link_directory(project, *plan, now);
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
