//! Bytes through: a request to the API, and its answer back.
//!
//! Everything goes on as it came but what concerns only one connection (RFC 9110, 7.6.1), and `Host`.
//! Redirects are the agent's to follow. There is no time within which an answer must be there: models take
//! theirs, and agents have their own patience; whoever hangs up here hangs up there, too.

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

use super::dialect::dialect;
use crate::failure::{Failure, Result};

/// How long a connection may take to be there.
const CONNECT: Duration = Duration::from_secs(10);
/// Where requests go unless somebody says otherwise.
const ANTHROPIC: &str = "https://api.anthropic.com";
const OPENAI: &str = "https://api.openai.com";
/// What concerns only one connection, beside what `Connection` names.
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

/// Where requests go.
pub(super) struct Upstream {
    client: reqwest::Client,
    anthropic: Url,
    openai: Url,
}

/// A request that can be sent more than once.
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
}

impl Upstream {
    /// To this API, or to the vendors' own.
    pub(super) fn new(given: Option<&str>) -> Result<Self> {
        let [anthropic, openai] = match given {
            Some(given) => {
                let url = address(given)?;
                [url.clone(), url]
            }
            None => [address(ANTHROPIC)?, address(OPENAI)?],
        };
        let mut client = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none());
        // A proxy of the environment leads away from this machine.
        if is_loopback(&anthropic) {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|why| {
            let message = format!("nothing can be sent: {why}");
            Failure::failed(message, "check the authorities that this system trusts")
        })?;
        Ok(Self {
            client,
            anthropic,
            openai,
        })
    }

    /// What to send, and where to; none where the path makes no address.
    pub(super) fn outgoing(&self, parts: &Parts, api: Option<Api>) -> Option<Outgoing> {
        let base = match api {
            Some(Api::Anthropic) => &self.anthropic,
            Some(Api::Chat | Api::Responses) => &self.openai,
            None if is_for_anthropic(parts) => &self.anthropic,
            None => &self.openai,
        };
        let mut headers = parts.headers.clone();
        strip(&mut headers);
        headers.remove(HOST);
        // Our own side has told the agent to go on.
        headers.remove(EXPECT);
        Some(Outgoing {
            method: parts.method.clone(),
            url: joined(base, parts)?,
            headers,
        })
    }

    /// Sends a request that may be sent again, with this body.
    pub(super) async fn send(
        &self,
        outgoing: &Outgoing,
        body: Bytes,
    ) -> reqwest::Result<reqwest::Response> {
        let mut headers = outgoing.headers.clone();
        headers.remove(CONTENT_LENGTH);
        let request = self
            .client
            .request(outgoing.method.clone(), outgoing.url.clone());
        request.headers(headers).body(body).send().await
    }

    /// Sends a request whose body is passed on as it comes; what of it was read already goes first.
    pub(super) async fn stream(
        &self,
        outgoing: Outgoing,
        read: Vec<Bytes>,
        rest: Body,
    ) -> reqwest::Result<reqwest::Response> {
        let Outgoing {
            method,
            url,
            headers,
        } = outgoing;
        let has_body = headers.contains_key(CONTENT_LENGTH) || !http_body_is_empty(&rest);
        let request = self.client.request(method, url).headers(headers);
        let read = stream::iter(read.into_iter().map(Ok));
        let all = read.chain(rest.into_data_stream());
        match has_body {
            true => request.body(reqwest::Body::wrap_stream(all)).send().await,
            false => request.send().await,
        }
    }
}

impl Outgoing {
    /// The answer has to be readable here.
    pub(super) fn uncompressed(&mut self) {
        self.headers
            .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
}

fn http_body_is_empty(body: &Body) -> bool {
    use axum::body::HttpBody;
    body.is_end_stream()
}

/// The address of an API.
fn address(given: &str) -> Result<Url> {
    let wrong = |why: &str| {
        Failure::usage(
            format!("the flag `--upstream`: `{given}` {why}"),
            "give the address of the API, such as `https://api.anthropic.com`",
        )
    };
    let url: Url = given
        .trim_end_matches('/')
        .parse()
        .map_err(|_| wrong("is no address"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("does not begin with `https://` or `http://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("holds a password: keys come with the requests"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("has more than a path behind the host"));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

/// Whose a request is that is of none of the three APIs.
fn is_for_anthropic(parts: &Parts) -> bool {
    let path = parts.uri.path();
    path.contains("/v1/messages")
        || path.starts_with("/api/")
        || ["anthropic-version", "x-api-key"]
            .iter()
            .any(|name| parts.headers.contains_key(*name))
}

/// The address of a request: what it asks for, behind the API's own path. `/v1` may stand in both.
fn joined(base: &Url, parts: &Parts) -> Option<Url> {
    let before = base.path().trim_end_matches('/');
    let asked = parts.uri.path();
    let asked = match (before.ends_with("/v1"), asked.strip_prefix("/v1")) {
        (true, Some(rest)) if rest.starts_with('/') => rest,
        (true | false, _) => asked,
    };
    let mut url = base.clone();
    url.set_path(&format!("{before}{asked}"));
    url.set_query(parts.uri.query());
    url.has_host().then_some(url)
}

/// Takes out what concerns only one connection.
fn strip(headers: &mut HeaderMap) {
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

/// The head of an answer, for a body of our own.
pub(super) fn head(answer: &reqwest::Response) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = answer.status();
    answer.headers().clone_into(response.headers_mut());
    strip(response.headers_mut());
    response
}

/// An answer, passed on as it is.
pub(super) fn pass(answer: reqwest::Response) -> Response {
    let head = head(&answer);
    let body: reqwest::Body = answer.into();
    head.map(|()| Body::new(body))
}

/// An error of our own, in the API's own form.
pub(super) fn failed(api: Option<Api>, status: StatusCode, message: &str) -> Response {
    let error = dialect(api.unwrap_or(Api::Chat)).error(message);
    let mut response = Response::new(Body::from(error.to_string()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// The API cannot be reached.
pub(super) fn unreached(api: Option<Api>, why: &reqwest::Error) -> Response {
    // The error's own words name the address with its query; the reason stands at the end of its chain.
    let mut reason: &dyn std::error::Error = why;
    while let Some(deeper) = reason.source() {
        reason = deeper;
    }
    let message = format!(
        "onward proxy: the API cannot be reached: {reason}; check the network, and `--upstream`"
    );
    tracing::warn!(%reason, "the API cannot be reached");
    failed(api, StatusCode::BAD_GATEWAY, &message)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn asked(path: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn a_path_is_put_behind_the_api_s_own_and_v1_is_not_doubled() {
        for (base, path, joined_to) in [
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
            let base = address(base).expect("an address");
            let url = joined(&base, &asked(path, &[])).expect("an address");
            assert_eq!(url.as_str(), joined_to);
        }
    }

    #[test]
    fn what_is_of_no_api_goes_where_its_headers_say() {
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
            assert_eq!(is_for_anthropic(&asked(path, headers)), anthropic, "{path}");
        }
    }

    #[test]
    fn what_concerns_one_connection_is_not_passed_on() {
        let mut headers = asked(
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
        strip(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-api-key"]);
    }

    #[test]
    fn an_address_that_leads_nowhere_is_refused() {
        for wrong in [
            "",
            "api.example.com",
            "ftp://a",
            "http://",
            "http://u:p@a",
            "http://a?b",
        ] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
