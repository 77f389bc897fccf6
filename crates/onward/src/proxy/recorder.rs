//! Stores the events that the proxy observes, without delaying or failing requests.
//!
//! Observed events go into a queue, which one task writes to the database in order. If the database
//! is unavailable, the recorder logs one warning and drops the events. Reads have a timeout.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use onward_core::Timestamp;
use onward_core::call::Limit;
use onward_core::call::agent::waits_for_agent;
use onward_core::turn::LoopControl;
use onward_core::usage::TokenUsage;
use onward_engine::session::{
    Fingerprint, HookSource, ObservedCall, ObservedStep, SessionSnapshot,
};
use onward_engine::tool_calls::{CallRef, InitialState, NewCall, POLICY};
use onward_engine::usage::UsageReport;
use onward_engine::{Caller, Engine, Error};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::request::ToolCall;

/// The timeout of a database read.
const QUERY_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a subagent may send no request. A request takes as long as the model thinks, or as its
/// longest tool runs.
const SUBAGENT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The maximum number of queued events.
const QUEUE_CAPACITY: usize = 4_096;

/// An observed event.
pub(super) enum RecordedEvent {
    /// A user message started a turn.
    TurnStarted(HookSource),
    /// A model response called tools.
    ToolsCalled(HookSource, ToolBatch),
    /// The results of a step were received.
    StepCompleted(HookSource, Box<ObservedStep>),
    /// Results of calls of a turn that the user interrupted.
    ResultsReceived(HookSource, Vec<ObservedCall>),
    /// A subagent of the session is active.
    SubagentActive(HookSource),
    /// A text answer ended the turn.
    TurnEnded(HookSource),
    /// The API reported the tokens of a response of this session.
    UsageReported(String, TokenUsage),
    /// Signals that all earlier events are written.
    Flush(oneshot::Sender<()>),
}

/// The tool calls of a model response.
pub(super) struct ToolBatch {
    /// The number of the response in the turn.
    pub(super) number: u32,
    /// The agent whose timeouts apply, if it was recognized.
    pub(super) agent: &'static str,
    pub(super) calls: Vec<ToolCall>,
}

/// The database is unavailable; a warning was logged.
#[derive(Debug)]
pub(super) struct Unavailable;

/// A handle to the database, which may be set later, and to the write queue.
#[derive(Clone)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    queue: mpsc::Sender<RecordedEvent>,
}

struct Shared {
    database: OnceLock<(Engine, Caller)>,
    control: LoopControl,
    /// Whether a warning was logged since the database was last available.
    warned: AtomicBool,
}

impl Recorder {
    /// Starts the writer task. Must be called within a Tokio runtime.
    pub(crate) fn start(control: LoopControl) -> Self {
        let shared = Arc::new(Shared {
            database: OnceLock::new(),
            control,
            warned: AtomicBool::new(false),
        });
        let (queue, events) = mpsc::channel(QUEUE_CAPACITY);
        tokio::spawn(run_writer(Arc::clone(&shared), events));
        Self { shared, queue }
    }

    /// Sets the database. Later calls have no effect.
    pub(crate) fn set_database(&self, engine: Engine, caller: Caller) {
        drop(self.shared.database.set((engine, caller)));
    }

    /// The current time, if there is a database.
    pub(super) fn now(&self) -> Option<Timestamp> {
        self.shared.database.get().map(|(engine, _)| engine.now())
    }

    /// Loads the stored state of an agent.
    pub(super) async fn load_session(
        &self,
        session: &str,
        subagent: &str,
    ) -> Result<Option<SessionSnapshot>, Unavailable> {
        let (engine, caller) = self.shared.database.get().ok_or(Unavailable)?;
        let query = engine.session_snapshot(caller, session, subagent);
        match tokio::time::timeout(QUERY_TIMEOUT, query).await {
            Ok(Ok(snapshot)) => return Ok(snapshot),
            Ok(Err(error)) => self.shared.warn_once(&error),
            Err(_) => self.shared.warn_once(&"timeout"),
        }
        Err(Unavailable)
    }

    /// Queues an event. Drops it if the queue is full.
    pub(super) fn record(&self, event: RecordedEvent) {
        if self.queue.try_send(event).is_err() {
            self.shared.warn_once(&"write queue full");
        }
    }

    /// Waits until all queued events are written, up to a timeout.
    pub(crate) async fn flush(&self, timeout: Duration) {
        let (done, written) = oneshot::channel();
        let flushed = async {
            if self.queue.send(RecordedEvent::Flush(done)).await.is_ok() {
                // An error means that the writer has stopped.
                drop(written.await);
            }
        };
        if tokio::time::timeout(timeout, flushed).await.is_err() {
            tracing::warn!("some observed events were not written");
        }
    }
}

impl Shared {
    /// Logs one warning per outage.
    fn warn_once(&self, error: &dyn std::fmt::Display) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                %error,
                "database unavailable: forwarding requests without loop detection"
            );
        }
    }
}

async fn run_writer(shared: Arc<Shared>, mut events: mpsc::Receiver<RecordedEvent>) {
    while let Some(event) = events.recv().await {
        let Some((engine, caller)) = shared.database.get() else {
            continue;
        };
        let control = shared.control;
        let written: Result<(), Error> = match event {
            RecordedEvent::TurnStarted(source) => {
                let begun = engine.begin_turn(caller, source, Fingerprint::Unavailable, control);
                begun.await.map(|_| ())
            }
            RecordedEvent::StepCompleted(source, step) => {
                let observed = engine.observe_step(caller, source, *step, control).await;
                observed.map(|observed| {
                    if let Some(error) = observed.unreadable {
                        tracing::warn!(%error, "cannot read the stored state of a turn");
                    }
                })
            }
            RecordedEvent::ToolsCalled(source, batch) => {
                record_calls(engine, caller, &source, batch).await
            }
            RecordedEvent::ResultsReceived(source, results) => {
                engine.record_results(caller, source, results).await
            }
            RecordedEvent::SubagentActive(source) => {
                engine.record_subagent_activity(caller, source).await
            }
            RecordedEvent::TurnEnded(source) => engine.end_turn(caller, source).await,
            RecordedEvent::UsageReported(session, tokens) => {
                let report = UsageReport::Response(tokens);
                engine.record_usage(caller, &session, report).await
            }
            RecordedEvent::Flush(done) => {
                // The caller may have timed out.
                let _ = done.send(());
                Ok(())
            }
        };
        match written {
            Ok(()) => shared.warned.store(false, Ordering::Relaxed),
            Err(error) => shared.warn_once(&error),
        }
    }
}

/// Records the calls of a response in the tool call log. The proxy cannot see the process that
/// makes them, so only timeouts apply. Their results arrive together in the next request, so all of
/// them get the longest timeout. The requests of a subagent are its activity, so its call times out
/// without any.
async fn record_calls(
    engine: &Engine,
    caller: &Caller,
    source: &HookSource,
    batch: ToolBatch,
) -> Result<(), Error> {
    let ToolBatch {
        number,
        agent,
        calls,
    } = batch;
    let calls = calls.into_iter().map(|ToolCall { id, tool, input }| {
        // The input of a streamed call is JSON text.
        let parsed = input
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok());
        let input: Value = parsed.unwrap_or(input);
        let call = CallRef {
            id: Some(id),
            tool,
            input,
        };
        engine.new_call(agent, call, None)
    });
    let calls: Vec<NewCall> = calls.collect();
    let limit = |call: &NewCall| match call.limit {
        Limit::Never if waits_for_agent(agent, &call.tool) => Limit::After(SUBAGENT_TIMEOUT),
        // The next request contains the answer of the agent.
        Limit::Yields(time) => Limit::After(time),
        limit @ (Limit::Unspecified | Limit::After(_) | Limit::Never) => limit,
    };
    let limit = POLICY.longest(calls.iter().map(limit));
    for call in calls {
        let call = NewCall {
            batch: Some(number),
            limit,
            ..call
        };
        let recorded =
            engine.record_call(caller, source.clone(), None, call, InitialState::Running);
        recorded.await?;
    }
    Ok(())
}
