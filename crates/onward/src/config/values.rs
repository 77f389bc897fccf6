//! Types of configuration values, and the policies that tables of the configuration define.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use onward_core::turn::{self, Parts, Rule, TurnPolicy};
use onward_engine::retention;
use serde::de::{Deserialize, Deserializer, Error};

use super::keys::{LoopControl, Notify, Retention};

impl Retention {
    pub(crate) fn policy(&self) -> retention::Retention {
        let duration = |days: u32| Duration::from_secs(u64::from(days) * 24 * 60 * 60);
        retention::Retention {
            finished_plans: self.finished_plans_days.map(duration),
            tool_calls: self.tool_calls_days.map(duration),
            sessions: self.sessions_days.map(duration),
        }
    }
}

/// The rule that decides whether a step made progress.
#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProgressRule {
    Default,
    Plain,
}

impl LoopControl {
    /// The policy for the detector and the escalation.
    pub(crate) fn control(&self) -> turn::LoopControl {
        turn::LoopControl {
            turn: TurnPolicy {
                stall_threshold: self.progress_stall_threshold,
                min_info_gain_length: self.progress_min_info_gain_length,
                rule: match self.progress_rule {
                    ProgressRule::Default => Rule::Default(Parts::ALL),
                    ProgressRule::Plain => Rule::Plain,
                },
            },
            max_steps: self.max_steps_per_turn,
            on_stall: self.on_stall,
        }
    }
}

/// The API of a completion endpoint.
#[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Provider {
    OpenAi,
    Anthropic,
}

#[derive(Clone, serde::Deserialize)]
pub(crate) struct ApiKey(String);

impl ApiKey {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    #[cfg(test)]
    pub(crate) fn new(key: &str) -> Self {
        Self(key.to_owned())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

impl Notify {
    pub(crate) fn display_webhook(&self) -> Option<String> {
        self.webhook.as_deref().map(display_origin)
    }
}

/// The origin of a URL for display, because the path may be a secret.
pub(crate) fn display_origin(url: &str) -> String {
    match url.parse::<reqwest::Url>() {
        Ok(url) => format!("{}/…", url.origin().ascii_serialization()),
        Err(_) => "…".to_owned(),
    }
}

pub(super) fn from_str<'de, D: Deserializer<'de>, T: FromStr>(value: D) -> Result<T, D::Error> {
    parse(&String::deserialize(value)?)
}

pub(super) fn list_from_str<'de, D: Deserializer<'de>, T: FromStr>(
    value: D,
) -> Result<Vec<T>, D::Error> {
    let names = Vec::<String>::deserialize(value)?;
    names.iter().map(|name| parse(name)).collect()
}

fn parse<T: FromStr, E: Error>(name: &str) -> Result<T, E> {
    let parsed = name.parse();
    parsed.map_err(|_| E::custom(format_args!("unknown name `{name}`")))
}
