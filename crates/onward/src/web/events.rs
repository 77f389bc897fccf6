//! `/api/v1/events` and `/live`: change events of the caller's tenant (server-sent events).
//!
//! The first event is `ready`; changes after it are reported. `plan_changed` names a plan,
//! `session_changed` a session with a changed turn, response or call. The client fetches the new state
//! itself. A client that reads too slowly gets `missed` and should reload everything, and so does
//! every client after the server lost its connection to a PostgreSQL database. Events can be
//! duplicated or merged. Comments keep the connection open.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use onward_core::role::Permission;
use onward_engine::{Caller, Error, Subject};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::Site;
use super::auth_error::TOKEN_REQUIRED;
use super::feed::Subscription;
use super::problem::Problem;

/// Interval of keep-alive comments.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Minimum interval between two authorization checks of an open stream.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);

/// An open event stream.
struct EventStream {
    site: Arc<Site>,
    headers: HeaderMap,
    path: String,
    caller: Caller,
    subscription: Subscription,
    stop: watch::Receiver<bool>,
    checked_at: Instant,
    ready_sent: bool,
}

pub(super) async fn show(State(site): State<Arc<Site>>, request: Request) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return Problem::from(Error::Unauthorized(TOKEN_REQUIRED)).into_response();
    };
    if let Err(forbidden) = caller.allow(Permission::Read) {
        return Problem::from(Error::from(forbidden)).into_response();
    }
    let stream = EventStream {
        subscription: site.feeds.subscribe(&site.engine, &caller, &site.stop),
        stop: site.stop.clone(),
        headers: request.headers().clone(),
        path: request.uri().path().to_owned(),
        site,
        caller,
        checked_at: Instant::now(),
        ready_sent: false,
    };
    let events = stream::unfold(stream, |mut stream| async move {
        let event = stream.next().await?;
        Some((Ok::<Event, Infallible>(event), stream))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Sse::new(events).keep_alive(keep_alive).into_response()
}

impl EventStream {
    /// The next event, or none at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        if !self.ready_sent {
            self.ready_sent = true;
            return Some(Event::default().event("ready").data("{}"));
        }
        let received = tokio::select! {
            received = self.subscription.changes.recv() => received,
            _ = self.stop.wait_for(|stop| *stop) => return None,
        };
        match received {
            Ok(subject) => self.is_still_authorized().await.then(|| event(&subject)),
            Err(RecvError::Lagged(_)) => Some(event(&Subject::All)),
            Err(RecvError::Closed) => None,
        }
    }

    /// Checks the credentials again: a token may have been revoked since the stream was opened.
    async fn is_still_authorized(&mut self) -> bool {
        if self.checked_at.elapsed() < RECHECK_INTERVAL {
            return true;
        }
        self.checked_at = Instant::now();
        let auth = &self.site.auth;
        let identified = auth.identify(&self.site.engine, &self.headers, &self.path);
        identified.await.is_ok_and(|principal| {
            principal.caller.tenant == self.caller.tenant
                && principal.caller.allow(Permission::Read).is_ok()
        })
    }
}

fn event(subject: &Subject) -> Event {
    let (name, data) = match subject {
        Subject::Plan(plan) => ("plan_changed", json!({ "planId": plan.to_string() })),
        Subject::Session(session) => ("session_changed", json!({ "sessionId": **session })),
        Subject::All => ("missed", json!({})),
    };
    Event::default().event(name).data(data.to_string())
}
