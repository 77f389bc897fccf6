//! How the command line speaks: data on standard output, talk on standard error.
//!
//! Talk is never data: a script may throw it away, and `--quiet` does. Errors are told all the
//! same. Colour is for terminals, and only where nobody asked for none (`NO_COLOR`, `--color`).
//!
//! `words` makes stored text harmless and times readable, `table` aligns.

pub(crate) mod call;
pub(crate) mod table;
pub(crate) mod words;

use std::io::{self, BufWriter, IsTerminal, Write};

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::failure::{Failure, Result};

/// What holds for every command.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Print JSON instead of text, for programs; errors too, on standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing on standard error but errors
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Say more on standard error, such as which database is used
    #[arg(long, short, global = true)]
    verbose: bool,
    /// When to use colour; `auto`: on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: Color,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

/// What is worth a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
}

impl Output {
    /// Where data goes: at once to a terminal, in large pieces to a pipe.
    pub(crate) fn data(self) -> Box<dyn Write> {
        let stdout = io::stdout();
        if stdout.is_terminal() {
            Box::new(stdout)
        } else {
            Box::new(BufWriter::with_capacity(1 << 16, stdout))
        }
    }

    /// Prints data.
    pub(crate) fn print(self, text: &str) -> Result<()> {
        let mut stdout = io::stdout().lock();
        match stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
        {
            Ok(()) => Ok(()),
            // Whoever reads has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(Failure::failed(
                format!("standard output cannot be written: {error}"),
                "check where it leads",
            )),
        }
    }

    /// Prints data as one line of JSON.
    pub(crate) fn print_json(self, data: &impl Serialize) -> Result<()> {
        self.print(&format!("{}\n", words::json(data)))
    }

    /// Tells a person something, unless nobody wants to hear it.
    pub(crate) fn say(self, text: &str) {
        if !self.quiet {
            tell(&format!("{text}\n"));
        }
    }

    /// Tells a person something that few want to hear.
    pub(crate) fn detail(self, text: &str) {
        if self.is_verbose() {
            tell(&format!("{text}\n"));
        }
    }

    /// Whether somebody wants to hear what few want to hear.
    pub(crate) fn is_verbose(self) -> bool {
        self.verbose && !self.quiet
    }

    /// Tells a person about something that was left out.
    pub(crate) fn warn(self, text: &str) {
        self.say(&format!("warning: {text}"));
    }

    /// Whether data is coloured.
    pub(crate) fn is_coloured(self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => wants_colour() && io::stdout().is_terminal(),
        }
    }

    /// Whether what goes to standard error is coloured.
    pub(crate) fn is_log_coloured(self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => wants_colour() && io::stderr().is_terminal(),
        }
    }

    /// How wide a line of data may be: as wide as the terminal, and in a pipe as wide as it is.
    pub(crate) fn width(self) -> Option<usize> {
        if !io::stdout().is_terminal() {
            return None;
        }
        let (terminal_size::Width(columns), _) = terminal_size::terminal_size()?;
        Some(usize::from(columns).max(40))
    }

    /// Text in a tone, where data is coloured.
    pub(crate) fn paint(self, tone: Option<Tone>, text: &str) -> String {
        match tone {
            Some(tone) if self.is_coloured() => tone.paint(text),
            Some(_) | None => text.to_owned(),
        }
    }
}

impl Tone {
    /// The text in this tone.
    pub(crate) fn paint(self, text: &str) -> String {
        let code = match self {
            Tone::Good => "32",
            Tone::Bad => "1;33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Asks a person at a terminal; nobody is asked in a pipe.
pub(crate) fn confirm(question: &str) -> Option<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    tell(&format!("{question} [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    let answer = answer.trim().to_lowercase();
    Some(read.is_ok() && ["y", "yes"].contains(&answer.as_str()))
}

/// Tells a person what is wrong, and what to do next.
pub(crate) fn complain(error: &str, hint: &str) {
    tell(&format!("error: {error}\nhint: {hint}\n"));
}

/// Writes to standard error.
pub(crate) fn tell(text: &str) {
    // Nowhere is left to report that standard error is closed; the exit code still tells.
    let _ = io::stderr().write_all(text.as_bytes());
}
