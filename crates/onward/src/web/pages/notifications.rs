//! `/notices`: notifications since a given time, for the desktop notifications of `onward.js`.
//!
//! Independent of the webhook: every user who can open the dashboard can read these.

use axum::Json;
use axum::response::IntoResponse;
use onward_core::Timestamp;
use serde::Serialize;

use super::{PageResult, Visit};
use crate::wire::notification::Notification;

/// Maximum number of desktop notifications per request.
const MAX_NOTIFICATIONS: u32 = 20;

#[derive(Serialize)]
struct Response {
    /// Time of the response, in milliseconds. The client's first cursor.
    now: i64,
    notices: Vec<Notification>,
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let engine = &visit.site.engine;
    let now = engine.now();
    let notices = match visit.fields.parsed::<i64>("after") {
        Some(after) => {
            let after = Timestamp::from_millis(after);
            engine
                .notifications_after(&visit.caller, after, MAX_NOTIFICATIONS)
                .await?
        }
        // The first request only returns the current time.
        None => Vec::new(),
    };
    let notices = notices.iter();
    let notices = notices.map(|notice| Notification::for_page(notice, &visit.caller));
    let response = Response {
        now: now.as_millis(),
        notices: notices.collect(),
    };
    Ok(Json(response).into_response())
}
