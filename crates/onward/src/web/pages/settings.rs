//! `/settings`: how to connect each agent, tokens, members, who is told of findings, and what holds:
//! thresholds, retention.
//!
//! A token is on the one page that answers to its making, and nowhere else.

use std::time::Duration;

use askama::Template;
use axum::extract::Path;
use onward_core::role::Permission;
use onward_core::turn::OnStall;
use onward_core::{
    Code, DEFAULT_CALL_TIMEOUT, DEFAULT_STALL_THRESHOLD, Role, STALE_GRACE, Timestamp,
};
use onward_engine::{Delivery, Entrance, Member, Notice, Token};

use super::frame::{Frame, Section, render};
use super::show::{When, gist};
use super::{Page, Posted, Visit, done, to};
use crate::config::{Config, loop_control};
use crate::output::words;
use crate::web::problem::Problem;

const DAY: u64 = 24 * 60 * 60;
/// How many of the last findings are looked at.
const NOTICES: u32 = 50;

/// What the configuration says, for people.
pub(crate) struct Shown {
    pub(super) stall_threshold: String,
    pub(super) finished_plans: String,
    pub(super) tool_calls: String,
    pub(super) sessions: String,
    /// When a turn goes round in circles, and what is done then.
    pub(super) turns: String,
    /// When a call is given up that says nothing of its own.
    pub(super) calls: String,
    /// The webhook, as far as it may be shown, and what it is told.
    pub(super) webhook: Option<(String, String)>,
}

impl Shown {
    pub(crate) fn of(config: &Config) -> Self {
        let kept = |days: Option<u32>| {
            days.map_or("for ever".to_owned(), |days| {
                words::count(days, "day", "days")
            })
        };
        Self {
            stall_threshold: words::span(DEFAULT_STALL_THRESHOLD),
            finished_plans: kept(config.finished_plans_days.value),
            tool_calls: kept(config.tool_calls_days.value),
            sessions: kept(config.sessions_days.value),
            turns: turns(&config.loop_control),
            calls: words::span(DEFAULT_CALL_TIMEOUT + STALE_GRACE),
            webhook: config.notify.shown().map(|url| {
                let kinds = config.notify.kinds.value.iter();
                let kinds: Vec<&str> = kinds.map(|kind| kind.as_str()).collect();
                (url, kinds.join(", "))
            }),
        }
    }
}

fn turns(control: &loop_control::Settings) -> String {
    let (threshold, most) = (
        control.progress_stall_threshold.value,
        control.max_steps_per_turn.value,
    );
    let idle = words::count(threshold, "idle step", "idle steps");
    let done = match control.on_stall.value {
        OnStall::TextOnly => "it is reminded, then it may only answer in text",
        OnStall::Nudge => "it is reminded",
        OnStall::Warn => "its person is told",
        OnStall::Off => "nothing is done",
    };
    match most {
        0 => format!("{idle}: {done}"),
        most => format!("{idle}, or {most} steps: {done}"),
    }
}

/// How an agent is connected.
pub(super) struct Snippet {
    pub(super) id: &'static str,
    pub(super) agent: &'static str,
    pub(super) text: String,
}

#[derive(Template)]
#[template(path = "settings.html")]
struct Settings<'a> {
    frame: Frame,
    settings: &'a Shown,
    tenant: String,
    made: Option<Made>,
    tokens: Vec<Row>,
    /// Who may see it sees who belongs to the tenant.
    members: Vec<MemberRow>,
    why_no_members: Option<String>,
    why_not: Option<String>,
    roles: Vec<&'static str>,
    snippets: Vec<Snippet>,
    notices: Notices,
}

/// How the telling of findings goes.
struct Notices {
    /// Those that were told, of the last ones.
    sent: usize,
    /// Those that wait for another try.
    waiting: usize,
    given_up: usize,
    /// The last one that could not be told: when it was found, and why.
    trouble: Option<(When, String)>,
}

impl Notices {
    fn of(notices: &[Notice], now: Timestamp) -> Self {
        let count = |which: Delivery| {
            let are = notices.iter().filter(|notice| notice.delivery == which);
            are.count()
        };
        let in_trouble = |notice: &&Notice| match notice.delivery {
            Delivery::Waiting | Delivery::GivenUp => notice.last_error.is_some(),
            Delivery::Sent | Delivery::Unwanted => false,
        };
        let trouble = notices.iter().find(in_trouble);
        Self {
            sent: count(Delivery::Sent),
            waiting: count(Delivery::Waiting),
            given_up: count(Delivery::GivenUp),
            trouble: trouble.map(|notice| {
                let why = notice.last_error.as_deref().unwrap_or_default();
                (When::new(notice.found_at, now), gist(why, 300))
            }),
        }
    }
}

/// A token that was just made.
struct Made {
    name: String,
    secret: String,
}

struct Row {
    id: String,
    name: String,
    prefix: String,
    role: &'static str,
    created: When,
    used: Option<When>,
    expires: String,
    is_expired: bool,
    revoked: Option<When>,
    why_not_revoke: Option<String>,
}

struct MemberRow {
    name: String,
    role: &'static str,
    by: &'static str,
    seen: Option<When>,
    is_me: bool,
}

/// How each agent is connected to this server.
pub(super) fn snippets(visit: &Visit) -> Vec<Snippet> {
    let base = visit.site.desk.base_url.as_deref();
    let url = format!("{}/mcp", base.unwrap_or("http://localhost:7171"));
    let closed = visit.site.gate.open.is_none();
    let header = match closed {
        true => " --header \"Authorization: Bearer $ONWARD_TOKEN\"",
        false => "",
    };
    let codex = match closed {
        true => " --bearer-token-env-var ONWARD_TOKEN",
        false => "",
    };
    let cursor = match closed {
        true => ", \"headers\": { \"Authorization\": \"Bearer ${env:ONWARD_TOKEN}\" }",
        false => "",
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
            "Any other MCP client, on the machine of the database",
            "onward mcp".to_owned(),
        ),
    ]
}

pub(super) async fn show(visit: Visit) -> Page {
    page(&visit, None).await
}

async fn page(visit: &Visit, made: Option<Made>) -> Page {
    let engine = &visit.site.engine;
    let why_not = visit.why_not(Permission::ManageTokens);
    let now = engine.now();
    let tokens = match why_not {
        None => engine.tokens(&visit.caller).await?,
        Some(_) => Vec::new(),
    };
    let why_no_members = visit.why_not(Permission::ManageMembers);
    let members = match why_no_members {
        None => members(visit, &engine.members(&visit.caller).await?, now),
        Some(_) => Vec::new(),
    };
    let may_make_owners = visit.why_not(Permission::ManageTenant).is_none();
    let roles = Role::ALL
        .iter()
        .filter(|role| **role != Role::Owner || may_make_owners);
    render(&Settings {
        frame: visit.frame("Settings", Section::Settings).await?,
        settings: &visit.site.settings,
        tenant: words::line(&visit.caller.tenant),
        made,
        tokens: tokens.iter().map(|token| row(visit, token, now)).collect(),
        members,
        why_no_members,
        why_not,
        roles: roles.map(|role| role.as_str()).collect(),
        snippets: snippets(visit),
        notices: Notices::of(&engine.notices(&visit.caller, NOTICES).await?, now),
    })
}

/// Those who are known, and whoever looks: on their own machine nobody says who they are.
fn members(visit: &Visit, known: &[Member], now: Timestamp) -> Vec<MemberRow> {
    let me = &visit.caller;
    let mut rows: Vec<MemberRow> = known
        .iter()
        .map(|member| MemberRow {
            name: gist(&member.name, 100),
            role: member.role.as_str(),
            by: match member.by {
                Entrance::Token => "token",
                Entrance::Provider => "identity provider",
            },
            seen: member.last_seen_at.map(|at| When::new(at, now)),
            is_me: member.name == me.name,
        })
        .collect();
    if visit.site.gate.open.is_some() {
        let on_this_machine = MemberRow {
            name: gist(&me.name, 100),
            role: me.role.as_str(),
            by: "this machine",
            seen: Some(When::new(now, now)),
            is_me: true,
        };
        rows.insert(0, on_this_machine);
    }
    rows
}

fn row(visit: &Visit, token: &Token, now: Timestamp) -> Row {
    let owner = token.role == Role::Owner;
    Row {
        id: token.id.to_string(),
        name: gist(&token.name, 100),
        prefix: token.prefix.clone(),
        role: token.role.as_str(),
        created: When::new(token.created_at, now),
        used: token.last_used_at.map(|at| When::new(at, now)),
        expires: token.expires_at.map_or("never".to_owned(), words::day),
        is_expired: token.expires_at.is_some_and(|at| at <= now),
        revoked: token.revoked_at.map(|at| When::new(at, now)),
        why_not_revoke: match owner {
            true => visit.why_not(Permission::ManageTenant),
            false => None,
        },
    }
}

pub(super) async fn create_token(posted: Posted) -> Page {
    let Posted { visit, fields } = posted;
    let name = fields.get("name").unwrap_or_default().to_owned();
    let role = fields.parsed::<Role>("role").ok_or_else(|| {
        Problem::new(
            Code::InvalidInput,
            "a token needs a role",
            "go back, and choose one",
        )
    })?;
    let engine = visit.site.engine.clone();
    let expires_at = match fields.get("days") {
        Some(days) => {
            let days = days.parse::<u32>().ok().filter(|days| *days > 0);
            let span = days.map(|days| Duration::from_secs(u64::from(days) * DAY));
            let at = span.and_then(|span| engine.now().checked_add(span));
            Some(at.ok_or_else(|| {
                Problem::new(
                    Code::InvalidInput,
                    "the days that a token is good for are no number of days",
                    "go back, and write a number, or nothing",
                )
            })?)
        }
        None => None,
    };
    let caller = visit.caller.clone();
    let made = done(async move {
        let made = engine.create_token(&caller, &name, role, expires_at);
        made.await
    });
    let (secret, token) = made.await?;
    let name = gist(&token.name, 100);
    page(&visit, Some(Made { name, secret })).await
}

pub(super) async fn revoke(Path(id): Path<String>, posted: Posted) -> Page {
    let visit = posted.visit;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    done(async move { engine.revoke_token(&caller, &id).await }).await?;
    Ok(to("/settings?done=revoked"))
}
