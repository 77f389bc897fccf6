//! Tenants and tokens: who may come in, and as what.
//!
//! A token itself is nowhere: only its hash, in a narrow table that stands outside of the tenants,
//! because it is how a tenant is found.

use std::sync::Arc;

use onward_core::{Role, Timestamp};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::error::Error;
use crate::facts::first;
use crate::tx::{Statement, Tx};
use crate::value::{Row, params};

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Its name, which is also its id.
    pub name: Arc<str>,
    /// Whether agents may decide reviews.
    pub agents_decide_reviews: bool,
    /// When it came into being.
    pub created_at: Timestamp,
}

/// A token, without the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Which one.
    pub id: Uuid,
    /// How it begins, so that people can tell which one it is.
    pub prefix: String,
    /// What it is for.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, as far as was noted.
    pub last_used_at: Option<Timestamp>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
}

/// A line in a tenant's log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// Which one.
    pub id: Uuid,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// To what: a JSON object.
    pub details: Json,
}

fn clock(row: Row) -> Result<Option<Timestamp>, Error> {
    row.cells("(clock)").maybe_at("at")
}

impl Tx {
    /// The tenant whose transaction this is, if it exists.
    pub async fn own_tenant(&mut self) -> Result<Option<Tenant>, Error> {
        let rows = self.rows("tenant", params![]).await?;
        first(Some(rows), tenant)
    }

    /// The same, with what time it is on the database's own clock, if it has one: one question for
    /// whoever opens it.
    pub async fn own_tenant_and_clock(
        &mut self,
    ) -> Result<(Option<Tenant>, Option<Timestamp>), Error> {
        let questions = vec![
            self.statement("tenant", params![]),
            Statement::outside("clock", params![]),
        ];
        let mut answers = self.ask(questions).await?;
        let at = first(answers.pop(), clock)?.flatten();
        Ok((first(answers.pop(), tenant)?, at))
    }

    /// What time it is on the database's own clock, if it has one.
    pub async fn clock(&mut self) -> Result<Option<Timestamp>, Error> {
        let question = Statement::outside("clock", params![]);
        let rows = self.ask(vec![question]).await?.pop();
        Ok(first(rows, clock)?.flatten())
    }

    /// Makes the tenant whose transaction this is, unless it exists.
    pub fn make_tenant(&mut self, agents_decide_reviews: bool, at: Timestamp) {
        let params = params![agents_decide_reviews, at];
        self.queue(self.statement("tenant_insert", params));
    }

    /// Every tenant: for whoever runs the server.
    pub async fn all_tenants(&mut self) -> Result<Vec<Tenant>, Error> {
        let question = Statement::outside("tenants_all", params![]);
        let rows = self.ask(vec![question]).await?.pop().unwrap_or_default();
        rows.into_iter().map(tenant).collect()
    }

    /// Adds a line to the tenant's log.
    pub fn log_line(&mut self, line: &LogLine) {
        let params = params![line.id, line.at, &line.actor, &line.action, &line.details];
        self.queue(self.statement("tenant_log_insert", params));
    }

    /// The last lines of the tenant's log, newest first.
    pub async fn log_lines(&mut self, limit: u32) -> Result<Vec<LogLine>, Error> {
        let rows = self.rows("tenant_log_latest", params![limit]).await?;
        rows.into_iter()
            .map(|row| {
                let mut cells = row.cells("tenant_log");
                Ok(LogLine {
                    id: cells.id("entry_id")?,
                    at: cells.at("at")?,
                    actor: cells.string("actor")?,
                    action: cells.string("action")?,
                    details: cells.json("details")?,
                })
            })
            .collect()
    }

    /// Which tenant a token's hash belongs to, and which of its tokens it is.
    pub async fn token_of_hash(&mut self, hash: &str) -> Result<Option<(Arc<str>, Uuid)>, Error> {
        let question = Statement::outside("token_of_hash", params![hash]);
        let rows = self.ask(vec![question]).await?.pop();
        first(rows, |row| {
            let mut cells = row.cells("token_hashes");
            cells.text("hash")?;
            Ok((cells.text("tenant_id")?, cells.id("token_id")?))
        })
    }

    /// One of the tenant's tokens.
    pub async fn token(&mut self, id: Uuid) -> Result<Option<Token>, Error> {
        let rows = self.rows("token", params![id]).await?;
        first(Some(rows), token)
    }

    /// The tenant's tokens, the oldest first.
    pub async fn tokens(&mut self) -> Result<Vec<Token>, Error> {
        let rows = self.rows("tokens_all", params![]).await?;
        rows.into_iter().map(token).collect()
    }

    /// Stores a token under its hash.
    pub fn add_token(&mut self, token: &Token, hash: &str) {
        let params = params![
            token.id,
            &token.prefix,
            &token.name,
            token.role.as_str(),
            token.created_at,
            token.expires_at,
        ];
        self.queue(self.statement("token_insert", params));
        self.queue(self.statement("token_hash_insert", params![hash, token.id]));
    }

    /// Takes a token back. It stays in the list.
    pub fn revoke_token(&mut self, id: Uuid, at: Timestamp) {
        self.queue(self.statement("token_revoke", params![id, at]));
    }

    /// Notes that a token was used.
    pub fn token_used(&mut self, id: Uuid, at: Timestamp) {
        self.queue(self.statement("token_used", params![id, at]));
    }
}

fn tenant(row: Row) -> Result<Tenant, Error> {
    let mut cells = row.cells("tenants");
    Ok(Tenant {
        name: cells.text("tenant_id")?,
        agents_decide_reviews: cells.flag("agents_decide_reviews")?,
        created_at: cells.at("created_at")?,
    })
}

fn token(row: Row) -> Result<Token, Error> {
    let mut cells = row.cells("tokens");
    Ok(Token {
        id: cells.id("token_id")?,
        prefix: cells.string("prefix")?,
        name: cells.string("name")?,
        role: cells.word("role")?,
        created_at: cells.at("created_at")?,
        expires_at: cells.maybe_at("expires_at")?,
        last_used_at: cells.maybe_at("last_used_at")?,
        revoked_at: cells.maybe_at("revoked_at")?,
    })
}
