//! `/login/provider` and `/login/callback`: to the identity provider, and back from it.
//!
//! The way back ends on a page and not in another redirect: a browser that comes from elsewhere sends
//! no cookie that is `SameSite=Strict` along, and the page's own next step is no longer from elsewhere.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use onward_core::Code;

use super::frame::{Frame, render};
use super::login::inside;
use super::session::{Session, named};
use super::{Failed, Fields, Page, to};
use crate::output::words;
use crate::web::Site;
use crate::web::gate::Refused;
use crate::web::issuer::Issuer;
use crate::web::keys::Discovery;
use crate::web::problem::Problem;
use crate::web::sign_in::{self, Client, Journey};

/// The cookie of the browser that began.
const NAME: &str = "onward_sign_in";
/// Characters of what the provider says.
const LONGEST: usize = 300;

#[derive(Template)]
#[template(path = "signed_in.html")]
struct SignedIn {
    frame: Frame,
    who: String,
    back: String,
}

/// The provider, where people can sign in through one.
fn provider(site: &Site) -> Result<(&Issuer, &Client), Problem> {
    let issuer = site.gate.issuer.as_ref();
    let client = issuer.and_then(|issuer| Some((issuer, issuer.client.as_ref()?)));
    client.ok_or_else(|| {
        Problem::new(
            Code::NotConfigured,
            "nobody signs in through an identity provider here",
            "sign in with a token; `client_id` in `[access.issuer]` would allow the other",
        )
    })
}

async fn discovered(issuer: &Issuer) -> Result<Arc<Discovery>, Problem> {
    issuer.keys.discovery().await.map_err(|why| {
        tracing::warn!(why, "the identity provider says nothing about itself");
        sign_in::away()
    })
}

/// By which name people reach the server. A name that anybody may claim is none to be led back to.
fn base<B>(site: &Site, request: &axum::http::Request<B>) -> Result<String, Problem> {
    let place = &site.gate.place;
    match place.public.is_some() || place.guarded {
        true => Ok(place.base(request)),
        false => Err(Problem::new(
            Code::NotConfigured,
            "the server does not know by which name it is reached",
            "whoever runs it should set `serve.public_url`",
        )),
    }
}

/// The header that sets the cookie of a journey, or takes it back.
fn cookie(site: &Site, journey: Option<&Journey>) -> Option<HeaderValue> {
    let value = journey.map(|journey| journey.write(&site.gate.seal, site.engine.now()));
    let seconds = if value.is_some() {
        sign_in::LASTS.as_secs()
    } else {
        0
    };
    let secure = if site.is_secure() { "; Secure" } else { "" };
    let value = value.unwrap_or_default();
    // `Lax`: the way back is a navigation that comes from elsewhere.
    let text =
        format!("{NAME}={value}; Path=/login; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    HeaderValue::try_from(text).ok()
}

fn append(response: &mut Response, cookie: Option<HeaderValue>) {
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

/// Leads somebody to the provider.
pub(super) async fn leave_for(State(site): State<Arc<Site>>, request: Request) -> Page {
    let (issuer, client) = provider(&site)?;
    let base = base(&site, &request)?;
    let fields = Fields::of(request.uri());
    let mut state = [0; 32];
    getrandom::fill(&mut state).map_err(|_| sign_in::away())?;
    let journey = Journey {
        state: super::session::hex(&state),
        back: inside(fields.get("back").unwrap_or("/")).to_owned(),
    };
    let discovered = discovered(issuer).await?;
    let seal = &site.gate.seal;
    let there = client.way_there(&discovered, &issuer.scopes, &base, &journey, seal)?;
    let mut response = to(&there);
    append(&mut response, cookie(&site, Some(&journey)));
    Ok(response)
}

/// Takes in somebody who comes back from the provider.
pub(super) async fn come_back(State(site): State<Arc<Site>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let came = come(&site, &axum::http::Request::from_parts(head, ())).await;
    let mut response = match came {
        Ok(response) => response,
        Err(failed) => axum::response::IntoResponse::into_response(failed),
    };
    // It counts once, however it ended.
    append(&mut response, cookie(&site, None));
    response
}

async fn come(site: &Arc<Site>, request: &axum::http::Request<()>) -> Page {
    let (issuer, client) = provider(site)?;
    let base = base(site, request)?;
    let fields = Fields::of(request.uri());
    let journey = journey(site, request.headers(), &fields)?;
    let wrong_issuer = |named: &str| named != issuer.url;
    if fields.get("iss").is_some_and(wrong_issuer) {
        return Err(sign_in::again("another identity provider answered").into());
    }
    if let Some(error) = fields.get("error") {
        let why = fields.get("error_description").unwrap_or(error);
        let why: String = words::line(why).chars().take(LONGEST).collect();
        return Err(sign_in::again(format!("the identity provider says: {why}")).into());
    }
    let code = fields.get("code");
    let code = code.ok_or_else(|| sign_in::again("the identity provider gave no code"))?;
    let discovered = discovered(issuer).await?;
    let seal = &site.gate.seal;
    let given = client.redeem(&discovered, code, &base, &journey.state, seal);
    let given = given.await?;
    let nonce = sign_in::nonce(seal, &journey.state);
    let person = issuer.person(&site.engine, &given, client.id(), &nonce);
    let caller = person.await.map_err(refused)?;
    site.engine.note_sign_in(&caller).await?;
    let subject = caller.name.strip_prefix("user:").unwrap_or(&caller.name);
    let session = Session::Person {
        tenant: Arc::clone(&caller.tenant),
        subject: subject.to_owned(),
        role: caller.role,
    };
    let mut response = render(&SignedIn {
        frame: Frame::bare("Signed in"),
        who: words::line(&caller.name),
        back: inside(&journey.back).to_owned(),
    })?;
    let cookie = seal.set(&session, site.engine.now(), site.is_secure());
    append(&mut response, HeaderValue::try_from(cookie).ok());
    Ok(response)
}

/// The journey that ends here, where this browser began it.
fn journey(site: &Site, headers: &HeaderMap, fields: &Fields) -> Result<Journey, Failed> {
    let journey = named(headers, NAME);
    let journey = journey.and_then(|said| Journey::read(&site.gate.seal, said, site.engine.now()));
    let state = fields.get("state").unwrap_or_default();
    let journey = journey.filter(|journey| journey.state == state);
    let strange = "this browser did not begin to sign in here, or took longer than ten minutes";
    Ok(journey.ok_or_else(|| sign_in::again(strange))?)
}

/// Why somebody whom the provider knows does not come in.
fn refused(refused: Refused) -> Problem {
    match refused {
        Refused::Failed(problem) => problem,
        Refused::Nobody => sign_in::again("the identity provider does not say who you are"),
        Refused::Wrong(why) => sign_in::again(why.replace("token", "identity")),
        Refused::Scope(missing) => Problem::new(
            Code::Forbidden,
            format!(
                "the identity provider did not grant `{}`",
                missing.join(" ")
            ),
            "ask whoever runs it, then sign in again",
        ),
    }
}
