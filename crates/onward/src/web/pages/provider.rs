//! `/login/provider` and `/login/callback`: sign-in through the identity provider.
//!
//! The callback responds with a page, not with another redirect: browsers do not send the
//! `SameSite=Strict` session cookie on a redirect chain that started at another site.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use onward_core::Code;
use onward_engine::Owner;

use super::layout::{Layout, render};
use super::{Fields, PageError, PageResult, redirect};
use crate::output::format;
use crate::web::Site;
use crate::web::address::Address;
use crate::web::auth_error::AuthError;
use crate::web::browser::local_path;
use crate::web::cookies::{self, Session, find_cookie};
use crate::web::issuer::Issuer;
use crate::web::keys::Discovery;
use crate::web::problem::Problem;
use crate::web::sign_in::{self, Client, SignInAttempt};

/// The cookie of the sign-in attempt.
const COOKIE_NAME: &str = "onward_sign_in";
/// Maximum characters of the provider's error message.
const MAX_ERROR_CHARS: usize = 300;

#[derive(Template)]
#[template(path = "signed_in.html")]
struct SignedIn {
    layout: Layout,
    user: String,
    back: String,
}

/// The provider, if users can sign in through one.
fn provider(site: &Site) -> Result<(&Issuer, &Client), Problem> {
    let issuer = site.auth.issuer.as_ref();
    let client = issuer.and_then(|issuer| Some((issuer, issuer.client.as_ref()?)));
    client.ok_or_else(|| {
        Problem::new(
            Code::NotConfigured,
            "sign-in through an identity provider is not configured",
            "sign in with a token, or set `client_id` in `[access.issuer]`",
        )
    })
}

async fn discovery(issuer: &Issuer) -> Result<Arc<Discovery>, Problem> {
    issuer.keys.discovery().await.map_err(|error| {
        tracing::warn!(
            error,
            "cannot fetch the identity provider's discovery document"
        );
        sign_in::provider_unreachable()
    })
}

/// The base URL of the server. An unchecked `Host` header must not determine the redirect URI.
fn base<B>(site: &Site, request: &axum::http::Request<B>) -> Result<String, Problem> {
    let policy = &site.auth.origin_policy;
    if policy.public.is_some() || policy.loopback_only {
        Ok(policy.base(request))
    } else {
        Err(Problem::new(
            Code::NotConfigured,
            "the public URL of the server is not configured",
            "ask the operator of this server to set `serve.public_url`",
        ))
    }
}

/// The `Set-Cookie` header that stores a sign-in attempt, or clears it.
fn cookie(site: &Site, attempt: Option<&SignInAttempt>) -> Option<HeaderValue> {
    let value = attempt.map(|attempt| attempt.write(&site.auth.cookie_signer, site.engine.now()));
    let seconds = if value.is_some() {
        sign_in::ATTEMPT_LIFETIME.as_secs()
    } else {
        0
    };
    let value = value.unwrap_or_default();
    let is_secure = site.auth.origin_policy.is_secure();
    // `Lax`, because the callback is a cross-site navigation.
    let text = cookies::set_cookie(COOKIE_NAME, &value, "Lax", seconds, is_secure);
    HeaderValue::try_from(text).ok()
}

fn append(response: &mut Response, cookie: Option<HeaderValue>) {
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

/// Redirects to the provider.
pub(super) async fn start(State(site): State<Arc<Site>>, request: Request) -> PageResult {
    let (issuer, client) = provider(&site)?;
    let base = base(&site, &request)?;
    let fields = Fields::from_query(request.uri());
    let mut state = [0; 32];
    getrandom::fill(&mut state).map_err(|_| sign_in::provider_unreachable())?;
    let attempt = SignInAttempt {
        state: cookies::hex(&state),
        back: local_path(fields.get("back").unwrap_or("/")).to_owned(),
    };
    let discovery = discovery(issuer).await?;
    let signer = &site.auth.cookie_signer;
    let url = client.authorization_url(&discovery, &issuer.scopes, &base, &attempt, signer)?;
    let mut response = redirect(&url);
    append(&mut response, cookie(&site, Some(&attempt)));
    Ok(response)
}

/// Handles the provider's redirect back.
pub(super) async fn callback(State(site): State<Arc<Site>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = complete_sign_in(&site, &axum::http::Request::from_parts(head, ())).await;
    let mut response = match result {
        Ok(response) => response,
        Err(error) => axum::response::IntoResponse::into_response(error),
    };
    // An attempt can be used once, whatever its result.
    append(&mut response, cookie(&site, None));
    response
}

async fn complete_sign_in(site: &Arc<Site>, request: &axum::http::Request<()>) -> PageResult {
    let (issuer, client) = provider(site)?;
    let base = base(site, request)?;
    let fields = Fields::from_query(request.uri());
    let attempt = attempt(site, request.headers(), &fields)?;
    if fields.get("iss").is_some_and(|iss| iss != issuer.url) {
        return Err(sign_in::sign_in_failed("response of another identity provider").into());
    }
    if let Some(error) = fields.get("error") {
        let error = fields.get("error_description").unwrap_or(error);
        let error: String = format::sanitize_line(error)
            .chars()
            .take(MAX_ERROR_CHARS)
            .collect();
        let message = format!("the identity provider returned an error: {error}");
        return Err(sign_in::sign_in_failed(message).into());
    }
    let code = fields.get("code").ok_or_else(|| {
        sign_in::sign_in_failed("the identity provider returned no authorization code")
    })?;
    site.limits.check_exchange(Address::from_request(request))?;
    let discovery = discovery(issuer).await?;
    let signer = &site.auth.cookie_signer;
    let response = client.exchange_code(&discovery, code, &base, &attempt.state, signer);
    let response = response.await?;
    let nonce = sign_in::nonce(signer, &attempt.state);
    let caller = issuer.signed_in_user(&site.engine, &response, client.id(), &nonce);
    let caller = caller.await.map_err(sign_in_problem)?;
    site.engine.record_sign_in(&caller).await?;
    let subject = Owner::person_of(&caller.name);
    let session = Session::User {
        tenant: Arc::clone(&caller.tenant),
        subject: subject.to_owned(),
        role: caller.role,
    };
    let mut response = render(&SignedIn {
        layout: Layout::anonymous("Signed in"),
        user: format::sanitize_line(subject),
        back: local_path(&attempt.back).to_owned(),
    })?;
    let is_secure = site.auth.origin_policy.is_secure();
    let cookie = signer.set_cookie(&session, site.engine.now(), is_secure);
    append(&mut response, HeaderValue::try_from(cookie).ok());
    Ok(response)
}

/// The sign-in attempt of this browser, if it has the state of the callback.
fn attempt(site: &Site, headers: &HeaderMap, fields: &Fields) -> Result<SignInAttempt, PageError> {
    let signer = &site.auth.cookie_signer;
    let attempt = find_cookie(headers, COOKIE_NAME, site.auth.origin_policy.is_secure());
    let attempt = attempt.and_then(|value| SignInAttempt::read(signer, value, site.engine.now()));
    let state = fields.get("state").unwrap_or_default();
    let attempt = attempt.filter(|attempt| attempt.state == state);
    let message = "this browser did not start a sign-in in the last ten minutes";
    Ok(attempt.ok_or_else(|| sign_in::sign_in_failed(message))?)
}

/// Why a user of the provider cannot sign in.
fn sign_in_problem(error: AuthError) -> Problem {
    match error {
        AuthError::Failed(problem) => problem,
        AuthError::Missing | AuthError::SessionExpired => {
            sign_in::sign_in_failed("the identity provider returned no user")
        }
        AuthError::Malformed(reason) | AuthError::Invalid(reason) => {
            sign_in::sign_in_failed(reason.replace("the token", "the id token"))
        }
        AuthError::InsufficientScope(missing) => Problem::new(
            Code::Forbidden,
            format!(
                "the identity provider did not grant the scope `{}`",
                missing.join(" ")
            ),
            "ask the administrator of the identity provider for it, then sign in again",
        ),
    }
}
