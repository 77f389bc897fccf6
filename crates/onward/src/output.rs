//! Output of the command line: data on standard output, messages on standard error.
//!
//! `--quiet` suppresses messages except errors. Colour is used on terminals, unless `NO_COLOR` or
//! `--color` disables it. `format` sanitizes text and formats durations, `time` prints local time,
//! `table` aligns columns, `journal` groups steps by day, `markdown` renders the Markdown of agents, `status`, `call` and `session`
//! name the states of plans, steps, calls and sessions.

pub(crate) mod budget;
pub(crate) mod call;
pub(crate) mod evidence;
pub(crate) mod format;
pub(crate) mod journal;
pub(crate) mod markdown;
pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod trail;

use std::io::{self, BufWriter, IsTerminal, Write};

use clap::{Args, ValueEnum};
use onward_core::Timestamp;
use serde::Serialize;

use crate::failure::{Failure, Result};
use time::Zone;

/// The width of a terminal that does not report one, and of pages in a pipe.
const DEFAULT_COLUMNS: usize = 80;
/// The width that a terminal is assumed to have at least.
const MIN_COLUMNS: usize = 40;
/// The maximum width of a paragraph.
const MAX_TEXT_COLUMNS: usize = 100;
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
    /// Print times in UTC instead of local time
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS)]
    utc: bool,
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
    /// Stuck or failed: red.
    Alert,
    /// Requires a decision: amber.
    Attention,
    /// No agent works on it: violet.
    Unattended,
    /// In progress: blue.
    Active,
    /// Completed: green.
    Good,
    /// Secondary information: dim.
    Faint,
    /// A heading: bold.
    Heading,
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

    /// The width of the terminal, which `COLUMNS` overrides; `None` in a pipe.
    pub(crate) fn width(self) -> Option<usize> {
        if !io::stdout().is_terminal() {
            return None;
        }
        let variable = std::env::var("COLUMNS").ok();
        let columns = variable.and_then(|columns| columns.parse().ok());
        let columns = columns.or_else(|| {
            let (terminal_size::Width(columns), _) = terminal_size::terminal_size()?;
            Some(usize::from(columns))
        });
        // A pseudoterminal without a size reports 0 columns.
        let columns = columns.filter(|columns| *columns > 0);
        Some(columns.unwrap_or(DEFAULT_COLUMNS).max(MIN_COLUMNS))
    }

    /// The width for paragraphs and pages: that of the terminal up to 100 columns, or 80 in a pipe.
    pub(crate) fn text_width(self) -> usize {
        self.width()
            .map_or(DEFAULT_COLUMNS, |columns| columns.min(MAX_TEXT_COLUMNS))
    }

    /// A date and time, to the second.
    pub(crate) fn date_time(self, at: Timestamp) -> String {
        self.zone().date_time(at)
    }

    /// The time zone of the output.
    pub(crate) fn zone(self) -> Zone {
        if self.utc { Zone::utc() } else { Zone::local() }
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
            Tone::Alert => "31",
            Tone::Attention => "33",
            Tone::Unattended => "35",
            Tone::Active => "34",
            Tone::Good => "32",
            Tone::Faint => "2",
            Tone::Heading => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// The first line of a page: a title, and a state at the right margin.
pub(crate) fn heading(output: Output, title: &str, state: &str, tone: Option<Tone>) -> String {
    let columns = output.text_width();
    let title = format::truncate(title, columns.saturating_sub(format::width(state) + 2));
    let used = format::width(&title) + format::width(state);
    let gap = " ".repeat(columns.saturating_sub(used));
    let title = output.paint(Some(Tone::Heading), &title);
    format!("{title}{gap}{}\n", output.paint(tone, state))
}

fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Asks a yes/no question on a terminal; `None` in a pipe.
pub(crate) fn confirm(question: &str) -> Option<bool> {
    let answer = ask(&format!("{question} [y/N] "))?;
    Some(["y", "yes"].contains(&answer.as_str()))
}

/// Asks a question on a terminal, and returns the answer in lower case; `None` in a pipe.
pub(crate) fn ask(question: &str) -> Option<String> {
    if !is_interactive() {
        return None;
    }
    Some(prompt(question).unwrap_or_default().to_lowercase())
}

/// Asks a question on a terminal, and returns the trimmed answer; `None` in a pipe and at the end of
/// the input.
pub(crate) fn prompt(question: &str) -> Option<String> {
    if !is_interactive() {
        return None;
    }
    print_stderr(question);
    let mut answer = String::new();
    match io::stdin().read_line(&mut answer) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(answer.trim().to_owned()),
    }
}

fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
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
