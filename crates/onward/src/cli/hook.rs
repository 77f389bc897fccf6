//! `onward hook`: one event of an agent, from standard input to standard output.
//!
//! An agent waits for every hook, and reads some of their failures as a veto. So whatever is wrong
//! here, be it the arguments, the configuration, the input, the database or this program, the agent
//! goes on: exit code 0, nothing on standard output, one line on standard error. The work is done in a
//! thread of its own and waited for so long and no longer.
//!
//! Closing an SQLite file copies its log back, which takes longer than all the rest, so the file is
//! left to the system; but whoever opens it next reads the log, unless a server holds the file open. So
//! the log is copied back when the agent has answered, which nobody waits for, and in the middle of a
//! turn only where it has grown so long that reading it takes longer.

use std::cell::RefCell;
use std::io::Read;
use std::sync::mpsc::{RecvTimeoutError, channel};
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
/// How long the log may be in the middle of a turn: some hundred calls.
const LOG: u64 = 4 << 20;
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
    let (agent, flags) = (args.agent, flags.clone());
    match in_time(PATIENCE, move || work(agent, &flags, output)) {
        Ok((reply, note)) => {
            if let Some(reply) = reply {
                // An agent that is gone reads nothing.
                output.print(&format!("{reply}\n")).ok();
            }
            if let Some(note) = note {
                complain(&note);
            }
        }
        Err(why) => complain(&why),
    }
    Exit::Done
}

/// Does the work in a thread of its own, and waits for it so long and no longer.
fn in_time(
    patience: Duration,
    work: impl FnOnce() -> Result<Said, String> + Send + 'static,
) -> Result<Said, String> {
    let (says, heard) = channel();
    let thread = std::thread::Builder::new().spawn(move || {
        // Whoever waits may have given up.
        says.send(work()).ok();
    });
    let said = match thread {
        Ok(_) => heard.recv_timeout(patience),
        Err(_) => Err(RecvTimeoutError::Disconnected),
    };
    said.unwrap_or_else(|why| {
        Err(match why {
            RecvTimeoutError::Timeout => "it takes too long".to_owned(),
            RecvTimeoutError::Disconnected => "it broke; this is a fault of `onward`".to_owned(),
        })
    })
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
        let database = Database::open(&cx)
            .await
            .map_err(|failure| failure.message)?;
        let Database { engine, caller, .. } = database;
        let answer = act(agent, &event, &engine, &caller, control).await;
        let limit = match event.what {
            What::Answered | What::SessionEnded => LOG_OF_TURN,
            What::SessionStarted
            | What::Prompted
            | What::ToldOfTask { .. }
            | What::AboutToAsk
            | What::AboutToCall { .. }
            | What::Asked { .. }
            | What::Stepped { .. } => LOG,
        };
        match log_is_longer(&cx.config.database.value, limit) {
            true => engine.close().await,
            // The system closes the file.
            false => std::mem::forget(engine),
        }
        let answer = answer.map_err(|error| error.to_string())?;
        Ok((agent.write(&event, &answer.reply), answer.note))
    })
}

/// Whether a file's log is longer than this.
fn log_is_longer(address: &Address, limit: u64) -> bool {
    let Address::File(path) = address else {
        return false;
    };
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|about| about.len() > limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_panics_is_told_of_in_words() {
        let said = in_time(Duration::from_secs(60), || panic!("on purpose"));
        assert_eq!(
            said,
            Err("it broke; this is a fault of `onward`".to_owned())
        );
    }

    #[test]
    fn work_that_never_ends_is_not_waited_for() {
        let (ends, never) = channel::<()>();
        let said = in_time(Duration::from_millis(1), move || {
            // It ends with the test: nobody sends anything.
            never.recv().ok();
            Ok((None, None))
        });
        assert_eq!(said, Err("it takes too long".to_owned()));
        drop(ends);
    }

    #[test]
    fn work_that_is_done_is_answered() {
        let said = in_time(Duration::from_secs(60), || {
            Ok((Some("{}".to_owned()), None))
        });
        assert_eq!(said, Ok((Some("{}".to_owned()), None)));
    }
}
