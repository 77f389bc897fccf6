//! The log of MCP requests: its entries and their truncation. `engine/request_queue.rs` masks their
//! secrets and writes them in the background.
//!
//! The first entry after dropped ones contains their count.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use onward_core::{Timestamp, secret};
use onward_store::{RequestLog, ToolCall};
use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::sanitize;

/// Longer texts are replaced by their length.
const MAX_TEXT_CHARS: usize = 500;
/// Data nested deeper is cut.
const MAX_DEPTH: usize = 5;
/// Longer lists are cut.
const MAX_LIST_ITEMS: usize = 10;
/// Objects with more fields are cut.
const MAX_FIELDS: usize = 50;
/// Longer names of fields are cut.
const MAX_KEY_CHARS: usize = 100;

/// A completed request.
#[derive(Debug, Clone)]
pub struct CompletedRequest<'a> {
    /// The tool.
    pub tool: String,
    /// The session, if the agent sent one.
    pub session: Option<String>,
    /// The arguments.
    pub request: Cow<'a, Value>,
    /// The response.
    pub response: Cow<'a, Value>,
    /// Duration of the request.
    pub duration: Duration,
    /// Whether the response is an error.
    pub is_error: bool,
}

impl Engine {
    /// Queues a request for the log. Returns immediately.
    pub fn log_request(&self, caller: &Caller, completed: CompletedRequest<'_>) {
        let at = self.now();
        let (mut tool, mut session) = (completed.tool, completed.session);
        sanitize::text(&mut tool);
        sanitize::optional_text(&mut session);
        let mut request = truncate(&completed.request, MAX_DEPTH);
        let dropped = self.requests.take_dropped();
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
            response: truncate(&completed.response, MAX_DEPTH),
            duration_us: u64::try_from(completed.duration.as_micros()).unwrap_or(u64::MAX),
            is_error: completed.is_error,
        };
        self.requests.add(Arc::clone(&caller.tenant), call);
    }

    /// Approximate size of the log in bytes. On PostgreSQL, it includes the calls of all tenants.
    pub async fn request_log_bytes(&self, caller: &Caller) -> Result<u64, Error> {
        caller.allow(onward_core::role::Permission::Read)?;
        let size = self.store.read(&caller.tenant, |tx| {
            Box::pin(async move { RequestLog(tx).size().await })
        });
        Ok(size.await?)
    }

    /// The most recent requests of a tenant, or those between two instants, newest first.
    pub async fn logged_requests(
        &self,
        caller: &Caller,
        times: Option<RangeInclusive<Timestamp>>,
        limit: u32,
    ) -> Result<Vec<ToolCall>, Error> {
        caller.allow(onward_core::role::Permission::Read)?;
        let times = times.unwrap_or(Timestamp::MIN..=Timestamp::MAX);
        let calls = self.store.read(&caller.tenant, move |tx| {
            let times = times.clone();
            Box::pin(async move { RequestLog(tx).calls(times, limit).await })
        });
        Ok(calls.await?)
    }
}

/// The part of a request or response that is logged: no long texts or lists, no deep nesting.
fn truncate(value: &Value, depth: usize) -> Value {
    match value {
        Value::String(text) => {
            let characters = text.chars().count();
            if characters > MAX_TEXT_CHARS {
                Value::from(format!("[{characters} chars]"))
            } else {
                Value::from(text.as_str())
            }
        }
        Value::Array(_) if depth == 0 => Value::from("[...]"),
        Value::Object(_) if depth == 0 => Value::from("{...}"),
        Value::Array(items) => {
            let mut kept: Vec<Value> = items
                .iter()
                .take(MAX_LIST_ITEMS)
                .map(|item| truncate(item, depth - 1))
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
            let cut = object.iter().take(MAX_FIELDS).map(|(key, value)| {
                if key.len() > MAX_KEY_CHARS {
                    return truncate_long_key(key, value, depth - 1);
                }
                (key.clone(), truncate(value, depth - 1))
            });
            let mut kept = cut.collect::<Map<String, Value>>();
            if object.len() > MAX_FIELDS {
                let more = Value::from(object.len() - MAX_FIELDS);
                kept.insert("...more".to_owned(), more);
            }
            Value::Object(kept)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// A field with a long key. Secrets are masked first, because the rest of the key does not show them.
fn truncate_long_key(key: &str, value: &Value, depth: usize) -> (String, Value) {
    let value = if secret::is_secret_name(key) {
        Value::from(secret::MASK)
    } else {
        truncate(value, depth)
    };
    let key = secret::mask(key).chars().take(MAX_KEY_CHARS).collect();
    (key, value)
}
