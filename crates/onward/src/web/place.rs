//! Where a request says that it goes and comes from: `Host` and `Origin`.
//!
//! A web page can send requests to this machine, and a name of its own can be made to lead here (DNS
//! rebinding). So a server on loopback answers only to names of loopback, or to the public one that
//! the configuration gives; and a request that a page sent is answered only where the page came from
//! here, or from an origin that is allowed. Programs send no `Origin` and are not concerned.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, HOST, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request};
use onward_core::Code;

use super::problem::Problem;

/// How a browser says what a request has to do with the page that sent it.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// What may be named.
#[derive(Debug)]
pub(crate) struct Place {
    /// Whether only names of loopback (and the public one) are ours.
    pub(crate) guarded: bool,
    /// How others reach the server: an origin.
    pub(crate) public: Option<String>,
    /// Further origins whose pages may come.
    pub(crate) origins: Vec<String>,
}

impl Place {
    /// Refuses what a foreign page or a foreign name sent.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let host = host(request).ok_or_else(|| {
            Problem::new(
                Code::InvalidInput,
                "the request has no usable `Host`",
                "send the header `Host` with the address that was called",
            )
        })?;
        if self.guarded && !is_loopback(&host) && !self.is_public(&host) {
            return Err(Problem::new(
                Code::Forbidden,
                format!("`{host}` is not a name of this server"),
                "call it as `127.0.0.1` or `localhost`; behind a reverse proxy, set \
                 `serve.public_url`",
            ));
        }
        self.check_origin(request.headers(), &host)
    }

    fn check_origin(&self, headers: &HeaderMap, host: &str) -> Result<(), Problem> {
        let foreign = || {
            Problem::new(
                Code::Forbidden,
                "a web page of another origin may not call this server",
                "add the page's origin to `serve.allowed_origins`, if it is yours",
            )
        };
        let Some(origin) = headers.get(ORIGIN) else {
            // A page of another origin that only loads something sends no `Origin`.
            let is = |name, value: &str| headers.get(name).is_some_and(|given| given == value);
            let from_page = headers.contains_key(FETCH_SITE)
                && !is(FETCH_SITE, "same-origin")
                && !is(FETCH_SITE, "none");
            return match from_page && !is(FETCH_MODE, "navigate") {
                true => Err(foreign()),
                false => Ok(()),
            };
        };
        let Some(origin) = origin.to_str().ok().map(str::to_ascii_lowercase) else {
            return Err(foreign());
        };
        let own = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .is_some_and(|authority| authority == host);
        let allowed = self.origins.contains(&origin) || self.public.as_ref() == Some(&origin);
        match own || allowed {
            true => Ok(()),
            false => Err(foreign()),
        }
    }

    /// The origin of a page that comes from elsewhere and may: its browser wants to be told.
    pub(super) fn page(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        let named = origin.to_str().ok()?.to_ascii_lowercase();
        self.origins.contains(&named).then(|| origin.clone())
    }

    fn is_public(&self, host: &str) -> bool {
        let public = self.public.as_deref().unwrap_or_default();
        public
            .split_once("://")
            .is_some_and(|(_, name)| name == host)
    }

    /// The address by which the caller reaches the server.
    pub(super) fn base<B>(&self, request: &Request<B>) -> String {
        match (&self.public, host(request)) {
            (Some(public), _) => public.clone(),
            (None, Some(host)) => format!("http://{host}"),
            (None, None) => String::new(),
        }
    }
}

/// Tells a browser that a page of this origin may ask, and see what is answered.
pub(super) fn invite(headers: &mut HeaderMap, page: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, page);
    headers.append(VARY, HeaderValue::from_static("origin"));
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, last-event-id, mcp-method, mcp-name, \
             mcp-protocol-version, mcp-session-id",
        ),
        (
            ACCESS_CONTROL_EXPOSE_HEADERS,
            "mcp-session-id, retry-after, www-authenticate",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// The authority that was called, in lower case.
fn host<B>(request: &Request<B>) -> Option<String> {
    let mut named = request.headers().get_all(HOST).iter();
    let host = match (named.next(), named.next()) {
        (Some(host), None) => host.to_str().ok()?,
        (None, None) => request.uri().authority()?.as_str(),
        // Two names: whoever stands in front may have looked at the other one.
        (_, Some(_)) => return None,
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    (!host.is_empty() && host.bytes().all(fits)).then(|| host.to_ascii_lowercase())
}

/// Whether this is a name that only this machine has for itself.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) if port.is_empty() || is_port(port) => name,
            Some(_) | None => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
                name
            }
            Some(_) => return false,
            None => host,
        },
    };
    let address: Option<std::net::IpAddr> = name.parse().ok();
    name == "localhost" || address.is_some_and(|address| address.is_loopback())
}

fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request")
    }

    fn place(guarded: bool) -> Place {
        Place {
            guarded,
            public: Some("https://onward.example.org".to_owned()),
            origins: vec!["https://app.example.org".to_owned()],
        }
    }

    #[test]
    fn only_names_of_this_machine_and_the_public_one_are_ours() {
        for host in [
            "localhost",
            "LOCALHOST:7171",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]:7171",
            "[::1]",
            "onward.example.org",
        ] {
            assert!(
                place(true).check(&asked(&[("host", host)])).is_ok(),
                "{host}"
            );
        }
        for host in [
            "evil.example:7171",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[::1].evil.example",
            "[::1]x",
            "localhost:",
            "localhost:7171:1",
            "0.0.0.0",
            "onward.example.org:1",
            "a\"b",
            "",
        ] {
            assert!(
                place(true).check(&asked(&[("host", host)])).is_err(),
                "{host}"
            );
        }
        assert!(place(true).check(&asked(&[])).is_err());
        let two = asked(&[("host", "localhost"), ("host", "localhost")]);
        assert!(place(true).check(&two).is_err());
        assert!(
            place(false)
                .check(&asked(&[("host", "any.example")]))
                .is_ok()
        );
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let from = |origin: &str| {
            place(true).check(&asked(&[("host", "localhost:7171"), ("origin", origin)]))
        };
        for origin in [
            "http://localhost:7171",
            "https://app.example.org",
            "https://onward.example.org",
        ] {
            assert!(from(origin).is_ok(), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://localhost",
            "http://localhost:3000",
            "http://127.0.0.1:7171",
            "https://evil.example",
            "file://localhost:7171",
            "http://app.example.org",
        ] {
            assert!(from(origin).is_err(), "{origin}");
        }
    }

    #[test]
    fn a_page_that_only_loads_something_is_refused_too() {
        let fetched = |site: &str, mode: &str| {
            place(true).check(&asked(&[
                ("host", "localhost:7171"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
            ]))
        };
        assert!(fetched("same-origin", "cors").is_ok());
        assert!(fetched("none", "navigate").is_ok());
        assert!(fetched("cross-site", "navigate").is_ok(), "a link");
        assert!(fetched("cross-site", "no-cors").is_err());
        assert!(fetched("same-site", "cors").is_err());
    }
}
