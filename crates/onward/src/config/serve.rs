//! What holds for `onward serve`: where it listens, who comes in, how much is too much.
//!
//! Each key can also be said by the environment, as `ONWARD_` and its path in capitals:
//! `limits.streams` is `ONWARD_LIMITS_STREAMS`. Lists are then separated by blanks. The project's file
//! and the user's may each say a part of a table.

use std::net::SocketAddr;

use onward_core::Role;

use super::file::{self, File, Said};
use super::{Setting, Source, variable};
use crate::failure::{Failure, Result};

/// Where it listens unless somebody says otherwise.
const BIND: &str = "127.0.0.1:7171";
/// More than this is no limit.
const MOST: u32 = 1_000_000_000;

/// A secret that is shorter can be guessed.
const SHORTEST: usize = 32;

/// What holds for `onward serve`.
#[derive(Debug)]
pub(crate) struct Serve {
    /// Where it listens.
    pub(crate) bind: Setting<SocketAddr>,
    /// How others reach it, where a reverse proxy stands in front: `https://…`, without a path.
    pub(crate) public_url: Setting<Option<String>>,
    /// Further origins whose pages may speak to it.
    pub(crate) allowed_origins: Setting<Vec<String>>,
    /// What servers sign with that answer under one name.
    pub(crate) secret: Setting<Option<String>>,
    /// Whether even the user of this machine needs a token.
    pub(crate) require_tokens: Setting<bool>,
    /// Whose JSON web tokens are accepted beside our own tokens.
    pub(crate) issuer: Option<Issuer>,
    /// How much is too much.
    pub(crate) limits: Limits,
}

/// An identity provider.
#[derive(Debug)]
pub(crate) struct Issuer {
    /// Its name, which every token of it carries as `iss`.
    pub(crate) url: Setting<String>,
    /// Whom its tokens must be for.
    pub(crate) audience: Setting<String>,
    /// Where its keys are; from its discovery document where nobody says it.
    pub(crate) jwks_url: Setting<Option<String>>,
    /// What the provider knows us as, where people sign in through it.
    pub(crate) client_id: Setting<Option<String>>,
    /// What we show the provider beside that, where it gave us one.
    pub(crate) client_secret: Setting<Option<String>>,
    /// What a token must be good for.
    pub(crate) scopes: Setting<Vec<String>>,
    /// The claim that names the tenant; all belong to the server's own where there is none.
    pub(crate) tenant_claim: Setting<Option<String>>,
    /// The claim that names the role.
    pub(crate) role_claim: Setting<String>,
    /// The role of a token that names none.
    pub(crate) default_role: Setting<Role>,
}

/// How much is too much.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Calls with one token in a second.
    pub(crate) token_calls_per_second: Setting<u32>,
    /// Calls of one tenant in a second.
    pub(crate) tenant_calls_per_second: Setting<u32>,
    /// Bytes of one request.
    pub(crate) body_bytes: Setting<u32>,
    /// Seconds until a request is answered.
    pub(crate) request_seconds: Setting<u32>,
    /// Requests that are being answered.
    pub(crate) requests: Setting<u32>,
    /// Streams that are open.
    pub(crate) streams: Setting<u32>,
}

impl Serve {
    pub(super) fn read(files: &[File]) -> Result<Self> {
        let said = Files(files);
        let bind = said.text("serve.bind", "ONWARD_SERVE_BIND", |serve| &serve.bind)?;
        let bind = match bind {
            Some((text, from)) => Setting {
                value: listening(&text, &from)?,
                from,
            },
            None => Setting {
                value: listening(BIND, &Source::Default)?,
                from: Source::Default,
            },
        };
        let public = said.text("serve.public_url", "ONWARD_SERVE_PUBLIC_URL", |serve| {
            &serve.public_url
        })?;
        let public_url = match public {
            Some((text, from)) => Setting {
                value: Some(origin("serve.public_url", &text, &from)?),
                from,
            },
            None => nothing(None),
        };
        Ok(Self {
            bind,
            public_url,
            allowed_origins: origins(said.list(
                "serve.allowed_origins",
                "ONWARD_SERVE_ALLOWED_ORIGINS",
                |serve| &serve.allowed_origins,
            )?)?,
            secret: said.secret()?,
            require_tokens: said.require_tokens()?,
            issuer: said.issuer()?,
            limits: said.limits()?,
        })
    }

    /// What the command line says counts more.
    pub(crate) fn bind_to(&mut self, text: &str) -> Result<()> {
        let from = Source::Flag("--bind");
        self.bind = Setting {
            value: listening(text, &from)?,
            from,
        };
        Ok(())
    }
}

/// The files, the one that counts more first.
struct Files<'a>(&'a [File]);

impl Files<'_> {
    fn first<T: Clone>(&self, of: impl Fn(&file::Serve) -> &Said<T>) -> Said<T> {
        self.0.iter().find_map(|file| of(&file.serve).clone())
    }

    fn text(
        &self,
        what: &'static str,
        name: &'static str,
        of: impl Fn(&file::Serve) -> &Said<String>,
    ) -> Result<Said<String>> {
        let said = variable(name).transpose()?.or_else(|| self.first(of));
        match said {
            Some((text, from)) if text.trim().is_empty() => Err(from.refuses(what, "is empty")),
            said => Ok(said),
        }
    }

    fn list(
        &self,
        what: &'static str,
        name: &'static str,
        of: impl Fn(&file::Serve) -> &Said<Vec<String>>,
    ) -> Result<Setting<Vec<String>>> {
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect();
        let said = variable(name).transpose()?;
        let said = said.map(|(text, from)| (words(text), from));
        let said: Said<Vec<String>> = said.or_else(|| self.first(of));
        match said {
            Some((list, from)) if list.iter().any(|word| word.trim().is_empty()) => {
                Err(from.refuses(what, "holds an empty text"))
            }
            Some((value, from)) => Ok(Setting { value, from }),
            None => Ok(nothing(Vec::new())),
        }
    }

    fn number(
        &self,
        what: &'static str,
        name: &'static str,
        default: u32,
        of: impl Fn(&file::Limits) -> &Said<u32>,
    ) -> Result<Setting<u32>> {
        let said = match variable(name).transpose()? {
            Some((text, from)) => match text.parse() {
                Ok(number) => Some((number, from)),
                Err(_) => return Err(from.refuses(what, "is no number")),
            },
            None => self.first(|serve| of(&serve.limits)),
        };
        match said {
            Some((number, from)) if number == 0 || number > MOST => {
                Err(from.refuses(what, format_args!("is {number}, and must be 1 to {MOST}")))
            }
            Some((value, from)) => Ok(Setting { value, from }),
            None => Ok(nothing(default)),
        }
    }

    fn secret(&self) -> Result<Setting<Option<String>>> {
        let what = "serve.secret";
        let said = self.text(what, "ONWARD_SERVE_SECRET", |serve| &serve.secret)?;
        match said {
            Some((secret, from)) if secret.len() < SHORTEST => Err(from.refuses(
                what,
                format_args!("must have at least {SHORTEST} characters, of chance"),
            )),
            said => Ok(maybe(said)),
        }
    }

    fn require_tokens(&self) -> Result<Setting<bool>> {
        let (what, name) = ("access.require_tokens", "ONWARD_ACCESS_REQUIRE_TOKENS");
        let said = match variable(name).transpose()? {
            Some((text, from)) => match text.parse() {
                Ok(value) => Some((value, from)),
                Err(_) => return Err(from.refuses(what, "is neither `true` nor `false`")),
            },
            None => self.first(|serve| &serve.require_tokens),
        };
        Ok(said.map_or_else(|| nothing(false), |(value, from)| Setting { value, from }))
    }

    fn issuer(&self) -> Result<Option<Issuer>> {
        let text = |what, name, of: fn(&file::Issuer) -> &Said<String>| {
            self.text(what, name, |serve| of(&serve.issuer))
        };
        let url = text("access.issuer.url", "ONWARD_ACCESS_ISSUER_URL", |issuer| {
            &issuer.url
        })?;
        let audience = text(
            "access.issuer.audience",
            "ONWARD_ACCESS_ISSUER_AUDIENCE",
            |issuer| &issuer.audience,
        )?;
        let ((url, from), (audience, audience_from)) = match (url, audience) {
            (Some(url), Some(audience)) => (url, audience),
            (None, None) => return Ok(None),
            (Some((_, from)), None) => {
                return Err(from.refuses("access.issuer", "has an `url` and no `audience`"));
            }
            (None, Some((_, from))) => {
                return Err(from.refuses("access.issuer", "has an `audience` and no `url`"));
            }
        };
        secure("access.issuer.url", &url, &from)?;
        let jwks = text(
            "access.issuer.jwks_url",
            "ONWARD_ACCESS_ISSUER_JWKS_URL",
            |issuer| &issuer.jwks_url,
        )?;
        if let Some((jwks, from)) = &jwks {
            secure("access.issuer.jwks_url", jwks, from)?;
        }
        let client_id = text(
            "access.issuer.client_id",
            "ONWARD_ACCESS_ISSUER_CLIENT_ID",
            |issuer| &issuer.client_id,
        )?;
        let client_secret = text(
            "access.issuer.client_secret",
            "ONWARD_ACCESS_ISSUER_CLIENT_SECRET",
            |issuer| &issuer.client_secret,
        )?;
        if let (None, Some((_, from))) = (&client_id, &client_secret) {
            return Err(from.refuses(
                "access.issuer.client_secret",
                "stands without a `client_id`",
            ));
        }
        let tenant = text(
            "access.issuer.tenant_claim",
            "ONWARD_ACCESS_ISSUER_TENANT_CLAIM",
            |issuer| &issuer.tenant_claim,
        )?;
        let role = text(
            "access.issuer.role_claim",
            "ONWARD_ACCESS_ISSUER_ROLE_CLAIM",
            |issuer| &issuer.role_claim,
        )?;
        let default = text(
            "access.issuer.default_role",
            "ONWARD_ACCESS_ISSUER_DEFAULT_ROLE",
            |issuer| &issuer.default_role,
        )?;
        Ok(Some(Issuer {
            url: Setting { value: url, from },
            audience: Setting {
                value: audience,
                from: audience_from,
            },
            jwks_url: maybe(jwks),
            client_id: maybe(client_id),
            client_secret: maybe(client_secret),
            scopes: self.list(
                "access.issuer.scopes",
                "ONWARD_ACCESS_ISSUER_SCOPES",
                |serve| &serve.issuer.scopes,
            )?,
            tenant_claim: maybe(tenant),
            role_claim: role.map_or_else(
                || nothing("role".to_owned()),
                |(value, from)| Setting { value, from },
            ),
            default_role: default.map_or_else(|| Ok(nothing(Role::Agent)), role_of)?,
        }))
    }

    fn limits(&self) -> Result<Limits> {
        Ok(Limits {
            token_calls_per_second: self.number(
                "limits.token_calls_per_second",
                "ONWARD_LIMITS_TOKEN_CALLS_PER_SECOND",
                1_000,
                |limits| &limits.token_calls_per_second,
            )?,
            tenant_calls_per_second: self.number(
                "limits.tenant_calls_per_second",
                "ONWARD_LIMITS_TENANT_CALLS_PER_SECOND",
                5_000,
                |limits| &limits.tenant_calls_per_second,
            )?,
            body_bytes: self.number(
                "limits.body_bytes",
                "ONWARD_LIMITS_BODY_BYTES",
                16 * 1024 * 1024,
                |limits| &limits.body_bytes,
            )?,
            request_seconds: self.number(
                "limits.request_seconds",
                "ONWARD_LIMITS_REQUEST_SECONDS",
                30,
                |limits| &limits.request_seconds,
            )?,
            requests: self.number("limits.requests", "ONWARD_LIMITS_REQUESTS", 512, |limits| {
                &limits.requests
            })?,
            streams: self.number("limits.streams", "ONWARD_LIMITS_STREAMS", 2_000, |limits| {
                &limits.streams
            })?,
        })
    }
}

fn nothing<T>(value: T) -> Setting<T> {
    Setting {
        value,
        from: Source::Default,
    }
}

fn maybe(said: Said<String>) -> Setting<Option<String>> {
    said.map_or_else(
        || nothing(None),
        |(value, from)| Setting {
            value: Some(value),
            from,
        },
    )
}

fn listening(text: &str, from: &Source) -> Result<SocketAddr> {
    let text = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    let wrong = |_| match from {
        Source::Flag(name) => Failure::usage(
            format!("`{name}` is no address with a port"),
            format!("such as `{name} {BIND}`, or `{name} 0.0.0.0:7171` for every network"),
        ),
        Source::Environment(_) | Source::File { .. } | Source::Default => from.refuses(
            "serve.bind",
            format_args!("is no address with a port, such as `{BIND}`"),
        ),
    };
    text.parse().map_err(wrong)
}

/// An origin: scheme, host and port, and nothing behind them.
fn origin(what: &'static str, text: &str, from: &Source) -> Result<String> {
    let text = text.trim_end_matches('/');
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let host = |rest: &&str| {
        !rest.is_empty() && !rest.contains(['/', '?', '#', '@', '"', '\\']) && rest.is_ascii()
    };
    match rest.filter(host) {
        Some(_) => Ok(text.to_ascii_lowercase()),
        None => Err(from.refuses(what, "must be `https://host` or `http://host:port`")),
    }
}

fn origins(list: Setting<Vec<String>>) -> Result<Setting<Vec<String>>> {
    let Setting { value, from } = list;
    let value = value
        .iter()
        .map(|one| origin("serve.allowed_origins", one, &from))
        .collect::<Result<_>>()?;
    Ok(Setting { value, from })
}

/// Keys that come over an open line could be anybody's.
pub(super) fn secure(what: &'static str, url: &str, from: &Source) -> Result<()> {
    let on_this_machine = ["http://127.0.0.1", "http://[::1]", "http://localhost"]
        .iter()
        .filter_map(|start| url.strip_prefix(start))
        .any(|rest| rest.is_empty() || rest.starts_with([':', '/']));
    match url.starts_with("https://") || on_this_machine {
        true => Ok(()),
        false => Err(from.refuses(what, "must begin with `https://`")),
    }
}

fn role_of((word, from): (String, Source)) -> Result<Setting<Role>> {
    match word.parse() {
        Ok(value) => Ok(Setting { value, from }),
        Err(_) => Err(from.refuses(
            "access.issuer.default_role",
            "is none of `owner`, `admin`, `member`, `agent`, `viewer`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_over_a_line_that_nobody_else_speaks_on() {
        for fine in [
            "https://id.example.org",
            "http://127.0.0.1:8080/x",
            "http://localhost",
            "http://[::1]:1",
        ] {
            assert!(secure("a", fine, &Source::Default).is_ok(), "{fine}");
        }
        for wrong in [
            "http://id.example.org",
            "http://localhost.example.org",
            "http://127.0.0.1.example.org",
            "ftp://127.0.0.1",
        ] {
            assert!(secure("a", wrong, &Source::Default).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_origin_has_no_path() {
        let read = |text| origin("a", text, &Source::Default).ok();
        assert_eq!(
            read("https://A.example.org/").as_deref(),
            Some("https://a.example.org")
        );
        assert_eq!(read("http://h:1").as_deref(), Some("http://h:1"));
        for wrong in [
            "",
            "h",
            "https://",
            "https://h/path",
            "https://u@h",
            "ftp://h",
            "https://h?q",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
