//! `onward demo`: a scripted agent works through a sample plan on a real server.
//!
//! Only the agent's reasoning is scripted. `demo/server.rs` starts `onward serve` on a temporary
//! database, `demo/agent.rs` calls it with MCP over HTTP and runs `onward hook`, `demo/scenario.rs`
//! defines the sequence of events, and `demo/narrator.rs` prints them.

mod agent;
mod narrator;
mod scenario;
mod server;

use std::io::{IsTerminal, stdout};

use clap::Args;

use super::serve::install_crypto_provider;
use super::signals::Signals;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::Output;
use narrator::Narrator;
use scenario::Scenario;
use server::Server;

/// Run a demo: branches, a stuck step, a looping turn, a dead call and a review
///
/// A scripted agent works through a sample plan on a real server with a temporary database. Follow
/// it on the dashboard, and decide the review there.
#[derive(Args)]
pub(crate) struct Demo {
    /// Skip pauses and approve the review automatically; exit at the end if the output is a pipe
    #[arg(long)]
    fast: bool,
    /// Keep the database, and print its path
    #[arg(long)]
    keep: bool,
}

pub(super) async fn run(args: &Demo, output: Output) -> Result {
    // The HTTP client needs a provider even without TLS.
    install_crypto_provider();
    // Handle signals before anything is created that has to be cleaned up.
    let stop = stop_signal()?;
    let mut stop = std::pin::pin!(stop);
    let narrator = Narrator::new(output, args.fast);
    let mut server = Server::start(args.keep, output.is_verbose())?;
    narrator.introduce(&server.url)?;
    let scenario = Scenario::new(&server, &narrator, args.fast)?;
    let result = tokio::select! {
        result = scenario.run() => result,
        () = &mut stop => {
            narrator.print("\nDemo stopped.")?;
            return finish(&server, &narrator);
        }
    };
    let plan = result?;
    narrator.print("")?;
    if args.fast && !stdout().is_terminal() {
        return finish(&server, &narrator);
    }
    narrator.list_pages(&server.url, &plan)?;
    narrator.print(&format!(
        "The dashboard stays at {} until you press Ctrl-C.",
        server.url
    ))?;
    tokio::select! {
        () = stop => narrator.print("")?,
        failure = server.exited() => return Err(failure),
    }
    finish(&server, &narrator)
}

/// Prints the path of the database, if it is kept.
fn finish(server: &Server, narrator: &Narrator) -> Result {
    if let Some(file) = server.kept_database() {
        narrator.print(&format!(
            "Database kept:\n  onward --database {0} serve --open\n  \
             onward --database {0} plan list --all",
            file.display()
        ))?;
    }
    Ok(Exit::Done)
}

/// Waits for SIGTERM or SIGINT.
fn stop_signal() -> Result<impl Future<Output = ()>> {
    let mut signals = Signals::new()?;
    Ok(async move {
        signals.first().await;
    })
}
