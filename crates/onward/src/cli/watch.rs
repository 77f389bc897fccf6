//! `onward watch`: `onward status`, live.
//!
//! On a terminal it is a screen that follows what happens, with keys; in a pipe a fresh status per
//! change, with `--json` one object a line. What another process does is heard of (PostgreSQL), or seen
//! by the version of the file (SQLite); that a step fell silent is nobody's change, so it looks from
//! time to time anyway.

mod keys;
mod screen;
mod view;

#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use clap::Args;
use onward_engine::{Changed, Engine};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use super::database::Database;
use super::{Context, status};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use keys::{Key, Keys};
use view::{Next, State, View};

/// How often it looks whether anything changed.
const TICK: Duration = Duration::from_millis(500);
/// How often it looks whatever it heard.
const ANYWAY: Duration = Duration::from_secs(5);

/// Show what is going on, live: `onward status` that follows
///
/// On a terminal: arrows choose a plan, Enter shows its steps, Esc goes back, q ends it. In a pipe a
/// fresh status is printed per change; with `--json`, one object a line.
#[derive(Args)]
pub(crate) struct Watch {}

pub(super) async fn run(cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let changes = Changes::of(&database.engine);
    let ends = Ends::new()?;
    let on_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match on_terminal && !cx.output.json {
        true => follow(cx, &database, changes, ends).await,
        false => print(cx, database, changes, ends).await,
    }
}

/// A fresh status per change, until somebody ends it or nobody reads any more.
async fn print(
    cx: &Context,
    mut database: Database,
    mut changes: Changes,
    mut ends: Ends,
) -> Result {
    let mut shown = None;
    loop {
        if changes.heard(&database.engine).await? {
            database.now = database.engine.now();
            let going = status::look(&database).await?;
            let essence = status::essence(&going, database.now);
            if shown.as_ref() != Some(&essence) {
                let text = match cx.output.json {
                    true => status::json(&going, database.now),
                    false => format!("{}\n", status::screen(&going, cx, database.now)),
                };
                if !printed(&text)? {
                    return Ok(Exit::Done);
                }
                shown = Some(essence);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            () = ends.wait() => return Ok(Exit::Done),
        }
    }
}

/// Prints data; false where nobody reads any more.
fn printed(text: &str) -> Result<bool> {
    use std::io::Write;
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(why) if why.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(why) => Err(Failure::failed(
            format!("standard output cannot be written: {why}"),
            "check where it leads",
        )),
    }
}

/// The screen, until somebody ends it. However it ends, the terminal is as it was.
async fn follow(cx: &Context, database: &Database, mut changes: Changes, mut ends: Ends) -> Result {
    let mut view = View::look(database).await?;
    let mut state = State::default();
    let coloured = cx.output.is_coloured();
    let mut terminal = Terminal::open()?;
    let mut keys = Keys::listen();
    loop {
        terminal.draw(&view, &mut state, coloured)?;
        let key = tokio::select! {
            key = keys.next() => key,
            () = tokio::time::sleep(TICK) => Key::None,
            () = ends.wait() => return Ok(Exit::Done),
        };
        match state.press(key, &view) {
            Next::Stay => {}
            Next::End => return Ok(Exit::Done),
            Next::Look => {
                view.steps = View::steps_of(database, state.opened).await?;
                continue;
            }
        }
        view.now = database.engine.now();
        if changes.heard(&database.engine).await? {
            view = View::look(database).await?;
            view.steps = View::steps_of(database, state.opened).await?;
        }
    }
}

/// The terminal, which is restored when this is dropped, and by the hook for panics.
struct Terminal(ratatui::DefaultTerminal);

impl Terminal {
    fn open() -> Result<Self> {
        ratatui::try_init().map(Self).map_err(|why| unable(&why))
    }

    fn draw(&mut self, view: &View, state: &mut State, coloured: bool) -> Result<()> {
        let drawn = self
            .0
            .draw(|frame| screen::draw(frame, view, state, coloured));
        drawn.map(drop).map_err(|why| unable(&why))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn unable(why: &std::io::Error) -> Failure {
    Failure::failed(
        format!("the terminal cannot be drawn on: {why}"),
        "in a pipe, as `onward watch | cat`, it prints instead",
    )
}

/// Whether something may have changed.
struct Changes {
    heard: Receiver<Changed>,
    version: Option<i64>,
    looked_at: Option<Instant>,
}

impl Changes {
    fn of(engine: &Engine) -> Self {
        Self {
            heard: engine.watch(),
            version: None,
            looked_at: None,
        }
    }

    /// Whether to look again.
    async fn heard(&mut self, engine: &Engine) -> Result<bool> {
        let mut changed = self.looked_at.is_none_or(|at| at.elapsed() >= ANYWAY);
        while let Ok(_) | Err(TryRecvError::Lagged(_)) = self.heard.try_recv() {
            changed = true;
        }
        let version = engine.version().await?;
        changed |= version != self.version;
        self.version = version;
        if changed {
            self.looked_at = Some(Instant::now());
        }
        Ok(changed)
    }
}

/// What ends it from outside. On the screen Ctrl-C is a key like any other.
struct Ends([Signal; 3]);

impl Ends {
    fn new() -> Result<Self> {
        let heard = |kind| {
            signal(kind).map_err(|why| {
                let message = format!("signals cannot be heard: {why}");
                Failure::failed(message, "free some resources of the system")
            })
        };
        Ok(Self([
            heard(SignalKind::terminate())?,
            heard(SignalKind::interrupt())?,
            heard(SignalKind::hangup())?,
        ]))
    }

    async fn wait(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
