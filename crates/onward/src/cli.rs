//! The command line: what can be asked, and the answer to what cannot be understood.
//!
//! Data goes to standard output, everything else to standard error. A command line that makes
//! no sense is answered with `error:`, then `hint:`, and ends as [`Exit::Usage`]; nothing else
//! is done then. Without any argument the help is shown, on standard error, for nobody asked
//! for data.
//!
//! Each command has its own file under `cli/`, named as the command. Those that need a database open
//! it through `cli/database.rs`, on a runtime of one thread (`serve` and `proxy` on several); the others start
//! none.

mod backup;
mod completions;
mod config;
mod database;
mod demo;
mod doctor;
mod export;
mod forget;
mod hook;
mod import;
mod install;
mod mcp;
mod migrate;
mod plan;
mod proxy;
mod reindex;
mod review;
mod search;
mod serve;
mod session;
mod status;
mod tenant;
mod token;
mod transcript;
mod watch;

use std::cell::RefCell;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use onward_engine::Engine;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::config::{Config, Flags};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, tell};
use crate::tools::running;

/// How long calls that were begun may take once nobody asks any more.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// Keeps long AI-agent work moving: durable plans, and a watch for what has stopped.
///
/// An agent makes a plan of steps, takes them on one by one and hands in what came out. Here you see
/// where the plans stand, answer what agents ask, and put back on its way what has stopped.
#[derive(Parser)]
#[command(
    version,
    after_help = "Plans and tokens may be named by the beginning of their id.\n\
                  Data goes to standard output, everything else to standard error.\n\
                  Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused by a rule, \
                  5 database unavailable, 10 a check found something."
)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Mcp(mcp::Mcp),
    Serve(serve::Serve),
    Demo(demo::Demo),
    Status(status::Status),
    Watch(watch::Watch),
    /// Plans: where they stand, what happened, what comes next
    #[command(subcommand)]
    Plan(plan::Command),
    /// Reviews: what agents ask, and your decision
    #[command(subcommand)]
    Review(review::Command),
    /// Agents' sessions: their turns, and which of them got stuck
    #[command(subcommand)]
    Session(session::Command),
    Install(install::Install),
    Hook(hook::Hook),
    Proxy(proxy::Proxy),
    Search(search::Search),
    Export(export::Export),
    Import(import::Import),
    /// Saved sessions of agents: look back at what happened, put right what is broken
    #[command(subcommand)]
    Transcript(transcript::Command),
    /// Tokens: what programs sign in with
    #[command(subcommand)]
    Token(token::Command),
    /// Tenants: organisations that share a database and see nothing of each other
    #[command(subcommand)]
    Tenant(tenant::Command),
    Config(config::Show),
    Doctor(doctor::Doctor),
    Migrate(migrate::Migrate),
    Backup(backup::Backup),
    Forget(forget::Forget),
    Reindex(reindex::Reindex),
    Completions(completions::Completions),
}

/// What a command is given beside its own arguments.
struct Context {
    output: Output,
    config: Config,
    /// The database that was opened, to be closed in the end.
    opened: RefCell<Option<Engine>>,
}

/// Reads the process's arguments, does what they ask, and says how it ended.
pub(crate) fn run() -> Exit {
    match Cli::try_parse() {
        Ok(cli) => {
            let json = cli.output.json;
            dispatch(cli).unwrap_or_else(|failure| {
                failure.tell(json);
                failure.exit
            })
        }
        // An agent reads wrong usage as a veto, and must not be stopped by ours.
        Err(error) if error.use_stderr() && asks_for_hook() => {
            hook::complain(&message(&error));
            Exit::Done
        }
        // Help and version arrive as errors too: whatever ends the parsing does.
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            tell(&error.render().to_string());
            Exit::Usage
        }
        Err(error) if error.use_stderr() => {
            // What could not be parsed cannot be asked how it wants to be answered.
            let json = std::env::args_os().any(|argument| argument == "--json");
            Failure::usage(message(&error), hint(&error)).tell(json);
            Exit::Usage
        }
        Err(help_or_version) => match help_or_version.print() {
            Ok(()) => Exit::Done,
            Err(_) => Exit::Failed,
        },
    }
}

fn dispatch(cli: Cli) -> Result {
    let Cli {
        flags,
        output,
        command,
    } = cli;
    let Some(command) = command else {
        tell(&Cli::command().render_long_help().to_string());
        return Ok(Exit::Usage);
    };
    let read = || {
        Config::read(&flags).map(|config| Context {
            output,
            config,
            opened: RefCell::default(),
        })
    };
    match command {
        Command::Transcript(command) => transcript::run(&command, output),
        Command::Completions(shell) => completions::run(&shell, output),
        Command::Hook(args) => Ok(hook::run(&args, &flags, output)),
        Command::Install(args) => install::run(&args, output),
        Command::Demo(args) => show(&args, output),
        Command::Config(_) => config::run(&read()?),
        Command::Mcp(args) => wait(read(), async |cx| mcp::run(&args, cx).await),
        Command::Serve(args) => {
            let mut cx = read()?;
            args.settle(&mut cx.config)?;
            on(Builder::new_multi_thread(), cx, async |cx| {
                serve::run(&args, cx).await
            })
        }
        Command::Proxy(args) => on(Builder::new_multi_thread(), read()?, async |cx| {
            proxy::run(&args, cx).await
        }),
        Command::Status(_) => wait(read(), async |cx| status::run(cx).await),
        Command::Watch(_) => wait(read(), async |cx| watch::run(cx).await),
        Command::Plan(command) => wait(read(), async |cx| plan::run(&command, cx).await),
        Command::Review(command) => wait(read(), async |cx| review::run(&command, cx).await),
        Command::Session(command) => wait(read(), async |cx| session::run(&command, cx).await),
        Command::Search(args) => wait(read(), async |cx| search::run(&args, cx).await),
        Command::Export(args) => wait(read(), async |cx| export::run(&args, cx).await),
        Command::Import(args) => wait(read(), async |cx| import::run(&args, cx).await),
        Command::Token(command) => wait(read(), async |cx| token::run(&command, cx).await),
        Command::Tenant(command) => wait(read(), async |cx| tenant::run(&command, cx).await),
        Command::Doctor(_) => wait(read(), async |cx| doctor::run(cx).await),
        Command::Migrate(args) => wait(read(), async |cx| migrate::run(&args, cx).await),
        Command::Backup(args) => wait(read(), async |cx| backup::run(&args, cx).await),
        Command::Reindex(_) => wait(read(), async |cx| reindex::run(cx).await),
        Command::Forget(_) => wait(read(), async |cx| forget::run(cx).await),
    }
}

/// Runs what needs the engine, on this thread, and closes what it opened, however it ended.
fn wait(cx: Result<Context>, command: impl AsyncFnOnce(&Context) -> Result) -> Result {
    on(Builder::new_current_thread(), cx?, command)
}

/// Runs the demo, which reads no configuration and opens no database of the person's.
fn show(args: &demo::Demo, output: Output) -> Result {
    started(Builder::new_current_thread())?.block_on(demo::run(args, output))
}

fn started(mut runtime: Builder) -> Result<Runtime> {
    runtime.enable_all().build().map_err(|why| {
        Failure::failed(
            format!("nothing can be run: {why}"),
            "free some resources of the system",
        )
    })
}

/// Runs it on one thread, or, what answers many at once, on as many as there are cores.
fn on(runtime: Builder, cx: Context, command: impl AsyncFnOnce(&Context) -> Result) -> Result {
    started(runtime)?.block_on(async {
        let answer = command(&cx).await;
        let opened = cx.opened.take();
        if let Some(engine) = opened {
            drop(timeout(LAST_CALLS, running::none()).await);
            engine.close().await;
        }
        answer
    })
}

/// Whether the command is `hook`, whatever else the arguments say.
fn asks_for_hook() -> bool {
    let takes_value =
        |flag: &str| ["--database", "--config", "--tenant", "--color"].contains(&flag);
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        match word.to_str() {
            Some(flag) if takes_value(flag) => drop(words.next()),
            Some(flag) if flag.starts_with('-') => {}
            word => return word == Some("hook"),
        }
    }
    false
}

/// What is wrong, in clap's words: its first paragraph. The usage and the tips that follow are
/// the hint's business.
fn message(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim_end();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

/// What to do next: what was probably meant, where clap has an idea.
fn hint(error: &clap::Error) -> String {
    let suggested = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ];
    let meant = suggested
        .iter()
        .find_map(|kind| error.get(*kind))
        .and_then(first);
    match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("run `{} --help` to see what there is", command_meant()),
    }
}

/// The command that was meant, as far as its words make sense.
fn command_meant() -> String {
    let mut command = Cli::command();
    let mut path = "onward".to_owned();
    for word in std::env::args().skip(1) {
        if let Some(verb) = command.find_subcommand(&word).cloned() {
            path = format!("{path} {word}");
            command = verb;
        }
    }
    path
}

fn first(context: &ContextValue) -> Option<&str> {
    if let ContextValue::String(text) = context {
        Some(text)
    } else if let ContextValue::Strings(texts) = context {
        texts.first().map(String::as_str)
    } else {
        None
    }
}
