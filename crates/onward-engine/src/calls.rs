//! The log of tool calls: written after the answer, by a task of its own, many at once. It never
//! delays a call and never fails one; at the end, what is queued is written. Calls are gathered for a
//! moment before they are written: a sync for each would cost as much as the calls themselves.
//!
//! Where more comes in than can be written, calls are left out of the log and counted, and the next
//! entry that fits says how many.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onward_store::{Store, ToolCall, WrittenCall};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;

/// How many calls wait to be written at most.
const QUEUE: usize = 10_000;
/// How many are written in one transaction.
const TOGETHER: usize = 256;
/// How long calls are gathered, at most.
const GATHERED: Duration = Duration::from_millis(250);
/// Texts that are longer than this are cut out.
const LONGEST: usize = 500;
/// Data that is nested deeper than this is cut off.
const DEEPEST: usize = 5;
/// Lists that are longer than this are cut off.
const MOST: usize = 10;

/// A call that was answered.
#[derive(Debug, Clone)]
pub struct Answered {
    /// Which tool.
    pub tool: String,
    /// The session, where the agent named one.
    pub session: Option<String>,
    /// What was asked.
    pub request: Value,
    /// What was answered.
    pub response: Value,
    /// How long it took.
    pub took: Duration,
    /// Whether it was refused, or failed.
    pub is_error: bool,
}

/// A call and whose it is, or the end of all.
type Entry = Option<(Arc<str>, WrittenCall)>;

/// The way to the task that writes.
#[derive(Clone)]
pub(crate) struct CallLog {
    queue: mpsc::Sender<Entry>,
    left_out: Arc<AtomicU64>,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl CallLog {
    pub(crate) fn start(store: Store) -> Self {
        let (queue, calls) = mpsc::channel(QUEUE);
        Self {
            queue,
            left_out: Arc::default(),
            task: Arc::new(Mutex::new(Some(tokio::spawn(write(store, calls))))),
        }
    }

    fn add(&self, tenant: Arc<str>, call: WrittenCall) {
        if self.queue.try_send(Some((tenant, call))).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until what was queued is written.
    pub(crate) async fn close(self) {
        let task = self.task.lock().await.take();
        // Clones of the sender may live on in clones of the engine, so the end is sent along.
        // A task that is gone needs no end.
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
        if queue.recv_many(&mut batch, TOGETHER).await == 0 {
            return;
        }
        gather(&mut batch, &mut queue).await;
        let ends = is_end(&batch);
        let mut calls: Vec<_> = batch.drain(..).flatten().collect();
        while let Some(tenant) = calls.first().map(|(tenant, _)| Arc::clone(tenant)) {
            let own: Vec<WrittenCall> = calls
                .extract_if(.., |(of, _)| *of == tenant)
                .map(|(_, call)| call)
                .collect();
            let own = Arc::new(own);
            let written = store.write(&tenant, move |tx| {
                let own = Arc::clone(&own);
                Box::pin(async move {
                    own.iter().for_each(|call| tx.log_call(call));
                    Ok::<(), onward_store::Error>(())
                })
            });
            // A log that cannot be written fails nobody's call.
            drop(written.await);
        }
        if ends {
            return;
        }
    }
}

fn is_end(batch: &[Entry]) -> bool {
    batch.iter().any(Option::is_none)
}

/// Waits a moment for more, unless there is enough, or nothing comes after it.
async fn gather(batch: &mut Vec<Entry>, queue: &mut mpsc::Receiver<Entry>) {
    let until = Instant::now() + GATHERED;
    while batch.len() < TOGETHER && !is_end(batch) {
        let more = queue.recv_many(batch, TOGETHER - batch.len());
        match timeout_at(until, more).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

impl Engine {
    /// Adds a call to the log, after it was answered. Returns at once.
    pub fn log_call(&self, caller: &Caller, answered: Answered) {
        let at = self.now();
        let (mut tool, mut session) = (answered.tool, answered.session);
        clean::text(&mut tool);
        clean::maybe(&mut session);
        let mut request = cut(&answered.request);
        let left_out = self.calls.left_out.swap(0, Ordering::Relaxed);
        if let (Value::Object(request), true) = (&mut request, left_out > 0) {
            request.insert("callsLeftOut".to_owned(), left_out.into());
        }
        let call = ToolCall {
            id: self.fresh.timely_id(at),
            at,
            tool,
            actor: caller.signature(),
            session,
            request,
            response: cut(&answered.response),
            duration_us: u64::try_from(answered.took.as_micros()).unwrap_or(u64::MAX),
            is_error: answered.is_error,
        };
        self.calls.add(Arc::clone(&caller.tenant), call.written());
    }

    /// The last calls of a tenant, newest first.
    pub async fn calls(&self, caller: &Caller, limit: u32) -> Result<Vec<ToolCall>, Error> {
        caller.allow(onward_core::role::Permission::Read)?;
        let calls = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.calls(limit).await })
        });
        Ok(calls.await?)
    }
}

/// What of a request or an answer goes into the log: no long texts, no tokens, nothing deep or long.
pub fn cut(value: &Value) -> Value {
    cut_at(value, DEEPEST)
}

fn cut_at(value: &Value, left: usize) -> Value {
    match value {
        Value::String(text) => {
            let characters = text.chars().count();
            match characters > LONGEST {
                true => Value::from(format!("[{characters} chars]")),
                false => Value::from(text.replace('\0', "\u{FFFD}")),
            }
        }
        Value::Array(_) if left == 0 => Value::from("[...]"),
        Value::Object(_) if left == 0 => Value::from("{...}"),
        Value::Array(all) => {
            let mut kept: Vec<Value> = all
                .iter()
                .take(MOST)
                .map(|one| cut_at(one, left - 1))
                .collect();
            if all.len() > MOST {
                kept.push(Value::from(format!("...[{} more]", all.len() - MOST)));
            }
            Value::Array(kept)
        }
        Value::Object(object) => {
            let cut = object.iter().map(|(key, value)| {
                let value = match key.as_str() {
                    "claimToken" => Value::from("[token]"),
                    _ => cut_at(value, left - 1),
                };
                (key.replace('\0', "\u{FFFD}"), value)
            });
            Value::Object(cut.collect::<Map<String, Value>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
