//! `onward proxy`: a proxy between agents and their models' APIs.
//!
//! When the proxy is ready, it prints its address on standard output; the log goes to standard
//! error. It listens only on loopback addresses, because it has no authentication. If the database
//! cannot be opened, the proxy prints one warning, retries, and forwards requests meanwhile. While
//! the database is open, it interrupts dead calls of this host and, unless another process on the
//! database does so, sweeps: calls that the proxy recorded must time out even if no other Onward
//! process runs.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use onward_core::Code;
use onward_engine::Engine;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::database::Database;
use super::serve::{Ready, bind_listener, install_crypto_provider};
use super::{Context, shutdown};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::proxy::{Proxy as Running, Recorder};
use crate::telemetry;
use crate::web::metrics;

/// The interval of attempts to open the database.
const REOPEN_INTERVAL: Duration = Duration::from_secs(15);
/// How long to wait for queued records to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for the sweep to stop.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(2);

/// Run a proxy between an agent and its model's API that stops loops
///
/// Requests are forwarded unchanged, with two exceptions: a looping turn first gets a message and
/// then text responses only, and a conversation that the API would reject is repaired. Supports
/// Anthropic Messages, OpenAI Chat Completions and OpenAI Responses. API keys are forwarded and
/// never stored.
#[derive(Args)]
#[command(
    after_help = "Configure the agent: `ANTHROPIC_BASE_URL=http://127.0.0.1:7172`, \
    `OPENAI_BASE_URL=http://127.0.0.1:7172/v1`.\n\
    Configure loop detection in `[loop_control]`; list the sessions with `onward session list`."
)]
pub(crate) struct Proxy {
    /// Loopback address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7172")]
    bind: String,
    /// API to forward to [default: the vendor's]
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
}

pub(super) async fn run(args: &Proxy, cx: &Context) -> Result {
    install_crypto_provider();
    let bind = parse_bind(&args.bind)?;
    let telemetry = telemetry::start(cx.output.is_verbose(), cx.output.is_stderr_coloured())?;
    // Before anything has to be cleaned up.
    let stopped = shutdown::handle_signals()?;
    let control = cx.config.loop_control.control();
    let recorder = Recorder::start(control);
    let proxy = Running::new(args.upstream.as_deref(), control, recorder.clone())?;
    let mut sweeping = None;
    match open(&recorder, cx).await {
        Ok(engine) => sweeping = Some(sweep(engine, stopped.clone())),
        Err(failure) => cx.output.warn(&format!(
            "cannot open the database: {}; forwarding requests without loop detection",
            failure.message
        )),
    }
    let (listener, address) = bind_listener(bind).await?;
    let url = format!("http://{address}");
    if cx.output.json {
        cx.output.print_json(&Ready { url })?;
    } else {
        cx.output
            .print(&format!("onward proxy is listening on {url}\n"))?;
    }
    let reopening = async {
        while sweeping.is_none() {
            tokio::time::sleep(REOPEN_INTERVAL).await;
            if let Ok(engine) = open(&recorder, cx).await {
                sweeping = Some(sweep(engine, stopped.clone()));
                cx.output.note("database opened; loop detection is on");
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = proxy.run(listener, stopped.clone()) => {}
        () = reopening => {}
    }
    recorder.flush(FLUSH_TIMEOUT).await;
    if let Some(sweeping) = sweeping {
        drop(tokio::time::timeout(SWEEP_TIMEOUT, sweeping).await);
    }
    telemetry.end().await;
    Ok(Exit::Done)
}

async fn open(recorder: &Recorder, cx: &Context) -> Result<Engine> {
    let Database { engine, caller, .. } = Database::open_or_create(cx).await?;
    recorder.set_database(engine.clone(), caller);
    Ok(engine)
}

/// Interrupts dead calls and handles stalls. One leader election covers both, so the leader does
/// both.
fn sweep(engine: Engine, stop: watch::Receiver<bool>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let swept = engine.run_sweeper_with(stop.clone(), metrics::record_sweep);
        tokio::join!(swept, engine.run_recovery(stop));
    })
}

/// Parses `--bind`, which must be a loopback address.
fn parse_bind(text: &str) -> Result<SocketAddr> {
    let bind: SocketAddr = text.parse().map_err(|_| {
        Failure::usage(
            format!("`--bind` must be ADDRESS:PORT, not `{text}`"),
            "for example: `--bind 127.0.0.1:7172`; port 0 selects a free port",
        )
    })?;
    if bind.ip().is_loopback() {
        Ok(bind)
    } else {
        Err(Failure::new(
            Exit::Rejected,
            Code::NotConfigured,
            format!("refusing to listen on `{bind}`: the proxy has no authentication"),
            "listen on `127.0.0.1`, and run one proxy per machine",
        ))
    }
}
