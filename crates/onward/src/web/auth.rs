//! Authentication middleware: resolves every request to a [`Caller`] or rejects it.
//!
//! On loopback without configured access, every request runs as the local user. Otherwise a request
//! needs an Onward token, a token of the configured identity provider, or, on pages, a session
//! cookie. An invalid token is rejected even where none is required. Permissions are checked later,
//! by the engine.

use std::hash::BuildHasher;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use onward_core::{Code, Role};
use onward_engine::{Caller, Engine, Error};

use super::auth_error::{AuthError, TOKEN_REQUIRED};
use super::browser;
use super::cookies::{self, CookieSigner, Session};
use super::issuer::{self, INVALID_TOKEN, Issuer};
use super::origin::{self, OriginPolicy};
use super::problem::Problem;
use super::trace::RequestTenant;
use super::{Site, metadata, server_card};

/// Prefix of Onward's own tokens.
const TOKEN_PREFIX: &str = "onw_";
/// Hint for requests without a bearer token.
const SEND_TOKEN: &str = "send one header `Authorization: Bearer onw_…`; the operator creates a \
    token with `onward token create`";

/// Paths that need no authentication: health checks, OAuth metadata and discovery.
pub(super) const PUBLIC_PATHS: [&str; 6] = [
    "/healthz",
    "/readyz",
    metadata::SERVER_PATH,
    metadata::MCP_PATH,
    server_card::CARD_PATH,
    server_card::CATALOG_PATH,
];

/// Authentication settings and keys.
pub(super) struct Auth {
    pub(super) origin_policy: OriginPolicy,
    /// The user of this machine, if requests need no token.
    pub(super) local_user: Option<Caller>,
    /// The identity provider whose tokens are accepted in addition to Onward's own.
    pub(super) issuer: Option<Issuer>,
    /// Signs session cookies and CSRF tokens.
    pub(super) cookie_signer: CookieSigner,
    /// Hashes credentials to rate-limit keys, so that no secret is kept.
    pub(super) hasher: std::hash::RandomState,
}

/// An authenticated caller.
#[derive(Clone)]
pub(super) struct Principal {
    pub(super) caller: Caller,
    /// Key of the token or user for rate limits and shares.
    pub(super) key: u64,
    /// Whether this is the user of an open server.
    pub(super) is_local_user: bool,
}

impl Auth {
    /// Identifies the caller. Session cookies are accepted on page paths only.
    pub(super) async fn identify(
        &self,
        engine: &Engine,
        headers: &HeaderMap,
        path: &str,
    ) -> Result<Principal, AuthError> {
        let mut authorization = headers.get_all(AUTHORIZATION).iter();
        let Some(first) = authorization.next() else {
            if let Some(caller) = self.local_user.clone() {
                return Ok(Principal {
                    is_local_user: true,
                    ..self.principal("", caller)
                });
            }
            let cookie = cookies::session_cookie(headers, self.origin_policy.is_secure());
            let cookie = cookie.filter(|_| browser::is_page(path));
            let cookie = cookie.ok_or(AuthError::Missing)?;
            let session = self.cookie_signer.read(cookie, engine.now());
            let session = session.ok_or(AuthError::SessionExpired)?;
            let session_key = self.cookie_signer.session_key(cookie);
            if engine.is_signed_out(session.tenant(), &session_key).await? {
                return Err(AuthError::SessionExpired);
            }
            let caller = match session {
                Session::Token { tenant, token } => engine.caller_for_token(&tenant, token).await?,
                Session::User {
                    tenant,
                    subject,
                    role,
                } => self.user(engine, &tenant, &subject, role).await?,
            };
            return Ok(self.principal(cookie, caller));
        };
        if authorization.next().is_some() {
            return Err(AuthError::Malformed("more than one `Authorization` header"));
        }
        let token = first.to_str().ok().and_then(bearer);
        let token = token.ok_or(AuthError::Malformed(
            "the `Authorization` header is not `Bearer TOKEN`",
        ))?;
        if token.starts_with(TOKEN_PREFIX) {
            let caller = engine.authenticate(token).await?;
            return Ok(self.principal(token, caller));
        }
        let Some(issuer) = &self.issuer else {
            return Err(AuthError::Invalid(INVALID_TOKEN));
        };
        let caller = issuer.caller(engine, token).await?;
        let name = caller.name.clone();
        Ok(self.principal(&name, caller))
    }

    /// A user who signed in through the identity provider. Sessions end when its client is removed.
    async fn user(
        &self,
        engine: &Engine,
        tenant: &str,
        subject: &str,
        role: Role,
    ) -> Result<Caller, AuthError> {
        let client = self
            .issuer
            .as_ref()
            .and_then(|issuer| issuer.client.as_ref());
        if client.is_none() {
            return Err(AuthError::SessionExpired);
        }
        match engine.operator(tenant, &format!("user:{subject}")).await {
            Ok(caller) => Ok(Caller { role, ..caller }),
            Err(Error::NotFound { .. }) => Err(AuthError::SessionExpired),
            Err(error) => Err(error.into()),
        }
    }

    /// A caller whose rate limits and shares are those of this name in its tenant.
    pub(super) fn principal(&self, name: &str, caller: Caller) -> Principal {
        Principal {
            key: self.hasher.hash_one((&caller.tenant, name)),
            caller,
            is_local_user: false,
        }
    }

    /// The response to a failed authentication, with a challenge (RFC 6750, RFC 9728).
    fn problem(&self, error: AuthError, base: &str, path: &str) -> Problem {
        let metadata = format!("{base}{}", metadata::path_for(path));
        match error {
            AuthError::Failed(problem) => problem,
            AuthError::Missing => Problem::new(Code::Unauthorized, TOKEN_REQUIRED, SEND_TOKEN)
                .header(
                    WWW_AUTHENTICATE,
                    format!("Bearer resource_metadata=\"{metadata}\""),
                ),
            AuthError::Malformed(reason) => invalid_token(reason, SEND_TOKEN, &metadata),
            AuthError::Invalid(reason) => {
                let hint = "get a new token from an owner or admin of the tenant";
                invalid_token(reason, hint, &metadata)
            }
            AuthError::SessionExpired => {
                invalid_token("the session has expired", "sign in again", &metadata)
            }
            AuthError::InsufficientScope(missing) => Problem::new(
                Code::Forbidden,
                format!("the token lacks the scope `{}`", missing.join(" ")),
                "sign in again and request this scope",
            )
            .header(WWW_AUTHENTICATE, {
                let scopes = issuer::required_scopes(self.issuer.as_ref());
                format!(
                    "Bearer error=\"insufficient_scope\", scope=\"{scopes}\", \
                     resource_metadata=\"{metadata}\""
                )
            }),
        }
    }
}

/// The response to invalid credentials.
fn invalid_token(reason: &str, hint: &str, metadata: &str) -> Problem {
    Problem::new(Code::Unauthorized, reason, hint).header(
        WWW_AUTHENTICATE,
        format!("Bearer error=\"invalid_token\", resource_metadata=\"{metadata}\""),
    )
}

/// The token of a `Bearer` authorization header.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Middleware: checks host and origin, authenticates the caller and adds CORS headers.
pub(super) async fn authenticate(
    State(site): State<Arc<Site>>,
    request: Request,
    next: Next,
) -> Response {
    if let Err(problem) = site.auth.origin_policy.check(&request) {
        return problem.into_response();
    }
    let cors_origin = site.auth.origin_policy.cors_origin(request.headers());
    let mut response = match (&cors_origin, request.method()) {
        // CORS preflight.
        (Some(_), &Method::OPTIONS) => StatusCode::NO_CONTENT.into_response(),
        (Some(_) | None, _) => run_authenticated(site, request, next).await,
    };
    if let Some(origin) = cors_origin {
        origin::add_cors_headers(response.headers_mut(), origin);
    }
    response
}

/// Runs the request as its caller. Public paths run without one.
async fn run_authenticated(site: Arc<Site>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let read = [Method::GET, Method::HEAD].contains(request.method());
    if (read && PUBLIC_PATHS.contains(&path)) || browser::is_public(path) {
        return next.run(request).await;
    }
    // Boxed: the future of a waiting request should be small.
    let identified = Box::pin(site.auth.identify(&site.engine, request.headers(), path));
    let principal = match identified.await {
        Ok(principal) => principal,
        Err(
            AuthError::Missing
            | AuthError::Malformed(_)
            | AuthError::Invalid(_)
            | AuthError::SessionExpired,
        ) if browser::accepts_html(&request) => {
            return browser::redirect_to_login(&site, &request);
        }
        Err(error) => {
            let base = site.auth.origin_policy.base(&request);
            return site.auth.problem(error, &base, path).into_response();
        }
    };
    if let Some(tenant) = request.extensions().get::<RequestTenant>() {
        // Set once per request.
        drop(tenant.set(Arc::clone(&principal.caller.tenant)));
    }
    if let Err(problem) = site.limits.check_rate(&principal) {
        return problem.into_response();
    }
    request.extensions_mut().insert(principal.caller.clone());
    request.extensions_mut().insert(principal);
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::bearer;

    #[test]
    fn parses_the_token_of_a_bearer_header() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer  abc "), Some("abc"));
        for wrong in ["", "abc", "Bearer", "Bearer ", "Basic abc", "Bearerabc"] {
            assert_eq!(bearer(wrong), None, "{wrong}");
        }
    }
}
