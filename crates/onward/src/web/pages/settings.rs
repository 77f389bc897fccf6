//! `/settings`: agent setup, tokens, members, notifications, thresholds and retention.
//!
//! The secret of a new token is displayed once, in the response to its creation.

use std::time::Duration;

use askama::Template;
use axum::extract::Path;
use onward_core::role::Permission;
use onward_core::turn::OnStall;
use onward_core::{
    Code, DEFAULT_CALL_TIMEOUT, DEFAULT_STALL_THRESHOLD, Role, STALE_GRACE, Timestamp,
};
use onward_engine::{Delivery, Member, Notice, SignInMethod, Token};

use super::format::{RelativeTime, one_line};
use super::layout::{Layout, Section, render};
use super::{FormPost, PageError, PageResult, Visit, redirect, run_to_completion};
use crate::config::{Config, LoopControl};
use crate::output::format;
use crate::web::problem::Problem;

const DAY_SECONDS: u64 = 24 * 60 * 60;
/// Number of recent notifications in the statistics.
const MAX_NOTIFICATIONS: u32 = 50;

/// Configuration values, formatted for display.
pub(crate) struct ConfigView {
    pub(super) stall_threshold: String,
    pub(super) finished_plans: String,
    pub(super) tool_calls: String,
    pub(super) sessions: String,
    /// When a turn counts as stuck, and the response to it.
    pub(super) turns: String,
    /// Default time limit of a call without output.
    pub(super) calls: String,
    /// The webhook URL without secrets, and the kinds of notifications it receives.
    pub(super) webhook: Option<(String, String)>,
}

impl ConfigView {
    pub(crate) fn new(config: &Config) -> Self {
        let retention = |days: Option<u32>| {
            days.map_or("forever".to_owned(), |days| {
                format::count(days, "day", "days")
            })
        };
        Self {
            stall_threshold: format::duration(DEFAULT_STALL_THRESHOLD),
            finished_plans: retention(config.retention.finished_plans_days),
            tool_calls: retention(config.retention.tool_calls_days()),
            sessions: retention(config.retention.sessions_days),
            turns: turns(&config.loop_control),
            calls: format::duration(DEFAULT_CALL_TIMEOUT + STALE_GRACE),
            webhook: config.notify.display_webhook().map(|url| {
                let kinds = config.notify.kinds.iter();
                let kinds: Vec<&str> = kinds.map(|kind| kind.as_str()).collect();
                (url, kinds.join(", "))
            }),
        }
    }
}

fn turns(control: &LoopControl) -> String {
    let (threshold, max_steps) = (control.progress_stall_threshold, control.max_steps_per_turn);
    let idle = format::count(
        threshold,
        "response without progress",
        "responses in a row without progress",
    );
    let action = match control.on_stall {
        OnStall::TextOnly => "reminder, then text answers only",
        OnStall::Nudge => "reminder",
        OnStall::Warn => "warning to the user",
        OnStall::Off => "no action",
    };
    match max_steps {
        0 => format!("{idle}: {action}"),
        max_steps => format!("{idle}, or {max_steps} responses: {action}"),
    }
}

/// Setup instructions for an agent.
pub(super) struct Snippet {
    pub(super) id: &'static str,
    pub(super) agent: &'static str,
    pub(super) text: String,
}

#[derive(Template)]
#[template(path = "settings.html")]
struct Settings<'a> {
    layout: Layout,
    settings: &'a ConfigView,
    tenant: String,
    /// Stored bytes and quota.
    stored: String,
    /// Size of the request log.
    request_log: String,
    created: Option<NewToken>,
    tokens: Vec<TokenRow>,
    members: Vec<MemberRow>,
    members_denied: Option<String>,
    tokens_denied: Option<String>,
    agents_decide_reviews: bool,
    tenant_denied: Option<String>,
    roles: Vec<&'static str>,
    snippets: Vec<Snippet>,
    webhook_stats: WebhookStats,
}

/// Delivery statistics of recent notifications.
struct WebhookStats {
    sent: usize,
    queued: usize,
    failed: usize,
    /// The most recent undelivered notification with an error.
    last_error: Option<(RelativeTime, String)>,
}

impl WebhookStats {
    fn new(notices: &[Notice], now: Timestamp) -> Self {
        let count = |delivery: Delivery| {
            let notices = notices.iter().filter(|notice| notice.delivery == delivery);
            notices.count()
        };
        let has_error = |notice: &&Notice| match notice.delivery {
            Delivery::Waiting | Delivery::GivenUp => notice.last_error.is_some(),
            Delivery::Sent | Delivery::Unwanted => false,
        };
        let last_error = notices.iter().find(has_error);
        Self {
            sent: count(Delivery::Sent),
            queued: count(Delivery::Waiting),
            failed: count(Delivery::GivenUp),
            last_error: last_error.map(|notice| {
                let error = notice.last_error.as_deref().unwrap_or_default();
                (
                    RelativeTime::new(notice.found_at, now),
                    one_line(error, 300),
                )
            }),
        }
    }
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

/// Commands that connect agents to this server.
pub(super) fn snippets(visit: &Visit) -> Vec<Snippet> {
    let base = visit.site.tool_context.base_url.as_deref();
    let url = format!("{}/mcp", base.unwrap_or("http://localhost:7171"));
    let needs_token = visit.site.auth.local_user.is_none();
    let header = if needs_token {
        " --header \"Authorization: Bearer $ONWARD_TOKEN\""
    } else {
        ""
    };
    let codex = if needs_token {
        " --bearer-token-env-var ONWARD_TOKEN"
    } else {
        ""
    };
    let cursor = if needs_token {
        ", \"headers\": { \"Authorization\": \"Bearer ${env:ONWARD_TOKEN}\" }"
    } else {
        ""
    };
    let snippet = |id, agent, text| Snippet { id, agent, text };
    vec![
        snippet(
            "claude",
            "Claude Code",
            format!("claude mcp add --transport http onward {url}{header}"),
        ),
        snippet(
            "codex",
            "Codex",
            format!("codex mcp add onward --url {url}{codex}"),
        ),
        snippet(
            "gemini",
            "Gemini CLI",
            format!("gemini mcp add --transport http onward {url}{header}"),
        ),
        snippet(
            "kimi",
            "Kimi CLI",
            format!("kimi mcp add --transport http onward {url}{header}"),
        ),
        snippet(
            "cursor",
            "Cursor, in ~/.cursor/mcp.json",
            format!("{{ \"mcpServers\": {{ \"onward\": {{ \"url\": \"{url}\"{cursor} }} }} }}"),
        ),
        snippet(
            "other",
            "Other MCP clients, on the machine with the database",
            "onward mcp".to_owned(),
        ),
    ]
}

pub(super) async fn show(visit: Visit) -> PageResult {
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
    render(&Settings {
        layout: visit.layout("Settings", Section::Settings).await?,
        settings: &visit.site.settings,
        tenant: format::sanitize_line(&visit.caller.tenant),
        stored: stored(visit).await?,
        request_log: mib(engine.request_log_bytes(&visit.caller).await?),
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
        snippets: snippets(visit),
        webhook_stats: WebhookStats::new(
            &engine
                .notifications(&visit.caller, MAX_NOTIFICATIONS)
                .await?,
            now,
        ),
    })
}

/// The stored bytes and the quota, if there is one.
async fn stored(visit: &Visit) -> Result<String, PageError> {
    let Some(quota) = &visit.site.tool_context.quota else {
        return Ok("no quota".to_owned());
    };
    let usage = quota.usage(&visit.site.engine, &visit.caller).await?;
    let (used, max) = (mib(usage.bytes), mib(usage.max_bytes));
    Ok(format!("{used} of {max}"))
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1024 * 1024))
}

/// The recorded members, and the local user if no authentication is required.
fn members(visit: &Visit, members: &[Member], now: Timestamp) -> Vec<MemberRow> {
    let caller = &visit.caller;
    let mut rows: Vec<MemberRow> = members
        .iter()
        .map(|member| MemberRow {
            name: one_line(&member.name, 100),
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
            name: one_line(&caller.name, 100),
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

pub(super) async fn create_token(post: FormPost) -> PageResult {
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

pub(super) async fn set_reviews(post: FormPost) -> PageResult {
    let FormPost { visit, fields } = post;
    let allow = fields.get("agents") == Some("decide");
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    let set = async move { engine.set_agents_decide_reviews(&caller, allow).await };
    run_to_completion(set).await?;
    Ok(redirect("/settings?done=reviews"))
}

pub(super) async fn revoke(Path(id): Path<String>, post: FormPost) -> PageResult {
    let visit = post.visit;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.revoke_token(&caller, &id).await }).await?;
    Ok(redirect("/settings?done=revoked"))
}
