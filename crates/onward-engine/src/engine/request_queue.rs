//! The queue of logged MCP requests and the background task that writes it. It never delays or fails a
//! request. Entries are collected for up to 250 ms and written in one transaction, because a sync per
//! request would cost as much as the request. Queued entries are written on shutdown.
//!
//! When the queue is full, entries are dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onward_core::secret;
use onward_store::{RequestLog, Store, ToolCall, WrittenCall};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::sanitize;

/// Maximum number of queued entries.
const QUEUE_CAPACITY: usize = 10_000;
/// Maximum number of entries per transaction.
const MAX_BATCH: usize = 256;
/// Maximum time to collect a batch.
const BATCH_WINDOW: Duration = Duration::from_millis(250);

/// An entry and its tenant, or `None` to stop the task.
type Entry = Option<(Arc<str>, ToolCall)>;

/// Handle to the background task.
#[derive(Clone)]
pub(crate) struct RequestQueue {
    queue: mpsc::Sender<Entry>,
    dropped: Arc<AtomicU64>,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl RequestQueue {
    pub(crate) fn start(store: Store) -> Self {
        let (queue, calls) = mpsc::channel(QUEUE_CAPACITY);
        Self {
            queue,
            dropped: Arc::default(),
            task: Arc::new(Mutex::new(Some(tokio::spawn(write(store, calls))))),
        }
    }

    pub(crate) fn add(&self, tenant: Arc<str>, call: ToolCall) {
        if self.queue.try_send(Some((tenant, call))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of entries dropped since the last call.
    pub(crate) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
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
            let of_tenant = calls.extract_if(.., |(of, _)| *of == tenant);
            let of_tenant: Vec<ToolCall> = of_tenant.map(|(_, call)| call).collect();
            let prepared = tokio::task::spawn_blocking(|| prepare(of_tenant));
            // Fails only if it panics; then nothing of the batch is stored.
            let Ok(entries) = prepared.await else {
                continue;
            };
            let entries = Arc::new(entries);
            let written = store.write(&tenant, move |tx| {
                let entries = Arc::clone(&entries);
                Box::pin(async move {
                    entries
                        .iter()
                        .for_each(|call| RequestLog(tx).log_call(call));
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

/// The entries as they are stored. Requests do not wait for this: masking takes several times as
/// long as truncating.
fn prepare(calls: Vec<ToolCall>) -> Vec<WrittenCall> {
    let masked = calls.into_iter().map(|mut call| {
        mask(&mut call.request, false);
        mask(&mut call.response, false);
        call.written()
    });
    masked.collect()
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

/// Masks claim tokens and other secrets. `is_secret`: the texts are values of a field with a
/// secret-like name.
fn mask(value: &mut Value, is_secret: bool) {
    match value {
        Value::String(text) if is_secret => secret::MASK.clone_into(text),
        Value::String(text) => *text = storable(text),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, is_secret)),
        Value::Object(object) => {
            let fields = std::mem::take(object).into_iter();
            let masked = fields.map(|(key, mut value)| {
                if key == "claimToken" {
                    value = Value::from("[token]");
                } else {
                    mask(&mut value, is_secret || secret::is_secret_name(&key));
                }
                (storable(&key), value)
            });
            *object = masked.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text without secrets, as the database can store it.
fn storable(text: &str) -> String {
    let mut text = secret::mask(text);
    sanitize::text(&mut text);
    text
}
