//! How long this very call may take: as its input says, or as its tool is known.
//!
//! Only what is certain is taken. A number without a unit counts for the tools whose unit is known and
//! for no other, and one that is no time (zero, negative, no number) counts as not given. A call that
//! is wrongly given up costs more than a spinner that turns for longer.

use std::time::Duration;

use serde_json::Value;

/// Tools that wait for a person or for another agent: they have no timeout.
const WITHOUT: [&str; 8] = [
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
const IN_MILLIS: [&str; 4] = ["Bash", "BashOutput", "TaskOutput", "bash"];

/// How a field that carries its unit ends, and how many milliseconds that is.
const UNITS: [(&str, f64); 6] = [
    ("timeout_ms", 1.0),
    ("timeoutMs", 1.0),
    ("timeout_seconds", 1000.0),
    ("timeout_sec", 1000.0),
    ("timeout_secs", 1000.0),
    ("timeoutSeconds", 1000.0),
];

/// What Claude Code gives a tool of an MCP server, where nobody says otherwise: more than a day.
const MCP: Limit = Limit::After(Duration::from_secs(100_000));

/// The timeout of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Nobody said; the default applies.
    #[default]
    Unsaid,
    /// So long. Nothing at all counts as not said.
    After(Duration),
    /// The tool is known to have none; only the death of its owner ends it.
    Never,
}

impl Limit {
    /// The limit of so many seconds. Zero or less, and what is no number, counts as not given.
    pub fn of_seconds(seconds: Option<f64>) -> Self {
        Self::of_millis(seconds.map(|seconds| seconds * 1000.0))
    }

    /// The limit of so many milliseconds. Zero or less, and what is no number, counts as not given.
    pub fn of_millis(millis: Option<f64>) -> Self {
        let span = millis
            .filter(|millis| *millis > 0.0)
            .and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok())
            .filter(|span| !span.is_zero());
        span.map_or(Limit::Unsaid, Limit::After)
    }

    /// The limit of a call, told from its tool and its input.
    pub fn of_call(tool: &str, input: &Value) -> Self {
        if WITHOUT.contains(&tool) {
            return Limit::Never;
        }
        let with_unit = UNITS
            .iter()
            .find_map(|(field, unit)| input[*field].as_f64().map(|number| number * unit));
        let bare = || {
            input["timeout"]
                .as_f64()
                .filter(|_| IN_MILLIS.contains(&tool))
        };
        match Self::of_millis(with_unit.or_else(bare)) {
            Limit::Unsaid if tool.starts_with("mcp__") => MCP,
            limit @ (Limit::Unsaid | Limit::After(_) | Limit::Never) => limit,
        }
    }
}
