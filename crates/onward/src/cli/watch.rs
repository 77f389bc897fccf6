//! `onward watch`: live status.
//!
//! On a terminal it is an interactive screen. In a pipe it prints the status after each change,
//! with `--json` as one object per line. Changes by other processes arrive as notifications
//! (PostgreSQL) or as a new data version (SQLite). A step becomes stuck without a change, so the
//! status is also read at an interval.

mod actions;
mod keys;
mod screen;
mod view;

#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use clap::Args;
use onward_engine::{Changed, Engine};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use super::database::{Database, exists};
use super::signals::Signals;
use super::{Context, status};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::stdout_failure;
use keys::{Key, Keys};
use view::{Action, State, View};

/// The interval of checks for changes.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The interval of updates without a change.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);

/// Show the status live
///
/// On a terminal: arrow keys select a plan, Enter shows its steps, `r` releases its stuck steps, `a`
/// approves its review, `o` opens it in the browser, `/` filters, Esc goes back, `q` quits. In a pipe,
/// the status is printed after each change; with `--json`, one object per line.
#[derive(Args)]
pub(crate) struct Watch {}

pub(super) async fn run(cx: &Context) -> Result {
    if !exists(cx) {
        // Nothing can change in the empty database that replaces a missing one.
        return status::run(cx).await;
    }
    let database = Database::open(cx).await?;
    let changes = Changes::new(&database.engine);
    // On the screen, Ctrl-C is a key, not a signal.
    let signals = Signals::with_hangup()?;
    let on_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if on_terminal && !cx.output.json {
        show_screen(cx, &database, changes, signals).await
    } else {
        print_changes(cx, database, changes, signals).await
    }
}

/// Prints the status after each change, until a signal arrives or the reader closes the pipe.
async fn print_changes(
    cx: &Context,
    mut database: Database,
    mut changes: Changes,
    mut signals: Signals,
) -> Result {
    let mut printed = None;
    loop {
        if changes.detected(&database.engine).await? {
            database.now = database.engine.now();
            let overview = status::read(&database).await?;
            let fingerprint = status::fingerprint(&overview, database.now);
            if printed.as_ref() != Some(&fingerprint) {
                let text = if cx.output.json {
                    status::json(&overview, database.now)
                } else {
                    format!("{}\n", status::render(&overview, cx, &database).await?)
                };
                if !try_print(&text)? {
                    return Ok(Exit::Done);
                }
                printed = Some(fingerprint);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
            _ = signals.first() => return Ok(Exit::Done),
        }
    }
}

/// Prints data; returns false if the reader closed the pipe.
fn try_print(text: &str) -> Result<bool> {
    use std::io::Write;
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(stdout_failure(&error)),
    }
}

/// Shows the screen until the user quits or a signal arrives.
async fn show_screen(
    cx: &Context,
    database: &Database,
    mut changes: Changes,
    mut signals: Signals,
) -> Result {
    let mut view = View::read(database).await?;
    let mut state = State::default();
    let coloured = cx.output.is_coloured();
    let mut terminal = Terminal::open()?;
    let mut keys = Keys::start();
    loop {
        terminal.draw(&view, &mut state, coloured)?;
        let key = tokio::select! {
            key = keys.next() => key,
            () = tokio::time::sleep(CHECK_INTERVAL) => Key::None,
            _ = signals.first() => return Ok(Exit::Done),
        };
        match state.press(key, &view) {
            Action::None => {}
            Action::Quit => return Ok(Exit::Done),
            Action::LoadSteps => {
                view.steps = View::read_steps(database, state.opened).await?;
                continue;
            }
            action @ (Action::Release(_) | Action::Approve(_) | Action::Browse(_)) => {
                // A rejected action is reported on the screen, which stays open.
                let done = actions::perform(&action, &view, database, cx).await;
                state.message = Some(done.unwrap_or_else(|failure| failure.message));
                view = View::read(database).await?;
                view.steps = View::read_steps(database, state.opened).await?;
                continue;
            }
        }
        view.now = database.engine.now();
        if changes.detected(&database.engine).await? {
            view = View::read(database).await?;
            view.steps = View::read_steps(database, state.opened).await?;
        }
    }
}

/// The terminal, restored on drop and by the panic hook.
struct Terminal(ratatui::DefaultTerminal);

impl Terminal {
    fn open() -> Result<Self> {
        ratatui::try_init()
            .map(Self)
            .map_err(|error| terminal_failure(&error))
    }

    fn draw(&mut self, view: &View, state: &mut State, coloured: bool) -> Result<()> {
        let drawn = self
            .0
            .draw(|frame| screen::draw(frame, view, state, coloured));
        drawn.map(drop).map_err(|error| terminal_failure(&error))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn terminal_failure(error: &std::io::Error) -> Failure {
    Failure::failed(
        format!("cannot draw on the terminal: {error}"),
        "print the status instead: `onward watch | cat`",
    )
}

/// Detection of changes in the database.
struct Changes {
    notifications: Receiver<Changed>,
    version: Option<i64>,
    refreshed_at: Option<Instant>,
}

impl Changes {
    fn new(engine: &Engine) -> Self {
        Self {
            notifications: engine.subscribe(),
            version: None,
            refreshed_at: None,
        }
    }

    /// Whether to read the status again.
    async fn detected(&mut self, engine: &Engine) -> Result<bool> {
        let mut changed = self
            .refreshed_at
            .is_none_or(|at| at.elapsed() >= REFRESH_INTERVAL);
        while let Ok(_) | Err(TryRecvError::Lagged(_)) = self.notifications.try_recv() {
            changed = true;
        }
        let version = engine.version().await?;
        changed |= version != self.version;
        self.version = version;
        if changed {
            self.refreshed_at = Some(Instant::now());
        }
        Ok(changed)
    }
}
