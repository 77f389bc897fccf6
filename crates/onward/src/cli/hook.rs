//! `onward hook`: handles one hook event of an agent, from standard input to standard output.
//!
//! The agent waits for every hook, and interprets some failures as a veto. On any error (arguments,
//! configuration, input, database, panic) the exit code is 0, standard output is empty, and
//! standard error has one line. A watchdog thread enforces a deadline. The work itself stays on the
//! main thread, because every switch to another thread adds scheduling latency on a busy machine.
//!
//! Closing a database file checkpoints its log, which takes longer than the rest of a hook, so the
//! hook exits without closing. Unless a server keeps the database open, the next process then has
//! to read the log. The hook therefore checkpoints at the end of a turn, when the agent does not
//! wait. During a turn, a detached process checkpoints a log above
//! [`CHECKPOINT_IN_BACKGROUND`]; if that fails, the hook does it above [`CHECKPOINT_IN_TURN`].

use std::cell::RefCell;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use onward_engine::{Address, machine};
use serde_json::Value;

use super::Context;
use super::database::Database;
use crate::config::{Config, Flags};
use crate::exit::Exit;
use crate::hooks::{self, Agent, EventKind};
use crate::output::{Output, format, print_stderr};
use crate::{install, json_size, project};

const DEADLINE: Duration = Duration::from_secs(3);
/// The log size, about forty calls, above which a detached process checkpoints during a turn.
const CHECKPOINT_IN_BACKGROUND: u64 = 2 << 20;
/// The log size above which the hook checkpoints during a turn.
const CHECKPOINT_IN_TURN: u64 = 8 << 20;
/// The log size above which the hook checkpoints at the end of a turn.
const CHECKPOINT_AFTER_TURN: u64 = 1 << 18;
const MAX_INPUT: u64 = 64 << 20;
/// Estimated memory of a parsed payload.
const MAX_VALUE: usize = 128 << 20;
const PANICKED: &str = "internal error; this is a bug in `onward`";

/// Handle one hook event from standard input (set up by `onward install`)
///
/// Errors never block the agent: the exit code is always 0.
#[derive(Args)]
pub(crate) struct Hook {
    /// Agent that sends the event
    #[arg(value_name = "AGENT")]
    agent: Agent,
}

/// The response for standard output, and a message for standard error.
#[derive(Debug, PartialEq, Eq)]
struct HookOutput {
    response: Option<String>,
    message: Option<String>,
}

pub(super) fn run(args: &Hook, flags: &Flags, output: Output) -> Exit {
    // A panic is reported in one line, like every other error.
    std::panic::set_hook(Box::new(|_| {}));
    let result = run_with_deadline(
        DEADLINE,
        || handle(args.agent, flags, output),
        || {
            print_error("timed out");
            std::process::exit(0);
        },
    );
    match result {
        // The watchdog is about to exit the process.
        None => loop {
            std::thread::park();
        },
        Some(Ok(HookOutput { response, message })) => {
            if let Some(response) = response {
                // The agent may have exited.
                output.print(&format!("{response}\n")).ok();
            }
            if let Some(message) = message {
                print_line(&message);
            }
        }
        Some(Err(error)) => print_error(&error),
    }
    Exit::Done
}

/// Runs the work. After the deadline, a watchdog thread calls `on_timeout`, and the result is
/// `None`.
fn run_with_deadline(
    deadline: Duration,
    work: impl FnOnce() -> Result<HookOutput, String>,
    on_timeout: impl FnOnce() + Send + 'static,
) -> Option<Result<HookOutput, String>> {
    let finished = Arc::new(AtomicBool::new(false));
    let watched = Arc::clone(&finished);
    let watchdog = std::thread::Builder::new().spawn(move || {
        std::thread::sleep(deadline);
        if !watched.swap(true, Ordering::SeqCst) {
            on_timeout();
        }
    });
    if watchdog.is_err() {
        return Some(Err("cannot start a thread".to_owned()));
    }
    // After a panic, nothing that the work used is read again.
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(PANICKED.to_owned()));
    let is_late = finished.swap(true, Ordering::SeqCst);
    (!is_late).then_some(result)
}

/// Prints an error as one line on standard error.
pub(super) fn print_error(error: &str) {
    print_line(&format!("{error}; the agent continues without the hook"));
}

fn print_line(text: &str) {
    print_stderr(&format!("onward hook: {}\n", format::sanitize_line(text)));
}

fn handle(agent: Agent, flags: &Flags, output: Output) -> Result<HookOutput, String> {
    let mut input = Vec::new();
    let read = std::io::stdin().take(MAX_INPUT).read_to_end(&mut input);
    read.map_err(|error| format!("cannot read standard input: {error}"))?;
    if json_size::estimate(&input) > MAX_VALUE {
        return Err("standard input contains too many JSON values".to_owned());
    }
    let payload: Value = serde_json::from_slice(&input)
        .map_err(|error| format!("standard input is not JSON: {error}"))?;
    drop(input);
    if !payload.is_object() {
        return Err("standard input is not a JSON object".to_owned());
    }
    let Some(mut event) = agent.parse(&payload) else {
        return Ok(HookOutput {
            response: None,
            message: None,
        });
    };
    if event.source.session.is_empty() {
        return Err(format!("`{}` has no session id", event.name));
    }
    // An agent may run its hooks in another directory than the project's.
    let directory = event.source.directory.as_deref().map(Path::new);
    let directory = directory.filter(|directory| directory.is_absolute());
    let project = directory.map(|directory| project::key(directory).display().to_string());
    let with_advice = !install::has_skill(agent, directory);
    let config = Config::read_in(flags, directory).map_err(|failure| failure.message)?;
    event.source.project = project;
    // The agent runs this hook.
    event.source.process = machine::launcher();
    // One line at most: a message about the event takes precedence.
    let warnings = &config.settings.warnings;
    let warnings = (!warnings.is_empty()).then(|| format!("warning: {}", warnings.join("; ")));
    let control = config.loop_control.control();
    if !config.sessions.keep_prompts {
        event.source.prompt = None;
    }
    let file = match &config.database {
        Address::File(path) => Some(path.clone()),
        Address::Server(_) => None,
    };
    let start = || hooks::start_fingerprint(&event, control, file.as_deref());
    // Git runs while the database is opened. The fingerprint ignores the database, which must exist
    // to be recognized under each of its paths.
    let fingerprint = file.as_deref().is_none_or(Path::exists).then(start);
    let cx = Context {
        output,
        config,
        opened: RefCell::default(),
        empty: RefCell::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let database = Database::open_in_place(&cx)
            .await
            .map_err(|failure| failure.message)?;
        let Database { engine, caller, .. } = database;
        let timeouts = cx.config.calls.timeouts_with_environment();
        let engine = engine.with_call_timeouts(timeouts);
        let settings = hooks::Settings {
            control,
            capture: cx.config.capture.policy(),
            with_advice,
        };
        let fingerprint = fingerprint.unwrap_or_else(start);
        let handled = hooks::handle(agent, &event, &engine, &caller, fingerprint, &settings).await;
        if let Some(path) = hooks::usage::transcript(agent, &event.kind, &payload) {
            hooks::usage::count(&engine, &caller, &event.source.session, &path).await;
        }
        let pending = engine.checkpoint_size();
        if pending > checkpoint_limit(&event.kind) {
            // If it fails, the next hook tries again.
            drop(engine.checkpoint());
        } else if pending > CHECKPOINT_IN_BACKGROUND {
            checkpoint_in_background(&cx.config.database);
        }
        // The operating system closes the connection.
        std::mem::forget(engine);
        let handled = handled.map_err(|error| error.to_string())?;
        Ok(HookOutput {
            response: agent.render(&event, &handled.reply),
            message: handled.note.or(warnings),
        })
    })
}

/// The log size above which the hook checkpoints.
fn checkpoint_limit(kind: &EventKind) -> u64 {
    match kind {
        EventKind::TurnEnded { .. } | EventKind::SessionEnded => CHECKPOINT_AFTER_TURN,
        EventKind::SessionStarted { .. }
        | EventKind::Compacted
        | EventKind::TurnStarted
        | EventKind::TaskMessage { .. }
        | EventKind::BeforeModelRequest
        | EventKind::BeforeToolCall { .. }
        | EventKind::Permission { .. }
        | EventKind::ToolResults { .. } => CHECKPOINT_IN_TURN,
    }
}

/// Starts a detached `onward migrate`, which also checkpoints. If it does not start, or another
/// process uses the log, the next hook tries again.
fn checkpoint_in_background(database: &Address) {
    let Ok(onward) = std::env::current_exe() else {
        return;
    };
    let started = Command::new(onward)
        .arg("migrate")
        .arg("--database")
        .arg(database.as_os_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    drop(started);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvError, channel};

    use super::*;

    #[test]
    fn reports_a_panic_as_an_error() {
        let work = || panic!("on purpose");
        let result = run_with_deadline(Duration::from_secs(60), work, || {});
        assert_eq!(result, Some(Err(PANICKED.to_owned())));
    }

    #[test]
    fn discards_a_result_after_the_deadline() {
        let (time_out, timed_out) = channel();
        let work = || {
            timed_out.recv().unwrap();
            Ok(response())
        };
        let result = run_with_deadline(Duration::from_millis(1), work, move || {
            time_out.send(()).unwrap();
        });
        assert_eq!(result, None);
    }

    #[test]
    fn returns_a_result_before_the_deadline() {
        let (time_out, timed_out) = channel();
        let work = || Ok(response());
        let result = run_with_deadline(Duration::from_millis(100), work, move || {
            time_out.send(()).unwrap();
        });
        assert_eq!(result, Some(Ok(response())));
        // The watchdog exits without calling `on_timeout`.
        assert_eq!(timed_out.recv(), Err(RecvError));
    }

    fn response() -> HookOutput {
        HookOutput {
            response: Some("{}".to_owned()),
            message: None,
        }
    }
}
