//! Requests of browsers: the paths of the dashboard, and redirects to the sign-in page.

use axum::extract::Request;
use axum::http::header::{ACCEPT, LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};

use super::{Site, cookies};
use crate::decision_link::PATH_PREFIX;

/// Path prefixes that are not part of the dashboard.
const NON_PAGE_PREFIXES: [&str; 6] = [
    "/api/",
    "/mcp",
    "/metrics",
    "/healthz",
    "/readyz",
    "/.well-known/",
];

/// Whether a path belongs to the dashboard.
pub(super) fn is_page(path: &str) -> bool {
    !NON_PAGE_PREFIXES
        .iter()
        .any(|prefix| path.starts_with(prefix))
}

/// Dashboard paths that need no authentication: sign-in, assets and decision links, whose path is the
/// credential.
pub(super) fn is_public(path: &str) -> bool {
    let prefixes = ["/login/", "/assets/", PATH_PREFIX];
    path == "/login" || prefixes.iter().any(|prefix| path.starts_with(prefix))
}

/// Whether the request comes from a browser that expects a page.
pub(super) fn accepts_html(request: &Request) -> bool {
    let accept = request.headers().get(ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    is_page(request.uri().path()) && accept.is_some_and(|kinds| kinds.contains("text/html"))
}

/// Redirects to the sign-in page, which returns to the requested page afterwards.
pub(super) fn redirect_to_login(site: &Site, request: &Request) -> Response {
    let back = match request.method() {
        &Method::GET => request.uri().path_and_query().map(|path| path.as_str()),
        _ => None,
    };
    let mut response = redirect(&login_url(back.unwrap_or("/")));
    let is_secure = site.auth.origin_policy.is_secure();
    if cookies::session_cookie(request.headers(), is_secure).is_some()
        && site.auth.local_user.is_none()
    {
        // The session has expired or its token was revoked.
        if let Ok(cookie) = HeaderValue::try_from(cookies::clear_cookie(is_secure)) {
            response.headers_mut().insert(SET_COOKIE, cookie);
        }
    }
    response
}

/// The URL of the sign-in page, with the page to return to.
fn login_url(back: &str) -> String {
    match local_path(back) {
        "/" => "/login".to_owned(),
        back => match askama::filters::urlencode(back) {
            Ok(back) => format!("/login?back={back}"),
            Err(_) => "/login".to_owned(),
        },
    }
}

/// A path on this server, or `/` for anything else, which prevents open redirects.
pub(super) fn local_path(back: &str) -> &str {
    let plain = back.bytes().all(|byte| byte.is_ascii_graphic());
    let is_path = back.starts_with('/') && !back.starts_with("//") && !back.contains('\\');
    if plain && is_path && !back.starts_with("/login") {
        back
    } else {
        "/"
    }
}

pub(super) fn redirect(url: &str) -> Response {
    let url = HeaderValue::try_from(url).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, url)]).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_to_paths_on_this_server_only() {
        assert_eq!(local_path("/plans/1?tab=audit"), "/plans/1?tab=audit");
        for foreign in [
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "",
            "/login?back=/login",
            "/a\r\nSet-Cookie: a",
        ] {
            assert_eq!(local_path(foreign), "/", "{foreign}");
        }
        assert_eq!(login_url("/plans?q=a&b"), "/login?back=/plans%3Fq%3Da%26b");
        assert_eq!(login_url("/"), "/login");
    }
}
