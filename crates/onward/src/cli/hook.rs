//! `onward hook`: one event of an agent, from standard input to standard output.
//!
//! An agent waits for every hook, and reads some of their failures as a veto. So whatever is wrong
//! here, be it the arguments, the configuration, the input, the database or this program, the agent
//! goes on: exit code 0, nothing on standard output, one line on standard error. A second thread waits
//! so long and no longer, and then ends it all. The work itself is done here, from the first to the last:
//! on a busy machine every thread that is handed something waits for a processor.
//!
//! Closing an SQLite file copies its log back, which takes longer than all the rest, so the file is
//! left to the system; but whoever opens it next reads the log, unless a server holds the file open. So
//! the log is copied back when the agent has answered, which nobody waits for. In the middle of a turn a
//! process of its own does it, which nobody waits for either, once the log has grown long; should that
//! come to nothing, it is done here where reading the log takes longer.

use std::cell::RefCell;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use onward_engine::Address;
use serde_json::Value;

use super::Context;
use super::database::Database;
use crate::config::{Config, Flags};
use crate::exit::Exit;
use crate::hooks::{Agent, What, act};
use crate::output::{Output, tell, words};

/// Nothing here takes this long unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the log may be in the middle of a turn: some forty calls.
const LOG: u64 = 2 << 20;
/// How long it may become until it is copied back while the agent waits.
const LONGEST_LOG: u64 = 8 << 20;
/// How long it may be when a turn is over.
const LOG_OF_TURN: u64 = 1 << 18;
/// No agent says more at once.
const LONGEST: u64 = 64 << 20;

/// Take one event of an agent's hook from standard input, and answer it
///
/// `onward install AGENT` sets this up. Whatever goes wrong, the agent is not kept from going on: the
/// exit code is always 0.
#[derive(Args)]
pub(crate) struct Hook {
    /// Which agent
    #[arg(value_name = "AGENT")]
    agent: Agent,
}

/// What came of it: what to print, and what is worth a line on standard error.
type Said = (Option<String>, Option<String>);

pub(super) fn run(args: &Hook, flags: &Flags, output: Output) -> Exit {
    // A panic is told in one line like everything else.
    std::panic::set_hook(Box::new(|_| {}));
    let said = in_time(
        PATIENCE,
        || work(args.agent, flags, output),
        || {
            complain("it takes too long");
            std::process::exit(0);
        },
    );
    match said {
        // The process ends any moment.
        None => loop {
            std::thread::park();
        },
        Some(Ok((reply, note))) => {
            if let Some(reply) = reply {
                // An agent that is gone reads nothing.
                output.print(&format!("{reply}\n")).ok();
            }
            if let Some(note) = note {
                complain(&note);
            }
        }
        Some(Err(why)) => complain(&why),
    }
    Exit::Done
}

/// Does the work, and has somebody give up where it takes too long: then there is nothing left to say.
fn in_time(
    patience: Duration,
    work: impl FnOnce() -> Result<Said, String>,
    give_up: impl FnOnce() + Send + 'static,
) -> Option<Result<Said, String>> {
    let spoken = Arc::new(AtomicBool::new(false));
    let watched = Arc::clone(&spoken);
    let watch = std::thread::Builder::new().spawn(move || {
        std::thread::sleep(patience);
        if !watched.swap(true, Ordering::SeqCst) {
            give_up();
        }
    });
    if watch.is_err() {
        return Some(Err("the system starts no more threads".to_owned()));
    }
    // Nothing of what the work left half done is looked at again.
    let said = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("it broke; this is a fault of `onward`".to_owned()));
    let is_late = spoken.swap(true, Ordering::SeqCst);
    (!is_late).then_some(said)
}

/// Tells what is wrong, in one line, whatever it holds.
pub(super) fn complain(why: &str) {
    tell(&format!(
        "onward hook: {}; the agent goes on without it\n",
        words::line(why)
    ));
}

fn work(agent: Agent, flags: &Flags, output: Output) -> Result<Said, String> {
    let mut input = Vec::new();
    let read = std::io::stdin().take(LONGEST).read_to_end(&mut input);
    read.map_err(|why| format!("standard input cannot be read: {why}"))?;
    let payload: Value = serde_json::from_slice(&input)
        .map_err(|why| format!("standard input is no JSON: {why}"))?;
    if !payload.is_object() {
        return Err("standard input is no JSON object".to_owned());
    }
    let Some(event) = agent.read(&payload) else {
        return Ok((None, None));
    };
    if event.heard.session.is_empty() {
        return Err(format!("`{}` names no session", event.name));
    }
    let config = Config::read(flags).map_err(|failure| failure.message)?;
    let control = config.loop_control.control();
    let cx = Context {
        output,
        config,
        opened: RefCell::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| why.to_string())?;
    runtime.block_on(async {
        let database = Database::open_in_place(&cx)
            .await
            .map_err(|failure| failure.message)?;
        let Database { engine, caller, .. } = database;
        let answer = act(agent, &event, &engine, &caller, control).await;
        match log(&cx.config.database.value) {
            Some(log) if log > longest(&event.what) => engine.close().await,
            Some(log) => {
                // The system closes the file.
                std::mem::forget(engine);
                if log > LOG {
                    copy_back(&cx.config.database.value);
                }
            }
            None => std::mem::forget(engine),
        }
        let answer = answer.map_err(|error| error.to_string())?;
        Ok((agent.write(&event, &answer.reply), answer.note))
    })
}

/// How long a file's log may be before it is copied back here.
fn longest(what: &What) -> u64 {
    match what {
        What::Answered | What::SessionEnded => LOG_OF_TURN,
        What::SessionStarted
        | What::Prompted
        | What::ToldOfTask { .. }
        | What::AboutToAsk
        | What::AboutToCall { .. }
        | What::Asked { .. }
        | What::Stepped { .. } => LONGEST_LOG,
    }
}

/// How long a file's log is, where it has one.
fn log(address: &Address) -> Option<u64> {
    let Address::File(path) = address else {
        return None;
    };
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).ok().map(|about| about.len())
}

/// Has the log copied back by a process that opens the file, closes it again, and is not waited for.
/// Where it cannot be started, or somebody else holds the file just then, the next hook tries again.
fn copy_back(address: &Address) {
    let (Address::File(path), Ok(onward)) = (address, std::env::current_exe()) else {
        return;
    };
    let started = Command::new(onward)
        .arg("migrate")
        .arg("--database")
        .arg(path)
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
    fn work_that_panics_is_told_of_in_words() {
        let said = in_time(Duration::from_secs(60), || panic!("on purpose"), || {});
        let broke = "it broke; this is a fault of `onward`".to_owned();
        assert_eq!(said, Some(Err(broke)));
    }

    #[test]
    fn work_that_takes_too_long_is_given_up_and_says_nothing() {
        let (gives_up, given_up) = channel();
        let work = || {
            given_up.recv().unwrap();
            Ok((Some("{}".to_owned()), None))
        };
        let said = in_time(Duration::from_millis(1), work, move || {
            gives_up.send(()).unwrap();
        });
        assert_eq!(said, None);
    }

    #[test]
    fn work_that_is_done_is_answered_and_not_given_up() {
        let (gives_up, given_up) = channel();
        let work = || Ok((Some("{}".to_owned()), None));
        let said = in_time(Duration::from_millis(100), work, move || {
            gives_up.send(()).unwrap();
        });
        assert_eq!(said, Some(Ok((Some("{}".to_owned()), None))));
        // Whoever watched has nothing to say, and goes.
        assert_eq!(given_up.recv(), Err(RecvError));
    }
}
