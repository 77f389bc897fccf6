//! Signed decision links: the holder of a link may decide one review once, with the action that the
//! link states, until it expires.
//!
//! The token in the address is the credential: the payload and its HMAC, both base64url. The key is
//! derived from `notify.secret`, so all servers with the same configuration accept the link, and a new
//! secret invalidates all links. No link is stored: a review is decided once, and the decision records
//! the recipient of its link. `notify.rs` creates links, `web/pages/decide.rs` accepts them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use onward_core::event::Decision;
use onward_core::id::ReviewId;
use onward_core::{StepId, Timestamp};
use sha2::Sha256;

/// The start of the path of a link. The token follows.
pub(crate) const PATH_PREFIX: &str = "/decide/";
/// Separates the key from other uses of the secret.
const LABEL: &[u8] = b"onward decision link v1";
/// The version of the payload.
const VERSION: u32 = 1;

/// The decisions that a link can make. To request changes, a reviewer uses the review page.
pub(crate) const ACTIONS: [Decision; 3] = [Decision::Approve, Decision::Skip, Decision::Reject];

/// A permission to decide a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecisionLink {
    pub(crate) tenant: String,
    /// The step under review.
    pub(crate) step: StepId,
    pub(crate) review: ReviewId,
    pub(crate) action: Decision,
    /// The assignee of the review, or the host of the webhook.
    pub(crate) recipient: String,
    pub(crate) expires_at: Timestamp,
}

/// Version, tenant, step, review, action, recipient and expiry in milliseconds since 1970.
type Payload = (u32, String, String, String, String, String, i64);

/// Creates and verifies the tokens of links.
pub(crate) struct LinkSigner {
    key: [u8; 32],
}

impl LinkSigner {
    /// `None` if no key can be derived.
    pub(crate) fn new(secret: &str) -> Option<Self> {
        let key = mac(secret.as_bytes(), LABEL)?.finalize().into_bytes();
        Some(Self { key: key.into() })
    }

    /// The token of a link.
    pub(crate) fn sign(&self, link: &DecisionLink) -> Option<String> {
        let payload: Payload = (
            VERSION,
            link.tenant.clone(),
            link.step.to_string(),
            link.review.to_string(),
            link.action.to_string(),
            link.recipient.clone(),
            link.expires_at.as_millis(),
        );
        let payload = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&payload).ok()?);
        let signature = mac(&self.key, payload.as_bytes())?.finalize().into_bytes();
        Some(format!("{payload}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The link of a token, unless it was not signed with this key. The caller checks the expiry.
    pub(crate) fn verify(&self, token: &str) -> Option<DecisionLink> {
        let (payload, signature) = token.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        // In constant time.
        mac(&self.key, payload.as_bytes())?
            .verify_slice(&signature)
            .ok()?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let payload: Payload = serde_json::from_slice(&payload).ok()?;
        let (version, tenant, step, review, action, recipient, expires_at) = payload;
        let action = action.parse().ok()?;
        (version == VERSION && ACTIONS.contains(&action)).then_some(DecisionLink {
            tenant,
            step: step.parse().ok()?,
            review: review.parse().ok()?,
            action,
            recipient,
            expires_at: Timestamp::from_millis(expires_at),
        })
    }
}

fn mac(key: &[u8], data: &[u8]) -> Option<Hmac<Sha256>> {
    // HMAC accepts keys of any length, so this never fails.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(data);
    Some(mac)
}

impl DecisionLink {
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "a secret of thirty-two characters";

    fn link() -> DecisionLink {
        DecisionLink {
            tenant: "acme".to_owned(),
            step: StepId::from_u128(1),
            review: ReviewId::from_u128(2),
            action: Decision::Approve,
            recipient: "ann \u{e9} <b>".to_owned(),
            expires_at: Timestamp::from_millis(1_790_000_000_000),
        }
    }

    fn signer(secret: &str) -> LinkSigner {
        LinkSigner::new(secret).unwrap()
    }

    fn token(link: &DecisionLink) -> String {
        signer(SECRET).sign(link).unwrap()
    }

    #[test]
    fn a_token_contains_the_link_and_needs_the_same_secret() {
        for action in ACTIONS {
            let link = DecisionLink { action, ..link() };
            let token = token(&link);
            assert_eq!(signer(SECRET).verify(&token), Some(link));
            assert_eq!(signer("another secret").verify(&token), None);
        }
        let modify = DecisionLink {
            action: Decision::Modify,
            ..link()
        };
        assert_eq!(signer(SECRET).verify(&token(&modify)), None);
    }

    #[test]
    fn rejects_a_token_with_any_changed_byte() {
        let (signer, token) = (signer(SECRET), token(&link()));
        for at in 0..token.len() {
            for byte in 0..128u8 {
                let mut bytes = token.clone().into_bytes();
                if bytes[at] == byte {
                    continue;
                }
                bytes[at] = byte;
                let other = String::from_utf8(bytes).unwrap();
                assert_eq!(signer.verify(&other), None, "{other}");
            }
            let mut shorter = token.clone();
            shorter.remove(at);
            assert_eq!(signer.verify(&shorter), None, "{shorter}");
        }
        for wrong in [
            "",
            ".",
            "a.b",
            "\u{e9}.\u{e9}",
            &format!("{token}="),
            &format!("{token}."),
        ] {
            assert_eq!(signer.verify(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_token_of_another_tenant_or_review_has_another_signature() {
        let signed = token(&link());
        let (_, signature) = signed.split_once('.').unwrap();
        for other in [
            DecisionLink {
                tenant: "other".to_owned(),
                ..link()
            },
            DecisionLink {
                step: StepId::from_u128(3),
                ..link()
            },
            DecisionLink {
                review: ReviewId::from_u128(3),
                ..link()
            },
            DecisionLink {
                action: Decision::Reject,
                ..link()
            },
            DecisionLink {
                recipient: "bob".to_owned(),
                ..link()
            },
            DecisionLink {
                expires_at: Timestamp::MAX,
                ..link()
            },
        ] {
            let other = token(&other);
            let (payload, _) = other.split_once('.').unwrap();
            let forged = format!("{payload}.{signature}");
            assert_eq!(signer(SECRET).verify(&forged), None);
        }
    }

    #[test]
    fn a_link_expires_at_its_time() {
        let millis = link().expires_at.as_millis();
        assert!(!link().is_expired(Timestamp::from_millis(millis - 1)));
        assert!(link().is_expired(Timestamp::from_millis(millis)));
    }
}
