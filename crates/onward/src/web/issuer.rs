//! An identity provider's tokens (JSON web tokens), from their signature to a [`Caller`].
//!
//! Accepted is what the configured issuer signed with a key that it publishes, for our audience, that
//! has begun and not ended, with every scope that is asked for. The kinds of signature are fixed here:
//! what a token says about itself never widens them. Where the keys come from stands in `keys.rs`.

use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use onward_core::{Code, Role};
use onward_engine::{Caller, Engine, Error};
use serde_json::{Map, Value};

use super::gate::Refused;
use super::keys::{self, Keys};
use super::problem::Problem;
use super::sign_in::{Client, Given};
use crate::config;

/// Kinds of signature that are accepted: those where whoever checks cannot sign.
const SIGNATURES: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];
/// Clocks differ by this many seconds at most.
const LEEWAY: u64 = 30;
/// No honest token is longer.
const LONGEST: usize = 16 * 1024;
/// Said whatever is wrong: whoever forges one learns nothing.
const REFUSED: &str = "the token is unknown, expired or revoked";

/// Whose tokens are accepted beside our own.
pub(super) struct Issuer {
    /// Its name.
    pub(super) url: String,
    /// What a token must be good for.
    pub(super) scopes: Vec<String>,
    audience: String,
    tenant_claim: Option<String>,
    role_claim: String,
    default_role: Role,
    /// Whose tenant it is where no claim says it.
    tenant: String,
    pub(super) keys: Keys,
    /// What people sign in as through it, where they do.
    pub(super) client: Option<Client>,
}

impl Issuer {
    /// The issuer that the configuration names, for the server's own tenant.
    pub(super) fn of(issuer: &config::Issuer, tenant: &str) -> Result<Self, reqwest::Error> {
        let url = issuer.url.value.clone();
        Ok(Self {
            keys: Keys::of(&url, issuer.jwks_url.value.as_deref())?,
            url,
            scopes: issuer.scopes.value.clone(),
            audience: issuer.audience.value.clone(),
            tenant_claim: issuer.tenant_claim.value.clone(),
            role_claim: issuer.role_claim.value.clone(),
            default_role: issuer.default_role.value,
            tenant: tenant.to_owned(),
            client: Client::of(issuer),
        })
    }

    /// Who comes with this token.
    pub(super) async fn caller(&self, engine: &Engine, token: &str) -> Result<Caller, Refused> {
        let claims = self.claims(token, &self.audience).await?;
        let missing = self.missing(&claims);
        if !missing.is_empty() {
            return Err(Refused::Scope(missing));
        }
        self.whose(engine, &claims).await
    }

    /// Who signed in: an id token for our client, made for this very journey.
    pub(super) async fn person(
        &self,
        engine: &Engine,
        given: &Given,
        client: &str,
        nonce: &str,
    ) -> Result<Caller, Refused> {
        let claims = self.claims(&given.id_token, client).await?;
        let says =
            |name: &str, expected: &str| claims.get(name).and_then(Value::as_str) == Some(expected);
        let for_others = claims.get("aud").and_then(Value::as_array);
        let for_others = for_others.is_some_and(|all| all.len() > 1);
        let bound = says("azp", client) || (!for_others && !claims.contains_key("azp"));
        if !bound || !says("nonce", nonce) {
            return Err(Refused::Wrong(REFUSED));
        }
        // What is not said to be granted otherwise is granted as it was asked for.
        if let Some(scope) = &given.scope {
            let granted: Vec<&str> = scope.split_whitespace().collect();
            let lacks = |scope: &&String| !granted.contains(&scope.as_str());
            let missing: Vec<String> = self.scopes.iter().filter(lacks).cloned().collect();
            if !missing.is_empty() {
                return Err(Refused::Scope(missing));
            }
        }
        self.whose(engine, &claims).await
    }

    /// The tenant and the role that claims stand for.
    async fn whose(&self, engine: &Engine, claims: &Map<String, Value>) -> Result<Caller, Refused> {
        let subject = claims.get("sub").and_then(Value::as_str);
        let subject = subject.filter(|subject| !subject.is_empty());
        let subject = subject.ok_or(Refused::Wrong("the token does not say whose it is"))?;
        let tenant = match &self.tenant_claim {
            None => self.tenant.as_str(),
            Some(claim) => claims
                .get(claim)
                .and_then(Value::as_str)
                .ok_or(Refused::Wrong("the token names no tenant"))?,
        };
        let role = self.role(claims)?;
        let known = engine.operator(tenant, &format!("user:{subject}")).await;
        match known {
            Ok(caller) => Ok(Caller { role, ..caller }),
            Err(Error::NotFound { .. }) => Err(Refused::Wrong("the token names no tenant")),
            Err(why) => Err(why.into()),
        }
    }

    /// What the token says, where it may be believed.
    async fn claims(&self, token: &str, audience: &str) -> Result<Map<String, Value>, Refused> {
        let wrong = || Refused::Wrong(REFUSED);
        if token.len() > LONGEST {
            return Err(wrong());
        }
        let header = decode_header(token).map_err(|_| wrong())?;
        // What a token declares to be critical is for somebody who understands it.
        if !SIGNATURES.contains(&header.alg) || header.crit.is_some() {
            return Err(wrong());
        }
        let key = self.keys.find(header.kid.as_deref(), header.alg).await;
        let key = key.map_err(|missing| match missing {
            keys::Missing::Unknown => wrong(),
            keys::Missing::Away => Refused::Failed(Problem::new(
                Code::Unavailable,
                "the identity provider's keys cannot be had",
                "try again in a few seconds; a token of Onward's own works meanwhile",
            )),
        })?;
        let mut rules = Validation::new(header.alg);
        rules.leeway = LEEWAY;
        rules.validate_nbf = true;
        rules.set_audience(&[audience]);
        rules.set_issuer(&[&self.url]);
        rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        match decode(token, &key, &rules) {
            Ok(token) => Ok(token.claims),
            Err(why) => {
                tracing::debug!(%why, "a token of the identity provider is refused");
                Err(wrong())
            }
        }
    }

    /// The scopes that it lacks.
    fn missing(&self, claims: &Map<String, Value>) -> Vec<String> {
        let granted: Vec<&str> = ["scope", "scp"]
            .iter()
            .filter_map(|name| claims.get(*name))
            .flat_map(words)
            .collect();
        let lacks = |scope: &&String| !granted.contains(&scope.as_str());
        self.scopes.iter().filter(lacks).cloned().collect()
    }

    /// The role that it names: a word, or the first of a list that is one of ours.
    fn role(&self, claims: &Map<String, Value>) -> Result<Role, Refused> {
        let Some(claim) = claims.get(&self.role_claim) else {
            return Ok(self.default_role);
        };
        let role = words(claim).find_map(|word| word.parse().ok());
        if claim.is_array() {
            // A list holds what others need, too.
            return Ok(role.unwrap_or(self.default_role));
        }
        role.ok_or(Refused::Wrong("the token names a role that there is not"))
    }
}

/// The words of a claim, which is one text or a list of them.
fn words(claim: &Value) -> impl Iterator<Item = &str> {
    let text = claim.as_str().into_iter();
    let list = claim.as_array().into_iter().flatten();
    text.chain(list.filter_map(Value::as_str))
        .flat_map(str::split_whitespace)
}

/// Every scope that is asked for, as a challenge names them.
pub(super) fn wanted(issuer: Option<&Issuer>) -> String {
    issuer.map_or_else(String::new, |issuer| issuer.scopes.join(" "))
}
