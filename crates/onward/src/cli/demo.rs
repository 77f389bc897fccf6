//! `onward demo`: a sample plan, from its beginning to its end, on a real server with a database of its
//! own.
//!
//! Nothing here is pretended but the agent's thoughts: `demo/server.rs` starts this program's own
//! `serve`, `demo/agent.rs` speaks MCP to it over HTTP and runs its `hook`, and `demo/story.rs` says
//! what happens in which order. What happened goes to standard output. The database is temporary, and
//! gone in the end unless it is to be kept.

mod agent;
mod server;
mod story;
mod teller;

use std::io::{IsTerminal, stdout};

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;
use server::Server;
use story::Story;
use teller::Teller;

/// Watch a sample plan from beginning to end: branches, a stall, a stuck turn, a dead call, a review
///
/// A scripted agent works on a real server, on a temporary database; you look at the dashboard, and
/// decide the review there.
#[derive(Args)]
pub(crate) struct Demo {
    /// Do not pause, and answer the review yourself; in a pipe, end by itself
    #[arg(long)]
    fast: bool,
    /// Keep the database, and say where it is
    #[arg(long)]
    keep: bool,
}

pub(super) async fn run(args: &Demo, output: Output) -> Result {
    // What speaks HTTP asks for a default, also where nothing is encrypted.
    drop(rustls::crypto::ring::default_provider().install_default());
    // Before anything is made that has to be put away again.
    let told = end()?;
    let mut told = std::pin::pin!(told);
    let teller = Teller::new(output, args.fast);
    let mut server = Server::start(args.keep, output.is_verbose())?;
    teller.open(&server.url)?;
    let story = Story::new(&server, &teller, args.fast)?;
    let ended = tokio::select! {
        ended = story.tell() => ended,
        () = &mut told => {
            teller.plain("\nStopped before its end.")?;
            return farewell(&server, &teller);
        }
    };
    let plan = ended?;
    teller.plain("")?;
    if args.fast && !stdout().is_terminal() {
        return farewell(&server, &teller);
    }
    teller.look(&server.url, &plan)?;
    teller.plain(&format!(
        "The dashboard stays at {} until you press Ctrl-C.",
        server.url
    ))?;
    tokio::select! {
        () = told => teller.plain("")?,
        why = server.ended() => return Err(why),
    }
    farewell(&server, &teller)
}

/// What is left of it.
fn farewell(server: &Server, teller: &Teller) -> Result {
    if let Some(file) = server.kept() {
        teller.plain(&format!(
            "The database is kept:\n  onward --database {0} serve --open\n  \
             onward --database {0} plan list --all",
            file.display()
        ))?;
    }
    Ok(Exit::Done)
}

/// Somebody wants it to end.
fn end() -> Result<impl Future<Output = ()>> {
    let heard = |kind| {
        signal(kind).map_err(|why| {
            let message = format!("signals cannot be heard: {why}");
            Failure::failed(message, "free some resources of the system")
        })
    };
    let mut terminate = heard(SignalKind::terminate())?;
    let mut interrupt = heard(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
