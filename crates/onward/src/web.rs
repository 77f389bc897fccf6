//! `onward serve`: MCP at `/mcp`, the API at `/api/v1`, the dashboard, health checks and metrics.
//!
//! All requests pass through one authentication middleware (`auth.rs`), which attaches a
//! [`Caller`]. The engine checks permissions. API routes call the tools in `tools.rs`; pages call
//! the engine.

mod address;
mod api;
mod auth;
mod auth_error;
mod body;
mod browser;
mod cookies;
mod events;
mod export;
mod fair_queue;
mod feed;
mod health;
mod held_body;
mod issuer;
mod keys;
mod limits;
pub(crate) mod listen;
mod mcp;
mod metadata;
pub(crate) mod metrics;
pub(crate) mod origin;
mod pages;
mod problem;
mod server_card;
mod shares;
mod sign_in;
mod temporary;
mod trace;
mod waiting;
mod write_deadline;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use metrics_exporter_prometheus::PrometheusHandle;
use onward_core::{Code, Timestamp};
use onward_engine::retention::Retention;
use onward_engine::{AttentionCount, Caller, Engine, HourCount};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower_http::catch_panic::CatchPanicLayer;

use crate::config::Config;
use crate::decision_link::LinkSigner;
use crate::exit::Exit;
use crate::extraction::Extractor;
use crate::failure::{Failure, Result};
use crate::hint::Interface;
use crate::mcp::Forms;
use crate::notify::{Notifier, WebhookTest};
use crate::quota::Quota;
use crate::serving::Dashboard;
use crate::tools::{ToolContext, in_flight};
use auth::Auth;
use cookies::CookieSigner;
use feed::Feeds;
use issuer::Issuer;
use limits::Limits;
use mcp::McpService;
use origin::OriginPolicy;
use problem::Problem;

#[cfg(test)]
pub(crate) use api::routes::{route_of, route_tools};
pub(crate) use mcp::{NewEndpoint as NewMcpEndpoint, endpoint as mcp_endpoint};
pub(crate) use pages::APP;
#[cfg(test)]
pub(crate) use pages::render_markdown;

/// Time limit for requests that are still running when the server stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay before streams are closed, so that finished responses reach the network.
const FLUSH_DELAY: Duration = Duration::from_millis(200);

/// Shared state of all request handlers.
struct Site {
    engine: Engine,
    tool_context: ToolContext,
    auth: Auth,
    limits: Limits,
    mcp: McpService,
    feeds: Feeds,
    write_check: health::WriteCheck,
    metrics: PrometheusHandle,
    totals: metrics::CachedTotals,
    /// Configuration values that the dashboard displays.
    settings: pages::settings::ConfigView,
    /// Verifies decision links, if a webhook is configured.
    link_signer: Option<LinkSigner>,
    /// Sends test notifications, if a webhook is configured.
    webhook_test: Option<WebhookTest>,
    /// Cached numbers of plans by state.
    attention_counts: pages::cached::Cached<Vec<AttentionCount>>,
    /// Cached numbers of events per hour.
    hour_counts: pages::cached::Cached<Vec<HourCount>>,
    /// When the server started.
    started_at: Timestamp,
    /// The server's own tenant.
    tenant: Arc<str>,
    /// True once the server is stopping.
    stop: watch::Receiver<bool>,
}

/// An HTTP server that is ready to run.
pub(crate) struct Server {
    site: Arc<Site>,
    listener: TcpListener,
    connections: usize,
    /// How long a client may read nothing of a response.
    write_pause: Duration,
    retention: Retention,
    notifier: Option<Notifier>,
    stop: watch::Receiver<bool>,
}

impl Server {
    /// Prepares a server on a bound listener. `caller` is the local user who started it. `open`
    /// confirms that requests to the public URL need no authentication.
    pub(crate) async fn new(
        engine: Engine,
        caller: Caller,
        config: &Config,
        open: bool,
        listener: TcpListener,
        stop: watch::Receiver<bool>,
        mcp_endpoint: NewMcpEndpoint,
    ) -> Result<Self> {
        let serve = &config.serve;
        let on_loopback = serve.bind.ip().is_loopback();
        let tenant = Arc::clone(&caller.tenant);
        let issuer = match &config.issuer {
            Some(issuer) => Some(Issuer::new(issuer, &tenant).map_err(|error| {
                let message = format!("cannot create the identity provider client: {error}");
                Failure::failed(
                    message,
                    "check the trusted root certificates of this system",
                )
            })?),
            None => None,
        };
        let closed = config.access.require_tokens || issuer.is_some();
        // A public URL means that a reverse proxy forwards requests of other machines.
        let is_local = on_loopback && (serve.public_url.is_none() || open);
        if !is_local && !closed {
            match has_token(&engine).await {
                Ok(true) => {}
                Ok(false) => return Err(missing_authentication(config)),
                // Every request needs a token in any case.
                Err(failure) if failure.exit == Exit::Unavailable => {}
                Err(failure) => return Err(failure),
            }
        }
        require_webhook_secret(config)?;
        let metrics = metrics::start().map_err(|error| {
            Failure::failed(
                format!("cannot start the metrics recorder: {error}"),
                "report this as a bug in Onward",
            )
        })?;
        let limits = &config.limits;
        let connections = u64::from(limits.streams) + 2 * u64::from(limits.requests);
        let public = serve.public_url.clone();
        let key = signing_key(config)?;
        let context = ToolContext {
            interface: Interface::Api,
            engine: engine.clone(),
            dashboard: Dashboard::Fixed(base_url(public.as_deref(), &listener)),
            extractor: config.extraction.as_ref().map(Extractor::new).map(Arc::new),
            is_local: is_local && !closed,
            quota: limits.tenant_stored_mib.map(Quota::new).map(Arc::new),
            closing: stop.clone(),
        };
        let notifier = Notifier::new(&config.notify, &engine, context.dashboard.clone());
        let no_client = |error| {
            let message = format!("cannot create the webhook client: {error}");
            Failure::failed(
                message,
                "check the trusted root certificates of this system",
            )
        };
        let notifier = notifier.map_err(no_client)?;
        let webhook_test = WebhookTest::new(&config.notify).map_err(no_client)?;
        let site = Arc::new(Site {
            auth: Auth {
                origin_policy: OriginPolicy {
                    loopback_only: on_loopback || public.is_some(),
                    public,
                    allowed_origins: serve.allowed_origins.clone(),
                },
                local_user: (is_local && !closed).then_some(caller),
                issuer,
                cookie_signer: CookieSigner::new(&key),
                hasher: std::hash::RandomState::new(),
            },
            mcp: McpService::new(context.clone(), forms(config, key), limits, mcp_endpoint),
            limits: Limits::new(limits),
            feeds: Feeds::default(),
            write_check: health::WriteCheck::default(),
            metrics,
            totals: metrics::CachedTotals::default(),
            settings: pages::settings::ConfigView::new(config),
            link_signer: config.notify.link_secret().and_then(LinkSigner::new),
            webhook_test,
            attention_counts: pages::cached::Cached::default(),
            hour_counts: pages::cached::Cached::default(),
            started_at: engine.now(),
            tenant,
            stop: stop.clone(),
            tool_context: context,
            engine,
        });
        Ok(Self {
            site,
            listener,
            connections: usize::try_from(connections).unwrap_or(usize::MAX),
            write_pause: Duration::from_secs(u64::from(limits.request_seconds)),
            retention: config.retention.policy(),
            notifier,
            stop,
        })
    }

    /// Serves requests until `stop` is set, then waits for running requests and closes streams.
    pub(crate) async fn run(self) {
        let Self {
            site,
            listener,
            connections,
            write_pause,
            retention,
            notifier,
            mut stop,
        } = self;
        let engine = site.engine.clone();
        let sweep = engine.run_sweeper_with(stop.clone(), metrics::record_sweep);
        let delete_old = engine.run_retention(retention, stop.clone(), metrics::record_deletion);
        let recover = engine.run_recovery(stop.clone());
        let embed = engine.run_embedder(stop.clone(), metrics::record_embedding);
        let index = engine.run_indexer(stop.clone(), metrics::record_indexing);
        let notifier_stop = stop.clone();
        let notify = async move {
            if let Some(notifier) = notifier {
                notifier
                    .run(notifier_stop, metrics::record_notification)
                    .await;
            }
        };
        let upkeep = tokio::spawn(metrics::run_upkeep(site.metrics.clone()));
        let serving = listen::listen(
            listener,
            router(Arc::clone(&site)),
            connections,
            write_pause,
            stop.clone(),
        );
        let shutdown = async {
            // A dropped sender counts as a stop, too.
            drop(stop.wait_for(|stop| *stop).await);
            let deadline = tokio::time::Instant::now() + SHUTDOWN_TIMEOUT;
            // Tool calls can respond on streams, so streams stay open until no call is running.
            drop(
                tokio::time::timeout(
                    SHUTDOWN_TIMEOUT - 2 * FLUSH_DELAY,
                    in_flight::wait_until_idle(),
                )
                .await,
            );
            tokio::time::sleep(FLUSH_DELAY).await;
            site.mcp.close_streams();
            tokio::time::sleep_until(deadline).await;
            tracing::warn!("some requests did not finish before the shutdown timeout");
        };
        let all = async { tokio::join!(serving, sweep, delete_old, recover, embed, index, notify) };
        tokio::select! {
            _ = all => {}
            () = shutdown => {}
        }
        upkeep.abort();
    }
}

/// All routes, with middleware.
fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::show))
        .route(metadata::SERVER_PATH, get(metadata::show))
        .route(metadata::MCP_PATH, get(metadata::show))
        .route(server_card::CATALOG_PATH, get(server_card::catalog))
        .route(server_card::CARD_PATH, get(server_card::card))
        .route("/mcp", any(mcp::handle))
        .merge(api::router())
        .merge(pages::router())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(&site), limits::admit))
        .layer(from_fn_with_state(Arc::clone(&site), auth::authenticate))
        .layer(from_fn_with_state(
            Arc::clone(&site),
            limits::enforce_timeout,
        ))
        .layer(CatchPanicLayer::custom(handler_panicked))
        .layer(from_fn(trace::observe))
        .with_state(site)
}

async fn not_found(request: Request) -> Response {
    let path = request.uri().path();
    if browser::accepts_html(&request) {
        pages::problem::show(Problem::page_not_found(path))
    } else {
        Problem::route_not_found(path).into_response()
    }
}

async fn method_not_allowed(request: Request) -> Response {
    Problem::method_not_allowed(request.method().as_str(), request.uri().path()).into_response()
}

/// Turns a panic in a handler into a response.
fn handler_panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    Problem::new(
        Code::Unavailable,
        "internal error: this is a bug in Onward",
        "check the current state before you retry; the request may have taken effect",
    )
    .status(axum::http::StatusCode::INTERNAL_SERVER_ERROR)
    .into_response()
}

/// The key that signs cookies and forms. Servers with the same `serve.secret` accept each other's
/// sessions and form answers; without a secret the key is random and changes at every start.
fn signing_key(config: &Config) -> Result<[u8; 32]> {
    let mut key = [0; 32];
    match &config.serve.secret {
        Some(secret) => key.copy_from_slice(&Sha256::digest(secret.as_bytes())),
        None => getrandom::fill(&mut key).map_err(|error| {
            Failure::failed(
                format!("cannot read random bytes from the system: {error}"),
                "set `serve.secret` to at least 32 random characters",
            )
        })?,
    }
    Ok(key)
}

/// Settings for MCP elicitation forms.
fn forms(config: &Config, key: [u8; 32]) -> Forms {
    let wait = Duration::from_secs(config.reviews.form_seconds.into());
    Forms::new(key, wait)
}

/// The base URL of the dashboard, or none on an unspecified address such as `0.0.0.0`.
fn base_url(public: Option<&str>, listener: &TcpListener) -> Option<Arc<str>> {
    if let Some(public) = public {
        return Some(Arc::from(public));
    }
    let address = listener.local_addr().ok()?;
    let reachable = !address.ip().is_unspecified();
    reachable.then(|| Arc::from(format!("http://{address}")))
}

/// Whether any tenant has a token that is neither revoked nor expired.
async fn has_token(engine: &Engine) -> Result<bool> {
    let now = engine.now();
    for tenant in engine.tenants().await? {
        let operator = engine.operator(&tenant.name, "serve").await?;
        let tokens = engine.tokens(&operator).await?;
        let is_valid = |token: &onward_engine::Token| {
            token.revoked_at.is_none() && token.expires_at.is_none_or(|at| at > now)
        };
        if tokens.iter().any(is_valid) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Requires a signing secret when a webhook is configured.
fn require_webhook_secret(config: &Config) -> Result<()> {
    let notify = &config.notify;
    match (&notify.webhook, &notify.secret) {
        (Some(_), None) => Err(Failure::usage(
            format!(
                "{}: `notify.webhook` requires a signing secret",
                config.settings.source("notify.webhook")
            ),
            "set `ONWARD_NOTIFY__SECRET`, or `secret` in `[notify]`, to at least 32 random characters",
        )),
        (Some(_), Some(_)) | (None, _) => Ok(()),
    }
}

fn missing_authentication(config: &Config) -> Failure {
    if config.serve.bind.ip().is_loopback() {
        return Failure::new(
            Exit::Rejected,
            Code::NotConfigured,
            "refusing to serve `serve.public_url` without authentication",
            "create a token (`onward token create --name NAME --role ROLE`), configure \
             `[access.issuer]`, or pass `--open` to accept every request of the reverse proxy",
        );
    }
    Failure::new(
        Exit::Rejected,
        Code::NotConfigured,
        format!(
            "refusing to listen on `{}` without authentication",
            config.serve.bind
        ),
        "create a token (`onward token create --name NAME --role ROLE`), configure \
         `[access.issuer]`, or listen on `127.0.0.1`",
    )
}
