//! Tenants and tokens.
//!
//! A token is `onw_` followed by 40 hexadecimal characters. It is displayed once; only its SHA-256
//! is stored. Unknown, expired and revoked tokens are rejected with the same message.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use onward_core::role::{Permission, TenantPolicy};
use onward_core::{Role, Timestamp};
use onward_store::{LogLine, RequestOrigin, Tenant, Tenants, Token, Tokens};
use serde_json::json;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::environment::hex;
use crate::error::{Error, MAX_MATCHES, ObjectKind};

/// Minimum interval between updates of a token's `last_used_at`.
const LAST_USED_INTERVAL: Duration = Duration::from_secs(60);
const MAX_NAME_CHARS: usize = 100;
const MAX_TENANT_CHARS: usize = 64;
const INVALID_TOKEN: &str = "the token is unknown, expired or revoked";

/// The id of a token; not secret.
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
    /// Creates a token and returns its secret, which cannot be retrieved again.
    pub async fn create_token(
        &self,
        caller: &Caller,
        name: &str,
        role: Role,
        expires_at: Option<Timestamp>,
    ) -> Result<(String, Token), Error> {
        caller.allow(Permission::ManageTokens)?;
        if role == Role::Owner {
            // Creating an owner token is equivalent to being an owner.
            caller.allow(Permission::ManageTenant)?;
        }
        let characters = name.chars().count();
        if name.trim().is_empty() || characters > MAX_NAME_CHARS {
            let message = format!("must have 1 to {MAX_NAME_CHARS} characters");
            return Err(Error::invalid("name", message));
        }
        let now = self.now();
        if expires_at.is_some_and(|at| at <= now) {
            return Err(Error::invalid("expiresAt", "must be in the future"));
        }
        let secret = format!("onw_{}", self.ids.hex::<20>());
        let token = Token {
            id: self.ids.random_id(),
            prefix: secret.chars().take(12).collect(),
            name: name.replace('\0', "\u{FFFD}"),
            role,
            created_at: now,
            expires_at,
            last_used_at: None,
            revoked_at: None,
        };
        let line = self.token_log_entry(caller, "token_created", &token);
        let (stored, hash) = (token.clone(), hash(&secret));
        let made = self.store.write(&caller.tenant, move |tx| {
            let (stored, hash, line) = (stored.clone(), hash.clone(), line.clone());
            Box::pin(async move {
                if Tenants(tx).own_tenant().await?.is_none() {
                    return Err(tenant_not_found(tx.tenant()));
                }
                Tokens(tx).add_token(&stored, &hash);
                Tenants(tx).log_line(&line);
                Ok::<(), Error>(())
            })
        });
        made.await?;
        Ok((secret, token))
    }

    /// The tenant's tokens, oldest first.
    pub async fn tokens(&self, caller: &Caller) -> Result<Vec<Token>, Error> {
        caller.allow(Permission::ManageTokens)?;
        let tokens = self.store.read(&caller.tenant, |tx| {
            Box::pin(async { Tokens(tx).tokens().await })
        });
        Ok(tokens.await?)
    }

    /// Revokes a token, identified by its name, its displayed prefix, or an id prefix.
    pub async fn revoke_token(&self, caller: &Caller, identifier: &str) -> Result<Token, Error> {
        caller.allow(Permission::ManageTokens)?;
        let tokens = self.tokens(caller).await?;
        let matches = |token: &&Token| {
            let by_id = token.id.to_string();
            token.revoked_at.is_none()
                && (token.name == identifier
                    || token.prefix == identifier
                    || by_id.starts_with(identifier))
        };
        let matching: Vec<&Token> = tokens.iter().filter(matches).collect();
        let token = match matching[..] {
            [token] => token.clone(),
            [] => {
                return Err(Error::NotFound {
                    kind: ObjectKind::Token,
                    name: identifier.to_owned(),
                });
            }
            _ => {
                let entry = |token: &&Token| format!("{} {}", token.prefix, token.name);
                return Err(Error::Ambiguous {
                    text: identifier.to_owned(),
                    kind: "tokens",
                    matches: matching.iter().take(MAX_MATCHES + 1).map(entry).collect(),
                });
            }
        };
        if token.role == Role::Owner {
            caller.allow(Permission::ManageTenant)?;
        }
        let line = self.token_log_entry(caller, "token_revoked", &token);
        let (id, now) = (token.id, self.now());
        let revoked = self.store.write(&caller.tenant, move |tx| {
            let line = line.clone();
            Box::pin(async move {
                Tokens(tx).revoke_token(id, now);
                Tenants(tx).log_line(&line);
                Ok::<(), onward_store::Error>(())
            })
        });
        revoked.await?;
        Ok(token)
    }

    /// The caller that a token secret belongs to.
    pub async fn authenticate(&self, secret: &str) -> Result<Caller, Error> {
        let (tenant, id) = self.find_token(secret).await?;
        self.caller_for_token(&tenant, id).await
    }

    /// Looks up a token by its secret, without checking expiry or revocation.
    pub async fn find_token(&self, secret: &str) -> Result<(Arc<str>, TokenId), Error> {
        let hash = hash(secret);
        // The tenant is unknown until the token is found, so this read is outside of any tenant.
        let no_tenant = Arc::from("");
        let found = self.store.read(&no_tenant, move |tx| {
            let hash = hash.clone();
            Box::pin(async move { Tokens(tx).token_of_hash(&hash).await })
        });
        let (tenant, id) = found.await?.ok_or(Error::Unauthorized(INVALID_TOKEN))?;
        Ok((tenant, TokenId(id)))
    }

    /// The caller for a token that was looked up before. Rejects expired and revoked tokens.
    pub async fn caller_for_token(
        &self,
        tenant: &Arc<str>,
        TokenId(id): TokenId,
    ) -> Result<Caller, Error> {
        let known = self.store.read(tenant, move |tx| {
            Box::pin(async move {
                Ok::<_, onward_store::Error>((
                    Tokens(tx).token(id).await?,
                    Tenants(tx).own_tenant().await?,
                ))
            })
        });
        let (Some(token), Some(settings)) = known.await? else {
            return Err(Error::Unauthorized(INVALID_TOKEN));
        };
        let now = self.now();
        let expired = token.expires_at.is_some_and(|at| now >= at);
        if expired || token.revoked_at.is_some() {
            return Err(Error::Unauthorized(INVALID_TOKEN));
        }
        if token
            .last_used_at
            .is_none_or(|at| now.since(at) >= LAST_USED_INTERVAL)
        {
            let recorded = self.store.write(tenant, move |tx| {
                Box::pin(async move {
                    Tokens(tx).token_used(id, now);
                    Ok::<(), onward_store::Error>(())
                })
            });
            recorded.await?;
        }
        Ok(Caller {
            tenant: Arc::clone(tenant),
            name: format!("token:{}", token.name),
            role: token.role,
            policy: TenantPolicy {
                agents_decide_reviews: settings.agents_decide_reviews,
            },
            origin: RequestOrigin::default(),
            connection: None,
        })
    }

    /// Creates a tenant. For the server's operator.
    pub async fn create_tenant(&self, name: &str) -> Result<Tenant, Error> {
        if !is_tenant_name(name) {
            let message =
                format!("must be 1 to {MAX_TENANT_CHARS} lower-case letters, digits and hyphens");
            return Err(Error::invalid("name", message));
        }
        let tenant: Arc<str> = Arc::from(name);
        let now = self.now();
        let made = self.store.write(&tenant, move |tx| {
            Box::pin(async move {
                if Tenants(tx).own_tenant().await?.is_some() {
                    return Err(Error::Conflict {
                        message: format!("tenant `{}` already exists", tx.tenant()),
                        hint: "choose another name".into(),
                    });
                }
                Tenants(tx).make_tenant(false, now);
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

    /// The caller's tenant and its settings.
    pub async fn tenant(&self, caller: &Caller) -> Result<Tenant, Error> {
        caller.allow(Permission::Read)?;
        let tenant = self.store.read(&caller.tenant, |tx| {
            Box::pin(async { Tenants(tx).own_tenant().await })
        });
        let tenant = tenant.await?;
        tenant.ok_or_else(|| tenant_not_found(&caller.tenant))
    }

    /// Changes whether agents decide reviews in the caller's tenant. The tenant's log records the
    /// change. Calls that have started keep the previous setting.
    pub async fn set_agents_decide_reviews(
        &self,
        caller: &Caller,
        agents_decide_reviews: bool,
    ) -> Result<Tenant, Error> {
        caller.allow(Permission::ManageTenant)?;
        let at = self.now();
        let line = LogLine {
            id: self.ids.ordered_id(at),
            at,
            actor: caller.actor(),
            action: "tenant_changed".to_owned(),
            details: json!({ "agentsDecideReviews": agents_decide_reviews }),
        };
        let tenant = self.store.write(&caller.tenant, move |tx| {
            let line = line.clone();
            Box::pin(async move {
                let mut tenant = match Tenants(tx).own_tenant().await? {
                    Some(tenant) => tenant,
                    None => return Err(tenant_not_found(tx.tenant())),
                };
                if tenant.agents_decide_reviews != agents_decide_reviews {
                    Tenants(tx).change_tenant(agents_decide_reviews);
                    Tenants(tx).log_line(&line);
                    tenant.agents_decide_reviews = agents_decide_reviews;
                }
                Ok::<Tenant, Error>(tenant)
            })
        });
        tenant.await
    }

    /// The bytes of all texts of the caller's tenant. Reads the size of each.
    pub async fn stored_bytes(&self, caller: &Caller) -> Result<u64, Error> {
        caller.allow(Permission::Read)?;
        let bytes = self.store.read(&caller.tenant, |tx| {
            Box::pin(async { Tenants(tx).stored_bytes().await })
        });
        Ok(bytes.await?)
    }

    /// All tenants. For the server's operator.
    pub async fn tenants(&self) -> Result<Vec<Tenant>, Error> {
        let no_tenant = Arc::from("");
        let tenants = self.store.read(&no_tenant, |tx| {
            Box::pin(async { Tenants(tx).all_tenants().await })
        });
        Ok(tenants.await?)
    }

    /// [`Self::tenants`] for background tasks: without those on a node that does not respond, if the
    /// database is distributed.
    pub async fn reachable_tenants(&self) -> Result<Vec<Tenant>, Error> {
        let tenants = self
            .store
            .read_nodes(|tx| Box::pin(async { Tenants(tx).all_tenants().await }));
        let tenants = tenants.await?.into_iter().flat_map(|node| node.read);
        Ok(tenants.collect())
    }

    /// A caller for the server's operator, acting for one tenant.
    pub async fn operator(&self, tenant: &str, name: &str) -> Result<Caller, Error> {
        if !is_tenant_name(tenant) {
            return Err(tenant_not_found(&Arc::from(tenant)));
        }
        let tenant: Arc<str> = Arc::from(tenant);
        let known = self.store.read(&tenant, |tx| {
            Box::pin(async { Tenants(tx).own_tenant().await })
        });
        let known = known.await?.ok_or_else(|| tenant_not_found(&tenant))?;
        Ok(Caller {
            tenant,
            name: name.to_owned(),
            role: Role::Owner,
            policy: TenantPolicy {
                agents_decide_reviews: known.agents_decide_reviews,
            },
            origin: RequestOrigin::default(),
            connection: None,
        })
    }

    /// The caller of [`Self::operator`], without access to the database: the tenant is not looked
    /// up, and its policy is the default.
    pub fn assumed_operator(&self, tenant: &str, name: &str) -> Result<Caller, Error> {
        let tenant: Arc<str> = Arc::from(tenant);
        if !is_tenant_name(&tenant) {
            return Err(tenant_not_found(&tenant));
        }
        Ok(Caller {
            tenant,
            name: name.to_owned(),
            role: Role::Owner,
            policy: TenantPolicy::default(),
            origin: RequestOrigin::default(),
            connection: None,
        })
    }

    /// The most recent entries of the tenant's log, newest first.
    pub async fn tenant_log(&self, caller: &Caller, limit: u32) -> Result<Vec<LogLine>, Error> {
        caller.allow(Permission::Read)?;
        let lines = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Tenants(tx).log_lines(limit).await })
        });
        Ok(lines.await?)
    }

    fn token_log_entry(&self, caller: &Caller, action: &str, token: &Token) -> LogLine {
        let at = self.now();
        LogLine {
            id: self.ids.ordered_id(at),
            at,
            actor: caller.actor(),
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
    let matches = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    !name.is_empty() && name.len() <= MAX_TENANT_CHARS && name.chars().all(matches)
}

fn tenant_not_found(name: &Arc<str>) -> Error {
    Error::NotFound {
        kind: ObjectKind::Tenant,
        name: name.to_string(),
    }
}

/// The stored form of a token.
fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}
