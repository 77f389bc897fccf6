//! Who is signed in: a cookie that is signed and names a token, or a person whom the identity provider
//! knows; and the mark that every form carries.
//!
//! The cookie holds no secret of the token, only which one it is; whether that is still good is asked
//! with every request, so a revoked token ends its sessions at once. The mark in a form can be known
//! only to who was shown the form: a page elsewhere can send one, but not read one.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use hmac::{Hmac, KeyInit, Mac};
use onward_core::{Role, Timestamp};
use onward_engine::Caller;
use onward_engine::access::TokenId;
use sha2::Sha256;

const NAME: &str = "onward_session";
/// How long somebody stays signed in.
pub(crate) const LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long somebody stays signed in whom the identity provider knows.
const DAY: Duration = Duration::from_secs(8 * 60 * 60);
/// How a cookie says that it is about such a person: no token's id begins like this.
const PERSON: &str = "user~";

/// What the server signs with.
pub(crate) struct Seal {
    key: [u8; 32],
}

/// Somebody who signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Session {
    /// With a token.
    Token { tenant: Arc<str>, token: TokenId },
    /// Through the identity provider, which said what they may.
    Person {
        tenant: Arc<str>,
        subject: String,
        role: Role,
    },
}

impl Session {
    /// How long they stay signed in. What the provider said cannot be asked again, so it is believed
    /// for a working day.
    fn lasts(&self) -> Duration {
        match self {
            Session::Token { .. } => LASTS,
            Session::Person { .. } => DAY,
        }
    }
}

impl Seal {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self { key: *key }
    }

    /// A mark over some texts, for one purpose.
    fn mac(&self, purpose: &str, texts: &[&str]) -> Option<Hmac<Sha256>> {
        // A key of any length will do; there is no way for this to fail.
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
        let (Some(mac), Some(given)) = (self.mac(purpose, texts), unhex(signature)) else {
            return false;
        };
        mac.verify_slice(&given).is_ok()
    }

    /// What the cookie of a session says.
    fn write(&self, session: &Session, now: Timestamp) -> String {
        let until = now.checked_add(session.lasts()).unwrap_or(now).as_millis();
        let said = match session {
            Session::Token { tenant, token } => format!("{tenant}.{token}.{until}"),
            Session::Person {
                tenant,
                subject,
                role,
            } => {
                let subject = hex(subject.as_bytes());
                format!("{tenant}.{PERSON}{role}~{subject}.{until}")
            }
        };
        let signature = self.sign("session", &[&said]);
        format!("{said}.{signature}")
    }

    /// The session that a cookie is about, unless it is over or somebody made it up.
    pub(crate) fn read(&self, cookie: &str, now: Timestamp) -> Option<Session> {
        let (said, signature) = cookie.rsplit_once('.')?;
        if !self.is_signed("session", &[said], signature) {
            return None;
        }
        let (rest, until) = said.rsplit_once('.')?;
        let (tenant, who) = rest.rsplit_once('.')?;
        let until = Timestamp::from_millis(until.parse().ok()?);
        let tenant = Arc::from(tenant);
        let session = match who.strip_prefix(PERSON) {
            None => Session::Token {
                tenant,
                token: who.parse().ok()?,
            },
            Some(person) => {
                let (role, subject) = person.split_once('~')?;
                Session::Person {
                    tenant,
                    subject: String::from_utf8(unhex(subject)?).ok()?,
                    role: role.parse().ok()?,
                }
            }
        };
        (now < until).then_some(session)
    }

    /// The header that signs somebody in.
    pub(crate) fn set(&self, session: &Session, now: Timestamp, is_secure: bool) -> String {
        let value = self.write(session, now);
        let secure = if is_secure { "; Secure" } else { "" };
        let seconds = session.lasts().as_secs();
        format!("{NAME}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
    }

    /// The mark that the forms of a caller carry.
    pub(crate) fn mark(&self, caller: &Caller) -> String {
        self.sign("form", &[&caller.tenant, &caller.name])
    }

    /// Whether a form came from a page that this caller was shown.
    pub(crate) fn is_marked(&self, caller: &Caller, mark: &str) -> bool {
        self.is_signed("form", &[&caller.tenant, &caller.name], mark)
    }

    /// The mark of the one form that is shown to nobody in particular.
    pub(crate) fn stranger_mark(&self) -> String {
        self.sign("form of a stranger", &[])
    }

    pub(crate) fn is_stranger_marked(&self, mark: &str) -> bool {
        self.is_signed("form of a stranger", &[], mark)
    }
}

/// The header that signs somebody out.
pub(crate) fn unset() -> String {
    format!("{NAME}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
}

/// The session's cookie, if there is one.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<&str> {
    named(headers, NAME)
}

/// The cookie of this name, if there is one.
pub(crate) fn named<'a>(headers: &'a HeaderMap, cookie: &str) -> Option<&'a str> {
    let said = headers.get_all(COOKIE).iter();
    let pairs = said.filter_map(|line| line.to_str().ok());
    pairs
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == cookie).then_some(value))
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
    fn a_cookie_says_who_it_is_until_it_is_over() {
        let seal = Seal::new(&[7; 32]);
        let cookie = seal.write(&session(), NOW);
        assert_eq!(seal.read(&cookie, NOW), Some(session()));
        let last = NOW.checked_add(LASTS).unwrap();
        assert_eq!(seal.read(&cookie, last), None);
        assert_eq!(Seal::new(&[8; 32]).read(&cookie, NOW), None);
    }

    fn person() -> Session {
        Session::Person {
            tenant: Arc::from("acme"),
            subject: "auth0|ann.é~1".to_owned(),
            role: Role::Member,
        }
    }

    #[test]
    fn whom_the_provider_knows_is_believed_for_a_working_day() {
        let seal = Seal::new(&[7; 32]);
        let cookie = seal.write(&person(), NOW);
        assert_eq!(seal.read(&cookie, NOW), Some(person()));
        assert_eq!(seal.read(&cookie, NOW.checked_add(DAY).unwrap()), None);
    }

    #[test]
    fn no_part_of_a_cookie_can_be_changed() {
        let seal = Seal::new(&[7; 32]);
        for session in [session(), person()] {
            let cookie = seal.write(&session, NOW);
            for (at, _) in cookie.char_indices() {
                let mut other = cookie.clone().into_bytes();
                other[at] = if other[at] == b'1' { b'2' } else { b'1' };
                let other = String::from_utf8(other).unwrap();
                assert_eq!(seal.read(&other, NOW), None, "{other}");
            }
        }
        for wrong in ["", ".", "...", "a.b.c.d", "é.é"] {
            assert_eq!(seal.read(wrong, NOW), None, "{wrong}");
        }
    }

    #[test]
    fn a_mark_is_of_one_caller() {
        let seal = Seal::new(&[7; 32]);
        let (ann, bob) = (Caller::local("ann"), Caller::local("bob"));
        assert!(seal.is_marked(&ann, &seal.mark(&ann)));
        assert!(!seal.is_marked(&bob, &seal.mark(&ann)));
        assert!(!seal.is_marked(&ann, &seal.stranger_mark()));
        assert!(!seal.is_marked(&ann, ""));
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        assert_eq!(cookie(&headers), None);
        headers.insert(COOKIE, "a=b; onward_session=x.y; c=d".parse().unwrap());
        assert_eq!(cookie(&headers), Some("x.y"));
    }
}
