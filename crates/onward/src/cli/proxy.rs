//! `onward proxy`: stands between agents and their models' APIs until it is told to stop.
//!
//! One line on standard output says where, once it is ready; the log goes to standard error. It listens
//! on this machine alone, for it adds nothing that would keep others out. A database that cannot be
//! opened is said once and tried again: requests pass all the same. While one is open it sweeps, unless
//! another process on it does, and looks after the calls of its host: those that it records itself must
//! be given up also where nothing else of Onward runs.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use onward_core::Code;
use onward_engine::Engine;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Context;
use super::database::Database;
use super::serve::{Ready, Signals};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::proxy::{Proxy as Running, Record};
use crate::telemetry;
use crate::web::metrics;

/// How often a database that cannot be opened is tried again.
const AGAIN: Duration = Duration::from_secs(15);
/// How long what is still to be written may take in the end.
const LAST_NOTES: Duration = Duration::from_secs(5);
/// How long a sweep that is under way may take to stop.
const SWEEP_ENDS: Duration = Duration::from_secs(2);

/// Stand between an agent and its model's API, and watch its turns there
///
/// Everything passes unchanged until something is wrong: a turn that goes round in circles is told so
/// and then answered in text, and a conversation that the API would reject is repaired. For Anthropic's
/// Messages, and OpenAI's Chat Completions and Responses. Keys pass through and are never kept.
#[derive(Args)]
#[command(
    after_help = "Point the agent at it: `ANTHROPIC_BASE_URL=http://127.0.0.1:7172`, \
    `OPENAI_BASE_URL=http://127.0.0.1:7172/v1`. `[loop_control]` sets what is done about a turn, and \
    `onward session list` shows what was seen."
)]
pub(crate) struct Proxy {
    /// Where to listen, on this machine; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7172")]
    bind: String,
    /// The API to pass everything on to [default: the vendors' own]
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
}

pub(super) async fn run(args: &Proxy, cx: &Context) -> Result {
    // Both parts that speak TLS need one and the same; that somebody set it already is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let bind = place(&args.bind)?;
    let telemetry = telemetry::start(cx.output.is_verbose(), cx.output.is_log_coloured())?;
    // From here on a signal is heard, so that it cannot come too early to be one.
    let signals = Signals::new()?;
    let control = cx.config.loop_control.control();
    let record = Record::start(control);
    let proxy = Running::new(args.upstream.as_deref(), control, record.clone())?;
    let (stop, stopped) = watch::channel(false);
    let mut sweeping = None;
    match open(&record, cx).await {
        Ok(engine) => sweeping = Some(sweep(engine, stopped.clone())),
        Err(failure) => cx.output.warn(&format!(
            "the database is not available: {}; requests pass, and turns are not watched",
            failure.message
        )),
    }
    let listener = TcpListener::bind(bind).await.map_err(|why| {
        Failure::failed(
            format!("`{bind}` cannot be listened on: {why}"),
            "choose another one with `--bind`; port 0 takes a free one",
        )
    })?;
    let address = listener.local_addr().map_err(|why| {
        Failure::failed(format!("where it listens is not known: {why}"), "try again")
    })?;
    let url = format!("http://{address}");
    match cx.output.json {
        true => cx.output.print_json(&Ready { url })?,
        false => cx
            .output
            .print(&format!("onward proxy is listening on {url}\n"))?,
    }
    let told = async {
        let name = signals.first().await;
        tracing::info!(signal = name, "stopping");
        stop.send_replace(true);
        std::future::pending::<()>().await;
    };
    let reopening = async {
        while sweeping.is_none() {
            tokio::time::sleep(AGAIN).await;
            if let Ok(engine) = open(&record, cx).await {
                sweeping = Some(sweep(engine, stopped.clone()));
                cx.output
                    .say("the database is there; turns are watched from now on");
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = proxy.run(listener, stopped.clone()) => {}
        () = told => {}
        () = reopening => {}
    }
    record.flush(LAST_NOTES).await;
    if let Some(sweeping) = sweeping {
        drop(tokio::time::timeout(SWEEP_ENDS, sweeping).await);
    }
    telemetry.end().await;
    Ok(Exit::Done)
}

async fn open(record: &Record, cx: &Context) -> Result<Engine> {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    record.open(engine.clone(), caller);
    Ok(engine)
}

/// Gives up what will not answer, and acts on stalls: the lead is one for both, so whoever has it does
/// both.
fn sweep(engine: Engine, stop: watch::Receiver<bool>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let swept = engine.keep_sweeping_and_tell(stop.clone(), metrics::swept);
        tokio::join!(swept, engine.keep_recovering(stop));
    })
}

/// An address of this machine.
fn place(text: &str) -> Result<SocketAddr> {
    let bind: SocketAddr = text.parse().map_err(|_| {
        Failure::usage(
            format!("the flag `--bind`: `{text}` is no address with a port"),
            "such as `127.0.0.1:7172`; port 0 takes a free one",
        )
    })?;
    match bind.ip().is_loopback() {
        true => Ok(bind),
        false => Err(Failure::new(
            Exit::Refused,
            Code::NotConfigured,
            format!("`{bind}` can be reached from other machines, and anybody there could use it"),
            "listen on `127.0.0.1`, and run a proxy beside each agent",
        )),
    }
}
