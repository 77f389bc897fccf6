//! Validation of an identity provider's tokens (JSON Web Tokens), from the signature to a
//! [`Caller`].
//!
//! A token is accepted if the configured issuer signed it with a published key, for our audience,
//! if it is currently valid, and if it has all required scopes. The accepted algorithms are fixed
//! here; the token's header cannot add any. `keys.rs` fetches the keys.

use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use onward_core::{Code, Role};
use onward_engine::{Caller, Engine, Error};
use serde_json::{Map, Value};

use super::auth_error::AuthError;
use super::keys::{self, Keys};
use super::problem::Problem;
use super::sign_in::{Client, TokenResponse};
use crate::config;

/// Accepted signature algorithms. All are asymmetric, so a verification key cannot sign.
const ALGORITHMS: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];
/// Tolerated clock skew, in seconds.
const LEEWAY: u64 = 30;
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// One message for all reasons, so that it does not help to forge a token.
pub(super) const INVALID_TOKEN: &str = "the token is invalid, expired or revoked";

/// An identity provider whose tokens are accepted.
pub(super) struct Issuer {
    /// The issuer URL, as in the claim `iss`.
    pub(super) url: String,
    /// Required scopes.
    pub(super) scopes: Vec<String>,
    audience: String,
    tenant_claim: Option<String>,
    role_claim: String,
    default_role: Role,
    /// The tenant of tokens without a tenant claim.
    tenant: String,
    pub(super) keys: Keys,
    /// The OAuth client for signing users in, if one is configured.
    pub(super) client: Option<Client>,
}

impl Issuer {
    /// The configured issuer. `tenant` is the server's own tenant.
    pub(super) fn new(issuer: &config::Issuer, tenant: &str) -> Result<Self, reqwest::Error> {
        let url = issuer.url.clone();
        Ok(Self {
            keys: Keys::new(&url, issuer.jwks_url.as_deref())?,
            url,
            scopes: issuer.scopes.clone(),
            audience: issuer.audience.clone(),
            tenant_claim: issuer.tenant_claim.clone(),
            role_claim: issuer.role_claim.clone(),
            default_role: issuer.default_role,
            tenant: tenant.to_owned(),
            client: Client::from_config(issuer),
        })
    }

    /// The caller with this access token.
    pub(super) async fn caller(&self, engine: &Engine, token: &str) -> Result<Caller, AuthError> {
        let claims = self.claims(token, &self.audience).await?;
        let missing = self.missing_scopes(&claims);
        if !missing.is_empty() {
            return Err(AuthError::InsufficientScope(missing));
        }
        self.resolve_caller(engine, &claims).await
    }

    /// The user of a sign-in. The id token must be for our client and for this sign-in attempt.
    pub(super) async fn signed_in_user(
        &self,
        engine: &Engine,
        response: &TokenResponse,
        client: &str,
        nonce: &str,
    ) -> Result<Caller, AuthError> {
        let claims = self.claims(&response.id_token, client).await?;
        let claim_is =
            |name: &str, expected: &str| claims.get(name).and_then(Value::as_str) == Some(expected);
        let audiences = claims.get("aud").and_then(Value::as_array);
        let has_other_audiences = audiences.is_some_and(|all| all.len() > 1);
        let for_client =
            claim_is("azp", client) || (!has_other_audiences && !claims.contains_key("azp"));
        if !for_client || !claim_is("nonce", nonce) {
            return Err(AuthError::Invalid(INVALID_TOKEN));
        }
        // Without `scope` in the response, all requested scopes were granted (RFC 6749, 5.1).
        if let Some(scope) = &response.scope {
            let granted: Vec<&str> = scope.split_whitespace().collect();
            let lacks = |scope: &&String| !granted.contains(&scope.as_str());
            let missing: Vec<String> = self.scopes.iter().filter(lacks).cloned().collect();
            if !missing.is_empty() {
                return Err(AuthError::InsufficientScope(missing));
            }
        }
        self.resolve_caller(engine, &claims).await
    }

    /// Resolves claims to a tenant, a role and a name.
    async fn resolve_caller(
        &self,
        engine: &Engine,
        claims: &Map<String, Value>,
    ) -> Result<Caller, AuthError> {
        let subject = claims.get("sub").and_then(Value::as_str);
        // The name is part of audit trails and log lines.
        let is_name = |subject: &&str| !subject.is_empty() && !subject.contains(char::is_control);
        let subject = subject.filter(is_name);
        let subject = subject.ok_or(AuthError::Invalid("the token has no valid subject"))?;
        let tenant = match &self.tenant_claim {
            None => self.tenant.as_str(),
            Some(claim) => claims
                .get(claim)
                .and_then(Value::as_str)
                .ok_or(AuthError::Invalid("the token names no tenant"))?,
        };
        let role = self.role(claims)?;
        let operator = engine.operator(tenant, &format!("user:{subject}")).await;
        match operator {
            Ok(caller) => Ok(Caller { role, ..caller }),
            Err(Error::NotFound { .. }) => Err(AuthError::Invalid("the token names no tenant")),
            Err(error) => Err(error.into()),
        }
    }

    /// The claims of a valid token.
    async fn claims(&self, token: &str, audience: &str) -> Result<Map<String, Value>, AuthError> {
        let invalid = || AuthError::Invalid(INVALID_TOKEN);
        if token.len() > MAX_TOKEN_BYTES {
            return Err(invalid());
        }
        let header = decode_header(token).map_err(|_| invalid())?;
        // Onward supports no critical extensions (RFC 7515, 4.1.11).
        if !ALGORITHMS.contains(&header.alg) || header.crit.is_some() {
            return Err(invalid());
        }
        let key = self.keys.find(header.kid.as_deref(), header.alg).await;
        let key = key.map_err(|error| match error {
            keys::KeyError::NotFound => invalid(),
            keys::KeyError::ProviderUnreachable => AuthError::Failed(Problem::new(
                Code::Unavailable,
                "cannot fetch the identity provider's keys",
                "retry in a few seconds, or use an Onward token",
            )),
        })?;
        let mut rules = Validation::new(header.alg);
        rules.leeway = LEEWAY;
        rules.validate_nbf = true;
        rules.set_audience(&[audience]);
        rules.set_issuer(&[&self.url]);
        rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        match decode(token, &key, &rules) {
            // The library also accepts a list that contains the issuer (RFC 7519, 4.1.1: a string).
            Ok(token) if is_string(&token.claims, "iss") => Ok(token.claims),
            Ok(_) => Err(invalid()),
            Err(error) => {
                tracing::debug!(%error, "rejected an identity provider token");
                Err(invalid())
            }
        }
    }

    fn missing_scopes(&self, claims: &Map<String, Value>) -> Vec<String> {
        let granted: Vec<&str> = ["scope", "scp"]
            .iter()
            .filter_map(|name| claims.get(*name))
            .flat_map(words)
            .collect();
        let lacks = |scope: &&String| !granted.contains(&scope.as_str());
        self.scopes.iter().filter(lacks).cloned().collect()
    }

    /// The role claim: a role, or a list with one role. The list may also hold roles of other
    /// applications.
    fn role(&self, claims: &Map<String, Value>) -> Result<Role, AuthError> {
        let Some(claim) = claims.get(&self.role_claim) else {
            return Ok(self.default_role);
        };
        let listed = claim
            .as_array()
            .map_or(std::slice::from_ref(claim), Vec::as_slice);
        let mut roles = listed.iter().filter_map(Value::as_str).flat_map(str::parse);
        match (roles.next(), roles.next()) {
            (Some(role), None) => Ok(role),
            (Some(_), Some(_)) => Err(AuthError::Invalid("the token has several roles")),
            (None, _) => Err(AuthError::Invalid("the token has an unknown role")),
        }
    }
}

fn is_string(claims: &Map<String, Value>, name: &str) -> bool {
    claims.get(name).is_some_and(Value::is_string)
}

/// The words of a claim that is a string or a list of strings.
fn words(claim: &Value) -> impl Iterator<Item = &str> {
    let text = claim.as_str().into_iter();
    let list = claim.as_array().into_iter().flatten();
    text.chain(list.filter_map(Value::as_str))
        .flat_map(str::split_whitespace)
}

/// The required scopes, for the `WWW-Authenticate` challenge.
pub(super) fn required_scopes(issuer: Option<&Issuer>) -> String {
    issuer.map_or_else(String::new, |issuer| issuer.scopes.join(" "))
}
