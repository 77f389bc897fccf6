//! Tenants, API tokens and the tenant log.
//!
//! A token itself is not stored, only its hash, in a table outside row security: the hash is how
//! the tenant is found.

use std::sync::Arc;

use onward_core::{Role, Timestamp};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::error::Error;
use crate::facts::first;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, params};

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Name, which is also the id.
    pub name: Arc<str>,
    /// Whether agents may decide reviews.
    pub agents_decide_reviews: bool,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Metadata of an API token, without the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Token id.
    pub id: Uuid,
    /// First characters of the token, so that users can recognise it.
    pub prefix: String,
    /// Purpose.
    pub name: String,
    /// Permissions.
    pub role: Role,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of expiry.
    pub expires_at: Option<Timestamp>,
    /// Last recorded use.
    pub last_used_at: Option<Timestamp>,
    /// Time of revocation.
    pub revoked_at: Option<Timestamp>,
}

/// An entry of the tenant log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// Entry id.
    pub id: Uuid,
    /// Time of the action.
    pub at: Timestamp,
    /// Who performed it.
    pub actor: String,
    /// The action.
    pub action: String,
    /// Details of the action: a JSON object.
    pub details: Json,
}

fn clock(row: Row) -> Result<Option<Timestamp>, Error> {
    row.cells("(clock)").maybe_at("at")
}

impl Tx {
    /// The tenant of this transaction, if it exists.
    pub async fn own_tenant(&mut self) -> Result<Option<Tenant>, Error> {
        let rows = self.rows(Query::Tenant, params![]).await?;
        first(Some(rows), tenant)
    }

    /// The tenant of this transaction and the time on the clock of the database, if it has one, in
    /// one round trip.
    pub async fn own_tenant_and_clock(
        &mut self,
    ) -> Result<(Option<Tenant>, Option<Timestamp>), Error> {
        let questions = vec![
            self.statement(Query::Tenant, params![]),
            Statement::without_tenant(Query::Clock, params![]),
        ];
        let mut answers = self.ask(questions).await?;
        let at = first(answers.pop(), clock)?.flatten();
        Ok((first(answers.pop(), tenant)?, at))
    }

    /// The time on the clock of the database, if it has one.
    pub async fn clock(&mut self) -> Result<Option<Timestamp>, Error> {
        let question = Statement::without_tenant(Query::Clock, params![]);
        let rows = self.ask(vec![question]).await?.pop();
        Ok(first(rows, clock)?.flatten())
    }

    /// Creates the tenant of this transaction, unless it exists.
    pub fn make_tenant(&mut self, agents_decide_reviews: bool, at: Timestamp) {
        let params = params![agents_decide_reviews, at];
        self.queue(self.statement(Query::TenantInsert, params));
    }

    /// All tenants, for the operator of the server.
    pub async fn all_tenants(&mut self) -> Result<Vec<Tenant>, Error> {
        let question = Statement::without_tenant(Query::TenantsAll, params![]);
        let rows = self.ask(vec![question]).await?.pop().unwrap_or_default();
        rows.into_iter().map(tenant).collect()
    }

    /// Adds an entry to the tenant log.
    pub fn log_line(&mut self, line: &LogLine) {
        let params = params![line.id, line.at, &line.actor, &line.action, &line.details];
        self.queue(self.statement(Query::TenantLogInsert, params));
    }

    /// The latest entries of the tenant log, newest first.
    pub async fn log_lines(&mut self, limit: u32) -> Result<Vec<LogLine>, Error> {
        let rows = self.rows(Query::TenantLogLatest, params![limit]).await?;
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

    /// The tenant and the token id that belong to a token hash.
    pub async fn token_of_hash(&mut self, hash: &str) -> Result<Option<(Arc<str>, Uuid)>, Error> {
        let question = Statement::without_tenant(Query::TokenOfHash, params![hash]);
        let rows = self.ask(vec![question]).await?.pop();
        first(rows, |row| {
            let mut cells = row.cells("token_hashes");
            cells.text("hash")?;
            Ok((cells.text("tenant_id")?, cells.id("token_id")?))
        })
    }

    /// A token of the tenant.
    pub async fn token(&mut self, id: Uuid) -> Result<Option<Token>, Error> {
        let rows = self.rows(Query::Token, params![id]).await?;
        first(Some(rows), token)
    }

    /// The tokens of the tenant, oldest first.
    pub async fn tokens(&mut self) -> Result<Vec<Token>, Error> {
        let rows = self.rows(Query::TokensAll, params![]).await?;
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
        self.queue(self.statement(Query::TokenInsert, params));
        self.queue(self.statement(Query::TokenHashInsert, params![hash, token.id]));
    }

    /// Revokes a token. It stays in the list.
    pub fn revoke_token(&mut self, id: Uuid, at: Timestamp) {
        self.queue(self.statement(Query::TokenRevoke, params![id, at]));
    }

    /// Records that a token was used.
    pub fn token_used(&mut self, id: Uuid, at: Timestamp) {
        self.queue(self.statement(Query::TokenUsed, params![id, at]));
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
