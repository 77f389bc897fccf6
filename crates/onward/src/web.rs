//! `onward serve`: MCP at `/mcp`, the API at `/api/v1`, the dashboard, health and figures, over HTTP.
//!
//! One file per thing. Every request comes through one gate (`gate.rs`), which says who asks; whether
//! they may is decided by the engine, and what they ask for is a tool of `tools.rs`. So there is
//! nothing here that an agent could not do, too, and no route that could forget to ask.

mod api;
mod events;
mod feed;
mod gate;
mod health;
mod issuer;
mod keys;
mod limits;
pub(crate) mod listen;
mod mcp;
mod metadata;
pub(crate) mod metrics;
mod openapi;
mod pages;
pub(crate) mod place;
mod problem;
mod sign_in;
mod trace;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use metrics_exporter_prometheus::PrometheusHandle;
use onward_core::Code;
use onward_engine::retention::Retention;
use onward_engine::{Caller, Engine};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower_http::catch_panic::CatchPanicLayer;

use crate::config::Config;
use crate::exit::Exit;
use crate::extraction::Extractor;
use crate::failure::{Failure, Result};
use crate::mcp::Forms;
use crate::notify::Notifier;
use crate::tools::{Desk, running};
use feed::Feeds;
use gate::Gate;
use issuer::Issuer;
use limits::Limits;
use mcp::Mount;
use pages::session::Seal;
use place::Place;
use problem::Problem;

/// How long what runs may take when the server stops.
const GRACE: Duration = Duration::from_secs(10);
/// How long answers that are done have to get onto the line.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What every request needs.
struct Site {
    engine: Engine,
    desk: Desk,
    gate: Gate,
    limits: Limits,
    mcp: Mount,
    feeds: Feeds,
    figures: PrometheusHandle,
    /// What the dashboard shows of the configuration.
    settings: pages::settings::Shown,
    /// How many plans are where.
    tallies: pages::tally::Tallies,
    /// The server's own tenant.
    tenant: Arc<str>,
    /// True once the server stops.
    stop: watch::Receiver<bool>,
}

impl Site {
    /// Whether people reach it over a line that nobody else listens to.
    fn is_secure(&self) -> bool {
        let public = self.gate.place.public.as_deref();
        public.is_some_and(|public| public.starts_with("https://"))
    }
}

/// A server that is ready to answer.
pub(crate) struct Server {
    site: Arc<Site>,
    listener: TcpListener,
    connections: usize,
    retention: Retention,
    notifier: Option<Notifier>,
    stop: watch::Receiver<bool>,
}

impl Server {
    /// Prepares to answer on an address that is already taken, for the caller who started it.
    pub(crate) async fn new(
        engine: Engine,
        caller: Caller,
        config: &Config,
        listener: TcpListener,
        stop: watch::Receiver<bool>,
    ) -> Result<Self> {
        let serve = &config.serve;
        let on_loopback = serve.bind.value.ip().is_loopback();
        let tenant = Arc::clone(&caller.tenant);
        let issuer = match &serve.issuer {
            Some(issuer) => Some(Issuer::of(issuer, &tenant).map_err(|why| {
                let message = format!("the identity provider cannot be asked: {why}");
                Failure::failed(message, "check the authorities that this system trusts")
            })?),
            None => None,
        };
        let closed = serve.require_tokens.value || issuer.is_some();
        if !on_loopback && !closed && !has_token(&engine).await? {
            return Err(unguarded(config));
        }
        unsigned(config)?;
        let figures = metrics::start().map_err(|why| {
            Failure::failed(
                format!("nothing can be counted: {why}"),
                "this is a bug of Onward",
            )
        })?;
        let limits = &serve.limits;
        let body = usize::try_from(limits.body_bytes.value).unwrap_or(usize::MAX);
        let at_once = u64::from(limits.streams.value) + 2 * u64::from(limits.requests.value);
        let public = serve.public_url.value.clone();
        let key = key(config)?;
        let desk = Desk {
            engine: engine.clone(),
            base_url: base_url(public.as_deref(), &listener),
            extractor: Extractor::of(&config.extraction).map(Arc::new),
        };
        let notifier = Notifier::of(&config.notify, &engine, desk.base_url.clone());
        let notifier = notifier.map_err(|why| {
            let message = format!("the webhook cannot be told: {why}");
            Failure::failed(message, "check the authorities that this system trusts")
        })?;
        let site = Arc::new(Site {
            gate: Gate {
                place: Place {
                    guarded: on_loopback || public.is_some(),
                    public,
                    origins: serve.allowed_origins.value.clone(),
                },
                open: (on_loopback && !closed).then_some(caller),
                issuer,
                seal: Seal::new(&key),
                hasher: std::hash::RandomState::new(),
            },
            mcp: Mount::new(desk.clone(), forms(config, key), body, stop.clone()),
            limits: Limits::of(limits),
            feeds: Feeds::default(),
            figures,
            settings: pages::settings::Shown::of(config),
            tallies: pages::tally::Tallies::default(),
            tenant,
            stop: stop.clone(),
            desk,
            engine,
        });
        Ok(Self {
            site,
            listener,
            connections: usize::try_from(at_once).unwrap_or(usize::MAX),
            retention: config.retention(),
            notifier,
            stop,
        })
    }

    /// Answers until it is told to stop. What runs then is given its time; what streams is ended.
    pub(crate) async fn run(self) {
        let Self {
            site,
            listener,
            connections,
            retention,
            notifier,
            mut stop,
        } = self;
        let engine = site.engine.clone();
        let sweep = engine.keep_sweeping_and_tell(stop.clone(), metrics::swept);
        let forget = engine.keep_forgetting(retention, stop.clone(), metrics::forgotten);
        let recover = engine.keep_recovering(stop.clone());
        let embed = engine.keep_embedding(stop.clone(), metrics::embedded);
        let index = engine.keep_indexing(stop.clone(), metrics::indexed);
        let heed = stop.clone();
        let notify = async move {
            if let Some(notifier) = notifier {
                notifier.run(heed, metrics::notified).await;
            }
        };
        let upkeep = tokio::spawn(metrics::keep_up(site.figures.clone()));
        let answering = listen::listen(
            listener,
            router(Arc::clone(&site)),
            connections,
            stop.clone(),
        );
        let ending = async {
            // Whoever could say it is gone: then it is the end, too.
            drop(stop.wait_for(|stop| *stop).await);
            let deadline = tokio::time::Instant::now() + GRACE;
            // Calls are answered on streams, too, so those end when no call runs any more.
            drop(tokio::time::timeout(GRACE - 2 * LAST_WORDS, running::none()).await);
            tokio::time::sleep(LAST_WORDS).await;
            site.mcp.end();
            tokio::time::sleep_until(deadline).await;
            tracing::warn!("some requests did not end in time");
        };
        let all = async { tokio::join!(answering, sweep, forget, recover, embed, index, notify) };
        tokio::select! {
            _ = all => {}
            () = ending => {}
        }
        upkeep.abort();
    }
}

/// Every route, behind the gate.
fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::show))
        .route(metadata::OF_SERVER, get(metadata::show))
        .route(metadata::OF_MCP, get(metadata::show))
        .route("/mcp", any(mcp::answer))
        .merge(api::router())
        .merge(pages::router())
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(&site), gate::pass))
        .layer(from_fn_with_state(Arc::clone(&site), limits::hold))
        .layer(CatchPanicLayer::custom(broken))
        .layer(from_fn(trace::observe))
        .with_state(site)
}

async fn nowhere(request: Request) -> Response {
    let path = request.uri().path();
    match pages::is_for_people(&request) {
        true => pages::problem::show(Problem::no_page(path)),
        false => Problem::nowhere(path).into_response(),
    }
}

async fn wrong_method(request: Request) -> Response {
    Problem::wrong_method(request.method().as_str(), request.uri().path()).into_response()
}

/// A bug must not end the connection without a word.
fn broken(_: Box<dyn Any + Send + 'static>) -> Response {
    Problem::new(
        Code::Unavailable,
        "the server broke off: this is a bug of Onward",
        "ask where the plan stands, then call again",
    )
    .status(axum::http::StatusCode::INTERNAL_SERVER_ERROR)
    .into_response()
}

/// What this server signs with. Servers that share their clients share the secret: who is asked by
/// one, or signed in at one, may answer to another.
fn key(config: &Config) -> Result<[u8; 32]> {
    let mut key = [0; 32];
    match &config.serve.secret.value {
        Some(secret) => key.copy_from_slice(&Sha256::digest(secret.as_bytes())),
        None => getrandom::fill(&mut key).map_err(|why| {
            Failure::failed(
                format!("the system has no randomness: {why}"),
                "free some resources of the system",
            )
        })?,
    }
    Ok(key)
}

/// How people are asked in their agent's own window.
fn forms(config: &Config, key: [u8; 32]) -> Forms {
    let wait = Duration::from_secs(config.form_seconds.value.into());
    Forms::new(key, wait)
}

/// Where people find the dashboard. An address that stands for all of them is no place to go to.
fn base_url(public: Option<&str>, listener: &TcpListener) -> Option<Arc<str>> {
    if let Some(public) = public {
        return Some(Arc::from(public));
    }
    let address = listener.local_addr().ok()?;
    let reachable = !address.ip().is_unspecified();
    reachable.then(|| Arc::from(format!("http://{address}")))
}

/// Whether anybody at all could come in.
async fn has_token(engine: &Engine) -> Result<bool> {
    let now = engine.now();
    for tenant in engine.tenants().await? {
        let operator = engine.operator(&tenant.name, "serve").await?;
        let tokens = engine.tokens(&operator).await?;
        let opens = |token: &onward_engine::Token| {
            token.revoked_at.is_none() && token.expires_at.is_none_or(|at| at > now)
        };
        if tokens.iter().any(opens) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A webhook that cannot tell who speaks to it is not spoken to.
fn unsigned(config: &Config) -> Result<()> {
    let notify = &config.notify;
    match (&notify.webhook.value, &notify.secret.value) {
        (Some(_), None) => Err(Failure::usage(
            format!(
                "{}: `notify.webhook` has no secret to sign with",
                notify.webhook.from
            ),
            "set `ONWARD_NOTIFY_SECRET`, or `secret` in `[notify]`, to 32 characters of chance",
        )),
        (Some(_), Some(_)) | (None, _) => Ok(()),
    }
}

fn unguarded(config: &Config) -> Failure {
    Failure::new(
        Exit::Refused,
        Code::NotConfigured,
        format!(
            "`{}` can be reached from other machines, and nobody would have to say who they are",
            config.serve.bind.value
        ),
        "make a token first (`onward token create --name NAME --role ROLE`), or configure \
         `[access.issuer]`; on `127.0.0.1` none is needed",
    )
}
