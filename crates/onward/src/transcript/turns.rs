//! The format `turns`: JSON lines, one turn each. The plainest one, and the one to convert to.
//!
//! `{"id", "source", "steps": [{"calls": [{"tool", "input", "ok", "output"}], "changed"}]}`;
//! `source` may be missing, and whatever else stands in a line is passed over. `ok` and `changed`
//! are `null` where nobody knows.

use onward_core::turn::Outside;
use serde::Deserialize;
use serde_json::Value;

use super::lines::parse;
use super::{Call, Each, Error, Format, Found, Lines, Step, Turn};

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
pub(super) fn read(mut lines: Lines, each: &mut Each<'_>) -> Result<(), Error> {
    let mut line = Vec::new();
    while let Some(number) = lines.next(&mut line)? {
        let turn: TurnLine =
            parse(&line).map_err(|cause| Error::of_json(lines.name(), number, "a turn", cause))?;
        if each(Found::Turn(turn.into())).is_break() {
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
            outside: match step.changed {
                None => Outside::Unknown,
                Some(false) => Outside::Same,
                Some(true) => Outside::Changed,
            },
            ..Step::default()
        }
    }
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
