//! From an event to a reply: the same for all agents.

use std::path::Path;

use onward_core::turn::ladder::Gate;
use onward_core::turn::{LoopControl, OnStall};
use onward_engine::ledger::{Asked, NewCall};
use onward_engine::session::{Fingerprint, Gated, SeenCall, SeenStep};
use onward_engine::{CallRecord, Caller, Engine, Error, Sheet, machine};

use super::{Agent, Event, Reply, What, payload};
use crate::fingerprint;
use crate::output::words;

/// How many calls that got no result are named.
const NAMED: usize = 10;

/// What to answer, and what is worth a line on standard error.
pub(crate) struct Answer {
    pub(crate) reply: Reply,
    pub(crate) note: Option<String>,
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        let note = None;
        Self { reply, note }
    }
}

/// Takes in what an agent tells, and says what to answer.
pub(crate) async fn act(
    agent: Agent,
    event: &Event,
    engine: &Engine,
    caller: &Caller,
    control: LoopControl,
) -> Result<Answer, Error> {
    let heard = event.heard.clone();
    match &event.what {
        What::SessionStarted => {
            // Kimi listens to nothing before the first prompt.
            let tells = agent != Agent::Kimi;
            let begun = engine.begin_session(caller, heard, tells).await?;
            Ok(opening(&begun.interrupted, begun.plan.as_ref()).into())
        }
        What::Prompted => {
            let print = look(event, control);
            let first = engine
                .begin_turn(caller, heard.clone(), print, control)
                .await?
                == 1;
            if agent != Agent::Kimi || !event.heard.subagent.is_empty() {
                return Ok(Reply::Nothing.into());
            }
            if first {
                let begun = engine.begin_session(caller, heard, true).await?;
                return Ok(opening(&begun.interrupted, begun.plan.as_ref()).into());
            }
            let interrupted = engine.tell_interrupted(caller, &heard).await?;
            Ok(opening(&interrupted, None).into())
        }
        What::ToldOfTask { ended } => {
            let (print, ended) = (look(event, control), ended.clone());
            let told = engine.hear_of_task(caller, heard, ended, print, control);
            told.await?;
            Ok(Reply::Nothing.into())
        }
        What::AboutToAsk => {
            let closed = engine.is_closed(caller, &heard, control).await?;
            let reply = if closed {
                Reply::NoTools
            } else {
                Reply::Nothing
            };
            Ok(reply.into())
        }
        What::AboutToCall { call } => {
            let stops = agent.can_stop();
            let Asked { id, tool, input } = call.clone();
            // The agent runs the tool, and this hook is its child.
            let call = NewCall::seen(id, tool, input, machine::starter());
            let gated = engine.gate_call(caller, heard, call, stops, control);
            Ok(gate(gated.await?, stops).into())
        }
        What::Asked { call, said } => {
            engine
                .call_asked(caller, heard, call.clone(), *said)
                .await?;
            Ok(Reply::Nothing.into())
        }
        What::Stepped { calls, whole } => step(event, calls, *whole, engine, caller, control).await,
        What::Answered => {
            let tools = agent.subagent_tools();
            engine.end_turn_outside_of(caller, heard, tools).await?;
            Ok(Reply::Nothing.into())
        }
        What::SessionEnded => {
            engine.end_session(caller, heard).await?;
            Ok(Reply::Nothing.into())
        }
    }
}

async fn step(
    event: &Event,
    calls: &[SeenCall],
    whole: bool,
    engine: &Engine,
    caller: &Caller,
    control: LoopControl,
) -> Result<Answer, Error> {
    if control.on_stall == OnStall::Off {
        let settled = engine.settle_calls(caller, event.heard.clone(), calls.to_vec());
        settled.await?;
        return Ok(Reply::Nothing.into());
    }
    let step = SeenStep {
        calls: calls.to_vec(),
        whole,
        fingerprint: look(event, control),
        plans: payload::plans(calls),
    };
    let seen = engine
        .observe_step(caller, event.heard.clone(), step, control)
        .await?;
    let note = seen.unreadable.map(|why| {
        format!("what was remembered of the turn cannot be read, and begins anew: {why}")
    });
    let reply = match (seen.to_agent, seen.to_person) {
        (Some(text), _) => Reply::Context(text),
        (None, Some(text)) => Reply::Warning(text),
        (None, None) => Reply::Nothing,
    };
    Ok(Answer { reply, note })
}

fn look(event: &Event, control: LoopControl) -> Fingerprint {
    match &event.heard.directory {
        Some(directory) if control.on_stall != OnStall::Off => {
            fingerprint::take(Path::new(directory), fingerprint::BUDGET)
        }
        Some(_) | None => Fingerprint::None,
    }
}

fn gate(gated: Gated, stops: bool) -> Reply {
    let Gated {
        gate,
        to_agent: reason,
        to_person,
    } = gated;
    match gate {
        Gate::Open => Reply::Nothing,
        Gate::Refused => Reply::Refused { reason },
        Gate::Stopped => Reply::Stopped {
            reason,
            to_person: match stops {
                true => format!("Onward stopped this turn: {to_person}"),
                false => format!("Onward refuses the calls of this turn: {to_person}"),
            },
        },
    }
}

/// What a model has to know that begins, or begins again.
fn opening(interrupted: &[CallRecord], plan: Option<&Sheet>) -> Reply {
    let cut_off = cut_off(interrupted);
    let told: Vec<String> = cut_off.into_iter().chain(plan.map(offer)).collect();
    match told.is_empty() {
        true => Reply::Nothing,
        false => Reply::Context(told.join("\n\n")),
    }
}

/// Calls that got no result, each with what the model can do about it.
fn cut_off(calls: &[CallRecord]) -> Option<String> {
    if calls.is_empty() {
        return None;
    }
    let mut told = format!(
        "{} of this session got no result:",
        words::count(calls.len() as u64, "tool call", "tool calls")
    );
    for record in calls.iter().take(NAMED) {
        let said = record.synthetic.as_ref();
        let said = said.map_or("", |said| said.to_model.as_str());
        let input = words::line(&record.input);
        told.push_str(&format!(
            "\n- {} `{input}`: {said}",
            words::line(&record.tool)
        ));
    }
    if calls.len() > NAMED {
        told.push_str(&format!("\n- and {} more", calls.len() - NAMED));
    }
    Some(told)
}

/// An unfinished plan, for the model to know of.
fn offer(sheet: &Sheet) -> String {
    let head = &sheet.head;
    format!(
        "This directory has an unfinished plan in Onward: `{}` (planId {}), {}, {}% of {} steps done. \
         `get_research_context` with its planId tells where it stands; `get_next_step` goes on with it.",
        sheet.brief.name,
        head.id,
        head.status(),
        head.counts.progress(),
        head.counts.total(),
    )
}
