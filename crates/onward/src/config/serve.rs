//! Settings of `onward serve`: `[serve]`, `[access]` and `[limits]`.

use std::net::SocketAddr;

use onward_core::Role;

use super::file;
use super::lookup::Lookup;
use super::{Setting, Source};
use crate::failure::Result;

const DEFAULT_BIND: &str = "127.0.0.1:7171";
/// The highest value of any limit.
const MAX_LIMIT: u32 = 1_000_000_000;
const MIN_SECRET_LENGTH: usize = 32;

#[derive(Debug)]
pub(crate) struct Serve {
    /// The address to listen on.
    pub(crate) bind: Setting<SocketAddr>,
    /// The origin that clients use, if a reverse proxy is in front: `https://…`, without a path.
    pub(crate) public_url: Setting<Option<String>>,
    /// Further origins whose pages may send requests.
    pub(crate) allowed_origins: Setting<Vec<String>>,
    /// The signing secret shared by all servers of one deployment.
    pub(crate) secret: Setting<Option<String>>,
    /// Whether requests from this machine need a token, too.
    pub(crate) require_tokens: Setting<bool>,
    /// The identity provider whose JSON web tokens are accepted in addition to Onward's tokens.
    pub(crate) issuer: Option<Issuer>,
    pub(crate) limits: Limits,
}

/// An identity provider.
#[derive(Debug)]
pub(crate) struct Issuer {
    /// The `iss` claim of its tokens.
    pub(crate) url: Setting<String>,
    /// The required `aud` claim.
    pub(crate) audience: Setting<String>,
    /// The URL of its keys; taken from the discovery document if `None`.
    pub(crate) jwks_url: Setting<Option<String>>,
    /// The OAuth client id, required for sign-in to the dashboard.
    pub(crate) client_id: Setting<Option<String>>,
    /// The OAuth client secret, if the provider issued one.
    pub(crate) client_secret: Setting<Option<String>>,
    /// The scopes that a token must have, all of them.
    pub(crate) scopes: Setting<Vec<String>>,
    /// The claim with the tenant; without it, every user belongs to the server's tenant.
    pub(crate) tenant_claim: Setting<Option<String>>,
    /// The claim with the role.
    pub(crate) role_claim: Setting<String>,
    /// The role of a token without that claim.
    pub(crate) default_role: Setting<Role>,
}

/// Limits per server.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) token_calls_per_second: Setting<u32>,
    pub(crate) tenant_calls_per_second: Setting<u32>,
    /// Size of a request body.
    pub(crate) body_bytes: Setting<u32>,
    /// Timeout of a request.
    pub(crate) request_seconds: Setting<u32>,
    /// Concurrent requests.
    pub(crate) requests: Setting<u32>,
    /// Open streams.
    pub(crate) streams: Setting<u32>,
}

impl Serve {
    pub(super) fn read(lookup: &Lookup<'_>) -> Result<Self> {
        let bind = match lookup.text("serve.bind", |tables| &tables.serve.bind)? {
            Some(Setting { value, source }) => Setting {
                value: parse_bind(&value, &source)?,
                source,
            },
            None => Setting::from_default(parse_bind(DEFAULT_BIND, &Source::Default)?),
        };
        let public_url = match lookup.text("serve.public_url", |tables| &tables.serve.public_url)? {
            Some(Setting { value, source }) => Setting {
                value: Some(parse_origin("serve.public_url", &value, &source)?),
                source,
            },
            None => Setting::from_default(None),
        };
        let origins = lookup.list("serve.allowed_origins", |tables| {
            &tables.serve.allowed_origins
        })?;
        let secret = lookup.text("serve.secret", |tables| &tables.serve.secret)?;
        check_secret("serve.secret", secret.as_ref())?;
        let require_tokens = lookup.boolean("access.require_tokens", |tables| {
            &tables.access.require_tokens
        })?;
        Ok(Self {
            bind,
            public_url,
            allowed_origins: parse_origins(Setting::or_default(origins, Vec::new()))?,
            secret: Setting::optional(secret),
            require_tokens: Setting::or_default(require_tokens, false),
            issuer: Issuer::read(lookup)?,
            limits: Limits::read(lookup)?,
        })
    }

    /// Applies `--bind`, which overrides the configuration.
    pub(crate) fn override_bind(&mut self, text: &str) -> Result<()> {
        let source = Source::Flag("--bind");
        self.bind = Setting {
            value: parse_bind(text, &source)?,
            source,
        };
        Ok(())
    }
}

impl Issuer {
    fn read(lookup: &Lookup<'_>) -> Result<Option<Self>> {
        let text = |key, entry: fn(&file::Issuer) -> &file::Entry<String>| {
            lookup.text(key, |tables| entry(&tables.access.issuer))
        };
        let url = text("access.issuer.url", |issuer| &issuer.url)?;
        let audience = text("access.issuer.audience", |issuer| &issuer.audience)?;
        let (url, audience) = match (url, audience) {
            (Some(url), Some(audience)) => (url, audience),
            (None, None) => return Ok(None),
            (Some(url), None) => {
                let why = "requires `access.issuer.audience`";
                return Err(url.source.invalid("access.issuer.url", why));
            }
            (None, Some(audience)) => {
                let why = "requires `access.issuer.url`";
                return Err(audience.source.invalid("access.issuer.audience", why));
            }
        };
        require_https("access.issuer.url", &url.value, &url.source)?;
        let jwks_url = text("access.issuer.jwks_url", |issuer| &issuer.jwks_url)?;
        if let Some(Setting { value, source }) = &jwks_url {
            require_https("access.issuer.jwks_url", value, source)?;
        }
        let client_id = text("access.issuer.client_id", |issuer| &issuer.client_id)?;
        let client_secret = text("access.issuer.client_secret", |issuer| {
            &issuer.client_secret
        })?;
        if let (None, Some(client_secret)) = (&client_id, &client_secret) {
            return Err(client_secret.source.invalid(
                "access.issuer.client_secret",
                "requires `access.issuer.client_id`",
            ));
        }
        let scopes = lookup.list("access.issuer.scopes", |tables| {
            &tables.access.issuer.scopes
        })?;
        let tenant_claim = text("access.issuer.tenant_claim", |issuer| &issuer.tenant_claim)?;
        let role_claim = text("access.issuer.role_claim", |issuer| &issuer.role_claim)?;
        let default_role = text("access.issuer.default_role", |issuer| &issuer.default_role)?;
        Ok(Some(Self {
            url,
            audience,
            jwks_url: Setting::optional(jwks_url),
            client_id: Setting::optional(client_id),
            client_secret: Setting::optional(client_secret),
            scopes: Setting::or_default(scopes, Vec::new()),
            tenant_claim: Setting::optional(tenant_claim),
            role_claim: Setting::or_default(role_claim, "role".to_owned()),
            default_role: match default_role {
                Some(role) => parse_role(role)?,
                None => Setting::from_default(Role::Agent),
            },
        }))
    }
}

impl Limits {
    fn read(lookup: &Lookup<'_>) -> Result<Self> {
        let limit = |key, default, entry: fn(&file::Limits) -> &file::Entry<u32>| {
            let limit = lookup.number(key, 1..=MAX_LIMIT, |tables| entry(&tables.limits));
            limit.map(|limit| Setting::or_default(limit, default))
        };
        Ok(Self {
            token_calls_per_second: limit("limits.token_calls_per_second", 1_000, |limits| {
                &limits.token_calls_per_second
            })?,
            tenant_calls_per_second: limit("limits.tenant_calls_per_second", 5_000, |limits| {
                &limits.tenant_calls_per_second
            })?,
            body_bytes: limit("limits.body_bytes", 16 * 1024 * 1024, |limits| {
                &limits.body_bytes
            })?,
            request_seconds: limit("limits.request_seconds", 30, |limits| {
                &limits.request_seconds
            })?,
            requests: limit("limits.requests", 512, |limits| &limits.requests)?,
            streams: limit("limits.streams", 2_000, |limits| &limits.streams)?,
        })
    }
}

fn parse_bind(text: &str, source: &Source) -> Result<SocketAddr> {
    let text = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    text.parse().map_err(|_| {
        source.invalid(
            "serve.bind",
            format_args!("must be ADDRESS:PORT, for example `{DEFAULT_BIND}`"),
        )
    })
}

/// Parses scheme, host and port, without a path.
fn parse_origin(key: &str, text: &str, source: &Source) -> Result<String> {
    let text = text.trim_end_matches('/');
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let is_host = |rest: &&str| {
        !rest.is_empty() && !rest.contains(['/', '?', '#', '@', '"', '\\']) && rest.is_ascii()
    };
    match rest.filter(is_host) {
        Some(_) => Ok(text.to_ascii_lowercase()),
        None => Err(source.invalid(key, "must be `https://HOST` or `http://HOST:PORT`")),
    }
}

fn parse_origins(list: Setting<Vec<String>>) -> Result<Setting<Vec<String>>> {
    let Setting { value, source } = list;
    let value = value
        .iter()
        .map(|origin| parse_origin("serve.allowed_origins", origin, &source))
        .collect::<Result<_>>()?;
    Ok(Setting { value, source })
}

/// Rejects a secret that is short enough to be guessed.
pub(super) fn check_secret(key: &str, secret: Option<&Setting<String>>) -> Result<()> {
    match secret {
        Some(secret) if secret.value.len() < MIN_SECRET_LENGTH => Err(secret.source.invalid(
            key,
            format_args!("must be at least {MIN_SECRET_LENGTH} random characters"),
        )),
        Some(_) | None => Ok(()),
    }
}

/// Rejects plain HTTP to another host, where the traffic can be read or forged.
pub(super) fn require_https(key: &str, url: &str, source: &Source) -> Result<()> {
    let is_loopback = ["http://127.0.0.1", "http://[::1]", "http://localhost"]
        .iter()
        .filter_map(|start| url.strip_prefix(start))
        .any(|rest| rest.is_empty() || rest.starts_with([':', '/']));
    if url.starts_with("https://") || is_loopback {
        Ok(())
    } else {
        Err(source.invalid(key, "must begin with `https://`"))
    }
}

fn parse_role(setting: Setting<String>) -> Result<Setting<Role>> {
    let Setting { value, source } = setting;
    match value.parse() {
        Ok(value) => Ok(Setting { value, source }),
        Err(_) => Err(source.invalid(
            "access.issuer.default_role",
            "must be `owner`, `admin`, `member`, `agent` or `viewer`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requires_https_except_for_loopback_hosts() {
        for valid in [
            "https://id.example.org",
            "http://127.0.0.1:8080/x",
            "http://localhost",
            "http://[::1]:1",
        ] {
            assert!(
                require_https("a", valid, &Source::Default).is_ok(),
                "{valid}"
            );
        }
        for invalid in [
            "http://id.example.org",
            "http://localhost.example.org",
            "http://127.0.0.1.example.org",
            "ftp://127.0.0.1",
        ] {
            assert!(
                require_https("a", invalid, &Source::Default).is_err(),
                "{invalid}"
            );
        }
    }

    #[test]
    fn rejects_an_origin_with_a_path() {
        let parse = |text| parse_origin("a", text, &Source::Default).ok();
        assert_eq!(
            parse("https://A.example.org/").as_deref(),
            Some("https://a.example.org")
        );
        assert_eq!(parse("http://h:1").as_deref(), Some("http://h:1"));
        for invalid in [
            "",
            "h",
            "https://",
            "https://h/path",
            "https://u@h",
            "ftp://h",
            "https://h?q",
        ] {
            assert_eq!(parse(invalid), None, "{invalid}");
        }
    }
}
