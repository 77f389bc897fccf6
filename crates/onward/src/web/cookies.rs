//! Session cookies and CSRF tokens, both signed with the server's key.
//!
//! The cookie contains the id of the token, not the token itself. The token is checked with every
//! request, so revoking it ends its sessions. Signing out stores the key of the session, which is
//! then rejected. With HTTPS the name of the cookie has the prefix `__Host-`: browsers accept it only
//! from this host over HTTPS, so that another host of the domain cannot set it. A CSRF token is bound
//! to the caller: a page of another site can submit a form, but cannot read the token.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use hmac::{Hmac, KeyInit, Mac};
use onward_core::{Role, Timestamp};
use onward_engine::Caller;
use onward_engine::access::TokenId;
use sha2::Sha256;

const COOKIE_NAME: &str = "onward_session";
/// The prefix of cookie names with HTTPS.
const HOST_PREFIX: &str = "__Host-";
/// Lifetime of a session with a token.
pub(crate) const TOKEN_SESSION_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Lifetime of a session of an identity provider user. The role is not checked again in
/// between, so the lifetime is a working day.
const USER_SESSION_LIFETIME: Duration = Duration::from_secs(8 * 60 * 60);
/// Marks cookies of identity provider users. No token id starts with it.
const USER_PREFIX: &str = "user~";

/// Signs cookies and forms with HMAC-SHA-256.
pub(crate) struct CookieSigner {
    key: [u8; 32],
}

/// A signed-in caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Session {
    /// Signed in with a token.
    Token { tenant: Arc<str>, token: TokenId },
    /// Signed in through the identity provider, which determined the role.
    User {
        tenant: Arc<str>,
        subject: String,
        role: Role,
    },
}

impl Session {
    pub(crate) fn tenant(&self) -> &Arc<str> {
        match self {
            Session::Token { tenant, .. } | Session::User { tenant, .. } => tenant,
        }
    }

    /// How long a session is valid at most.
    pub(crate) fn lifetime(&self) -> Duration {
        match self {
            Session::Token { .. } => TOKEN_SESSION_LIFETIME,
            Session::User { .. } => USER_SESSION_LIFETIME,
        }
    }
}

impl CookieSigner {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self { key: *key }
    }

    /// The MAC of some texts. The purpose separates signatures of different kinds.
    fn mac(&self, purpose: &str, texts: &[&str]) -> Option<Hmac<Sha256>> {
        // HMAC accepts keys of any length, so this never fails.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(purpose.as_bytes());
        for text in texts {
            mac.update(&[0]);
            mac.update(text.as_bytes());
        }
        Some(mac)
    }

    pub(crate) fn sign(&self, purpose: &str, texts: &[&str]) -> String {
        let mac = self.mac(purpose, texts);
        mac.map_or(String::new(), |mac| hex(&mac.finalize().into_bytes()))
    }

    pub(crate) fn is_signed(&self, purpose: &str, texts: &[&str], signature: &str) -> bool {
        let (Some(mac), Some(expected)) = (self.mac(purpose, texts), unhex(signature)) else {
            return false;
        };
        mac.verify_slice(&expected).is_ok()
    }

    /// The cookie value of a session.
    fn write(&self, session: &Session, now: Timestamp) -> String {
        let until = now
            .checked_add(session.lifetime())
            .unwrap_or(now)
            .as_millis();
        let payload = match session {
            Session::Token { tenant, token } => format!("{tenant}.{token}.{until}"),
            Session::User {
                tenant,
                subject,
                role,
            } => {
                let subject = hex(subject.as_bytes());
                format!("{tenant}.{USER_PREFIX}{role}~{subject}.{until}")
            }
        };
        let signature = self.sign("session", &[&payload]);
        format!("{payload}.{signature}")
    }

    /// The session in a cookie value, unless it is expired or not signed by this server.
    pub(crate) fn read(&self, cookie: &str, now: Timestamp) -> Option<Session> {
        let (payload, signature) = cookie.rsplit_once('.')?;
        if !self.is_signed("session", &[payload], signature) {
            return None;
        }
        let (rest, until) = payload.rsplit_once('.')?;
        let (tenant, id) = rest.rsplit_once('.')?;
        let until = Timestamp::from_millis(until.parse().ok()?);
        let tenant = Arc::from(tenant);
        let session = match id.strip_prefix(USER_PREFIX) {
            None => Session::Token {
                tenant,
                token: id.parse().ok()?,
            },
            Some(user) => {
                let (role, subject) = user.split_once('~')?;
                Session::User {
                    tenant,
                    subject: String::from_utf8(unhex(subject)?).ok()?,
                    role: role.parse().ok()?,
                }
            }
        };
        (now < until).then_some(session)
    }

    /// The key under which the end of a session is stored. The cookie cannot be derived from it.
    pub(crate) fn session_key(&self, cookie: &str) -> String {
        self.sign("session key", &[cookie])
    }

    /// The `Set-Cookie` value that starts a session.
    pub(crate) fn set_cookie(&self, session: &Session, now: Timestamp, is_secure: bool) -> String {
        let value = self.write(session, now);
        let seconds = session.lifetime().as_secs();
        set_cookie(COOKIE_NAME, &value, "Strict", seconds, is_secure)
    }

    /// The CSRF token for the forms of a caller.
    pub(crate) fn csrf_token(&self, caller: &Caller) -> String {
        self.sign("form", &[&caller.tenant, &caller.name])
    }

    pub(crate) fn verify_csrf(&self, caller: &Caller, token: &str) -> bool {
        self.is_signed("form", &[&caller.tenant, &caller.name], token)
    }

    /// The CSRF token of the sign-in form, which has no caller.
    pub(crate) fn sign_in_csrf_token(&self) -> String {
        self.sign("sign-in form", &[])
    }

    pub(crate) fn verify_sign_in_csrf(&self, token: &str) -> bool {
        self.is_signed("sign-in form", &[], token)
    }
}

/// The `Set-Cookie` value that ends a session.
pub(crate) fn clear_cookie(is_secure: bool) -> String {
    set_cookie(COOKIE_NAME, "", "Strict", 0, is_secure)
}

/// A `Set-Cookie` value for all paths of this host.
pub(crate) fn set_cookie(
    name: &str,
    value: &str,
    same_site: &str,
    seconds: u64,
    is_secure: bool,
) -> String {
    let name = full_name(name, is_secure);
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; HttpOnly; SameSite={same_site}; Max-Age={seconds}{secure}")
}

fn full_name(name: &str, is_secure: bool) -> String {
    format!("{}{name}", if is_secure { HOST_PREFIX } else { "" })
}

/// The value of the session cookie.
pub(crate) fn session_cookie(headers: &HeaderMap, is_secure: bool) -> Option<&str> {
    find_cookie(headers, COOKIE_NAME, is_secure)
}

/// The value of the cookie with this name.
pub(crate) fn find_cookie<'a>(
    headers: &'a HeaderMap,
    name: &str,
    is_secure: bool,
) -> Option<&'a str> {
    let name = full_name(name, is_secure);
    let lines = headers.get_all(COOKIE).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    lines
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let digits = (0..text.len()).step_by(2);
    digits
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    fn session() -> Session {
        Session::Token {
            tenant: Arc::from("acme"),
            token: "00000000-0000-7000-8000-000000000001".parse().unwrap(),
        }
    }

    #[test]
    fn sessions_expire_and_need_the_same_key() {
        let signer = CookieSigner::new(&[7; 32]);
        let cookie = signer.write(&session(), NOW);
        assert_eq!(signer.read(&cookie, NOW), Some(session()));
        let end = NOW.checked_add(TOKEN_SESSION_LIFETIME).unwrap();
        assert_eq!(signer.read(&cookie, end), None);
        assert_eq!(CookieSigner::new(&[8; 32]).read(&cookie, NOW), None);
    }

    fn user_session() -> Session {
        Session::User {
            tenant: Arc::from("acme"),
            subject: "auth0|ann.é~1".to_owned(),
            role: Role::Member,
        }
    }

    #[test]
    fn user_sessions_expire_after_eight_hours() {
        let signer = CookieSigner::new(&[7; 32]);
        let cookie = signer.write(&user_session(), NOW);
        assert_eq!(signer.read(&cookie, NOW), Some(user_session()));
        let end = NOW.checked_add(USER_SESSION_LIFETIME).unwrap();
        assert_eq!(signer.read(&cookie, end), None);
    }

    #[test]
    fn rejects_cookies_with_any_changed_character() {
        let signer = CookieSigner::new(&[7; 32]);
        for session in [session(), user_session()] {
            let cookie = signer.write(&session, NOW);
            for (at, _) in cookie.char_indices() {
                let mut other = cookie.clone().into_bytes();
                other[at] = if other[at] == b'1' { b'2' } else { b'1' };
                let other = String::from_utf8(other).unwrap();
                assert_eq!(signer.read(&other, NOW), None, "{other}");
            }
        }
        for wrong in ["", ".", "...", "a.b.c.d", "é.é"] {
            assert_eq!(signer.read(wrong, NOW), None, "{wrong}");
        }
    }

    #[test]
    fn csrf_tokens_are_bound_to_the_caller() {
        let signer = CookieSigner::new(&[7; 32]);
        let (ann, bob) = (Caller::local("ann"), Caller::local("bob"));
        assert!(signer.verify_csrf(&ann, &signer.csrf_token(&ann)));
        assert!(!signer.verify_csrf(&bob, &signer.csrf_token(&ann)));
        assert!(!signer.verify_csrf(&ann, &signer.sign_in_csrf_token()));
        assert!(!signer.verify_csrf(&ann, ""));
    }

    #[test]
    fn finds_the_session_cookie_among_others() {
        let mut headers = HeaderMap::new();
        assert_eq!(session_cookie(&headers, false), None);
        headers.insert(COOKIE, "a=b; onward_session=x.y; c=d".parse().unwrap());
        assert_eq!(session_cookie(&headers, false), Some("x.y"));
        // Another host of the domain could have set it.
        assert_eq!(session_cookie(&headers, true), None);
        headers.insert(COOKIE, "__Host-onward_session=z".parse().unwrap());
        assert_eq!(session_cookie(&headers, true), Some("z"));
    }
}
