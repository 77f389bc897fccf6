//! One configuration file. A key that nobody knows and a value of the wrong kind are refused with the
//! file and the line: a misspelt key must not be ignored.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::Source;
use crate::failure::{Failure, Result};

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) database: Option<(String, Source)>,
    pub(super) tenant: Option<(String, Source)>,
    pub(super) finished_plans_days: Option<(u32, Source)>,
    pub(super) tool_calls_days: Option<(u32, Source)>,
    pub(super) form_seconds: Option<(u32, Source)>,
}

/// What stands in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    database: Option<Spanned<String>>,
    tenant: Option<Spanned<String>>,
    retention: Option<Retention>,
    reviews: Option<Reviews>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Retention {
    finished_plans_days: Option<Spanned<u32>>,
    tool_calls_days: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reviews {
    form_seconds: Option<Spanned<u32>>,
}

/// Reads a file, which must be there.
pub(super) fn read(path: &Path) -> Result<File> {
    let text = std::fs::read_to_string(path).map_err(|why| {
        Failure::usage(
            format!(
                "the configuration `{}` cannot be read: {why}",
                path.display()
            ),
            "check the path and who may read it",
        )
    })?;
    let parsed: Text = toml::from_str(&text).map_err(|error| {
        let line = line(&text, error.span().map_or(0, |span| span.start));
        Failure::usage(
            format!("{}:{line}: {}", path.display(), error.message()),
            "`onward config --help` shows what can stand there",
        )
    })?;
    let known = |span: std::ops::Range<usize>| Source::File {
        path: path.to_owned(),
        line: line(&text, span.start),
    };
    let text_at = |value: Spanned<String>| {
        let from = known(value.span());
        (value.into_inner(), from)
    };
    let number_at = |value: Spanned<u32>| {
        let from = known(value.span());
        (value.into_inner(), from)
    };
    let (plans, calls) = match parsed.retention {
        Some(retention) => (retention.finished_plans_days, retention.tool_calls_days),
        None => (None, None),
    };
    Ok(File {
        database: parsed.database.map(text_at),
        tenant: parsed.tenant.map(text_at),
        finished_plans_days: plans.map(number_at),
        tool_calls_days: calls.map(number_at),
        form_seconds: parsed
            .reviews
            .and_then(|reviews| reviews.form_seconds)
            .map(number_at),
    })
}

/// The line, from 1, that a byte of a text stands in.
fn line(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().get(..byte).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}
