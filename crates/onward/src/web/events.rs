//! `/api/v1/events`: what of the caller's tenant changes, as it does (server-sent events).
//!
//! `ready` comes first: what changes from then on is told. `plan_changed` names a plan, and
//! `session_changed` a session of which a turn, a step or a call has changed; where it stands is asked
//! with the next call. Whoever reads more slowly than things change is told `missed`,
//! and should look at all that it shows; nothing is kept for it. Comments keep the line alive. What
//! changed just before, or twice at once, may be told once too often or once for both.

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
use super::feed::Listening;
use super::problem::Problem;

/// How often a line is written where nothing happens.
const ALIVE: Duration = Duration::from_secs(15);
/// For how long it is believed that somebody may still listen.
const BELIEVED: Duration = Duration::from_secs(5);

/// Somebody who listens.
struct Listener {
    site: Arc<Site>,
    headers: HeaderMap,
    path: String,
    caller: Caller,
    listening: Listening,
    stop: watch::Receiver<bool>,
    checked_at: Instant,
    greeted: bool,
}

pub(super) async fn listen(State(site): State<Arc<Site>>, request: Request) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return Problem::from(Error::Unauthorized("a token is needed")).into_response();
    };
    if let Err(forbidden) = caller.allow(Permission::Read) {
        return Problem::from(Error::from(forbidden)).into_response();
    }
    let listener = Listener {
        listening: site.feeds.listen(&site.engine, &caller, &site.stop),
        stop: site.stop.clone(),
        headers: request.headers().clone(),
        path: request.uri().path().to_owned(),
        site,
        caller,
        checked_at: Instant::now(),
        greeted: false,
    };
    let events = stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<Event, Infallible>(event), listener))
    });
    let alive = KeepAlive::new().interval(ALIVE);
    Sse::new(events).keep_alive(alive).into_response()
}

impl Listener {
    /// What is told next; nothing where the stream ends.
    async fn next(&mut self) -> Option<Event> {
        if !self.greeted {
            self.greeted = true;
            return Some(Event::default().event("ready").data("{}"));
        }
        let heard = tokio::select! {
            heard = self.listening.changed.recv() => heard,
            _ = self.stop.wait_for(|stop| *stop) => return None,
        };
        match heard {
            Ok(what) => self.may_still_listen().await.then(|| event(&what)),
            Err(RecvError::Lagged(_)) => Some(Event::default().event("missed").data("{}")),
            Err(RecvError::Closed) => None,
        }
    }

    /// A token may have been revoked since the stream was opened.
    async fn may_still_listen(&mut self) -> bool {
        if self.checked_at.elapsed() < BELIEVED {
            return true;
        }
        self.checked_at = Instant::now();
        let gate = &self.site.gate;
        let who = gate.who(&self.site.engine, &self.headers, &self.path);
        who.await.is_ok_and(|guest| {
            guest.caller.tenant == self.caller.tenant
                && guest.caller.allow(Permission::Read).is_ok()
        })
    }
}

fn event(what: &Subject) -> Event {
    let (name, data) = match what {
        Subject::Plan(plan) => ("plan_changed", json!({ "planId": plan.to_string() })),
        Subject::Session(session) => ("session_changed", json!({ "sessionId": **session })),
    };
    Event::default().event(name).data(data.to_string())
}
