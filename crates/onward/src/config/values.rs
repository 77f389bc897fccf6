//! Types of configuration values.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};

/// The rule that decides whether a step made progress.
#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProgressRule {
    Default,
    Plain,
}

/// The API of a completion endpoint.
#[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Provider {
    OpenAi,
    Anthropic,
}

/// The format of notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MessageFormat {
    Json,
    Slack,
    Teams,
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
