//! `/settings`: five pages. Connect: agent setup and the last activity of each agent. Access
//! (`access.rs`): tokens and members. Alerts: notifications. Limits: thresholds and retention.
//! About: version, sweep, clock and search index.

pub(super) mod access;

use std::collections::BTreeMap;
use std::time::Duration;

use askama::Template;
use clap::ValueEnum;
use onward_core::role::Permission;
use onward_core::turn::OnStall;
use onward_core::{Code, DEFAULT_STALL_THRESHOLD, Timestamp};
use onward_engine::{Address, Delivery, Notice, schema};

use super::agent_name::agent_name;
use super::format::{RelativeTime, one_line};
use super::layout::{Layout, Section, render};
use super::{FormPost, PageError, PageResult, Visit, redirect};
use crate::config::{Config, LoopControl};
use crate::hooks::Agent;
use crate::output::format;
use crate::web::problem::Problem;

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
    database: Address,
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
            calls: format::duration(Duration::from_millis(
                config.calls.default_timeout_ms + config.calls.grace_ms,
            )),
            webhook: config.notify.display_webhook().map(|url| {
                let kinds = config.notify.kinds.iter();
                let kinds: Vec<&str> = kinds.map(|kind| kind.as_str()).collect();
                (url, kinds.join(", "))
            }),
            database: config.database.clone(),
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

/// A link to one of the five pages.
struct Tab {
    link: &'static str,
    name: &'static str,
    is_selected: bool,
}

/// The links to the five pages.
fn tabs(selected: &str) -> Vec<Tab> {
    let tabs = [
        ("/settings", "Connect"),
        ("/settings/access", "Access"),
        ("/settings/alerts", "Alerts"),
        ("/settings/limits", "Limits"),
        ("/settings/about", "About"),
    ];
    let tabs = tabs.map(|(link, name)| Tab {
        link,
        name,
        is_selected: name == selected,
    });
    tabs.into()
}

#[derive(Template)]
#[template(path = "settings_connect.html")]
struct Connect {
    layout: Layout,
    tabs: Vec<Tab>,
    agents: Vec<AgentRow>,
    snippets: Vec<Snippet>,
}

/// An agent whose hooks Onward supports, or that reported a session.
struct AgentRow {
    name: String,
    seen: Option<RelativeTime>,
    /// The argument of `onward install`.
    install: Option<&'static str>,
}

#[derive(Template)]
#[template(path = "settings_alerts.html")]
struct Alerts<'a> {
    layout: Layout,
    tabs: Vec<Tab>,
    settings: &'a ConfigView,
    webhook_stats: WebhookStats,
    test_denied: Option<String>,
}

#[derive(Template)]
#[template(path = "settings_limits.html")]
struct Limits<'a> {
    layout: Layout,
    tabs: Vec<Tab>,
    settings: &'a ConfigView,
    tenant: String,
    /// Stored bytes and quota.
    stored: String,
    /// Size of the request log.
    request_log: String,
}

#[derive(Template)]
#[template(path = "settings_about.html")]
struct About {
    layout: Layout,
    tabs: Vec<Tab>,
    versions: Vec<String>,
    /// The version of the database schema.
    schema: Option<i64>,
    /// Whether no process checks for stuck steps.
    lacks_sweep: bool,
    /// The last check, if this process checks.
    checked: Option<RelativeTime>,
    /// How far the local clock differs from the clock of the database, if it does.
    clock: Option<String>,
    index: IndexState,
}

struct IndexState {
    chunks: u64,
    embedded: u64,
    pending: u64,
    rejected: u64,
    model: Option<String>,
    last_error: Option<(RelativeTime, String)>,
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

/// Commands that connect agents to this server.
pub(super) fn snippets(visit: &Visit) -> Vec<Snippet> {
    let base = visit.site.tool_context.dashboard.base_url();
    let url = format!("{}/mcp", base.as_deref().unwrap_or("http://localhost:7171"));
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
            "Kimi Code",
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

pub(super) async fn connect(visit: Visit) -> PageResult {
    render(&Connect {
        layout: visit.layout("Connect", Section::Settings).await?,
        tabs: tabs("Connect"),
        agents: agents(&visit).await?,
        snippets: snippets(&visit),
    })
}

/// The agents with hooks, then all others that reported a session.
async fn agents(visit: &Visit) -> Result<Vec<AgentRow>, PageError> {
    let engine = &visit.site.engine;
    let now = engine.now();
    let seen: BTreeMap<String, Timestamp> = engine
        .agents_seen(&visit.caller)
        .await?
        .into_iter()
        .collect();
    let known: Vec<&str> = Agent::value_variants()
        .iter()
        .map(|agent| agent.as_str())
        .collect();
    let with_hooks = known.iter().map(|agent| AgentRow {
        name: agent_name(agent),
        seen: seen.get(*agent).map(|at| RelativeTime::new(*at, now)),
        install: Some(*agent),
    });
    let others = seen
        .iter()
        .filter(|(agent, _)| !known.contains(&agent.as_str()));
    let others = others.map(|(agent, at)| AgentRow {
        name: agent_name(agent),
        seen: Some(RelativeTime::new(*at, now)),
        install: None,
    });
    Ok(with_hooks.chain(others).collect())
}

pub(super) async fn alerts(visit: Visit) -> PageResult {
    let engine = &visit.site.engine;
    let notices = engine
        .notifications(&visit.caller, MAX_NOTIFICATIONS)
        .await?;
    render(&Alerts {
        layout: visit.layout("Alerts", Section::Settings).await?,
        tabs: tabs("Alerts"),
        settings: &visit.site.settings,
        webhook_stats: WebhookStats::new(&notices, engine.now()),
        test_denied: visit.denial(Permission::ManageTenant),
    })
}

/// Sends a test notification to the webhook.
pub(super) async fn test_alert(post: FormPost) -> PageResult {
    let visit = post.visit;
    let Some(webhook) = &visit.site.webhook_test else {
        return Err(Problem::new(
            Code::InvalidInput,
            "no webhook is configured",
            "set `webhook` and `secret` in `[notify]`, and restart the server",
        )
        .into());
    };
    let sent = webhook.send(&visit.caller.tenant, visit.site.engine.now());
    sent.await.map_err(|error| {
        Problem::new(
            Code::Unavailable,
            format!("the test notification was not delivered: {error}"),
            "check the URL and the receiver of the webhook",
        )
    })?;
    Ok(redirect("/settings/alerts?done=tested"))
}

pub(super) async fn limits(visit: Visit) -> PageResult {
    let engine = &visit.site.engine;
    render(&Limits {
        layout: visit.layout("Limits", Section::Settings).await?,
        tabs: tabs("Limits"),
        settings: &visit.site.settings,
        tenant: format::sanitize_line(&visit.caller.tenant),
        stored: stored(&visit).await?,
        request_log: mib(engine.request_log_bytes(&visit.caller).await?),
    })
}

pub(super) async fn about(visit: Visit) -> PageResult {
    let engine = &visit.site.engine;
    let health = engine.search_health(&visit.caller).await?;
    let now = engine.now();
    let offset = engine.clock_offset_ms();
    let clock = (offset.unsigned_abs() >= 1_000).then(|| {
        let difference = std::time::Duration::from_millis(offset.unsigned_abs());
        let direction = if offset > 0 { "behind" } else { "ahead of" };
        format!(
            "{} {direction} the database's clock",
            format::duration(difference)
        )
    });
    render(&About {
        layout: visit.layout("About", Section::Settings).await?,
        tabs: tabs("About"),
        versions: engine.versions().await?,
        schema: schema(&visit.site.settings.database)
            .await
            .ok()
            .map(|(found, _)| found),
        lacks_sweep: engine.sweep_has_no_leader().await?,
        checked: engine.last_sweep_at().map(|at| RelativeTime::new(at, now)),
        clock,
        index: IndexState {
            chunks: health.index.chunks,
            embedded: health.index.embedded,
            pending: health.index.waiting,
            rejected: health.index.refused,
            model: health.model.map(|model| one_line(&model, 100)),
            last_error: health.last_failure.map(|failure| {
                (
                    RelativeTime::new(failure.at, now),
                    one_line(&failure.error, 300),
                )
            }),
        },
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
