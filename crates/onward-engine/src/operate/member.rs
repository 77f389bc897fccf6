//! Members of a tenant: their role and last activity.
//!
//! There are no invitations. A token makes its holder a member until it is revoked or expires. An
//! identity provider supplies a user's role at each sign-in; the tenant's log records the sign-in.
//! The recorded role may be outdated: only the provider has the current one. Browser sessions are
//! signed cookies; only those that users end early are stored.

use std::collections::HashSet;
use std::sync::Arc;

use onward_core::role::Permission;
use onward_core::{Role, Timestamp};
use onward_store::{LogLine, Tenants, Token, Tokens};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

const SIGNED_IN: &str = "signed_in";
/// Number of log entries searched for sign-ins.
const MAX_LOG_ENTRIES: u32 = 1_000;

/// A member of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Name in the audit trail.
    pub name: String,
    /// The member's role.
    pub role: Role,
    /// How the member signs in.
    pub sign_in_method: SignInMethod,
    /// Last recorded activity.
    pub last_seen_at: Option<Timestamp>,
}

/// A sign-in method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInMethod {
    /// With a valid token.
    Token,
    /// Through the identity provider.
    Provider,
}

impl Engine {
    /// Records a sign-in through the identity provider.
    pub async fn record_sign_in(&self, caller: &Caller) -> Result<(), Error> {
        caller.allow(Permission::Read)?;
        let at = self.now();
        let line = LogLine {
            id: self.ids.ordered_id(at),
            at,
            actor: caller.actor(),
            action: SIGNED_IN.to_owned(),
            details: json!({ "role": caller.role.as_str() }),
        };
        let recorded = self.store.write(&caller.tenant, move |tx| {
            let line = line.clone();
            Box::pin(async move {
                Tenants(tx).log_line(&line);
                Ok::<(), onward_store::Error>(())
            })
        });
        Ok(recorded.await?)
    }

    /// Ends a browser session, which would expire at `expires_at`.
    pub async fn sign_out(
        &self,
        caller: &Caller,
        session_key: &str,
        expires_at: Timestamp,
    ) -> Result<(), Error> {
        caller.allow(Permission::Read)?;
        let (key, now) = (session_key.to_owned(), self.now());
        let recorded = self.store.write(&caller.tenant, move |tx| {
            let key = key.clone();
            Box::pin(async move {
                Tokens(tx).sign_out(&key, expires_at, now);
                Ok::<(), onward_store::Error>(())
            })
        });
        Ok(recorded.await?)
    }

    /// Whether a browser session was ended. Part of authentication, so there is no caller yet.
    pub async fn is_signed_out(&self, tenant: &Arc<str>, session_key: &str) -> Result<bool, Error> {
        let key = session_key.to_owned();
        let found = self.store.read(tenant, move |tx| {
            let key = key.clone();
            Box::pin(async move { Tokens(tx).is_signed_out(&key).await })
        });
        Ok(found.await?)
    }

    /// The tenant's members: token holders, oldest first, then users, most recent sign-in first.
    pub async fn members(&self, caller: &Caller) -> Result<Vec<Member>, Error> {
        caller.allow(Permission::ManageMembers)?;
        let known = self.store.read(&caller.tenant, |tx| {
            Box::pin(async {
                let tokens = Tokens(tx).tokens().await?;
                Ok::<_, onward_store::Error>((
                    tokens,
                    Tenants(tx).log_lines(MAX_LOG_ENTRIES).await?,
                ))
            })
        });
        let (tokens, log) = known.await?;
        let now = self.now();
        let is_valid = |token: &&Token| {
            token.revoked_at.is_none() && token.expires_at.is_none_or(|at| now < at)
        };
        let holder = |token: &Token| Member {
            name: format!("token:{}", token.name),
            role: token.role,
            sign_in_method: SignInMethod::Token,
            last_seen_at: token.last_used_at,
        };
        let mut members: Vec<Member> = tokens.iter().filter(is_valid).map(holder).collect();
        let mut seen = HashSet::new();
        members.extend(log.iter().filter_map(|line| {
            let role = line.details.get("role").and_then(Value::as_str)?;
            let is_new = line.action == SIGNED_IN && seen.insert(&line.actor);
            is_new.then_some(Member {
                name: line.actor.clone(),
                role: role.parse().ok()?,
                sign_in_method: SignInMethod::Provider,
                last_seen_at: Some(line.at),
            })
        }));
        Ok(members)
    }
}
