//! The JSON types of the MCP tools, the HTTP API and the command line's `--json` output.
//!
//! Field names are a contract: camelCase; fields may be added but never renamed. They are therefore
//! separate from the core's types. Times are RFC 3339 in UTC with milliseconds. Durations are
//! milliseconds in fields that end in `Ms`.

mod branch;
pub(crate) mod budget;
pub(crate) mod call;
pub(crate) mod context;
pub(crate) mod created;
pub(crate) mod dependency;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod excerpt;
pub(crate) mod feedback;
pub(crate) mod finding;
pub(crate) mod gates;
pub(crate) mod modified;
pub(crate) mod next;
pub(crate) mod notice;
pub(crate) mod notification;
pub(crate) mod ping;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod research;
pub(crate) mod review;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod skill;
pub(crate) mod step;
pub(crate) mod submitted;
pub(crate) mod text;
pub(crate) mod token;

use std::time::Duration;

use onward_core::Timestamp;

use crate::output::format;

/// The hints that name the call for the omitted part of a response.
#[cfg(test)]
pub(crate) const MORE: [&str; 4] = [
    context::MORE,
    excerpt::WHOLE_TEXT,
    plan::WHOLE_QUESTION,
    step::MORE,
];

/// A name or title as one line without control characters: another agent wrote it.
fn line(text: impl AsRef<str>) -> String {
    format::sanitize_line(text.as_ref())
}

fn at(time: Timestamp) -> String {
    time.to_string()
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
