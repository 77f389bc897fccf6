//! `/settings/access`: tokens, members, and whether agents may decide reviews.
//!
//! The secret of a new token is displayed once, in the response to its creation.

use std::time::Duration;

use askama::Template;
use axum::extract::Path;
use onward_core::role::Permission;
use onward_core::{Code, Role, Timestamp};
use onward_engine::{Member, SignInMethod, Token};

use super::{Tab, tabs};
use crate::output::format;
use crate::web::pages::agent_name::person;
use crate::web::pages::format::{RelativeTime, one_line};
use crate::web::pages::layout::{Layout, Section, render};
use crate::web::pages::{FormPost, PageResult, Visit, redirect, run_to_completion};
use crate::web::problem::Problem;

const DAY_SECONDS: u64 = 24 * 60 * 60;

#[derive(Template)]
#[template(path = "settings_access.html")]
struct Access {
    layout: Layout,
    tabs: Vec<Tab>,
    created: Option<NewToken>,
    tokens: Vec<TokenRow>,
    members: Vec<MemberRow>,
    members_denied: Option<String>,
    tokens_denied: Option<String>,
    agents_decide_reviews: bool,
    tenant_denied: Option<String>,
    roles: Vec<&'static str>,
}

/// A token that was just created.
struct NewToken {
    name: String,
    secret: String,
}

struct TokenRow {
    id: String,
    name: String,
    prefix: String,
    role: &'static str,
    created: RelativeTime,
    used: Option<RelativeTime>,
    expires: String,
    is_expired: bool,
    revoked: Option<RelativeTime>,
    revoke_denied: Option<String>,
}

struct MemberRow {
    name: String,
    role: &'static str,
    signs_in_with: &'static str,
    seen: Option<RelativeTime>,
    is_self: bool,
}

pub(in crate::web::pages) async fn show(visit: Visit) -> PageResult {
    page(&visit, None).await
}

async fn page(visit: &Visit, created: Option<NewToken>) -> PageResult {
    let engine = &visit.site.engine;
    let tokens_denied = visit.denial(Permission::ManageTokens);
    let now = engine.now();
    let tokens = match tokens_denied {
        None => engine.tokens(&visit.caller).await?,
        Some(_) => Vec::new(),
    };
    let members_denied = visit.denial(Permission::ManageMembers);
    let members = match members_denied {
        None => members(visit, &engine.members(&visit.caller).await?, now),
        Some(_) => Vec::new(),
    };
    let tenant_denied = visit.denial(Permission::ManageTenant);
    let roles = Role::ALL
        .iter()
        .filter(|role| **role != Role::Owner || tenant_denied.is_none());
    let roles = roles.map(|role| role.as_str()).collect();
    let tenant = engine.tenant(&visit.caller).await?;
    render(&Access {
        layout: visit.layout("Access", Section::Settings).await?,
        tabs: tabs("Access"),
        created,
        tokens: tokens
            .iter()
            .map(|token| token_row(visit, token, now))
            .collect(),
        members,
        members_denied,
        tokens_denied,
        agents_decide_reviews: tenant.agents_decide_reviews,
        tenant_denied,
        roles,
    })
}

/// The recorded members, and the local user if no authentication is required.
fn members(visit: &Visit, members: &[Member], now: Timestamp) -> Vec<MemberRow> {
    let caller = &visit.caller;
    let mut rows: Vec<MemberRow> = members
        .iter()
        .map(|member| MemberRow {
            name: person(&member.name),
            role: member.role.as_str(),
            signs_in_with: match member.sign_in_method {
                SignInMethod::Token => "token",
                SignInMethod::Provider => "identity provider",
            },
            seen: member.last_seen_at.map(|at| RelativeTime::new(at, now)),
            is_self: member.name == caller.name,
        })
        .collect();
    if visit.site.auth.local_user.is_some() {
        let local_user = MemberRow {
            name: person(&caller.name),
            role: caller.role.as_str(),
            signs_in_with: "local user",
            seen: Some(RelativeTime::new(now, now)),
            is_self: true,
        };
        rows.insert(0, local_user);
    }
    rows
}

fn token_row(visit: &Visit, token: &Token, now: Timestamp) -> TokenRow {
    let is_owner = token.role == Role::Owner;
    TokenRow {
        id: token.id.to_string(),
        name: one_line(&token.name, 100),
        prefix: token.prefix.clone(),
        role: token.role.as_str(),
        created: RelativeTime::new(token.created_at, now),
        used: token.last_used_at.map(|at| RelativeTime::new(at, now)),
        expires: token.expires_at.map_or("never".to_owned(), format::date),
        is_expired: token.expires_at.is_some_and(|at| at <= now),
        revoked: token.revoked_at.map(|at| RelativeTime::new(at, now)),
        revoke_denied: if is_owner {
            visit.denial(Permission::ManageTenant)
        } else {
            None
        },
    }
}

pub(in crate::web::pages) async fn create_token(post: FormPost) -> PageResult {
    let FormPost { visit, fields } = post;
    let name = fields.get("name").unwrap_or_default().to_owned();
    let role = fields.parsed::<Role>("role").ok_or_else(|| {
        Problem::new(
            Code::InvalidInput,
            "a token requires a role",
            "go back and select one",
        )
    })?;
    let engine = visit.site.engine.clone();
    let expires_at = match fields.get("days") {
        Some(days) => {
            let days = days.parse::<u32>().ok().filter(|days| *days > 0);
            let span = days.map(|days| Duration::from_secs(u64::from(days) * DAY_SECONDS));
            let at = span.and_then(|span| engine.now().checked_add(span));
            Some(at.ok_or_else(|| {
                Problem::new(
                    Code::InvalidInput,
                    "invalid number of days",
                    "go back and enter a positive number, or leave the field empty for no expiry",
                )
            })?)
        }
        None => None,
    };
    let caller = visit.caller.clone();
    let created =
        run_to_completion(
            async move { engine.create_token(&caller, &name, role, expires_at).await },
        );
    let (secret, token) = created.await?;
    let name = one_line(&token.name, 100);
    page(&visit, Some(NewToken { name, secret })).await
}

pub(in crate::web::pages) async fn set_reviews(post: FormPost) -> PageResult {
    let FormPost { visit, fields } = post;
    let allow = fields.get("agents") == Some("decide");
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    let set = async move { engine.set_agents_decide_reviews(&caller, allow).await };
    run_to_completion(set).await?;
    Ok(redirect("/settings/access?done=reviews"))
}

pub(in crate::web::pages) async fn revoke(Path(id): Path<String>, post: FormPost) -> PageResult {
    let visit = post.visit;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.revoke_token(&caller, &id).await }).await?;
    Ok(redirect("/settings/access?done=revoked"))
}
