//! Members: who belongs to a tenant, with which role, and when they were last here.
//!
//! Nobody is invited: a token makes its holder a member until it is revoked or ends, and an identity
//! provider says of a person what they are each time they sign in. Of such a person the tenant's log
//! keeps the signing in; what they may now, only the provider knows.

use std::collections::HashSet;

use onward_core::role::Permission;
use onward_core::{Role, Timestamp};
use onward_store::{LogLine, Token};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

const SIGNED_IN: &str = "signed_in";
/// So much of the tenant's log is looked through.
const LOOKED_AT: u32 = 1_000;

/// Somebody who belongs to a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// As the audit trail calls them.
    pub name: String,
    /// What they are.
    pub role: Role,
    /// How they come in.
    pub by: Entrance,
    /// When they were last here, as far as was noted.
    pub last_seen_at: Option<Timestamp>,
}

/// How somebody comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrance {
    /// With a token that is good.
    Token,
    /// Through the identity provider.
    Provider,
}

impl Engine {
    /// Notes that somebody came in through the identity provider.
    pub async fn note_sign_in(&self, caller: &Caller) -> Result<(), Error> {
        caller.allow(Permission::Read)?;
        let at = self.now();
        let line = LogLine {
            id: self.fresh.timely_id(at),
            at,
            actor: caller.signature(),
            action: SIGNED_IN.to_owned(),
            details: json!({ "role": caller.role.as_str() }),
        };
        let noted = self.store.write(&caller.tenant, move |tx| {
            let line = line.clone();
            Box::pin(async move {
                tx.log_line(&line);
                Ok::<(), onward_store::Error>(())
            })
        });
        Ok(noted.await?)
    }

    /// The tenant's members: holders of tokens, the oldest first, then people, whoever was here last
    /// first.
    pub async fn members(&self, caller: &Caller) -> Result<Vec<Member>, Error> {
        caller.allow(Permission::ManageMembers)?;
        let known = self.store.read(&caller.tenant, |tx| {
            Box::pin(async {
                let tokens = tx.tokens().await?;
                Ok::<_, onward_store::Error>((tokens, tx.log_lines(LOOKED_AT).await?))
            })
        });
        let (tokens, log) = known.await?;
        let now = self.now();
        let is_good = |token: &&Token| {
            token.revoked_at.is_none() && token.expires_at.is_none_or(|at| now < at)
        };
        let holder = |token: &Token| Member {
            name: format!("token:{}", token.name),
            role: token.role,
            by: Entrance::Token,
            last_seen_at: token.last_used_at,
        };
        let mut members: Vec<Member> = tokens.iter().filter(is_good).map(holder).collect();
        let mut met = HashSet::new();
        members.extend(log.iter().filter_map(|line| {
            let role = line.details.get("role").and_then(Value::as_str)?;
            let is_new = line.action == SIGNED_IN && met.insert(&line.actor);
            is_new.then_some(Member {
                name: line.actor.clone(),
                role: role.parse().ok()?,
                by: Entrance::Provider,
                last_seen_at: Some(line.at),
            })
        }));
        Ok(members)
    }
}
