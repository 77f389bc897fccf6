//! The log of MCP requests, written by a background task after the response was sent. It never
//! delays or fails a request. Entries are collected for up to 250 ms and written in one
//! transaction, because a sync per request would cost as much as the request. Queued entries are
//! written on shutdown.
//!
//! When the queue is full, requests are dropped from the log and counted; the next entry contains
//! the count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onward_store::{Store, ToolCall, WrittenCall};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::sanitize;

/// Maximum number of queued entries.
const QUEUE_CAPACITY: usize = 10_000;
/// Maximum number of entries per transaction.
const MAX_BATCH: usize = 256;
/// Maximum time to collect a batch.
const BATCH_WINDOW: Duration = Duration::from_millis(250);
/// Longer texts are replaced by their length.
const MAX_TEXT_CHARS: usize = 500;
/// Data nested deeper is cut.
const MAX_DEPTH: usize = 5;
/// Longer lists are cut.
const MAX_LIST_ITEMS: usize = 10;

/// A completed request.
#[derive(Debug, Clone)]
pub struct CompletedRequest {
    /// The tool.
    pub tool: String,
    /// The session, if the agent sent one.
    pub session: Option<String>,
    /// The arguments.
    pub request: Value,
    /// The response.
    pub response: Value,
    /// Duration of the request.
    pub duration: Duration,
    /// Whether the response is an error.
    pub is_error: bool,
}

/// An entry and its tenant, or `None` to stop the task.
type Entry = Option<(Arc<str>, WrittenCall)>;

/// Handle to the background task.
#[derive(Clone)]
pub(crate) struct RequestLog {
    queue: mpsc::Sender<Entry>,
    dropped: Arc<AtomicU64>,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl RequestLog {
    pub(crate) fn start(store: Store) -> Self {
        let (queue, calls) = mpsc::channel(QUEUE_CAPACITY);
        Self {
            queue,
            dropped: Arc::default(),
            task: Arc::new(Mutex::new(Some(tokio::spawn(write(store, calls))))),
        }
    }

    fn add(&self, tenant: Arc<str>, call: WrittenCall) {
        if self.queue.try_send(Some((tenant, call))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes the queued entries and stops the task.
    pub(crate) async fn close(self) {
        let task = self.task.lock().await.take();
        // Clones of the engine hold clones of the sender, so the channel may stay open; an explicit
        // end marker stops the task. If the task has already exited, sending fails, which is fine.
        drop(self.queue.send(None).await);
        if let Some(task) = task {
            drop(task.await);
        }
    }
}

async fn write(store: Store, mut queue: mpsc::Receiver<Entry>) {
    let mut batch = Vec::new();
    loop {
        batch.clear();
        if queue.recv_many(&mut batch, MAX_BATCH).await == 0 {
            return;
        }
        fill_batch(&mut batch, &mut queue).await;
        let is_last = has_end_marker(&batch);
        let mut calls: Vec<_> = batch.drain(..).flatten().collect();
        while let Some(tenant) = calls.first().map(|(tenant, _)| Arc::clone(tenant)) {
            let entries: Vec<WrittenCall> = calls
                .extract_if(.., |(of, _)| *of == tenant)
                .map(|(_, call)| call)
                .collect();
            let entries = Arc::new(entries);
            let written = store.write(&tenant, move |tx| {
                let entries = Arc::clone(&entries);
                Box::pin(async move {
                    entries.iter().for_each(|call| tx.log_call(call));
                    Ok::<(), onward_store::Error>(())
                })
            });
            // Logging is best effort: a failed write fails no request.
            drop(written.await);
        }
        if is_last {
            return;
        }
    }
}

fn has_end_marker(batch: &[Entry]) -> bool {
    batch.iter().any(Option::is_none)
}

/// Waits for more entries, unless the batch is full or contains the end marker.
async fn fill_batch(batch: &mut Vec<Entry>, queue: &mut mpsc::Receiver<Entry>) {
    let deadline = Instant::now() + BATCH_WINDOW;
    while batch.len() < MAX_BATCH && !has_end_marker(batch) {
        let more = queue.recv_many(batch, MAX_BATCH - batch.len());
        match timeout_at(deadline, more).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

impl Engine {
    /// Queues a request for the log, after its response was sent. Returns immediately.
    pub fn log_request(&self, caller: &Caller, completed: CompletedRequest) {
        let at = self.now();
        let (mut tool, mut session) = (completed.tool, completed.session);
        sanitize::text(&mut tool);
        sanitize::optional_text(&mut session);
        let mut request = truncate(&completed.request);
        let dropped = self.calls.dropped.swap(0, Ordering::Relaxed);
        if let (Value::Object(request), true) = (&mut request, dropped > 0) {
            request.insert("callsLeftOut".to_owned(), dropped.into());
        }
        let call = ToolCall {
            id: self.ids.ordered_id(at),
            at,
            tool,
            actor: caller.actor(),
            session,
            request,
            response: truncate(&completed.response),
            duration_us: u64::try_from(completed.duration.as_micros()).unwrap_or(u64::MAX),
            is_error: completed.is_error,
        };
        self.calls.add(Arc::clone(&caller.tenant), call.written());
    }

    /// The most recent requests of a tenant, newest first.
    pub async fn logged_requests(
        &self,
        caller: &Caller,
        limit: u32,
    ) -> Result<Vec<ToolCall>, Error> {
        caller.allow(onward_core::role::Permission::Read)?;
        let calls = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.calls(limit).await })
        });
        Ok(calls.await?)
    }
}

/// The part of a request or response that is logged: no claim tokens, no long texts or lists, no
/// deep nesting.
pub fn truncate(value: &Value) -> Value {
    truncate_to_depth(value, MAX_DEPTH)
}

fn truncate_to_depth(value: &Value, depth: usize) -> Value {
    match value {
        Value::String(text) => {
            let characters = text.chars().count();
            if characters > MAX_TEXT_CHARS {
                Value::from(format!("[{characters} chars]"))
            } else {
                Value::from(text.replace('\0', "\u{FFFD}"))
            }
        }
        Value::Array(_) if depth == 0 => Value::from("[...]"),
        Value::Object(_) if depth == 0 => Value::from("{...}"),
        Value::Array(items) => {
            let mut kept: Vec<Value> = items
                .iter()
                .take(MAX_LIST_ITEMS)
                .map(|item| truncate_to_depth(item, depth - 1))
                .collect();
            if items.len() > MAX_LIST_ITEMS {
                kept.push(Value::from(format!(
                    "...[{} more]",
                    items.len() - MAX_LIST_ITEMS
                )));
            }
            Value::Array(kept)
        }
        Value::Object(object) => {
            let cut = object.iter().map(|(key, value)| {
                let value = match key.as_str() {
                    "claimToken" => Value::from("[token]"),
                    _ => truncate_to_depth(value, depth - 1),
                };
                (key.replace('\0', "\u{FFFD}"), value)
            });
            Value::Object(cut.collect::<Map<String, Value>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
