//! The one gate: every request comes through here, and leaves with a [`Caller`] or with a refusal.
//!
//! On loopback, where nobody configured anything, whoever is on this machine is its user. Else it
//! takes a token of ours or, where an identity provider is configured, one of its. A token that is
//! there and wrong is refused everywhere: somebody believes to be somebody, and is mistaken. What the
//! caller may then do is decided further in, by the engine.

use std::hash::BuildHasher;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use onward_core::{Code, Role};
use onward_engine::{Caller, Engine, Error};

use super::issuer::{self, Issuer};
use super::pages::session::{self, Seal, Session};
use super::place::{self, Place};
use super::problem::Problem;
use super::{Site, metadata, pages};

/// How our own tokens begin.
const OURS: &str = "onw_";

/// What everybody may ask: whether the server lives, and how programs sign in.
pub(super) const OPEN: [&str; 4] = ["/healthz", "/readyz", metadata::OF_SERVER, metadata::OF_MCP];

/// Who comes in, and as what.
pub(super) struct Gate {
    pub(super) place: Place,
    /// The user of this machine, where nobody has to say who they are.
    pub(super) open: Option<Caller>,
    /// Whose tokens are accepted beside our own.
    pub(super) issuer: Option<Issuer>,
    /// What the cookies of people are signed with.
    pub(super) seal: Seal,
    /// Tells callers apart for the limits, without keeping their secrets.
    pub(super) hasher: std::hash::RandomState,
}

/// Somebody who came in.
#[derive(Clone)]
pub(super) struct Guest {
    pub(super) caller: Caller,
    /// Which token, or which user, for the limits.
    pub(super) key: u64,
}

/// Why somebody did not come in.
pub(super) enum Refused {
    /// They did not say who they are.
    Nobody,
    /// What they said is wrong.
    Wrong(&'static str),
    /// Their token is not good for this.
    Scope(Vec<String>),
    /// It could not be found out.
    Failed(Problem),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        if let Error::Unauthorized(why) = error {
            Refused::Wrong(why)
        } else {
            Refused::Failed(error.into())
        }
    }
}

impl Gate {
    /// Who it is. A cookie opens pages alone: programs bring their token.
    pub(super) async fn who(
        &self,
        engine: &Engine,
        headers: &HeaderMap,
        path: &str,
    ) -> Result<Guest, Refused> {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let Some(first) = given.next() else {
            if let Some(caller) = self.open.clone() {
                return Ok(self.guest("", caller));
            }
            let cookie = session::cookie(headers).filter(|_| pages::is_page(path));
            let cookie = cookie.ok_or(Refused::Nobody)?;
            let session = self.seal.read(cookie, engine.now());
            let session = session.ok_or(Refused::Wrong("the session is over"))?;
            let caller = match session {
                Session::Token { tenant, token } => engine.caller_of_token(&tenant, token).await?,
                Session::Person {
                    tenant,
                    subject,
                    role,
                } => self.person(engine, &tenant, &subject, role).await?,
            };
            return Ok(self.guest(cookie, caller));
        };
        if given.next().is_some() {
            return Err(Refused::Wrong("there is more than one `Authorization`"));
        }
        let token = first.to_str().ok().and_then(bearer);
        let token = token.ok_or(Refused::Wrong(
            "`Authorization` is not `Bearer` and a token",
        ))?;
        if token.starts_with(OURS) {
            let caller = engine.authenticate(token).await?;
            return Ok(self.guest(token, caller));
        }
        let Some(issuer) = &self.issuer else {
            return Err(Refused::Wrong("the token is unknown, expired or revoked"));
        };
        let caller = issuer.caller(engine, token).await?;
        let name = caller.name.clone();
        Ok(self.guest(&name, caller))
    }

    /// Somebody whom the identity provider knew when they signed in, for as long as there is one.
    async fn person(
        &self,
        engine: &Engine,
        tenant: &str,
        subject: &str,
        role: Role,
    ) -> Result<Caller, Refused> {
        let over = Refused::Wrong("the session is over");
        let client = self
            .issuer
            .as_ref()
            .and_then(|issuer| issuer.client.as_ref());
        if client.is_none() {
            return Err(over);
        }
        match engine.operator(tenant, &format!("user:{subject}")).await {
            Ok(caller) => Ok(Caller { role, ..caller }),
            Err(Error::NotFound { .. }) => Err(over),
            Err(why) => Err(why.into()),
        }
    }

    fn guest(&self, name: &str, caller: Caller) -> Guest {
        Guest {
            key: self.hasher.hash_one((&caller.tenant, name)),
            caller,
        }
    }

    /// How a refusal is answered: with how to sign in.
    fn refuse(&self, refused: Refused, base: &str, path: &str) -> Problem {
        let metadata = format!("{base}{}", metadata::path_for(path));
        match refused {
            Refused::Failed(problem) => problem,
            Refused::Nobody => Problem::new(
                Code::Unauthorized,
                "a token is needed",
                "send `Authorization: Bearer onw_…`; `onward token create` makes one",
            )
            .header(
                WWW_AUTHENTICATE,
                format!("Bearer resource_metadata=\"{metadata}\""),
            ),
            Refused::Wrong(why) => Problem::new(
                Code::Unauthorized,
                why,
                "ask an owner or admin of the tenant for a token",
            )
            .header(
                WWW_AUTHENTICATE,
                format!("Bearer error=\"invalid_token\", resource_metadata=\"{metadata}\""),
            ),
            Refused::Scope(missing) => Problem::new(
                Code::Forbidden,
                format!("the token lacks the scope `{}`", missing.join(" ")),
                "sign in again, and ask for that scope",
            )
            .header(WWW_AUTHENTICATE, {
                let scopes = issuer::wanted(self.issuer.as_ref());
                format!(
                    "Bearer error=\"insufficient_scope\", scope=\"{scopes}\", \
                     resource_metadata=\"{metadata}\""
                )
            }),
        }
    }
}

/// What stands behind `Bearer`.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Lets a request through, or not.
pub(super) async fn pass(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    if let Err(problem) = site.gate.place.check(&request) {
        return problem.into_response();
    }
    let page = site.gate.place.page(request.headers());
    let mut response = match (&page, request.method()) {
        // A browser asks before it lets a page of another origin ask; nothing is done for that.
        (Some(_), &Method::OPTIONS) => StatusCode::NO_CONTENT.into_response(),
        (Some(_) | None, _) => known(site, request, next).await,
    };
    if let Some(page) = page {
        place::invite(response.headers_mut(), page);
    }
    response
}

/// Lets somebody through who says who they are.
async fn known(site: Arc<Site>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let read = [Method::GET, Method::HEAD].contains(request.method());
    if (read && OPEN.contains(&path)) || pages::is_open(path) {
        return next.run(request).await;
    }
    let guest = match site.gate.who(&site.engine, request.headers(), path).await {
        Ok(guest) => guest,
        Err(Refused::Nobody | Refused::Wrong(_)) if pages::is_for_people(&request) => {
            return pages::sign_in(&site, &request);
        }
        Err(refused) => {
            let base = site.gate.place.base(&request);
            return site.gate.refuse(refused, &base, path).into_response();
        }
    };
    if let Err(problem) = site.limits.call(&guest) {
        return problem.into_response();
    }
    request.extensions_mut().insert(guest.caller);
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::bearer;

    #[test]
    fn a_token_stands_behind_its_scheme() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer  abc "), Some("abc"));
        for wrong in ["", "abc", "Bearer", "Bearer ", "Basic abc", "Bearerabc"] {
            assert_eq!(bearer(wrong), None, "{wrong}");
        }
    }
}
