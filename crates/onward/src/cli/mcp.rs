//! `onward mcp`: the MCP server on standard input and output.
//!
//! Standard output carries only the protocol. The server stops when the agent closes the pipe or
//! exits, or on SIGTERM and SIGINT; running calls finish and queued writes are flushed. In the
//! background it sweeps and computes embeddings (unless another process on the database does),
//! interrupts dead calls of this host, applies `[retention]` and sends notifications.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use onward_engine::machine::host_name;
use onward_engine::{Address, Connection, RequestOrigin};
use tokio::sync::watch;

use super::database::Database;
use super::signals::Signals;
use super::{CHECK_LIMITS, Context};
use crate::config::{Config, Source, location};
use crate::exit::Exit;
use crate::extraction::Extractor;
use crate::failure::{Failure, Result};
use crate::hint::Interface;
use crate::mcp::stdio::Stdio;
use crate::mcp::{Forms, Server, Setup, ToolSet};
use crate::notify::Notifier;
use crate::serving::Dashboard;
use crate::tools::ToolContext;
use crate::web;

/// How long to wait for the background tasks to stop.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(2);

/// Run the MCP server on stdio (agents start this)
///
/// Agents run this command from their MCP configuration; `onward install` writes it.
#[derive(Args)]
pub(crate) struct Mcp {
    /// Tools to offer; each one uses some of the agent's context
    #[arg(long, value_name = "TOOLS", default_value = "all")]
    tools: Tools,
}

#[derive(Clone, Copy, ValueEnum)]
enum Tools {
    /// All tools
    All,
    /// Only the tools for working on plans
    Core,
    /// The tools of `core` under names without "research" (`create_plan`, …), for coding agents
    Plan,
}

pub(super) async fn run(args: &Mcp, cx: &Context) -> Result {
    let Database {
        engine, mut caller, ..
    } = Database::open_for_server(cx).await?;
    // The agent starts this process in its own directory.
    let directory = std::env::current_dir().ok();
    caller.origin = RequestOrigin {
        client: None,
        host: host_name(),
        directory: directory.as_deref().map(location::display),
    };
    let mut connection = [0; 8];
    let random = getrandom::fill(&mut connection);
    caller.connection = Some(Connection::of_this_process(connection));
    let (close, closing) = watch::channel(false);
    let (caller_at_end, engine_at_end) = (caller.clone(), engine.clone());
    let start_failure = |error: &dyn std::fmt::Display| {
        Failure::failed(
            format!("cannot start the MCP server: {error}"),
            CHECK_LIMITS,
        )
    };
    random.map_err(|error| start_failure(&error))?;
    let transport = Stdio::open(close.clone()).map_err(|error| start_failure(&error))?;
    stop_on_signal(close)?;
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| start_failure(&error))?;
    let tool_set = match args.tools {
        Tools::All => ToolSet::All,
        Tools::Core => ToolSet::Core,
        Tools::Plan => ToolSet::Plan,
    };
    let dashboard = dashboard(&cx.config);
    let setup = Setup {
        tool_context: ToolContext {
            interface: Interface::Mcp(tool_set),
            engine: engine.clone(),
            dashboard: dashboard.clone(),
            extractor: cx
                .config
                .extraction
                .as_ref()
                .map(Extractor::new)
                .map(Arc::new),
            is_local: true,
            quota: None,
            closing: closing.clone(),
        },
        tool_set,
        resolve_caller: Arc::new(move |_| Some(caller.clone())),
        forms: Forms::new(
            key,
            Duration::from_secs(cx.config.reviews.form_seconds.into()),
        ),
        app: web::APP,
        directory,
    };
    // Notifications are optional here: another process may send them.
    let notifier = Notifier::new(&cx.config.notify, &engine, dashboard)
        .ok()
        .flatten();
    let retention = cx.config.retention.policy();
    let sweep = tokio::spawn(async move {
        let forget = engine.run_retention(retention, closing.clone(), |_, _| {});
        let recover = engine.run_recovery(closing.clone());
        let embed = engine.run_embedder(closing.clone(), |_| {});
        let index = engine.run_indexer(closing.clone(), |_| {});
        let stop = closing.clone();
        let notify = async move {
            if let Some(notifier) = notifier {
                notifier.run(stop, |_| {}).await;
            }
        };
        tokio::join!(
            engine.run_sweeper(closing),
            forget,
            recover,
            embed,
            index,
            notify
        )
    });
    // Do not wait for a handshake: clients of protocol version 2026-07-28 send none, and older
    // clients get a response to early requests, too.
    let server = rmcp::service::serve_directly(Server::new(setup), transport, None);
    let ended = server.waiting().await;
    // If it fails, another process finds out that this one has exited.
    drop(engine_at_end.close_connection(&caller_at_end).await);
    drop(tokio::time::timeout(SWEEP_TIMEOUT, sweep).await);
    match ended {
        Ok(_) => Ok(Exit::Done),
        Err(error) => Err(start_failure(&error)),
    }
}

/// The dashboard of this process's links: `serve.public_url`, or a server on the same database.
fn dashboard(config: &Config) -> Dashboard {
    match &config.serve.public_url {
        Some(url) => Dashboard::Fixed(Some(url.as_str().into())),
        None => Dashboard::Running {
            database: config.database.clone(),
            command: command(config).into(),
        },
    }
}

/// `onward` with the options that select the database and the tenant, if the agent's configuration
/// of this process selects them: the user's shell does not have it.
fn command(config: &Config) -> String {
    let is_set = |key| {
        let source = config.settings.source(key);
        matches!(source, Source::Flag { .. } | Source::Environment { .. })
    };
    let mut command = "onward".to_owned();
    // The URL of a database server can contain a password.
    if let (true, Address::File(path)) = (is_set("database"), &config.database) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        command.push_str(&format!(
            " --database {}",
            shell_word(&path.display().to_string())
        ));
    }
    if is_set("tenant") {
        command.push_str(&format!(" --tenant {}", shell_word(&config.top.tenant)));
    }
    command
}

/// A word of a shell command, quoted if necessary.
fn shell_word(word: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "/._-+:@%,=".contains(char);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Stops the server on SIGTERM and SIGINT.
fn stop_on_signal(close: watch::Sender<bool>) -> Result<()> {
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        signals.first().await;
        close.send_replace(true);
    });
    Ok(())
}
