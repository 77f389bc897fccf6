//! Kinds of configuration values: their syntax, validation and description.
//!
//! A value from the environment or a flag is first turned into the TOML value that a file would
//! contain. The rest is the same for all sources.

use std::net::{IpAddr, SocketAddr};

use onward_core::call::TimeoutRule;
use onward_engine::Address;
use reqwest::Url;
use serde_json::Value as Json;
use toml_edit::{Array, Value};

pub(crate) enum Kind {
    Text,
    Number(u32, u32),
    Boolean,
    Choice(fn() -> Vec<&'static str>),
    /// Separated by spaces in the environment.
    List(&'static Kind),
    Database,
    /// An address to listen on.
    Bind,
    /// Scheme, host and port, in lower case.
    Origin,
    /// A URL to which nothing is sent in plain text over a network.
    Url,
    /// Like [`Kind::Url`]. The path is a secret.
    Webhook,
    /// The base URL of a model API, which receives the API key at this path.
    Endpoint(&'static str),
    /// The timeout of a tool, of one agent or of all.
    ToolTimeout,
    /// A secret of at least this many characters.
    Secret(usize),
    /// A secret from the environment only, because files are shared.
    ApiKey,
}

impl Kind {
    /// The TOML value of a text from the environment or a flag.
    pub(super) fn toml_value(&self, text: &str) -> Value {
        let value = if let Kind::List(_) = self {
            Some(text.split_whitespace().collect::<Array>().into())
        } else if let Kind::Number(..) = self {
            text.trim().parse::<i64>().ok().map(Value::from)
        } else if let Kind::Boolean = self {
            text.parse::<bool>().ok().map(Value::from)
        } else {
            None
        };
        value.unwrap_or_else(|| text.into())
    }

    /// The validated value. The error continues a sentence: "must be …".
    pub(super) fn parse(&self, value: &Value) -> Result<Json, String> {
        let parsed = match (self, value) {
            (Kind::Number(min, max), Value::Integer(number)) => u32::try_from(*number.value())
                .ok()
                .filter(|number| (min..=max).contains(&number))
                .map(Json::from),
            (Kind::Boolean, Value::Boolean(value)) => Some((*value.value()).into()),
            (Kind::List(kind), Value::Array(items)) => return parse_list(kind, items),
            (Kind::Number(..) | Kind::Boolean | Kind::List(_), _) => None,
            (_, Value::String(text)) => self.parse_text(text.value()).map(Json::from),
            _ => None,
        };
        parsed.ok_or_else(|| format!("must be {}{}", self.expected(), self.found(value)))
    }

    fn parse_text(&self, text: &str) -> Option<String> {
        let is_valid = match self {
            Kind::Number(..) | Kind::Boolean | Kind::List(_) => false,
            Kind::Text => !text.trim().is_empty(),
            Kind::Choice(choices) => choices().contains(&text),
            Kind::Database => Address::parse(text).is_ok(),
            Kind::Bind => return parse_bind(text),
            Kind::Origin => return parse_origin(text),
            Kind::Url | Kind::Webhook => is_encrypted(text),
            Kind::Endpoint(_) => {
                let is_http = text.starts_with("https://") || text.starts_with("http://");
                // `onward config` prints the URL, so it must not contain credentials.
                is_http && !text.contains(['@', '?', '#', ' ']) && text.parse::<Url>().is_ok()
            }
            Kind::ToolTimeout => text.parse::<TimeoutRule>().is_ok(),
            Kind::Secret(min) => text.len() >= *min && !text.trim().is_empty(),
            Kind::ApiKey => {
                let key = text.trim();
                let is_valid = !key.is_empty() && key.chars().all(|char| char.is_ascii_graphic());
                return is_valid.then(|| key.to_owned());
            }
        };
        is_valid.then(|| text.to_owned())
    }

    /// A description of valid values.
    pub(super) fn expected(&self) -> String {
        let text = match self {
            Kind::Number(min, max) => return format!("a whole number from {min} to {max}"),
            Kind::Choice(choices) => return format!("one of `{}`", choices().join("`, `")),
            Kind::List(kind) => return format!("a list; each item must be {}", kind.expected()),
            Kind::Text | Kind::Secret(1) => "a non-empty string",
            Kind::Secret(min) => return format!("at least {min} random characters"),
            Kind::Boolean => "`true` or `false`",
            Kind::Database => "a file path or a `postgres://` URL",
            Kind::Bind => "ADDRESS:PORT, for example `127.0.0.1:7171`",
            Kind::Origin => "`https://HOST` or `http://HOST:PORT`",
            Kind::Url | Kind::Webhook => "an `https://` URL, or `http://` to this machine",
            Kind::Endpoint(_) => "an `http(s)://` URL without user name, query and fragment",
            Kind::ToolTimeout => "`TOOL=MILLISECONDS` or `AGENT/TOOL=MILLISECONDS`",
            Kind::ApiKey => "an API key: ASCII characters without spaces",
        };
        text.to_owned()
    }

    /// The rejected value, for an error. Texts that may contain a secret are left out.
    fn found(&self, value: &Value) -> String {
        match (self, value) {
            (Kind::Number(..) | Kind::Boolean | Kind::Choice(_) | Kind::Bind, value)
                if !value.is_array() && !value.is_inline_table() =>
            {
                let text = value.to_string();
                format!(", not `{}`", value.as_str().unwrap_or(text.trim()))
            }
            (_, Value::String(_)) => String::new(),
            (_, value) => format!(", not a value of type {}", value.type_name()),
        }
    }
}

/// Parses the items and removes duplicates.
fn parse_list(kind: &Kind, items: &Array) -> Result<Json, String> {
    let mut parsed = Vec::new();
    for item in items {
        let item = kind.parse(item);
        let item = item.map_err(|why| format!("must be a list; each item {why}"))?;
        if !parsed.contains(&item) {
            parsed.push(item);
        }
    }
    Ok(parsed.into())
}

fn parse_bind(text: &str) -> Option<String> {
    let text = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    text.parse::<SocketAddr>().ok().map(|_| text)
}

/// Normalizes an origin as browsers do: lower case, without the default port.
fn parse_origin(text: &str) -> Option<String> {
    let url = text.parse::<Url>().ok()?;
    let is_http = ["http", "https"].contains(&url.scheme());
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    let has_path = url.path() != "/" || url.query().is_some() || url.fragment().is_some();
    let is_valid = is_http && !has_credentials && !has_path && !text.contains('"');
    is_valid.then(|| url.origin().ascii_serialization())
}

/// Whether requests to the URL cannot be read or forged on the way: HTTPS, or a loopback host.
pub(super) fn is_encrypted(url: &str) -> bool {
    let Ok(url) = url.parse::<Url>() else {
        return false;
    };
    match (url.scheme(), url.host_str()) {
        ("https", Some(_)) => true,
        ("http", Some(host)) => is_loopback(host),
        _ => false,
    }
}

/// Whether a host of a parsed URL is this machine.
fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let address = address.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks texts separated by spaces.
    #[track_caller]
    fn check(kind: &Kind, valid: &str, invalid: &str) {
        let parse = |text| kind.parse(&kind.toml_value(text));
        for text in valid.split(' ') {
            assert_eq!(parse(text), Ok(text.into()));
        }
        for text in invalid.split(' ') {
            let why = parse(text).expect_err(text);
            assert!(!why.contains(text), "the value may be a secret: {why}");
        }
    }

    #[test]
    fn requires_https_except_for_loopback_hosts() {
        let valid = "https://a.org http://127.0.0.1:8080/x http://localhost http://[::1]:1";
        let invalid = "http://a.org http://localhost.a.org http://127.0.0.1.a.org ftp://127.0.0.1 \
                       http://127.0.0.1:80@a.org http://localhost:1@a.org/ http://[::1]:1@a.org";
        check(&Kind::Url, valid, invalid);
    }

    #[test]
    fn rejects_an_origin_with_a_path() {
        let invalid = "host https:/// https://h/path https://u@h ftp://h https://h?q";
        check(&Kind::Origin, "http://h:1 https://a.org", invalid);
        let normalized = Kind::Origin.parse(&"https://A.org/".into());
        assert_eq!(normalized, Ok("https://a.org".into()));
        let normalized = Kind::Origin.parse(&"http://a.org:80".into());
        assert_eq!(normalized, Ok("http://a.org".into()));
    }

    #[test]
    fn rejects_endpoints_that_expose_credentials() {
        let valid = "https://a.org/v1 http://192.168.0.2:11434/v1";
        let invalid = "https://ann:pass@a.org/v1 https://a.org/v1?key=1 a.org";
        check(&Kind::Endpoint("a"), valid, invalid);
    }

    #[test]
    fn rejects_short_secrets_and_malformed_keys() {
        check(&Kind::Secret(4), "1234", "123");
        check(&Kind::ApiKey, "sk-1", "schlüssel");
    }
}
