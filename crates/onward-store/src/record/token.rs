//! API tokens. A token itself is not stored, only its hash, in a table outside row security: the
//! tenant is found by the hash. Also the browser sessions that users ended.

use std::sync::Arc;

use onward_core::{Role, Timestamp};
use uuid::Uuid;

use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, first, params};

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

/// API tokens.
pub struct Tokens<'t>(pub &'t mut Tx);

impl Tokens<'_> {
    /// The tenant and the token id that belong to a token hash.
    pub async fn token_of_hash(&mut self, hash: &str) -> Result<Option<(Arc<str>, Uuid)>, Error> {
        let question = Statement::without_tenant(Query::TokenOfHash, params![hash]);
        let rows = self.0.query(vec![question]).await?.pop();
        first(rows, |row| {
            let mut cells = row.cells("token_hashes");
            cells.text("hash")?;
            Ok((cells.text("tenant_id")?, cells.id("token_id")?))
        })
    }

    /// A token of the tenant.
    pub async fn token(&mut self, id: Uuid) -> Result<Option<Token>, Error> {
        let rows = self.0.rows(Query::Token, params![id]).await?;
        first(Some(rows), token)
    }

    /// The tokens of the tenant, oldest first.
    pub async fn tokens(&mut self) -> Result<Vec<Token>, Error> {
        let rows = self.0.rows(Query::TokensAll, params![]).await?;
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
        self.0.queue(Statement::new(Query::TokenInsert, params));
        self.0.queue(Statement::new(
            Query::TokenHashInsert,
            params![hash, token.id],
        ));
    }

    /// Revokes a token. It stays in the list.
    pub fn revoke_token(&mut self, id: Uuid, at: Timestamp) {
        self.0
            .queue(Statement::new(Query::TokenRevoke, params![id, at]));
    }

    /// Whether a browser session was ended.
    pub async fn is_signed_out(&mut self, session_key: &str) -> Result<bool, Error> {
        let rows = self.0.rows(Query::SignOut, params![session_key]).await?;
        Ok(!rows.is_empty())
    }

    /// Records the end of a browser session until it would have expired, and forgets the sessions
    /// that have expired since.
    pub fn sign_out(&mut self, session_key: &str, expires_at: Timestamp, now: Timestamp) {
        self.0
            .queue(Statement::new(Query::SignOutsDeleteExpired, params![now]));
        self.0.queue(Statement::new(
            Query::SignOutInsert,
            params![session_key, expires_at],
        ));
    }

    /// Records that a token was used.
    pub fn token_used(&mut self, id: Uuid, at: Timestamp) {
        self.0
            .queue(Statement::new(Query::TokenUsed, params![id, at]));
    }
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
