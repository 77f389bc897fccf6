//! The timeout of a call, from its input, the configuration, its agent and its tool.
//!
//! Only unambiguous values count. A number without a unit counts only for tools with a known unit;
//! zero, negative numbers and NaN count as unspecified. Interrupting a call too early costs more
//! than waiting too long.

use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;

use super::agent::{DefaultTimeout, ToolTimeout, tool_timeout};

/// Field names with a unit, and the unit in milliseconds.
const UNITS: [(&str, f64); 6] = [
    ("timeout_ms", 1.0),
    ("timeoutMs", 1.0),
    ("timeout_seconds", 1000.0),
    ("timeout_sec", 1000.0),
    ("timeout_secs", 1000.0),
    ("timeoutSeconds", 1000.0),
];

/// The timeout of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Not specified; the default applies.
    #[default]
    Unspecified,
    /// This timeout. Zero counts as unspecified.
    After(Duration),
    /// After this time the agent has answered the model, and the tool continues in the background.
    /// The call then needs no result.
    Yields(Duration),
    /// No timeout. Only the exit of the owner process interrupts the call.
    Never,
}

impl Limit {
    /// A timeout in milliseconds. Zero, negative numbers and NaN count as unspecified.
    pub fn from_millis(millis: Option<f64>) -> Self {
        duration(millis).map_or(Limit::Unspecified, Limit::After)
    }

    /// The timeout of a call, from its agent, its tool and its input.
    pub fn for_call(agent: &str, tool: &str, input: &Value) -> Self {
        CallTimeouts::default().limit(agent, tool, input)
    }
}

/// A positive number of milliseconds.
fn duration(millis: Option<f64>) -> Option<Duration> {
    millis
        .filter(|millis| *millis > 0.0)
        .and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok())
        .filter(|span| !span.is_zero())
}

/// The configured timeouts, and those in the agent's environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallTimeouts {
    /// The timeout of tools without one, if it is not the default.
    pub default: Option<Duration>,
    /// The grace period after a timeout, if it is not the default.
    pub grace: Option<Duration>,
    /// Timeouts of tools and agents; the first that applies wins.
    pub rules: Vec<TimeoutRule>,
    /// Environment variables of the agent.
    pub variables: Vec<(String, String)>,
}

impl CallTimeouts {
    /// The timeout of a call.
    ///
    /// A timeout in the input wins, because the agent applies it; then a configured one, one in the
    /// agent's environment, and that of the agent's table.
    pub fn limit(&self, agent: &str, tool: &str, input: &Value) -> Limit {
        let row = tool_timeout(agent, tool);
        let default = self.default_limit(agent, tool, row);
        if default == Limit::Never {
            return Limit::Never;
        }
        let with_unit = UNITS
            .iter()
            .find_map(|(field, unit)| duration(Some(input[*field].as_f64()? * unit)));
        if let Some(timeout) = with_unit {
            return Limit::After(timeout);
        }
        let own = row.and_then(|row| self.own_timeout(row, default, input));
        match (own, default) {
            (None, default) => default,
            (Some(own), Limit::Yields(_)) => Limit::Yields(own),
            (Some(own), Limit::Unspecified | Limit::After(_) | Limit::Never) => Limit::After(own),
        }
    }

    /// The timeout of a tool without one in its input.
    fn default_limit(&self, agent: &str, tool: &str, row: Option<&ToolTimeout>) -> Limit {
        let rule = self.rules.iter().find(|rule| rule.applies_to(agent, tool));
        if let Some(rule) = rule {
            return rule.timeout.map_or(Limit::Never, Limit::After);
        }
        let default = row.map_or(DefaultTimeout::Unspecified, |row| row.default);
        let variable = row.and_then(|row| self.variable(row.variable));
        match (default, variable) {
            (DefaultTimeout::Unspecified, _) => {
                self.default.map_or(Limit::Unspecified, Limit::After)
            }
            (DefaultTimeout::Subagent | DefaultTimeout::Question, _) => Limit::Never,
            (DefaultTimeout::After(_), Some(set)) => Limit::After(set),
            (DefaultTimeout::After(timeout), None) => Limit::After(timeout),
            (DefaultTimeout::Yields(time), _) => Limit::Yields(time),
        }
    }

    /// The timeout in a call's input, at most the maximum that the agent allows.
    fn own_timeout(&self, row: &ToolTimeout, default: Limit, input: &Value) -> Option<Duration> {
        let (field, unit) = row.field?;
        let own = duration(Some(input[field].as_f64()? * unit))?;
        let max = self.variable(row.max_variable).or(row.max);
        let Some(max) = max else { return Some(own) };
        // A default above the maximum raises the maximum.
        let max = match default {
            Limit::After(default) => max.max(default),
            Limit::Unspecified | Limit::Yields(_) | Limit::Never => max,
        };
        Some(own.min(max))
    }

    fn variable(&self, name: Option<&str>) -> Option<Duration> {
        let name = name?;
        let (_, value) = self.variables.iter().find(|(known, _)| known == name)?;
        duration(value.trim().parse().ok())
    }
}

/// A configured timeout: `TOOL=MILLISECONDS` or `AGENT/TOOL=MILLISECONDS`. `*` at the end of a tool
/// matches any rest; 0 means no timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeoutRule {
    agent: Option<String>,
    tool: String,
    timeout: Option<Duration>,
}

/// A text that is not a [`TimeoutRule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be `TOOL=MILLISECONDS` or `AGENT/TOOL=MILLISECONDS`")]
pub struct InvalidTimeoutRule;

impl TimeoutRule {
    fn applies_to(&self, agent: &str, tool: &str) -> bool {
        let same_agent = self.agent.as_ref().is_none_or(|known| known == agent);
        same_agent
            && match self.tool.strip_suffix('*') {
                Some(beginning) => tool.starts_with(beginning),
                None => tool == self.tool,
            }
    }
}

impl FromStr for TimeoutRule {
    type Err = InvalidTimeoutRule;

    fn from_str(text: &str) -> Result<Self, InvalidTimeoutRule> {
        let (name, millis) = text.rsplit_once('=').ok_or(InvalidTimeoutRule)?;
        let millis: u32 = millis.trim().parse().map_err(|_| InvalidTimeoutRule)?;
        let (agent, tool) = match name.trim().split_once('/') {
            Some((agent, tool)) => (Some(agent.trim().to_owned()), tool.trim()),
            None => (None, name.trim()),
        };
        if tool.is_empty() || agent.as_deref() == Some("") {
            return Err(InvalidTimeoutRule);
        }
        Ok(Self {
            agent,
            tool: tool.to_owned(),
            timeout: (millis > 0).then(|| Duration::from_millis(u64::from(millis))),
        })
    }
}
