//! Tenants and tokens.
//!
//! A token is `onw_` and 40 hexadecimal characters. It is shown once; only its SHA-256 is stored. One
//! that is unknown, expired or revoked is refused in the same words.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use onward_core::role::{Permission, TenantPolicy};
use onward_core::{Role, Timestamp};
use onward_store::{LogLine, Tenant, Token};
use serde_json::json;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::world::hex;

/// How often at most it is noted that a token was used.
const NOTED: Duration = Duration::from_secs(60);
const LONGEST_NAME: usize = 100;
const LONGEST_TENANT: usize = 64;
const REFUSED: &str = "the token is unknown, expired or revoked";

/// Which token, without its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenId(Uuid);

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for TokenId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.parse()?))
    }
}

impl Engine {
    /// Makes a token, and gives it away: it is not shown again.
    pub async fn create_token(
        &self,
        caller: &Caller,
        name: &str,
        role: Role,
        expires_at: Option<Timestamp>,
    ) -> Result<(String, Token), Error> {
        caller.allow(Permission::ManageTokens)?;
        if role == Role::Owner {
            // Whoever could make an owner would be one.
            caller.allow(Permission::ManageTenant)?;
        }
        let characters = name.chars().count();
        if name.trim().is_empty() || characters > LONGEST_NAME {
            let message = format!("must have 1 to {LONGEST_NAME} characters");
            return Err(Error::invalid("name", message));
        }
        let now = self.now();
        if expires_at.is_some_and(|at| at <= now) {
            return Err(Error::invalid("expiresAt", "must lie in the future"));
        }
        let secret = format!("onw_{}", self.fresh.hex::<20>());
        let token = Token {
            id: self.fresh.id(),
            prefix: secret.chars().take(12).collect(),
            name: name.replace('\0', "\u{FFFD}"),
            role,
            created_at: now,
            expires_at,
            last_used_at: None,
            revoked_at: None,
        };
        let line = self.line(caller, "token_created", &token);
        let (stored, hash) = (token.clone(), hash(&secret));
        let made = self.store.write(&caller.tenant, move |tx| {
            let (stored, hash, line) = (stored.clone(), hash.clone(), line.clone());
            Box::pin(async move {
                if tx.own_tenant().await?.is_none() {
                    return Err(unknown_tenant(tx.tenant()));
                }
                tx.add_token(&stored, &hash);
                tx.log_line(&line);
                Ok::<(), Error>(())
            })
        });
        made.await?;
        Ok((secret, token))
    }

    /// The tenant's tokens, the oldest first.
    pub async fn tokens(&self, caller: &Caller) -> Result<Vec<Token>, Error> {
        caller.allow(Permission::ManageTokens)?;
        let tokens = self
            .store
            .read(&caller.tenant, |tx| Box::pin(async { tx.tokens().await }));
        Ok(tokens.await?)
    }

    /// Takes a token back, named by its name, its id, or the beginning that is shown of it.
    pub async fn revoke_token(&self, caller: &Caller, named: &str) -> Result<Token, Error> {
        caller.allow(Permission::ManageTokens)?;
        let tokens = self.tokens(caller).await?;
        let fits = |token: &&Token| {
            let by_id = token.id.to_string();
            token.revoked_at.is_none()
                && (token.name == named || token.prefix == named || by_id.starts_with(named))
        };
        let mut fitting = tokens.iter().filter(fits);
        let token = match (fitting.next(), fitting.next()) {
            (Some(token), None) => token.clone(),
            (Some(_), Some(_)) => return Err(Error::Ambiguous(named.to_owned())),
            (None, _) => {
                return Err(Error::NotFound {
                    what: "token",
                    name: named.to_owned(),
                });
            }
        };
        if token.role == Role::Owner {
            caller.allow(Permission::ManageTenant)?;
        }
        let line = self.line(caller, "token_revoked", &token);
        let (id, now) = (token.id, self.now());
        let revoked = self.store.write(&caller.tenant, move |tx| {
            let line = line.clone();
            Box::pin(async move {
                tx.revoke_token(id, now);
                tx.log_line(&line);
                Ok::<(), onward_store::Error>(())
            })
        });
        revoked.await?;
        Ok(token)
    }

    /// Who comes with this token.
    pub async fn authenticate(&self, secret: &str) -> Result<Caller, Error> {
        let (tenant, id) = self.token_of(secret).await?;
        self.caller_of_token(&tenant, id).await
    }

    /// Which token of which tenant this is, whatever it is still good for.
    pub async fn token_of(&self, secret: &str) -> Result<(Arc<str>, TokenId), Error> {
        let hash = hash(secret);
        // Whose token it is, is not known before: this is the one question outside of all tenants.
        let nobody = Arc::from("");
        let found = self.store.read(&nobody, move |tx| {
            let hash = hash.clone();
            Box::pin(async move { tx.token_of_hash(&hash).await })
        });
        let (tenant, id) = found.await?.ok_or(Error::Unauthorized(REFUSED))?;
        Ok((tenant, TokenId(id)))
    }

    /// Who comes with a token that was shown before, as long as it is good.
    pub async fn caller_of_token(
        &self,
        tenant: &Arc<str>,
        TokenId(id): TokenId,
    ) -> Result<Caller, Error> {
        let known = self.store.read(tenant, move |tx| {
            Box::pin(async move {
                Ok::<_, onward_store::Error>((tx.token(id).await?, tx.own_tenant().await?))
            })
        });
        let (Some(token), Some(settings)) = known.await? else {
            return Err(Error::Unauthorized(REFUSED));
        };
        let now = self.now();
        let expired = token.expires_at.is_some_and(|at| now >= at);
        if expired || token.revoked_at.is_some() {
            return Err(Error::Unauthorized(REFUSED));
        }
        if token.last_used_at.is_none_or(|at| now.since(at) >= NOTED) {
            let noted = self.store.write(tenant, move |tx| {
                Box::pin(async move {
                    tx.token_used(id, now);
                    Ok::<(), onward_store::Error>(())
                })
            });
            noted.await?;
        }
        Ok(Caller {
            tenant: Arc::clone(tenant),
            name: format!("token:{}", token.name),
            role: token.role,
            policy: TenantPolicy {
                agents_decide_reviews: settings.agents_decide_reviews,
            },
        })
    }

    /// Makes a tenant. For whoever runs the server.
    pub async fn create_tenant(&self, name: &str) -> Result<Tenant, Error> {
        if !is_tenant_name(name) {
            let message =
                format!("must be 1 to {LONGEST_TENANT} lower-case letters, digits and hyphens");
            return Err(Error::invalid("name", message));
        }
        let tenant: Arc<str> = Arc::from(name);
        let now = self.now();
        let made = self.store.write(&tenant, move |tx| {
            Box::pin(async move {
                if tx.own_tenant().await?.is_some() {
                    return Err(Error::Conflict {
                        message: format!("there is a tenant `{}` already", tx.tenant()),
                        hint: "choose another name",
                    });
                }
                tx.make_tenant(false, now);
                Ok::<(), Error>(())
            })
        });
        made.await?;
        Ok(Tenant {
            name: tenant,
            agents_decide_reviews: false,
            created_at: now,
        })
    }

    /// Every tenant. For whoever runs the server.
    pub async fn tenants(&self) -> Result<Vec<Tenant>, Error> {
        let nobody = Arc::from("");
        let tenants = self
            .store
            .read(&nobody, |tx| Box::pin(async { tx.all_tenants().await }));
        Ok(tenants.await?)
    }

    /// Whoever runs the server, acting for one of its tenants.
    pub async fn operator(&self, tenant: &str, name: &str) -> Result<Caller, Error> {
        if !is_tenant_name(tenant) {
            return Err(unknown_tenant(&Arc::from(tenant)));
        }
        let tenant: Arc<str> = Arc::from(tenant);
        let known = self
            .store
            .read(&tenant, |tx| Box::pin(async { tx.own_tenant().await }));
        let known = known.await?.ok_or_else(|| unknown_tenant(&tenant))?;
        Ok(Caller {
            tenant,
            name: name.to_owned(),
            role: Role::Owner,
            policy: TenantPolicy {
                agents_decide_reviews: known.agents_decide_reviews,
            },
        })
    }

    /// The last lines of the tenant's log, newest first.
    pub async fn tenant_log(&self, caller: &Caller, limit: u32) -> Result<Vec<LogLine>, Error> {
        caller.allow(Permission::Read)?;
        let lines = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.log_lines(limit).await })
        });
        Ok(lines.await?)
    }

    fn line(&self, caller: &Caller, action: &str, token: &Token) -> LogLine {
        let at = self.now();
        LogLine {
            id: self.fresh.timely_id(at),
            at,
            actor: caller.signature(),
            action: action.to_owned(),
            details: json!({
                "tokenId": token.id.to_string(),
                "name": token.name,
                "role": token.role.as_str(),
            }),
        }
    }
}

fn is_tenant_name(name: &str) -> bool {
    let fits = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    !name.is_empty() && name.len() <= LONGEST_TENANT && name.chars().all(fits)
}

fn unknown_tenant(name: &Arc<str>) -> Error {
    Error::NotFound {
        what: "tenant",
        name: name.to_string(),
    }
}

/// What is stored of a token.
fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}
