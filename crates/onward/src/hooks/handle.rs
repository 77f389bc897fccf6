//! Maps hook events to replies, the same for all agents.

use std::path::Path;

use onward_core::capture::CapturePolicy;
use onward_core::turn::escalation::ToolGate;
use onward_core::turn::{LoopControl, OnStall};
use onward_engine::session::{
    Admission, Fingerprint, HeldClaim, HookSource, ObservedCall, ObservedStep, ProjectState,
    StepReport,
};
use onward_engine::{Caller, Engine, Error, machine};

use super::{Agent, Event, EventKind, Reply, payload, tasks};
use crate::fingerprint::{self, Pending};
use crate::output::format;
use crate::{prime, seen_claims};

/// A reply, and an optional line for standard error.
pub(crate) struct Handled {
    pub(crate) reply: Reply,
    pub(crate) note: Option<String>,
}

impl From<Reply> for Handled {
    fn from(reply: Reply) -> Self {
        let note = None;
        Self { reply, note }
    }
}

/// The settings of a hook.
pub(crate) struct Settings {
    pub(crate) control: LoopControl,
    pub(crate) capture: CapturePolicy,
    /// Whether the agent has no skill that describes when to use Onward.
    pub(crate) with_advice: bool,
}

/// Records an event and decides the reply.
pub(crate) async fn handle(
    agent: Agent,
    event: &Event,
    engine: &Engine,
    caller: &Caller,
    fingerprint: Pending,
    settings: &Settings,
) -> Result<Handled, Error> {
    let source = event.source.clone();
    let Settings {
        control,
        with_advice,
        ..
    } = *settings;
    match &event.kind {
        EventKind::SessionStarted { cause } => {
            // Kimi ignores replies before the first prompt.
            let cause = (agent != Agent::Kimi).then_some(cause.as_str());
            prime(engine, caller, source, cause, with_advice).await
        }
        EventKind::Compacted => {
            engine.record_compaction(caller, source).await?;
            Ok(Reply::Nothing.into())
        }
        EventKind::TurnStarted => {
            let tree = fingerprint.wait();
            let begun = engine
                .begin_turn(caller, source.clone(), tree, control)
                .await?;
            if begun.is_primer_due && !event.source.is_subagent() {
                return prime(engine, caller, source, Some("compact"), with_advice).await;
            }
            if agent != Agent::Kimi || !event.source.subagent.is_empty() {
                return Ok(Reply::Nothing.into());
            }
            if begun.number == 1 {
                return prime(engine, caller, source, Some("startup"), with_advice).await;
            }
            let interrupted = engine.take_interrupted_calls(caller, &source).await?;
            let text = prime::text(&ProjectState::default(), &interrupted, false);
            Ok(text.map_or(Reply::Nothing, Reply::Context).into())
        }
        EventKind::TaskMessage { ended } => {
            let (tree, ended) = (fingerprint.wait(), ended.clone());
            engine
                .record_task_message(caller, source, ended, tree, control)
                .await?;
            Ok(Reply::Nothing.into())
        }
        EventKind::BeforeModelRequest => {
            let text_only = engine.requires_text(caller, &source, control).await?;
            let reply = if text_only {
                Reply::DisableTools
            } else {
                Reply::Nothing
            };
            Ok(reply.into())
        }
        EventKind::BeforeToolCall { call } => {
            let stops = agent.can_stop();
            // The agent runs the tool, and this hook is a child process of the agent.
            let call = engine.new_call(agent.as_str(), call.clone(), machine::launcher());
            let admission = engine.admit_call(caller, source, call, stops, control);
            Ok(admission_reply(admission.await?, stops).into())
        }
        EventKind::Permission { call, approval } => {
            engine
                .record_approval(caller, source, call.clone(), *approval)
                .await?;
            Ok(Reply::Nothing.into())
        }
        EventKind::ToolResults { calls, is_batch } => {
            let tree = fingerprint.wait();
            let report = match (*is_batch, agent) {
                (true, _) => StepReport::Batch,
                (false, Agent::ClaudeCode) => StepReport::CallOfBatch,
                (false, _) => StepReport::Call,
            };
            let handled = step(event, calls, report, tree, engine, caller, control).await?;
            // Claude Code reports the calls of a batch one by one, too, with more data.
            let is_duplicate = *is_batch && agent == Agent::ClaudeCode;
            for call in calls.iter().filter(|_| !is_duplicate) {
                if let Some(report) = tasks::report(agent, call) {
                    let source = event.source.clone();
                    engine
                        .capture_tasks(caller, source, report, settings.capture)
                        .await?;
                }
            }
            Ok(handled)
        }
        EventKind::TurnEnded { can_continue } => {
            let mut reminder = None;
            if *can_continue {
                let claims = engine.remind_of_claims(caller, source.clone()).await?;
                reminder = held_claims(&claims).map(|reason| Reply::Continue { reason });
            }
            // opencode ends the turn anyway.
            if let Some(reply) = reminder.take_if(|_| agent != Agent::Opencode) {
                return Ok(reply.into());
            }
            let tools = agent.subagent_tools();
            engine
                .end_turn_unless_running(caller, source, tools)
                .await?;
            Ok(reminder.unwrap_or(Reply::Nothing).into())
        }
        EventKind::SessionEnded => {
            engine.end_session(caller, source).await?;
            Ok(Reply::Nothing.into())
        }
    }
}

/// Sends the summary of the project. Another hook may already have sent it for this event; a
/// subagent does not receive it.
async fn prime(
    engine: &Engine,
    caller: &Caller,
    source: HookSource,
    cause: Option<&str>,
    with_advice: bool,
) -> Result<Handled, Error> {
    let cause = cause.filter(|_| !source.is_subagent());
    let session = engine.begin_session(caller, source, cause).await?;
    let text = match cause {
        None => None,
        Some(_) if session.is_repeat => {
            prime::text(&ProjectState::default(), &session.interrupted, false)
        }
        Some(_) => prime::text(&session.project, &session.interrupted, with_advice),
    };
    Ok(text.map_or(Reply::Nothing, Reply::Context).into())
}

async fn step(
    event: &Event,
    calls: &[ObservedCall],
    report: StepReport,
    fingerprint: Fingerprint,
    engine: &Engine,
    caller: &Caller,
    control: LoopControl,
) -> Result<Handled, Error> {
    if control.on_stall == OnStall::Off {
        engine
            .record_results(caller, event.source.clone(), calls.to_vec())
            .await?;
        return Ok(Reply::Nothing.into());
    }
    let step = ObservedStep {
        calls: calls.to_vec(),
        report,
        fingerprint,
        plans: payload::plans(calls),
        claims: seen_claims::find(calls),
        judged: None,
    };
    let observed = engine
        .observe_step(caller, event.source.clone(), step, control)
        .await?;
    let note = observed
        .unreadable
        .map(|why| format!("cannot read the stored state of the turn; starting over: {why}"));
    let reply = match (observed.to_agent, observed.to_user) {
        (Some(text), _) => Reply::Context(text),
        (None, Some(text)) => Reply::Warning(text),
        (None, None) => Reply::Nothing,
    };
    Ok(Handled { reply, note })
}

/// Starts to take the fingerprint of the working tree, if the event needs it.
pub(crate) fn start_fingerprint(
    event: &Event,
    control: LoopControl,
    database: Option<&Path>,
) -> Pending {
    let is_needed = match event.kind {
        EventKind::TurnStarted | EventKind::TaskMessage { .. } | EventKind::ToolResults { .. } => {
            control.on_stall != OnStall::Off
        }
        EventKind::SessionStarted { .. }
        | EventKind::Compacted
        | EventKind::BeforeModelRequest
        | EventKind::BeforeToolCall { .. }
        | EventKind::Permission { .. }
        | EventKind::TurnEnded { .. }
        | EventKind::SessionEnded => false,
    };
    match &event.source.directory {
        Some(directory) if is_needed => {
            fingerprint::start(Path::new(directory), database, fingerprint::BUDGET)
        }
        Some(_) | None => Pending::UNAVAILABLE,
    }
}

/// Names the steps that the session still holds.
fn held_claims(claims: &[HeldClaim]) -> Option<String> {
    if claims.is_empty() {
        return None;
    }
    let mut text = "This session still has claimed steps of Onward plans:".to_owned();
    for claim in claims {
        let title = claim.title.as_deref().map(format::quoted_name);
        text.push_str(&format!(
            "\n- step {} {}(stepId {}) of plan {}",
            claim.order,
            title.map(|title| title + " ").unwrap_or_default(),
            claim.step,
            claim.plan
        ));
    }
    text.push_str(
        "\nSubmit each result with `submit_step_result`, report progress with \
         `report_step_progress`, or release the step with `modify_plan` and `requeue_step`. Then \
         stop.",
    );
    Some(text)
}

fn admission_reply(admission: Admission, stops: bool) -> Reply {
    let Admission {
        gate,
        to_agent: reason,
        to_user,
    } = admission;
    match gate {
        ToolGate::Allow => Reply::Nothing,
        ToolGate::Reject => Reply::Reject { reason },
        ToolGate::Stop => Reply::Stop {
            reason,
            to_user: if stops {
                format!("Onward stopped this turn: {to_user}.")
            } else {
                format!("Onward rejects the tool calls of this turn: {to_user}.")
            },
        },
    }
}
