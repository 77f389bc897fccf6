//! `onward mcp`: the MCP server of one agent, over standard input and output.
//!
//! Nothing but the protocol goes to standard output. It ends when the agent closes its end, when it
//! is gone, or by SIGTERM and SIGINT: what runs is finished, what was queued is written. Meanwhile it
//! sweeps and asks a model what is stored means, unless another process on the database does, looks
//! after the calls of its host, forgets what `[retention]` names, and tells whom `[notify]` names.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::Context;
use super::database::Database;
use crate::exit::Exit;
use crate::extraction::Extractor;
use crate::failure::{Failure, Result};
use crate::mcp::stdio::Stdio;
use crate::mcp::{Forms, Offered, Server, Setup};
use crate::notify::Notifier;
use crate::tools::Desk;

/// How long a sweep that is under way may take to stop.
const SWEEP_ENDS: Duration = Duration::from_secs(2);

/// Serve one agent over standard input and output
///
/// For the configuration of an agent: it starts this command itself, and speaks MCP with it.
#[derive(Args)]
pub(crate) struct Mcp {
    /// Which tools the agent is shown: every one costs it some of its context
    #[arg(long, value_name = "TOOLS", default_value = "all")]
    tools: Tools,
}

#[derive(Clone, Copy, ValueEnum)]
enum Tools {
    /// All of them
    All,
    /// Those that working on plans needs
    Core,
}

pub(super) async fn run(args: &Mcp, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let (close, closing) = watch::channel(false);
    let unable = |why: &dyn std::fmt::Display| {
        Failure::failed(
            format!("the server cannot start: {why}"),
            "free some resources of the system",
        )
    };
    let transport = Stdio::open(close.clone()).map_err(|why| unable(&why))?;
    stop_by_signal(close).map_err(|why| unable(&why))?;
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|why| unable(&why))?;
    let setup = Setup {
        desk: Desk {
            engine: engine.clone(),
            base_url: None,
            extractor: Extractor::of(&cx.config.extraction).map(Arc::new),
        },
        offered: match args.tools {
            Tools::All => Offered::All,
            Tools::Core => Offered::Core,
        },
        who: Arc::new(move |_| Some(caller.clone())),
        forms: Forms::new(
            key,
            Duration::from_secs(cx.config.form_seconds.value.into()),
        ),
        closing: closing.clone(),
    };
    // An agent works without it, too: what cannot be told from here, another process tells.
    let public = cx.config.serve.public_url.value.as_deref().map(Arc::from);
    let notifier = Notifier::of(&cx.config.notify, &engine, public)
        .ok()
        .flatten();
    let retention = cx.config.retention();
    let sweep = tokio::spawn(async move {
        let forget = engine.keep_forgetting(retention, closing.clone(), |_, _| {});
        let recover = engine.keep_recovering(closing.clone());
        let embed = engine.keep_embedding(closing.clone(), |_| {});
        let index = engine.keep_indexing(closing.clone(), |_| {});
        let heed = closing.clone();
        let notify = async move {
            if let Some(notifier) = notifier {
                notifier.run(heed, |_| {}).await;
            }
        };
        tokio::join!(
            engine.keep_sweeping(closing),
            forget,
            recover,
            embed,
            index,
            notify
        )
    });
    // No handshake is waited for: clients of 2026-07-28 have none, and what comes out of order from
    // the others is answered like anything else.
    let server = rmcp::service::serve_directly(Server::new(setup), transport, None);
    let ended = server.waiting().await;
    drop(tokio::time::timeout(SWEEP_ENDS, sweep).await);
    match ended {
        Ok(_) => Ok(Exit::Done),
        Err(why) => Err(unable(&why)),
    }
}

/// Ends the server when it is told to.
fn stop_by_signal(close: watch::Sender<bool>) -> std::io::Result<()> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let (mut told, close) = (signal(kind)?, close.clone());
        tokio::spawn(async move {
            told.recv().await;
            close.send_replace(true);
        });
    }
    Ok(())
}
