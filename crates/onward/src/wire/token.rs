//! Tokens and tenants. Only the response that creates a token contains its secret.

use onward_engine::{Tenant as StoredTenant, Token as StoredToken};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Token {
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    token_id: String,
    prefix: String,
    name: String,
    role: &'static str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<String>,
}

impl Token {
    pub(crate) fn new(stored: &StoredToken, secret: Option<String>) -> Self {
        Self {
            token: secret,
            token_id: stored.id.to_string(),
            prefix: stored.prefix.clone(),
            name: stored.name.clone(),
            role: stored.role.as_str(),
            created_at: super::at(stored.created_at),
            expires_at: stored.expires_at.map(super::at),
            last_used_at: stored.last_used_at.map(super::at),
            revoked_at: stored.revoked_at.map(super::at),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tenant {
    name: String,
    agents_decide_reviews: bool,
    created_at: String,
}

impl Tenant {
    pub(crate) fn new(tenant: &StoredTenant) -> Self {
        Self {
            name: tenant.name.to_string(),
            agents_decide_reviews: tenant.agents_decide_reviews,
            created_at: super::at(tenant.created_at),
        }
    }
}
