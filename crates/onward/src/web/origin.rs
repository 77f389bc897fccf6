//! Checks of the `Host` and `Origin` headers.
//!
//! A web page can send requests to this machine, and DNS rebinding can point a foreign name at it.
//! A server on loopback therefore accepts loopback names and the configured public name only, and
//! requests from pages only if the page has the same or an allowed origin. Clients other than
//! browsers send no `Origin` and are not affected.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, HOST, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use onward_core::Code;

use super::problem::Problem;

/// Fetch metadata: how a request relates to the page that sent it.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Accepted hosts and origins.
#[derive(Debug)]
pub(crate) struct OriginPolicy {
    /// Accept loopback names and the public name only.
    pub(crate) loopback_only: bool,
    /// The public origin of the server.
    pub(crate) public: Option<String>,
    /// Further origins whose pages may send requests.
    pub(crate) allowed_origins: Vec<String>,
}

impl OriginPolicy {
    /// Rejects requests with a foreign host name or from a page of a foreign origin.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let host = host(request).ok_or_else(|| {
            Problem::new(
                Code::InvalidInput,
                "missing or invalid `Host` header",
                "send a `Host` header with the requested address",
            )
        })?;
        if self.loopback_only && !is_loopback(&host) && !self.is_public(&host) {
            return Err(Problem::new(
                Code::Forbidden,
                format!("`{host}` is not a host name of this server"),
                "use `127.0.0.1` or `localhost`; behind a reverse proxy, set \
                 `serve.public_url`",
            ));
        }
        self.check_origin(request.method(), request.headers(), &host)
    }

    /// Whether browsers reach the server over HTTPS, so that cookies can be `Secure`.
    pub(super) fn is_secure(&self) -> bool {
        let public = self.public.as_deref();
        public.is_some_and(|public| public.starts_with("https://"))
    }

    fn check_origin(
        &self,
        method: &Method,
        headers: &HeaderMap,
        host: &str,
    ) -> Result<(), Problem> {
        let foreign = || {
            Problem::new(
                Code::Forbidden,
                "cross-origin request from a web page",
                "add the page's origin to `serve.allowed_origins` if you trust it",
            )
        };
        let Some(origin) = headers.get(ORIGIN) else {
            // A cross-origin GET without CORS, such as an image, sends no `Origin`. Only a link to a
            // page is allowed.
            let is = |name, value: &str| headers.get(name).is_some_and(|header| header == value);
            let from_page = headers.contains_key(FETCH_SITE)
                && !is(FETCH_SITE, "same-origin")
                && !is(FETCH_SITE, "none");
            let is_link = method == Method::GET && is(FETCH_MODE, "navigate");
            return if from_page && !is_link {
                Err(foreign())
            } else {
                Ok(())
            };
        };
        let Some(origin) = origin.to_str().ok().map(str::to_ascii_lowercase) else {
            return Err(foreign());
        };
        let own = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .is_some_and(|authority| authority == host);
        let allowed =
            self.allowed_origins.contains(&origin) || self.public.as_ref() == Some(&origin);
        if own || allowed {
            Ok(())
        } else {
            Err(foreign())
        }
    }

    /// The origin for CORS headers, if the request comes from an allowed foreign origin.
    pub(super) fn cors_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        let name = origin.to_str().ok()?.to_ascii_lowercase();
        self.allowed_origins.contains(&name).then(|| origin.clone())
    }

    fn is_public(&self, host: &str) -> bool {
        let public = self.public.as_deref().unwrap_or_default();
        public
            .split_once("://")
            .is_some_and(|(_, name)| name == host)
    }

    /// The URL by which the caller reaches the server.
    pub(super) fn base<B>(&self, request: &Request<B>) -> String {
        match (&self.public, host(request)) {
            (Some(public), _) => public.clone(),
            (None, Some(host)) => format!("http://{host}"),
            (None, None) => String::new(),
        }
    }
}

/// Allows pages of this origin to read the response.
pub(super) fn add_cors_headers(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("origin"));
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, last-event-id, mcp-method, mcp-name, \
             mcp-protocol-version, mcp-session-id, x-request-id",
        ),
        (
            ACCESS_CONTROL_EXPOSE_HEADERS,
            "mcp-session-id, retry-after, www-authenticate, x-request-id",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// The requested authority, in lower case.
fn host<B>(request: &Request<B>) -> Option<String> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok()?,
        (None, None) => request.uri().authority()?.as_str(),
        // Two headers: a reverse proxy may have checked the other one.
        (_, Some(_)) => return None,
    };
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    (!host.is_empty() && host.bytes().all(is_valid)).then(|| host.to_ascii_lowercase())
}

/// Whether the host is a loopback name or address.
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

    fn request(headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("valid request")
    }

    fn policy(loopback_only: bool) -> OriginPolicy {
        OriginPolicy {
            loopback_only,
            public: Some("https://onward.example.org".to_owned()),
            allowed_origins: vec!["https://app.example.org".to_owned()],
        }
    }

    #[test]
    fn accepts_loopback_names_and_the_public_name_only() {
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
                policy(true).check(&request(&[("host", host)])).is_ok(),
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
                policy(true).check(&request(&[("host", host)])).is_err(),
                "{host}"
            );
        }
        assert!(policy(true).check(&request(&[])).is_err());
        let two = request(&[("host", "localhost"), ("host", "localhost")]);
        assert!(policy(true).check(&two).is_err());
        assert!(
            policy(false)
                .check(&request(&[("host", "any.example")]))
                .is_ok()
        );
    }

    #[test]
    fn rejects_pages_of_other_origins() {
        let from = |origin: &str| {
            policy(true).check(&request(&[("host", "localhost:7171"), ("origin", origin)]))
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
    fn rejects_cross_site_requests_except_links() {
        let check_method = |method: Method, site: &str, mode: &str| {
            let mut request = request(&[
                ("host", "localhost:7171"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
            ]);
            *request.method_mut() = method;
            policy(true).check(&request)
        };
        let check = |site: &str, mode: &str| check_method(Method::GET, site, mode);
        for method in [Method::POST, Method::DELETE, Method::PUT, Method::HEAD] {
            for site in ["cross-site", "same-site"] {
                let checked = check_method(method.clone(), site, "navigate");
                assert!(checked.is_err(), "{method} {site}");
            }
            assert!(check_method(method, "same-origin", "navigate").is_ok());
        }
        assert!(check("same-origin", "cors").is_ok());
        assert!(check("none", "navigate").is_ok());
        assert!(check("cross-site", "navigate").is_ok(), "a link");
        assert!(check("cross-site", "no-cors").is_err());
        assert!(check("same-site", "cors").is_err());
    }
}
