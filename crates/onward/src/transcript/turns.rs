//! The format `turns`: JSON lines with one turn each, a simple target for converters.
//!
//! `{"id", "source", "steps": [{"calls": [{"tool", "input", "ok", "output"}], "changed", "at", "text"}]}`.
//! `source`, `at` (seconds since the turn began) and `text` are optional, and other fields are
//! ignored. `ok` and `changed` are `null` if unknown.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::turn::ExternalChange;
use serde::Deserialize;
use serde_json::Value;

use super::lines::{Record, Records};
use super::{Call, Error, Format, Lines, ReaderItem, Step, Turn, Visitor};

#[derive(Deserialize)]
struct TurnLine {
    id: String,
    source: Option<String>,
    steps: Vec<StepWire>,
}

#[derive(Deserialize)]
struct StepWire {
    calls: Vec<CallWire>,
    changed: Option<bool>,
    at: Option<f64>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct CallWire {
    tool: String,
    #[serde(default)]
    input: Value,
    ok: Option<bool>,
    output: Option<String>,
}

/// Reads every line.
pub(super) fn read(lines: Lines, visit: &mut Visitor<'_>) -> Result<(), Error> {
    let mut records = Records::new(lines, "a turn");
    while let Some(record) = records.next::<TurnLine>()? {
        let item = match record {
            Record::Value { value, .. } => ReaderItem::Turn(value.into()),
            Record::Skipped(report) => ReaderItem::Warning(report),
        };
        if visit(item).is_break() {
            break;
        }
    }
    Ok(())
}

impl From<TurnLine> for Turn {
    fn from(line: TurnLine) -> Self {
        Turn {
            id: line.id,
            source: line
                .source
                .unwrap_or_else(|| Format::Turns.name().to_owned()),
            steps: line.steps.into_iter().map(Step::from).collect(),
        }
    }
}

impl From<StepWire> for Step {
    fn from(step: StepWire) -> Self {
        Step {
            calls: step.calls.into_iter().map(Call::from).collect(),
            external_change: match step.changed {
                None => ExternalChange::Unknown,
                Some(false) => ExternalChange::Unchanged,
                Some(true) => ExternalChange::Changed,
            },
            at: step.at.and_then(timestamp),
            text: step.text.unwrap_or_default(),
            ..Step::default()
        }
    }
}

/// The time that many seconds after the start. `None` if it is not a time.
fn timestamp(seconds: f64) -> Option<Timestamp> {
    let elapsed = Duration::try_from_secs_f64(seconds).ok()?;
    let millis = i64::try_from(elapsed.as_millis()).ok()?;
    Some(Timestamp::from_millis(millis))
}

impl From<CallWire> for Call {
    fn from(call: CallWire) -> Self {
        Call {
            tool: call.tool,
            input: call.input,
            ok: call.ok,
            output: call.output.unwrap_or_default(),
        }
    }
}
