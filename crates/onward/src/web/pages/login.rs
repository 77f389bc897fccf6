//! `/login`: exchanges a token for a session cookie. `/logout` clears it. Sign-in through an
//! identity provider is in `provider.rs`.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::layout::{Layout, render};
use super::{Fields, FormPost, PageResult, fields, invalid_csrf_token, redirect};
use crate::web::Site;
use crate::web::browser::local_path;
use crate::web::cookies::{Session, clear_cookie};

#[derive(Template)]
#[template(path = "login.html")]
struct Login {
    layout: Layout,
    back: String,
    /// Host of the identity provider, if users can sign in through one.
    provider: Option<String>,
    error: Option<&'static str>,
}

pub(super) async fn show(State(site): State<Arc<Site>>, request: Request) -> PageResult {
    let fields = Fields::from_query(request.uri());
    login_page(&site, fields.get("back").unwrap_or("/"), None)
}

fn login_page(site: &Site, back: &str, error: Option<&'static str>) -> PageResult {
    if site.auth.local_user.is_some() {
        // No authentication required.
        return Ok(redirect("/plans"));
    }
    let mut layout = Layout::anonymous("Sign in");
    layout.csrf_token = site.auth.cookie_signer.sign_in_csrf_token();
    layout.has_navigation = false;
    let back = local_path(back).to_owned();
    let issuer = site.auth.issuer.as_ref();
    let issuer = issuer.filter(|issuer| issuer.client.is_some());
    let provider = issuer.map(|issuer| {
        let url = issuer.url.split_once("://");
        url.map_or(issuer.url.clone(), |(_, rest)| rest.to_owned())
    });
    let page = Login {
        layout,
        back,
        provider,
        error,
    };
    let mut response = render(&page)?;
    if error.is_some() {
        *response.status_mut() = StatusCode::UNAUTHORIZED;
    }
    Ok(response)
}

pub(super) async fn sign_in(State(site): State<Arc<Site>>, request: Request) -> PageResult {
    let (parts, body) = request.into_parts();
    let body = site
        .limits
        .bodies
        .read_sign_in(&parts.headers, body)
        .await?;
    let fields = fields(parts, body.bytes).await?;
    let csrf_token = fields.get("csrf_token").unwrap_or_default();
    if !site.auth.cookie_signer.verify_sign_in_csrf(csrf_token) {
        return Err(invalid_csrf_token().into());
    }
    let back = fields.get("back").unwrap_or("/");
    let token = fields.get("token").unwrap_or_default();
    let session = async {
        let (tenant, token) = site.engine.find_token(token).await?;
        site.engine.caller_for_token(&tenant, token).await?;
        Ok(Session::Token { tenant, token })
    };
    let session = match session.await {
        Ok(session) => session,
        Err(onward_engine::Error::Unauthorized(_)) => {
            let error = "Invalid, expired or revoked token. Ask an owner or admin for a new one.";
            return login_page(&site, back, Some(error));
        }
        Err(error) => return Err(error.into()),
    };
    let cookie = site
        .auth
        .cookie_signer
        .set_cookie(&session, site.engine.now(), site.is_secure());
    Ok(with_cookie(redirect(local_path(back)), &cookie))
}

pub(super) async fn sign_out(_: FormPost) -> PageResult {
    Ok(with_cookie(redirect("/login"), &clear_cookie()))
}

fn with_cookie(response: Response, cookie: &str) -> Response {
    match HeaderValue::try_from(cookie) {
        Ok(cookie) => ([(SET_COOKIE, cookie)], response).into_response(),
        Err(_) => response,
    }
}
