//! `/login`, where tokens are required: a token comes in, a cookie goes out. `/logout` takes it back.
//! The way through an identity provider stands in `provider.rs`.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::frame::{Frame, render};
use super::session::{Session, unset};
use super::{Fields, Page, Posted, form, to, unmarked};
use crate::web::Site;

#[derive(Template)]
#[template(path = "login.html")]
struct Login {
    frame: Frame,
    back: String,
    /// The identity provider, where one can sign in through it.
    provider: Option<String>,
    wrong: Option<&'static str>,
}

/// Where one signs in, to be led back to a page afterwards.
pub(super) fn address(back: &str) -> String {
    match inside(back) {
        "/" => "/login".to_owned(),
        back => {
            let back = askama::filters::urlencode(back);
            match back {
                Ok(back) => format!("/login?back={back}"),
                Err(_) => "/login".to_owned(),
            }
        }
    }
}

/// A path on this server, or the first page: an address from elsewhere leads nowhere else.
pub(super) fn inside(back: &str) -> &str {
    let plain = back.bytes().all(|byte| byte.is_ascii_graphic());
    let is_path = back.starts_with('/') && !back.starts_with("//") && !back.contains('\\');
    match plain && is_path && !back.starts_with("/login") {
        true => back,
        false => "/",
    }
}

pub(super) async fn show(State(site): State<Arc<Site>>, request: Request) -> Page {
    let fields = Fields::of(request.uri());
    page(&site, fields.get("back").unwrap_or("/"), None)
}

fn page(site: &Site, back: &str, wrong: Option<&'static str>) -> Page {
    if site.gate.open.is_some() {
        // On this machine nobody has to say who they are.
        return Ok(to("/plans"));
    }
    let mut frame = Frame::bare("Sign in");
    frame.mark = site.gate.seal.stranger_mark();
    frame.leads_on = false;
    let back = inside(back).to_owned();
    let issuer = site.gate.issuer.as_ref();
    let issuer = issuer.filter(|issuer| issuer.client.is_some());
    let provider = issuer.map(|issuer| {
        let url = issuer.url.split_once("://");
        url.map_or(issuer.url.clone(), |(_, rest)| rest.to_owned())
    });
    let page = Login {
        frame,
        back,
        provider,
        wrong,
    };
    let mut response = render(&page)?;
    if wrong.is_some() {
        *response.status_mut() = StatusCode::UNAUTHORIZED;
    }
    Ok(response)
}

pub(super) async fn enter(State(site): State<Arc<Site>>, request: Request) -> Page {
    let fields = form(request, &site).await?;
    let mark = fields.get("mark").unwrap_or_default();
    if !site.gate.seal.is_stranger_marked(mark) {
        return Err(unmarked().into());
    }
    let back = fields.get("back").unwrap_or("/");
    let token = fields.get("token").unwrap_or_default();
    let known = async {
        let (tenant, token) = site.engine.token_of(token).await?;
        site.engine.caller_of_token(&tenant, token).await?;
        Ok(Session::Token { tenant, token })
    };
    let session = match known.await {
        Ok(session) => session,
        Err(onward_engine::Error::Unauthorized(_)) => {
            let wrong = "This token is unknown, expired or revoked. Ask an owner or admin for one.";
            return page(&site, back, Some(wrong));
        }
        Err(why) => return Err(why.into()),
    };
    let cookie = site
        .gate
        .seal
        .set(&session, site.engine.now(), site.is_secure());
    Ok(with_cookie(to(inside(back)), &cookie))
}

pub(super) async fn leave(_: Posted) -> Page {
    Ok(with_cookie(to("/login"), &unset()))
}

fn with_cookie(response: Response, cookie: &str) -> Response {
    match HeaderValue::try_from(cookie) {
        Ok(cookie) => ([(SET_COOKIE, cookie)], response).into_response(),
        Err(_) => response,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_led_back_to_this_server_alone() {
        assert_eq!(inside("/plans/1?tab=audit"), "/plans/1?tab=audit");
        for elsewhere in [
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "",
            "/login?back=/login",
            "/a\r\nSet-Cookie: a",
        ] {
            assert_eq!(inside(elsewhere), "/", "{elsewhere}");
        }
        assert_eq!(address("/plans?q=a&b"), "/login?back=/plans%3Fq%3Da%26b");
        assert_eq!(address("/"), "/login");
    }
}
