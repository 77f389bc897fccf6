//! `/notices`: what was found since an instant, for the script that shows it on the desktop.
//!
//! It is asked only where somebody switched that on. What the webhook is told, and whether there is
//! one, has nothing to do with it: whoever looks here sees their tenant's plans anyway.

use axum::Json;
use axum::response::IntoResponse;
use onward_core::Timestamp;
use serde::Serialize;

use super::{Page, Visit};
use crate::wire::notice::Notice;

/// How many are shown at once: a desk is no list.
const MOST: u32 = 20;

#[derive(Serialize)]
struct Answer {
    /// The instant of the answer, in milliseconds: what is found later is behind it.
    now: i64,
    notices: Vec<Notice>,
}

pub(super) async fn show(visit: Visit) -> Page {
    let engine = &visit.site.engine;
    let now = engine.now();
    let notices = match visit.fields.parsed::<i64>("after") {
        Some(after) => {
            let after = Timestamp::from_millis(after);
            engine.notices_after(&visit.caller, after, MOST).await?
        }
        // Somebody who begins to look has missed nothing.
        None => Vec::new(),
    };
    let notices = notices.iter();
    let notices = notices.map(|told| Notice::on_page(told, &visit.caller));
    let answer = Answer {
        now: now.as_millis(),
        notices: notices.collect(),
    };
    Ok(Json(answer).into_response())
}
