//! `onward serve`: answers over HTTP until it is told to stop.
//!
//! One line on standard output says where, once it is ready; the log goes to standard error. It stops
//! on SIGTERM and SIGINT: nothing more is taken in, what runs is given its time, what is to be written
//! is written, and that is a success.

use clap::Args;
use serde::Serialize;
use std::process::{Command, Stdio};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::Context;
use super::database::Database;
use crate::config::Config;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::telemetry;
use crate::web::Server;

/// Answer over HTTP: MCP at `/mcp`, the API at `/api/v1`, the dashboard at `/`
///
/// On this machine it is open to you alone. On any other address it starts only where tokens or an
/// identity provider are set up; see `onward token create` and `onward config --help`.
#[derive(Args)]
#[command(
    after_help = "The log goes to standard error: `ONWARD_LOG=info`, `ONWARD_LOG_FORMAT=json`. \
    Traces are sent where `OTEL_EXPORTER_OTLP_ENDPOINT` is set."
)]
pub(crate) struct Serve {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:7171]
    #[arg(long, value_name = "ADDRESS:PORT")]
    bind: Option<String>,
    /// Open it in the browser
    #[arg(long)]
    open: bool,
}

#[derive(Serialize)]
pub(super) struct Ready {
    pub(super) url: String,
}

impl Serve {
    /// What the command line says counts more than the configuration.
    pub(super) fn settle(&self, config: &mut Config) -> Result<()> {
        match &self.bind {
            Some(bind) => config.serve.bind_to(bind),
            None => Ok(()),
        }
    }
}

pub(super) async fn run(args: &Serve, cx: &Context) -> Result {
    // Both have a default, which must be one and the same for every part that speaks TLS; that
    // somebody set it already is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let telemetry = telemetry::start(cx.output.is_verbose(), cx.output.is_log_coloured())?;
    let (stop, stopped) = watch::channel(false);
    // From here on a signal is heard, so that it cannot come too early to be one.
    let signals = Signals::new()?;
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let bind = cx.config.serve.bind.value;
    let listener = TcpListener::bind(bind).await.map_err(|why| {
        Failure::failed(
            format!("`{bind}` cannot be listened on: {why}"),
            "choose another one with `--bind`; port 0 takes a free one",
        )
    })?;
    let address = listener.local_addr().map_err(|why| {
        Failure::failed(format!("where it listens is not known: {why}"), "try again")
    })?;
    let server = Server::new(engine, caller, &cx.config, listener, stopped).await?;
    let url = format!("http://{address}");
    match cx.output.json {
        true => cx.output.print_json(&Ready { url: url.clone() })?,
        false => cx
            .output
            .print(&format!("onward is listening on {url}\n"))?,
    }
    if args.open {
        open(cx, &url);
    }
    let told = async {
        let name = signals.first().await;
        tracing::info!(signal = name, "stopping");
        stop.send_replace(true);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = server.run() => {}
        () = told => {}
    }
    telemetry.end().await;
    Ok(Exit::Done)
}

/// What says that it is the end.
pub(super) struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    pub(super) fn new() -> Result<Self> {
        let heard = |kind| {
            signal(kind).map_err(|why| {
                let message = format!("signals cannot be heard: {why}");
                Failure::failed(message, "free some resources of the system")
            })
        };
        Ok(Self {
            terminate: heard(SignalKind::terminate())?,
            interrupt: heard(SignalKind::interrupt())?,
        })
    }

    pub(super) async fn first(mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Opens the browser, if there is one.
fn open(cx: &Context, url: &str) {
    let opener = match cfg!(target_os = "macos") {
        true => "open",
        false => "xdg-open",
    };
    let started = Command::new(opener)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        // Whoever opened it is done at once; waited for, so that nothing of it stays behind.
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(why) => cx
            .output
            .warn(&format!("no browser could be opened: `{opener}`: {why}")),
    }
}
