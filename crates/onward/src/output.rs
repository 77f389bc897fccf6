//! Output of the command line: data on standard output, messages on standard error.
//!
//! `--quiet` suppresses messages except errors. Colour is used on terminals, unless `NO_COLOR` or
//! `--color` disables it. `format` sanitizes text and formats times, `table` aligns columns,
//! `status` and `call` name the states of plans, steps and calls.

pub(crate) mod call;
pub(crate) mod format;
pub(crate) mod status;
pub(crate) mod table;

use std::io::{self, BufWriter, IsTerminal, Write};

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::wire::error::ErrorBody;

/// The heading of the flags that every command has.
pub(crate) const GLOBAL_OPTIONS: &str = "Global options";

/// The output flags of every command.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Print JSON instead of text; errors as JSON on standard error
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS)]
    pub(crate) json: bool,
    /// Print only errors on standard error
    #[arg(long, short, global = true, help_heading = GLOBAL_OPTIONS)]
    quiet: bool,
    /// Print more on standard error, such as the database that is used
    #[arg(long, short, global = true, help_heading = GLOBAL_OPTIONS)]
    verbose: bool,
    /// Use colour; `auto`: on a terminal, unless `NO_COLOR` is set
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL_OPTIONS,
        value_name = "WHEN",
        default_value = "auto"
    )]
    color: Color,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

/// The meaning of a coloured text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
}

impl Output {
    /// Standard output: unbuffered on a terminal, buffered in a pipe.
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
            // The reader closed the pipe, as `head` does.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(stdout_failure(&error)),
        }
    }

    /// Prints data as one line of JSON.
    pub(crate) fn print_json(self, data: &impl Serialize) -> Result<()> {
        self.print(&format!("{}\n", format::json(data)))
    }

    /// Prints a message on standard error, unless `--quiet` is set.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            print_stderr(&format!("{text}\n"));
        }
    }

    /// Prints a message on standard error if `--verbose` is set.
    pub(crate) fn detail(self, text: &str) {
        if self.is_verbose() {
            print_stderr(&format!("{text}\n"));
        }
    }

    pub(crate) fn is_quiet(self) -> bool {
        self.quiet
    }

    pub(crate) fn is_verbose(self) -> bool {
        self.verbose && !self.quiet
    }

    pub(crate) fn warn(self, text: &str) {
        self.note(&format!("warning: {text}"));
    }

    /// Whether standard output is coloured.
    pub(crate) fn is_coloured(self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => wants_colour() && io::stdout().is_terminal(),
        }
    }

    /// Whether standard error is coloured.
    pub(crate) fn is_stderr_coloured(self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => wants_colour() && io::stderr().is_terminal(),
        }
    }

    /// The width of the terminal; `None` in a pipe, where lines are not truncated.
    pub(crate) fn width(self) -> Option<usize> {
        if !io::stdout().is_terminal() {
            return None;
        }
        let (terminal_size::Width(columns), _) = terminal_size::terminal_size()?;
        Some(usize::from(columns).max(40))
    }

    /// Text in the colour of a tone, if standard output is coloured.
    pub(crate) fn paint(self, tone: Option<Tone>, text: &str) -> String {
        match tone {
            Some(tone) if self.is_coloured() => tone.paint(text),
            Some(_) | None => text.to_owned(),
        }
    }
}

impl Tone {
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

/// Asks a yes/no question on a terminal; `None` in a pipe.
pub(crate) fn confirm(question: &str) -> Option<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    print_stderr(&format!("{question} [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    let answer = answer.trim().to_lowercase();
    Some(read.is_ok() && ["y", "yes"].contains(&answer.as_str()))
}

/// Prints the error on standard error; as JSON, it is one object in the format of the API.
pub(crate) fn print_failure(failure: &Failure, as_json: bool) {
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

pub(crate) fn print_error(error: &str, hint: &str) {
    print_stderr(&format!("error: {error}\nhint: {hint}\n"));
}

/// An error while writing to standard output.
pub(crate) fn stdout_failure(error: &io::Error) -> Failure {
    Failure::failed(
        format!("cannot write to standard output: {error}"),
        "check the redirection and the free disk space",
    )
}

pub(crate) fn print_stderr(text: &str) {
    // If standard error is closed, only the exit code reports the failure.
    let _ = io::stderr().write_all(text.as_bytes());
}
