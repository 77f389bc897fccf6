//! The command line: parsing, dispatch and usage errors.
//!
//! Data goes to standard output, everything else to standard error. Invalid arguments print
//! `error:` and `hint:` and exit with [`Exit::Usage`]. Without arguments, the command is `status`,
//! or a welcome if there is no database.
//!
//! Each command has a file of its name in `cli/`. Commands that need a database open it with
//! `cli/database.rs`, on a single-threaded runtime (`serve` and `proxy`: multi-threaded). `lookup`
//! finds plans, steps and reviews, `help` has the groups and examples.

mod allocator;
mod backup;
mod completions;
mod config;
mod database;
mod demo;
mod doctor;
mod export;
mod forget;
mod help;
mod hook;
mod import;
mod install;
mod instructions;
mod lookup;
mod man;
mod mcp;
mod migrate;
mod move_database;
mod plan;
mod plugins;
mod prime;
mod proxy;
mod reindex;
mod restore;
mod review;
mod search;
mod serve;
mod session;
mod shutdown;
mod signals;
mod status;
mod step;
mod suggestion;
mod temporary;
mod tenant;
mod token;
mod transcript;
mod trust;
mod watch;

use std::cell::RefCell;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use onward_engine::Engine;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::config::{Config, Flags};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, format, print_error, print_stderr};
use crate::tools::in_flight;
use crate::web::NewMcpEndpoint;
use crate::wire::error::ErrorBody;
use temporary::TempDir;

/// How long to wait for running tool calls before the database is closed.
const CALLS_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for reads on other threads at the end of the process.
const READS_TIMEOUT: Duration = Duration::from_secs(1);
/// The message for a database without plans.
const NO_PLANS: &str = "no plans yet; connect an agent with `onward install claude-code`";
/// The hint after the operating system denied a resource.
const CHECK_LIMITS: &str = "check thread and file limits (`ulimit -a`)";

/// Durable plans for AI agents, and a watchdog for stuck work.
///
/// Agents store plans here and work through them step by step. Use this command to check progress,
/// answer questions and release stuck steps.
#[derive(Parser)]
#[command(
    version = concat!(
        env!("CARGO_PKG_VERSION"),
        " (",
        env!("ONWARD_COMMIT"),
        ", ",
        env!("ONWARD_BUILD"),
        ")"
    ),
    after_long_help = "Ids may be shortened to a unique prefix. A plan is also found by words of \
                  its name, a step as PLAN/ORDER, such as `5fa2/6`.\n\
                  Data goes to standard output, messages to standard error.\n\
                  Exit codes: 0 done, 1 failed, 2 invalid usage, 3 not found, 4 rejected by a rule, \
                  5 database unavailable, 10 a check found problems."
)]
pub(crate) struct Cli {
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
    /// Create, list, inspect and change plans
    #[command(subcommand)]
    Plan(plan::Command),
    /// Show, edit, release and fail single steps
    #[command(subcommand)]
    Step(step::Command),
    /// List, read and decide the reviews that agents requested
    #[command(subcommand)]
    Review(review::Command),
    /// List and inspect agent sessions: turns, calls and loops
    #[command(subcommand)]
    Session(session::Command),
    Install(install::Install),
    Uninstall(install::Uninstall),
    Hook(hook::Hook),
    Prime(prime::Prime),
    Instructions(instructions::Instructions),
    Proxy(proxy::Proxy),
    Search(search::Search),
    Export(export::Export),
    Import(import::Import),
    /// Analyse and repair saved agent sessions
    #[command(subcommand)]
    Transcript(transcript::Command),
    /// Create, list and revoke access tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Create and list tenants: isolated organisations in one database
    #[command(subcommand)]
    Tenant(tenant::Command),
    Config(config::ConfigCommand),
    Trust(trust::Trust),
    Doctor(doctor::Doctor),
    Migrate(migrate::Migrate),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Move(move_database::Move),
    Forget(forget::Forget),
    Reindex(reindex::Reindex),
    Completions(completions::Completions),
    Man(man::Man),
    Plugins(plugins::Plugins),
}

/// The input of a command besides its arguments.
struct Context {
    output: Output,
    config: Config,
    /// The open database, closed after the command.
    opened: RefCell<Option<Engine>>,
    /// The directory of an empty database, removed after the command.
    empty: RefCell<Option<TempDir>>,
}

/// Runs the command of the process's arguments.
pub(crate) fn run(mcp_endpoint: NewMcpEndpoint) -> Exit {
    // Only errors and help need the texts of the complete parser, which take milliseconds to build.
    let parsed = Cli::command().try_get_matches();
    let parsed = parsed.or_else(|_| help::parser().try_get_matches());
    match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => {
            let json = cli.output.json;
            dispatch(cli, mcp_endpoint).unwrap_or_else(|failure| {
                print_failure(&failure, json);
                failure.exit
            })
        }
        // Agents interpret exit code 2 of a hook as a veto.
        Err(error) if error.use_stderr() && is_hook_command() => {
            hook::print_error(&message(&error));
            Exit::Done
        }
        // clap returns help and version as errors, too.
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            print_stderr(&error.render().to_string());
            Exit::Usage
        }
        Err(error) if error.use_stderr() => {
            // The parsed flags are not available here.
            let json = std::env::args_os().any(|argument| argument == "--json");
            print_failure(&Failure::usage(message(&error), hint(&error)), json);
            Exit::Usage
        }
        Err(help_or_version) => match help_or_version.print() {
            Ok(()) => Exit::Done,
            Err(_) => Exit::Failed,
        },
    }
}

/// Prints the error on standard error; as JSON, it is one object in the format of the API.
fn print_failure(failure: &Failure, as_json: bool) {
    if as_json {
        let body = format::json(&ErrorBody::from_failure(failure));
        print_stderr(&format!("{body}\n"));
    } else {
        print_error(
            &format::sanitize(&failure.message),
            &format::sanitize(&failure.hint),
        );
    }
}

fn dispatch(cli: Cli, mcp_endpoint: NewMcpEndpoint) -> Result {
    let Cli {
        mut flags,
        output,
        command,
    } = cli;
    if let Some(Command::Serve(args)) = &command {
        allocator::apply_settings();
        flags.bind.clone_from(&args.bind);
    }
    let read = || {
        let config = Config::read(&flags)?;
        for warning in &config.settings.warnings {
            output.warn(warning);
        }
        Ok(Context {
            output,
            config,
            opened: RefCell::default(),
            empty: RefCell::default(),
        })
    };
    let Some(command) = command else {
        return run_async(read(), async |cx| status::run_or_welcome(cx).await);
    };
    match command {
        Command::Transcript(command) => transcript::run(&command, output),
        Command::Completions(shell) => completions::run(&shell, output),
        Command::Man(args) => man::run(&args, output),
        Command::Plugins(args) => plugins::run(&args, output),
        Command::Hook(args) => Ok(hook::run(&args, &flags, output)),
        Command::Install(args) => install::run(&args, &flags, output),
        Command::Uninstall(args) => install::run(&args.into(), &flags, output),
        Command::Instructions(_) => instructions::run(output),
        Command::Demo(args) => run_demo(&args, output),
        Command::Config(_) => config::run(&read()?),
        Command::Trust(args) => trust::run(&args, output),
        Command::Mcp(args) => run_async(read(), async |cx| mcp::run(&args, cx).await),
        Command::Serve(args) => run_on(Builder::new_multi_thread(), read()?, async |cx| {
            serve::run(&args, cx, mcp_endpoint).await
        }),
        Command::Proxy(args) => run_on(Builder::new_multi_thread(), read()?, async |cx| {
            proxy::run(&args, cx).await
        }),
        Command::Prime(_) => run_async(read(), async |cx| prime::run(cx).await),
        Command::Status(_) => run_async(read(), async |cx| status::run(cx).await),
        Command::Watch(_) => run_async(read(), async |cx| watch::run(cx).await),
        Command::Plan(command) => run_async(read(), async |cx| plan::run(&command, cx).await),
        Command::Step(command) => run_async(read(), async |cx| step::run(&command, cx).await),
        Command::Review(command) => run_async(read(), async |cx| review::run(&command, cx).await),
        Command::Session(command) => run_async(read(), async |cx| session::run(&command, cx).await),
        Command::Search(args) => run_async(read(), async |cx| search::run(&args, cx).await),
        Command::Export(args) => run_async(read(), async |cx| export::run(&args, cx).await),
        Command::Import(args) => run_async(read(), async |cx| import::run(&args, cx).await),
        Command::Token(command) => run_async(read(), async |cx| token::run(&command, cx).await),
        Command::Tenant(command) => run_async(read(), async |cx| tenant::run(&command, cx).await),
        Command::Doctor(_) => run_async(read(), async |cx| doctor::run(cx).await),
        Command::Migrate(args) => run_async(read(), async |cx| migrate::run(&args, cx).await),
        Command::Backup(args) => run_async(read(), async |cx| backup::run(&args, cx).await),
        Command::Restore(args) => run_async(read(), async |cx| restore::run(&args, cx).await),
        Command::Move(args) => run_async(read(), async |cx| move_database::run(&args, cx).await),
        Command::Reindex(_) => run_async(read(), async |cx| reindex::run(cx).await),
        Command::Forget(_) => run_async(read(), async |cx| forget::run(cx).await),
    }
}

/// Runs a command on the current thread.
fn run_async(cx: Result<Context>, command: impl AsyncFnOnce(&Context) -> Result) -> Result {
    run_on(Builder::new_current_thread(), cx?, command)
}

/// Runs the demo, which reads no configuration and uses a temporary database.
fn run_demo(args: &demo::Demo, output: Output) -> Result {
    build_runtime(Builder::new_current_thread())?.block_on(demo::run(args, output))
}

fn build_runtime(mut runtime: Builder) -> Result<Runtime> {
    runtime.enable_all().build().map_err(|error| {
        Failure::failed(
            format!("cannot start the async runtime: {error}"),
            CHECK_LIMITS,
        )
    })
}

/// Runs a command, then closes the database that it opened, even after an error.
fn run_on(runtime: Builder, cx: Context, command: impl AsyncFnOnce(&Context) -> Result) -> Result {
    let runtime = build_runtime(runtime)?;
    let result = runtime.block_on(async {
        let result = command(&cx).await;
        let opened = cx.opened.take();
        if let Some(engine) = opened {
            drop(timeout(CALLS_TIMEOUT, in_flight::wait_until_idle()).await);
            engine.close().await;
        }
        result
    });
    // A read that still runs on another thread has no caller.
    runtime.shutdown_timeout(READS_TIMEOUT);
    result
}

/// Whether the command is `hook`, even if the other arguments are invalid.
fn is_hook_command() -> bool {
    let takes_value =
        |flag: &str| ["--database", "--config", "--tenant", "--color"].contains(&flag);
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some(flag) if takes_value(flag) => drop(arguments.next()),
            Some(flag) if flag.starts_with('-') => {}
            command => return command == Some("hook"),
        }
    }
    false
}

/// The error in one line. The hint replaces the usage and the tips that clap adds.
fn message(error: &clap::Error) -> String {
    if let Some(name) = unknown_command(error) {
        return format!("unknown command `{name}`");
    }
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim_end();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

/// The name of an unknown command.
fn unknown_command(error: &clap::Error) -> Option<&str> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    error
        .get(ContextKind::InvalidSubcommand)
        .and_then(best_suggestion)
}

/// The best suggestion, or the command for help.
fn hint(error: &clap::Error) -> String {
    let (command, path) = matched_command();
    if let Some(name) = unknown_command(error) {
        return match suggestion::suggest(&command, name) {
            Some(suggestion) => format!("did you mean `{suggestion}`?"),
            None => format!("see `{path} --help`"),
        };
    }
    let argument = error.get(ContextKind::SuggestedArg);
    let suggestion = argument.and_then(best_suggestion);
    match suggestion.or_else(|| nearest_value(error)) {
        Some(suggestion) => format!("did you mean `{suggestion}`?"),
        None => format!("see `{path} --help`"),
    }
}

/// The valid value that an invalid one probably means.
fn nearest_value(error: &clap::Error) -> Option<&str> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidValue) else {
        return None;
    };
    let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue) else {
        return None;
    };
    let valid: Vec<&str> = valid.iter().map(String::as_str).collect();
    suggestion::nearest(typed, &valid)
}

/// The last known subcommand of the arguments, and the arguments up to it.
fn matched_command() -> (clap::Command, String) {
    let mut command = Cli::command();
    let mut path = "onward".to_owned();
    for argument in std::env::args().skip(1) {
        if let Some(subcommand) = command.find_subcommand(&argument).cloned() {
            path = format!("{path} {argument}");
            command = subcommand;
        }
    }
    (command, path)
}

/// The last of clap's suggestions, which are sorted by ascending similarity.
fn best_suggestion(context: &ContextValue) -> Option<&str> {
    if let ContextValue::String(text) = context {
        Some(text)
    } else if let ContextValue::Strings(texts) = context {
        texts.last().map(String::as_str)
    } else {
        None
    }
}
