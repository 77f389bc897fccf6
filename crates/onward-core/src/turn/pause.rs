//! The pause of a call: the time for which the agent waits on purpose before it looks again.
//!
//! A pause is a `sleep` in the command, or the time limit of a call that blocks until something
//! happens. Where steps have no timestamps, it is the only clock.

use std::time::Duration;

use serde_json::Value;

use super::Call;
use super::intent::{command_line, name_words};
use super::shell::split;

/// The shortest pause. A shorter one is polling without a pause.
pub(crate) const MIN_PAUSE: Duration = Duration::from_secs(5);
/// The pause of a call that blocks for an unknown time.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause that is believed.
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// Words in the names of tools that wait.
const WAIT_TOOLS: [&str; 8] = [
    "wait", "sleep", "await", "poll", "pause", "monitor", "watch", "delay",
];
/// Fields with the time limit of a call.
const LIMIT_FIELDS: [&str; 12] = [
    "timeout",
    "timeout_ms",
    "timeoutMs",
    "wait_ms",
    "wait_seconds",
    "yield_time_ms",
    "seconds",
    "duration",
    "duration_ms",
    "ms",
    "wait_ms_before_async",
    "time",
];
/// Options with the time limit of a command that blocks.
const LIMIT_OPTIONS: [&str; 4] = ["--timeout", "--wait", "--wait-timeout", "--max-wait"];

/// The pause of a call, if it is long enough to be one.
pub(crate) fn pause(call: &Call<'_>) -> Option<Duration> {
    let pause = match command_line(call) {
        Some(line) => command_pause(line),
        None => tool_pause(call),
    };
    pause
        .filter(|pause| *pause >= MIN_PAUSE)
        .map(|pause| pause.min(MAX_PAUSE))
}

fn command_pause(line: &str) -> Option<Duration> {
    let mut total = None;
    for command in split(line) {
        let own = if command.name() == "sleep" {
            command
                .arguments()
                .filter_map(duration)
                .reduce(|a, b| a + b)
        } else {
            limit_option(command.arguments())
        };
        if let Some(own) = own {
            total = Some(total.unwrap_or_default() + own);
        }
    }
    // Programs: `time.sleep(30)`, `Start-Sleep -Seconds 30`, `setTimeout(…)` is not one.
    total.or_else(|| {
        let (_, after) = line.split_once("sleep(").or_else(|| {
            let (_, after) = line.split_once("Start-Sleep")?;
            Some(("", after.trim_start_matches(|c: char| !c.is_ascii_digit())))
        })?;
        let end = after.find(|c: char| !c.is_ascii_digit() && c != '.');
        duration(after.get(..end.unwrap_or(after.len()))?)
    })
}

fn limit_option<'a>(arguments: impl Iterator<Item = &'a str>) -> Option<Duration> {
    let mut is_value = false;
    for word in arguments {
        if is_value {
            return duration(word);
        }
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        if LIMIT_OPTIONS.contains(&name) {
            if !value.is_empty() {
                return duration(value);
            }
            is_value = true;
        }
    }
    None
}

fn tool_pause(call: &Call<'_>) -> Option<Duration> {
    let words = name_words(call.tool);
    let named = words.iter().any(|word| WAIT_TOOLS.contains(&word.as_str()));
    let field = |name: &str| call.input.get(name);
    let blocks = field("block") == Some(&Value::Bool(true));
    // Reading from a session without sending it anything.
    let reads = field("chars").and_then(Value::as_str) == Some("");
    if !(named || blocks || reads) {
        return None;
    }
    let limit = LIMIT_FIELDS
        .iter()
        .find_map(|name| Some((*name, call.input.get(name)?.as_f64()?)));
    match limit {
        Some((name, value)) if name.contains("ms") || name.contains("Ms") || value >= 1000.0 => {
            Duration::try_from_secs_f64(value / 1000.0).ok()
        }
        Some((_, value)) => Duration::try_from_secs_f64(value).ok(),
        None => (named || blocks).then_some(UNKNOWN_PAUSE),
    }
}

/// `30`, `30s`, `1.5m`, `2h`.
fn duration(word: &str) -> Option<Duration> {
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match word.get(number.len()..)? {
        "" | "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "ms" => 0.001,
        "d" => 86_400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seconds(tool: &str, input: &Value) -> Option<u64> {
        let call = Call {
            tool,
            input,
            ok: None,
            output: "",
        };
        pause(&call).map(|pause| pause.as_secs())
    }

    #[test]
    fn a_sleep_or_a_blocking_call_is_a_pause() {
        for (command, pause) in [
            ("sleep 60; gh run view 7", Some(60)),
            ("sleep 1m && make", Some(60)),
            ("sleep 2", None),
            ("sleep 3; sleep 3", Some(6)),
            ("kubectl rollout status deploy/a --timeout=20s", Some(20)),
            ("python -c 'import time; time.sleep(30)'", Some(30)),
            ("ls -la", None),
            ("echo 'sleep well'", None),
        ] {
            assert_eq!(
                seconds("Bash", &json!({ "command": command })),
                pause,
                "{command}"
            );
        }
        for (tool, input, pause) in [
            (
                "TaskOutput",
                json!({ "task_id": "a", "block": true, "timeout": 60000 }),
                Some(60),
            ),
            (
                "wait",
                json!({ "ids": ["a"], "timeout_ms": 90000 }),
                Some(90),
            ),
            ("wait_agent", json!({ "ids": ["a"] }), Some(30)),
            (
                "write_stdin",
                json!({ "chars": "", "yield_time_ms": 60000 }),
                Some(60),
            ),
            (
                "write_stdin",
                json!({ "chars": "y\n", "yield_time_ms": 60000 }),
                None,
            ),
            ("Read", json!({ "timeout": 60 }), None),
            ("browser_wait_for", json!({ "time": 10 }), Some(10)),
        ] {
            assert_eq!(seconds(tool, &input), pause, "{tool} {input}");
        }
    }
}
