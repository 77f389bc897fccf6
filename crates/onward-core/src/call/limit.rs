//! The timeout of a call, from its input or its tool.
//!
//! Only unambiguous values count. A number without a unit counts only for tools with a known unit;
//! zero, negative numbers and NaN count as unspecified. Interrupting a call too early costs more
//! than waiting too long.

use std::time::Duration;

use serde_json::Value;

/// Tools that wait for a user or for another agent. They have no timeout.
const TOOLS_WITHOUT_TIMEOUT: [&str; 8] = [
    "Agent",
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "Task",
    "ask_question",
    "ask_user",
    "exit_plan_mode",
];

/// Tools whose `timeout` is in milliseconds.
const TOOLS_IN_MILLIS: [&str; 4] = ["Bash", "BashOutput", "TaskOutput", "bash"];

/// Field names with a unit, and the unit in milliseconds.
const UNITS: [(&str, f64); 6] = [
    ("timeout_ms", 1.0),
    ("timeoutMs", 1.0),
    ("timeout_seconds", 1000.0),
    ("timeout_sec", 1000.0),
    ("timeout_secs", 1000.0),
    ("timeoutSeconds", 1000.0),
];

/// Claude Code's default timeout for MCP tools: more than a day.
const MCP_LIMIT: Limit = Limit::After(Duration::from_secs(100_000));

/// The timeout of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Not specified; the default applies.
    #[default]
    Unspecified,
    /// This timeout. Zero counts as unspecified.
    After(Duration),
    /// No timeout. Only the exit of the owner process interrupts the call.
    Never,
}

impl Limit {
    /// A timeout in seconds. Zero, negative numbers and NaN count as unspecified.
    pub fn from_seconds(seconds: Option<f64>) -> Self {
        Self::from_millis(seconds.map(|seconds| seconds * 1000.0))
    }

    /// A timeout in milliseconds. Zero, negative numbers and NaN count as unspecified.
    pub fn from_millis(millis: Option<f64>) -> Self {
        let span = millis
            .filter(|millis| *millis > 0.0)
            .and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok())
            .filter(|span| !span.is_zero());
        span.map_or(Limit::Unspecified, Limit::After)
    }

    /// The timeout of a call, from its tool and its input.
    pub fn for_call(tool: &str, input: &Value) -> Self {
        if TOOLS_WITHOUT_TIMEOUT.contains(&tool) {
            return Limit::Never;
        }
        let with_unit = UNITS
            .iter()
            .find_map(|(field, unit)| input[*field].as_f64().map(|number| number * unit));
        let bare = || {
            input["timeout"]
                .as_f64()
                .filter(|_| TOOLS_IN_MILLIS.contains(&tool))
        };
        match Self::from_millis(with_unit.or_else(bare)) {
            Limit::Unspecified if tool.starts_with("mcp__") => MCP_LIMIT,
            limit @ (Limit::Unspecified | Limit::After(_) | Limit::Never) => limit,
        }
    }
}
