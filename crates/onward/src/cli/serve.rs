//! `onward serve`: the HTTP server.
//!
//! When the server is ready, it prints its address on standard output; the log goes to standard
//! error. On SIGTERM and SIGINT it stops accepting requests, lets running requests finish within
//! their timeout, flushes queued writes, and exits with 0 (`shutdown.rs`).

use clap::Args;
use onward_core::Code;
use onward_engine::Engine;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::database::Database;
use super::{Context, shutdown};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::web::{NewMcpEndpoint, Server};
use crate::{serving, telemetry};

/// Run the server: dashboard, MCP and API over HTTP
///
/// The dashboard is at `/`, MCP at `/mcp`, the API at `/api/v1`. On a loopback address no
/// authentication is required. On any other address, and with `serve.public_url`, the server starts
/// only if tokens or an identity provider are set up; see `onward token create` and `onward config --help`.
#[derive(Args)]
#[command(
    after_help = "The log goes to standard error. Set its level with `ONWARD_LOG` (for example `info`) and its format \
    with `ONWARD_LOG_FORMAT` (`text` or `json`).\n\
    Traces are sent to `OTEL_EXPORTER_OTLP_ENDPOINT`, if it is set."
)]
pub(crate) struct Serve {
    /// Address to listen on; port 0 selects a free port [default: 127.0.0.1:7171]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) bind: Option<String>,
    /// Open the dashboard in the browser; with `serve.public_url`, also serve without authentication
    #[arg(long)]
    open: bool,
    /// Check whether the server at the address is ready, and exit with 0 or 5; for container health
    /// checks
    #[arg(long, conflicts_with = "open")]
    check: bool,
}

/// Pause between two attempts to compare the schema of a database that is unavailable.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of differences in the log.
const MAX_DEVIATIONS: usize = 10;

/// How long the server may take to respond to `--check`.
const CHECK_TIMEOUT: Duration = Duration::from_secs(4);

#[derive(Serialize)]
pub(super) struct Ready {
    pub(super) url: String,
}

pub(super) async fn run(args: &Serve, cx: &Context, mcp_endpoint: NewMcpEndpoint) -> Result {
    install_crypto_provider();
    if args.check {
        return check_ready(cx.config.serve.bind).await;
    }
    let telemetry = telemetry::start(cx.output.is_verbose(), cx.output.is_stderr_coloured())?;
    // Before anything has to be cleaned up.
    let stopped = shutdown::handle_signals()?;
    let Database { engine, caller, .. } = Database::open_for_server(cx).await?;
    let bind = cx.config.serve.bind;
    let (listener, address) = bind_listener(bind).await?;
    let config = &cx.config;
    let comparing = tokio::spawn(report_schema(engine.clone()));
    let server = Server::new(
        engine,
        caller,
        config,
        args.open,
        listener,
        stopped,
        mcp_endpoint,
    );
    let server = server.await?;
    let url = format!("http://{address}");
    // For other processes on the database, until the server has stopped.
    let _announced = serving::announce(
        &config.database,
        address,
        config.serve.public_url.as_deref(),
    );
    if cx.output.json {
        cx.output.print_json(&Ready { url: url.clone() })?;
    } else {
        cx.output
            .print(&format!("onward is listening on {url}\n"))?;
    }
    if args.open
        && let Err(error) = open_browser(&url)
    {
        cx.output.warn(&format!("cannot open a browser: {error}"));
    }
    server.run().await;
    comparing.abort();
    telemetry.end().await;
    Ok(Exit::Done)
}

/// Logs that the schema differs from the one that the migrations create, once the database is
/// available. The server runs nevertheless: every statement names its tenant, and row security is a
/// second barrier.
async fn report_schema(engine: Engine) {
    let deviations = loop {
        match engine.schema_deviations().await {
            Ok(deviations) => break deviations,
            Err(error) if error.code() == Code::Unavailable => sleep(RETRY_INTERVAL).await,
            // The calls of agents report it, too.
            Err(_) => return,
        }
    };
    if !deviations.is_empty() {
        let first = deviations.iter().take(MAX_DEVIATIONS);
        let first: Vec<String> = first.map(ToString::to_string).collect();
        tracing::warn!(
            deviations = deviations.len(),
            first = first.join("; "),
            "the schema differs from the one that the migrations create; run `onward doctor`"
        );
    }
}

/// Requests `/readyz` of the server that listens on this address.
async fn check_ready(bind: SocketAddr) -> Result {
    let loopback = match bind.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    let url = format!("http://{}/readyz", SocketAddr::new(loopback, bind.port()));
    let failure = |reason: String| {
        let hint = "see the log of the server, and run `onward doctor`";
        let message = format!("the server is not ready: {reason}");
        Failure::new(Exit::Unavailable, Code::Unavailable, message, hint)
    };
    let client = reqwest::Client::builder()
        .timeout(CHECK_TIMEOUT)
        .no_proxy()
        .build()
        .map_err(|error| failure(error.to_string()))?;
    match client.get(&url).send().await {
        Ok(response) if response.status().is_success() => Ok(Exit::Done),
        Ok(response) => Err(failure(format!("`{url}` returned {}", response.status()))),
        Err(_) => Err(failure(format!("`{url}` does not respond"))),
    }
}

/// Sets the default cryptography of TLS, which all users of `rustls` must share. Fails if it is
/// already set, which is fine.
pub(super) fn install_crypto_provider() {
    drop(rustls::crypto::ring::default_provider().install_default());
}

/// Listens on an address, and returns the actual one: port 0 selects a free port.
pub(super) async fn bind_listener(bind: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let failure = |error: std::io::Error| {
        if error.kind() == std::io::ErrorKind::AddrInUse {
            Failure::failed(
                format!("port {} is already in use", bind.port()),
                "stop the other process, or choose another port with `--bind`",
            )
        } else {
            Failure::failed(
                format!("cannot listen on `{bind}`: {error}"),
                "choose another address with `--bind`",
            )
        }
    };
    let listener = TcpListener::bind(bind).await.map_err(failure)?;
    let address = listener.local_addr().map_err(failure)?;
    Ok((listener, address))
}

/// Opens a URL in the browser.
pub(super) fn open_browser(url: &str) -> std::io::Result<()> {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    let mut child = Command::new(opener)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // Wait for the child, so that it does not stay a zombie.
    drop(std::thread::spawn(move || child.wait()));
    Ok(())
}
