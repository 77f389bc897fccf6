//! Forwards requests to the API, and relays its responses.
//!
//! Everything is forwarded except `Host` and hop-by-hop headers (RFC 9110, section 7.6.1).
//! Redirects are returned to the agent. There is no response timeout: models may take long, and
//! agents have timeouts. If the agent disconnects, the upstream request is cancelled.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::stream;
use onward_core::transcript::Api;
use reqwest::Url;

use super::codec::codec;
use crate::failure::{Failure, Result};

/// The timeout for connecting to the API.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The default APIs.
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const OPENAI_URL: &str = "https://api.openai.com";
/// Hop-by-hop headers, in addition to those named in `Connection`.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The upstream APIs.
pub(super) struct Upstream {
    client: reqwest::Client,
    anthropic: Url,
    openai: Url,
}

/// The head of a request, which can be sent more than once.
pub(super) struct OutgoingRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
}

impl Upstream {
    /// Creates a client for the API at `url`, or for the vendors' APIs.
    pub(super) fn new(url: Option<&str>) -> Result<Self> {
        let [anthropic, openai] = match url {
            Some(url) => {
                let url = parse_url(url)?;
                [url.clone(), url]
            }
            None => [parse_url(ANTHROPIC_URL)?, parse_url(OPENAI_URL)?],
        };
        let mut client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        // A proxy set in the environment cannot reach a loopback address.
        if is_loopback(&anthropic) {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| {
            let message = format!("cannot create an HTTP client: {error}");
            Failure::failed(message, "check the system's CA certificates")
        })?;
        Ok(Self {
            client,
            anthropic,
            openai,
        })
    }

    /// Prepares a request to the API, if its path forms a valid URL.
    pub(super) fn prepare(&self, parts: &Parts, api: Option<Api>) -> Option<OutgoingRequest> {
        let base = match api {
            Some(Api::Anthropic) => &self.anthropic,
            Some(Api::Chat | Api::Responses) => &self.openai,
            None if is_for_anthropic(parts) => &self.anthropic,
            None => &self.openai,
        };
        let mut headers = parts.headers.clone();
        strip_hop_by_hop(&mut headers);
        headers.remove(HOST);
        // The HTTP server has handled `Expect` already.
        headers.remove(EXPECT);
        Some(OutgoingRequest {
            method: parts.method.clone(),
            url: join_url(base, parts)?,
            headers,
        })
    }

    /// Sends a request with a body.
    pub(super) async fn send(
        &self,
        outgoing: &OutgoingRequest,
        body: Bytes,
    ) -> reqwest::Result<reqwest::Response> {
        let mut headers = outgoing.headers.clone();
        headers.remove(CONTENT_LENGTH);
        let request = self
            .client
            .request(outgoing.method.clone(), outgoing.url.clone());
        request.headers(headers).body(body).send().await
    }

    /// Sends a request and streams its body: first the chunks read so far, then the rest.
    pub(super) async fn stream(
        &self,
        outgoing: OutgoingRequest,
        read: Vec<Bytes>,
        rest: Body,
    ) -> reqwest::Result<reqwest::Response> {
        let OutgoingRequest {
            method,
            url,
            headers,
        } = outgoing;
        let has_body = headers.contains_key(CONTENT_LENGTH) || !is_empty_body(&rest);
        let request = self.client.request(method, url).headers(headers);
        let read = stream::iter(read.into_iter().map(Ok));
        let all = read.chain(rest.into_data_stream());
        if has_body {
            request.body(reqwest::Body::wrap_stream(all)).send().await
        } else {
            request.send().await
        }
    }
}

impl OutgoingRequest {
    /// Requests an uncompressed response, which the proxy can read.
    pub(super) fn disable_compression(&mut self) {
        self.headers
            .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
}

fn is_empty_body(body: &Body) -> bool {
    use axum::body::HttpBody;
    body.is_end_stream()
}

/// Parses the URL of an API.
fn parse_url(text: &str) -> Result<Url> {
    let invalid = |reason: &str| {
        Failure::usage(
            format!("invalid `--upstream`: `{text}` {reason}"),
            "set the URL of the API, for example `https://api.anthropic.com`",
        )
    };
    let url: Url = text
        .trim_end_matches('/')
        .parse()
        .map_err(|_| invalid("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(invalid("does not start with `https://` or `http://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("contains credentials; the agent sends its API key"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(invalid("contains a query or a fragment"));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

/// Whether a request to another path is meant for Anthropic.
fn is_for_anthropic(parts: &Parts) -> bool {
    let path = parts.uri.path();
    path.contains("/v1/messages")
        || path.starts_with("/api/")
        || ["anthropic-version", "x-api-key"]
            .iter()
            .any(|name| parts.headers.contains_key(*name))
}

/// The URL of a request: its path appended to that of the API. `/v1` in both is not repeated. `None`
/// if the path leaves that of the API (`..`, also encoded).
fn join_url(base: &Url, parts: &Parts) -> Option<Url> {
    let before = base.path().trim_end_matches('/');
    let path = parts.uri.path();
    let path = match (before.ends_with("/v1"), path.strip_prefix("/v1")) {
        (true, Some(rest)) if rest.starts_with('/') => rest,
        (true | false, _) => path,
    };
    let mut url = base.clone();
    url.set_path(&format!("{before}{path}"));
    url.set_query(parts.uri.query());
    let is_below = |path: &str| {
        path.strip_prefix(before)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    (url.has_host() && is_below(url.path())).then_some(url)
}

/// Removes the headers that concern a single connection.
fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// The status and headers of a response, for another body.
pub(super) fn response_head(upstream: &reqwest::Response) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = upstream.status();
    upstream.headers().clone_into(response.headers_mut());
    strip_hop_by_hop(response.headers_mut());
    response
}

/// Relays a response.
pub(super) fn relay(response: reqwest::Response) -> Response {
    let head = response_head(&response);
    let body: reqwest::Body = response.into();
    head.map(|()| Body::new(body))
}

/// An error of the proxy, in the format of the API.
pub(super) fn error_response(api: Option<Api>, status: StatusCode, message: &str) -> Response {
    let error = codec(api.unwrap_or(Api::Chat)).error_body(message);
    let mut response = Response::new(Body::from(error.to_string()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// The error for an API that cannot be reached.
pub(super) fn unreachable_response(api: Option<Api>, error: &reqwest::Error) -> Response {
    // The error itself contains the URL with its query. Only the root cause is reported.
    let mut reason: &dyn std::error::Error = error;
    while let Some(deeper) = reason.source() {
        reason = deeper;
    }
    let message =
        format!("onward proxy: cannot reach the API: {reason}; check the network and `--upstream`");
    tracing::warn!(%reason, "cannot reach the API");
    error_response(api, StatusCode::BAD_GATEWAY, &message)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn parts(path: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("valid request").into_parts().0
    }

    #[test]
    fn appends_the_path_to_that_of_the_api_without_repeating_v1() {
        for (base, path, expected) in [
            (
                "http://a",
                "/v1/messages?beta=true",
                "http://a/v1/messages?beta=true",
            ),
            ("http://a/", "/v1/models", "http://a/v1/models"),
            (
                "http://a/api/v1",
                "/v1/responses",
                "http://a/api/v1/responses",
            ),
            (
                "http://a/v1/",
                "/chat/completions",
                "http://a/v1/chat/completions",
            ),
            ("http://a/v1", "/v1beta/models", "http://a/v1/v1beta/models"),
            ("http://a/x", "/v1/messages", "http://a/x/v1/messages"),
        ] {
            let base = parse_url(base).expect("valid URL");
            let url = join_url(&base, &parts(path, &[])).expect("valid URL");
            assert_eq!(url.as_str(), expected);
        }
    }

    #[test]
    fn rejects_paths_that_leave_the_path_of_the_api() {
        for (base, path) in [
            ("http://a/x", "/../admin"),
            ("http://a/x", "/v1/../../admin"),
            ("http://a/x", "/%2e%2e/admin"),
            ("http://a/x", "/v1/%2E./.%2e/admin"),
            ("http://a/x", "/../xy/admin"),
            ("http://a/api/v1", "/v1/../admin"),
        ] {
            let base = parse_url(base).expect("valid URL");
            let url = join_url(&base, &parts(path, &[]));
            assert_eq!(url, None, "{path}");
        }
        let base = parse_url("http://a/x").expect("valid URL");
        let url = join_url(&base, &parts("/v1/a/../messages", &[]));
        assert_eq!(
            url.map(String::from),
            Some("http://a/x/v1/messages".to_owned())
        );
    }

    #[test]
    fn selects_the_vendor_of_other_paths_by_path_and_headers() {
        for (path, headers, anthropic) in [
            (
                "/v1/models",
                &[("anthropic-version", "2023-06-01")][..],
                true,
            ),
            ("/v1/models", &[("authorization", "Bearer k")], false),
            ("/v1/messages/count_tokens", &[], true),
            ("/api/hello", &[], true),
            ("/v1/embeddings", &[], false),
        ] {
            assert_eq!(is_for_anthropic(&parts(path, headers)), anthropic, "{path}");
        }
    }

    #[test]
    fn removes_hop_by_hop_headers() {
        let mut headers = parts(
            "/",
            &[
                ("connection", "keep-alive, x-mine"),
                ("x-mine", "1"),
                ("keep-alive", "5"),
                ("te", "trailers"),
                ("transfer-encoding", "chunked"),
                ("x-api-key", "k"),
            ],
        )
        .headers;
        strip_hop_by_hop(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-api-key"]);
    }

    #[test]
    fn rejects_an_invalid_upstream_url() {
        for invalid in [
            "",
            "api.example.com",
            "ftp://a",
            "http://",
            "http://u:p@a",
            "http://a?b",
        ] {
            assert!(parse_url(invalid).is_err(), "{invalid}");
        }
    }
}
