//! Takes in what hooks tell: prompts, steps, ends. Calls that are about to be made are `gate.rs`.
//!
//! A turn begins with a prompt, or with the first that is heard of it where the prompt was missed. A
//! call that was refused is no step, and a call that is told of twice, alone and in its batch, counts
//! once. A turn that is told of again before its first step begins once. A turn that was stopped stays closed until the next prompt: calls of one batch ask side by
//! side, and the last of them must not slip through.

use std::sync::Arc;

use onward_core::call::Clock;
use onward_core::role::Permission;
use onward_core::turn::ladder::{self, REFUSAL_OPENING, Rung, Standing};
use onward_core::turn::secret::mask;
use onward_core::turn::{
    Call, Judgement, LoopControl, Observation, OnStall, Outside, ProgressDetector, State, TurnEnd,
    Verdict, preview,
};
use onward_core::{PlanId, Timestamp};
use onward_store::{CallLine, Turn, TurnStep, Tx, Watched};

use super::{Begun, Fingerprint, Heard, Observed, SeenCall, SeenStep};
use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::ledger::{heard as ledger, recover};

/// How many calls are remembered by their ids.
const KNOWN: usize = 64;
/// How many calls of a step are kept.
const SHOWN: usize = 32;
/// How far into an output the echo of a refusal is looked for.
const ECHO: usize = 300;
/// A longer id is cut: it is the agent's, and may be anything.
const LONGEST_ID: usize = 200;

impl Engine {
    /// A person's message: a new turn, and which one. The fingerprint is its baseline.
    pub async fn begin_turn(
        &self,
        caller: &Caller,
        heard: Heard,
        fingerprint: Fingerprint,
        control: LoopControl,
    ) -> Result<u32, Error> {
        caller.allow(Permission::Record)?;
        let (heard, now) = (heard.cleaned()?, self.now());
        let begun = self.store.write(&caller.tenant, move |tx| {
            let (heard, fingerprint) = (heard.clone(), fingerprint.clone());
            Box::pin(async move {
                let known = hear(tx, &heard, now).await?;
                begin(tx, &heard, known, &fingerprint, control, now).await
            })
        });
        begun.await
    }

    /// The agent is told of a background task as if by a message, and of which one that it is over, if
    /// any is. That is news from outside, and the turn goes on; where none does, one begins.
    pub async fn hear_of_task(
        &self,
        caller: &Caller,
        heard: Heard,
        ended: Option<String>,
        fingerprint: Fingerprint,
        control: LoopControl,
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let (heard, now) = (heard.cleaned()?, self.now());
        let told = self.store.write(&caller.tenant, move |tx| {
            let (heard, fingerprint) = (heard.clone(), fingerprint.clone());
            let ended = ended.clone();
            Box::pin(async move {
                let known = hear(tx, &heard, now).await?;
                let turn = known.turn.as_ref();
                if !turn.is_some_and(|turn| turn.ended.is_none() && goes_on(turn, &heard)) {
                    begin(tx, &heard, known, &fingerprint, control, now).await?;
                    return Ok(());
                }
                let mut desk = Desk::go_on(tx, &heard, known, control, now);
                let state = std::mem::take(&mut desk.watched.state);
                let mut detector = ProgressDetector::resume(control.turn, state);
                detector.hear_of_task(ended.as_deref(), Some(now));
                desk.watched.state = detector.state();
                desk.turn.standing.reset();
                desk.turn.progressed_at = Some(now);
                desk.keep(tx, &heard);
                Ok::<(), Error>(())
            })
        });
        told.await
    }

    /// A step, or one call where the agent tells of each alone.
    pub async fn observe_step(
        &self,
        caller: &Caller,
        heard: Heard,
        step: SeenStep,
        control: LoopControl,
    ) -> Result<Observed, Error> {
        caller.allow(Permission::Record)?;
        let (heard, now) = (heard.cleaned()?, self.now());
        let observed = self.store.write(&caller.tenant, move |tx| {
            let (heard, step) = (heard.clone(), step.clone());
            Box::pin(async move { observe(tx, &heard, step, control, now).await })
        });
        observed.await
    }

    /// The agent answered: the turn is over.
    pub async fn end_turn(&self, caller: &Caller, heard: Heard) -> Result<(), Error> {
        self.end_turn_outside_of(caller, heard, &[]).await
    }

    /// The same for an agent that does not say whether it answered or a subagent of it: while a call
    /// of one of these tools runs, it was the subagent, and the turn goes on.
    pub async fn end_turn_outside_of(
        &self,
        caller: &Caller,
        heard: Heard,
        tools: &'static [&'static str],
    ) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let (heard, now) = (heard.cleaned()?, self.now());
        let ended = self.store.write(&caller.tenant, move |tx| {
            let heard = heard.clone();
            Box::pin(async move {
                let known = hear(tx, &heard, now).await?;
                if ledger::calls_one_of(tx, &heard, tools).await? {
                    return Ok(());
                }
                if let Some(mut turn) = known.turn.filter(|turn| turn.ended.is_none()) {
                    turn.ended = Some((now, TurnEnd::Answered));
                    tx.write_turn(&heard.session, &turn);
                    ledger::end_turn(tx, &heard, turn.number, now).await?;
                }
                if let Some(mut watched) = known.watched {
                    watched.state = State::default();
                    tx.keep_watched(&heard.session, &watched);
                }
                Ok::<(), Error>(())
            })
        });
        ended.await
    }

    /// A session begins or goes on. What will not answer any more is given up: of this session by the
    /// clock, too, of others on this host where their owner is dead. Whoever cannot tell the agent of
    /// it says so, and it is told another time.
    pub async fn begin_session(
        &self,
        caller: &Caller,
        heard: Heard,
        tells: bool,
    ) -> Result<Begun, Error> {
        caller.allow(Permission::Record)?;
        let (heard, now, world) = (heard.cleaned()?, self.now(), self.world());
        let begun = self.store.write(&caller.tenant, move |tx| {
            let (heard, world) = (heard.clone(), Arc::clone(&world));
            Box::pin(async move {
                hear(tx, &heard, now).await?;
                recover(tx, &heard.session, &*world, Clock::Running, now).await?;
                let mut begun = Begun::default();
                if tells {
                    begun.interrupted = ledger::tell(tx, &heard.session).await?;
                }
                if let Some(directory) = &heard.directory
                    && let Some(plan) = tx.plan_of_directory(directory).await?
                {
                    begun.plan = tx.sheet(plan).await?;
                }
                Ok::<_, Error>(begun)
            })
        });
        let begun = begun.await?;
        self.recover_here().await?;
        Ok(begun)
    }

    /// A session is over, and so are its turns.
    pub async fn end_session(&self, caller: &Caller, heard: Heard) -> Result<(), Error> {
        caller.allow(Permission::Record)?;
        let (heard, now) = (heard.cleaned()?, self.now());
        let ended = self.store.write(&caller.tenant, move |tx| {
            let heard = heard.clone();
            Box::pin(async move {
                hear(tx, &heard, now).await?;
                ledger::end_session(tx, &heard.session, now).await?;
                tx.end_session(&heard.session, now);
                Ok::<(), Error>(())
            })
        });
        ended.await
    }
}

impl Heard {
    /// With texts that can be stored.
    pub(crate) fn cleaned(mut self) -> Result<Self, Error> {
        for text in [&mut self.session, &mut self.agent, &mut self.subagent] {
            clean::text(text);
            cut(text);
        }
        clean::maybe(&mut self.directory);
        clean::maybe(&mut self.turn);
        self.turn.iter_mut().for_each(cut);
        match self.session.is_empty() {
            true => Err(Error::invalid("session", "is empty")),
            false => Ok(self),
        }
    }
}

fn cut(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(LONGEST_ID) {
        text.truncate(end);
    }
}

/// What is known of an agent before something is heard of it.
pub(super) struct Known {
    pub(super) off: bool,
    watched: Option<Watched>,
    pub(super) turn: Option<Turn>,
}

/// Whether a turn is the one that is being told of: it is not over, or it was stopped and nobody has
/// begun another.
pub(super) fn goes_on(turn: &Turn, heard: &Heard) -> bool {
    let same = match (&turn.key, &heard.turn) {
        (Some(known), Some(told)) => known == told,
        (None, _) | (_, None) => true,
    };
    same && matches!(turn.ended, None | Some((_, TurnEnd::Stopped)))
}

pub(super) async fn hear(tx: &mut Tx, heard: &Heard, now: Timestamp) -> Result<Known, Error> {
    let directory = heard.directory.as_deref();
    let (session, watched, turn) = tx
        .hear_of_session(
            &heard.session,
            &heard.agent,
            directory,
            &heard.subagent,
            now,
        )
        .await?;
    Ok(Known {
        off: session.switched_off,
        watched,
        turn,
    })
}

/// A turn that is going on, and what is remembered of it.
pub(super) struct Desk {
    pub(super) watched: Watched,
    pub(super) turn: Turn,
}

impl Desk {
    /// The turn that is going on; a new one where there is none, or another is told of.
    pub(super) fn go_on(
        tx: &mut Tx,
        heard: &Heard,
        known: Known,
        control: LoopControl,
        now: Timestamp,
    ) -> Self {
        let Known { off, watched, turn } = known;
        match turn {
            Some(mut turn) if goes_on(&turn, heard) => {
                let mut watched = watched.unwrap_or_default();
                if watched.turn != turn.number {
                    watched.state = State::default();
                }
                watched.agent.clone_from(&heard.subagent);
                watched.turn = turn.number;
                turn.key = turn.key.or_else(|| heard.turn.clone());
                turn.threshold = control.turn.stall_threshold.max(1);
                Self { watched, turn }
            }
            turn => {
                let known = Known { off, watched, turn };
                Self::fresh(tx, heard, known, control, now)
            }
        }
    }

    /// A new turn; one that was going on is over.
    pub(super) fn fresh(
        tx: &mut Tx,
        heard: &Heard,
        known: Known,
        control: LoopControl,
        now: Timestamp,
    ) -> Self {
        let number = known.turn.as_ref().map_or(1, |last| last.number + 1);
        if let Some(mut last) = known.turn.filter(|turn| turn.ended.is_none()) {
            last.ended = Some((now, TurnEnd::NextPrompt));
            tx.write_turn(&heard.session, &last);
        }
        let mut watched = known.watched.unwrap_or_default();
        watched.agent.clone_from(&heard.subagent);
        watched.turn = number;
        watched.state = State::default();
        watched.unreadable = None;
        Self {
            watched,
            turn: Turn {
                number,
                agent: heard.subagent.clone(),
                key: heard.turn.clone(),
                began_at: now,
                progressed_at: None,
                ended: None,
                standing: Standing::default(),
                threshold: control.turn.stall_threshold.max(1),
                judgement: None,
            },
        }
    }

    /// Takes a look at the world outside for a baseline.
    fn look(&mut self, fingerprint: &Fingerprint) {
        self.watched.fingerprint = match fingerprint {
            Fingerprint::Of(print) => Some(print.clone()),
            Fingerprint::None | Fingerprint::Late => None,
        };
    }

    /// What the world outside says, compared with the last look.
    fn outside(&mut self, fingerprint: &Fingerprint) -> Outside {
        match fingerprint {
            Fingerprint::Late => Outside::Late,
            Fingerprint::None => Outside::Unknown,
            Fingerprint::Of(print) => {
                let last = self.watched.fingerprint.replace(print.clone());
                Outside::between(last.as_ref(), Some(print))
            }
        }
    }

    /// Remembers a call by its id, and says whether it was known.
    pub(super) fn remember(&mut self, id: Option<String>) -> bool {
        let Some(mut id) = id else { return false };
        clean::text(&mut id);
        cut(&mut id);
        let known = &mut self.watched.known_calls;
        if known.contains(&id) {
            return true;
        }
        known.push(id);
        let surplus = known.len().saturating_sub(KNOWN);
        known.drain(..surplus);
        false
    }

    pub(super) fn keep(&self, tx: &mut Tx, heard: &Heard) {
        tx.write_turn(&heard.session, &self.turn);
        tx.keep_watched(&heard.session, &self.watched);
    }
}

/// A new turn, and which one.
async fn begin(
    tx: &mut Tx,
    heard: &Heard,
    known: Known,
    fingerprint: &Fingerprint,
    control: LoopControl,
    now: Timestamp,
) -> Result<u32, Error> {
    let last = known.turn.as_ref();
    let told_again = last.is_some_and(|turn| {
        let same = turn.key.is_some() && turn.key == heard.turn;
        same && turn.ended.is_none() && turn.standing.steps == 0
    });
    let last = last.map(|turn| turn.number).filter(|_| !told_again);
    let mut desk = match told_again {
        true => Desk::go_on(tx, heard, known, control, now),
        false => Desk::fresh(tx, heard, known, control, now),
    };
    desk.look(fingerprint);
    desk.keep(tx, heard);
    if let Some(last) = last {
        ledger::end_turn(tx, heard, last, now).await?;
    }
    Ok(desk.turn.number)
}

async fn observe(
    tx: &mut Tx,
    heard: &Heard,
    step: SeenStep,
    mut control: LoopControl,
    now: Timestamp,
) -> Result<Observed, Error> {
    let known = hear(tx, heard, now).await?;
    ledger::take_results(tx, heard, &step.calls, now).await?;
    if known.off {
        control.on_stall = OnStall::Off;
    }
    let mut desk = Desk::go_on(tx, heard, known, control, now);
    link(tx, heard, &step.plans, now);
    let unreadable = desk.watched.unreadable.take();
    // Who tells of batches tells of each of these calls once more.
    let told_again = desk.watched.batches && !step.whole;
    desk.watched.batches |= step.whole;
    let mut calls = if told_again { Vec::new() } else { step.calls };
    calls.retain_mut(|call| !desk.remember(call.id.take()) && !is_echo(&call.output));
    if calls.is_empty() || desk.turn.ended.is_some() {
        desk.keep(tx, heard);
        return Ok(Observed {
            unreadable,
            ..Observed::default()
        });
    }
    let outside = desk.outside(&step.fingerprint);
    let state = std::mem::take(&mut desk.watched.state);
    let mut detector = ProgressDetector::resume(control.turn, state);
    let shown: Vec<Call<'_>> = calls.iter().map(shown).collect();
    let verdict = detector.observe(&Observation {
        calls: &shown,
        outside,
        at: Some(now),
        background: false,
    });
    desk.watched.state = detector.state();
    let rung = control.after_step(&mut desk.turn.standing, &verdict);
    note(tx, heard, &mut desk, &verdict, &calls, now);
    desk.keep(tx, heard);
    let (standing, evidence) = (&desk.turn.standing, &desk.watched.state.evidence);
    let mut observed = Observed {
        unreadable,
        ..Observed::default()
    };
    match rung {
        Rung::Ground => {}
        Rung::Nudge => observed.to_agent = Some(ladder::nudge(standing, outside)),
        Rung::Reminder => observed.to_agent = Some(ladder::reminder(standing, outside, evidence)),
        Rung::Warning => observed.to_person = Some(ladder::for_person(standing)),
    }
    Ok(observed)
}

/// Writes a step that was judged into the record.
fn note(
    tx: &mut Tx,
    heard: &Heard,
    desk: &mut Desk,
    verdict: &Verdict,
    calls: &[SeenCall],
    now: Timestamp,
) {
    let Some(judgement) = Judgement::of(verdict) else {
        return;
    };
    desk.turn.judgement = Some(judgement);
    let why = match verdict {
        Verdict::Progress { why } => Some(why.to_string()),
        Verdict::Idle { .. }
        | Verdict::Stalled { .. }
        | Verdict::Unjudged { .. }
        | Verdict::Ended => None,
    };
    if judgement == Judgement::Progress {
        desk.turn.progressed_at = Some(now);
    }
    let step = TurnStep {
        number: desk.turn.standing.steps,
        at: now,
        judgement,
        why,
        idle_steps: desk.turn.standing.idle_steps,
        calls: calls.iter().take(SHOWN).map(line).collect(),
    };
    tx.add_turn_step(&heard.session, &desk.turn, &step);
}

fn link(tx: &mut Tx, heard: &Heard, plans: &[PlanId], now: Timestamp) {
    if let Some(directory) = &heard.directory {
        for plan in plans {
            tx.link_directory(directory, *plan, now);
        }
    }
}

fn shown(call: &SeenCall) -> Call<'_> {
    Call {
        tool: &call.tool,
        input: &call.input,
        ok: call.ok,
        output: &call.output,
    }
}

/// Whether an output is what we said when we refused the call.
fn is_echo(output: &str) -> bool {
    let end = output
        .char_indices()
        .nth(ECHO)
        .map_or(output.len(), |(end, _)| end);
    output
        .get(..end)
        .is_some_and(|head| head.contains(REFUSAL_OPENING))
}

/// What is kept of a call: beginnings, without secrets.
fn line(call: &SeenCall) -> CallLine {
    let short = |text: &str| {
        let mut short = mask(&preview(text));
        clean::text(&mut short);
        short
    };
    CallLine {
        tool: short(&call.tool),
        input: short(&call.command_line()),
        ok: call.ok,
        output: short(&call.output),
    }
}

impl SeenCall {
    /// The command, where it is one, and else the whole input.
    fn command_line(&self) -> String {
        let command = self
            .input
            .get("command")
            .and_then(|command| command.as_str());
        command.map_or_else(|| self.input.to_string(), str::to_owned)
    }
}
