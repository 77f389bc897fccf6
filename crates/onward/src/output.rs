//! How the command line speaks: data on standard output, talk on standard error.
//!
//! Talk is never data: a script may throw it away, and `--quiet` does. Errors are told all the
//! same. Colour is for terminals, and only where nobody asked for none (`NO_COLOR`, `--color`).

use std::io::{self, BufWriter, IsTerminal, Write};

use clap::{Args, ValueEnum};

/// What holds for every command.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Print JSON lines instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing on standard error but errors
    #[arg(long, short, global = true)]
    quiet: bool,
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
#[derive(Clone, Copy)]
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

    /// Tells a person something, unless nobody wants to hear it.
    pub(crate) fn say(self, text: &str) {
        if !self.quiet {
            tell(&format!("{text}\n"));
        }
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
            Color::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                !refused && io::stdout().is_terminal()
            }
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

/// Tells a person what is wrong, and what to do next.
pub(crate) fn complain(error: &str, hint: &str) {
    tell(&format!("error: {error}\nhint: {hint}\n"));
}

/// Writes to standard error.
pub(crate) fn tell(text: &str) {
    // Nowhere is left to report that standard error is closed; the exit code still tells.
    let _ = io::stderr().write_all(text.as_bytes());
}
