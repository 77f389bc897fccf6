//! Saved sessions put right: what is wrong with one, and the same session without it.
//!
//! A session is read twice: once to find what is wrong, which changes nothing, and once more to be
//! written anew. What is wrong is decided in `onward_core::transcript`; here its rows are found in the
//! file (`log` for Claude Code, `list` for the messages of an API), and put back. `file` says where the
//! new one goes. Whatever is not part of a repair comes out byte for byte.

pub(crate) mod file;
mod list;
mod log;

use std::io::{self, Read, Write};
use std::path::Path;

use clap::ValueEnum;
use onward_core::Timestamp;
use onward_core::transcript::{Api, Repair};

use super::{Error, Format, Lines, detect};

/// The formats that can be repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Repairable {
    /// Claude Code's session logs, JSON lines
    ClaudeCode,
    /// Messages of OpenAI's Chat Completions
    Openai,
    /// Items of OpenAI's Responses
    OpenaiResponses,
    /// Messages of Anthropic's Messages API
    Anthropic,
}

/// What is known beside the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The instant that it is.
    pub(crate) now: Timestamp,
    /// Whether somebody said that the session is over, so that nothing in it runs any more.
    pub(crate) is_over: bool,
}

/// One thing that is wrong, and where.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The line of the file, from 1, where its lines mean something.
    pub(crate) line: Option<u64>,
    /// The row of the list, from 0, where there is one.
    pub(crate) row: Option<usize>,
    pub(crate) repair: Repair,
}

/// What is wrong with a session, and what the session is without it.
pub(crate) struct Examined {
    pub(crate) findings: Vec<Finding>,
    /// Calls that have no result and may still get one.
    pub(crate) open: usize,
    /// What was left out, and why.
    pub(crate) warnings: Vec<String>,
    remedy: Remedy,
}

enum Remedy {
    /// There is nothing to do.
    None,
    /// The whole text.
    Text(String),
    /// What changes, line by line.
    Edits(log::Edits),
}

impl Examined {
    fn nothing(warnings: Vec<String>) -> Self {
        Examined {
            findings: Vec::new(),
            open: 0,
            warnings,
            remedy: Remedy::None,
        }
    }

    /// Whether the session is broken.
    pub(crate) fn is_wrong(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| finding.repair.what.is_wrong())
    }

    /// Writes the session without what is wrong with it.
    pub(crate) fn write(&self, path: &Path, out: &mut dyn Write) -> io::Result<()> {
        match &self.remedy {
            Remedy::None => io::copy(&mut open(path)?.into_bytes(), out).map(drop),
            Remedy::Text(text) => out.write_all(text.as_bytes()),
            Remedy::Edits(edits) => log::rewrite(open(path)?, edits, out),
        }
    }
}

fn open(path: &Path) -> io::Result<Lines> {
    Lines::open(path).map_err(|error| io::Error::other(error.to_string()))
}

/// Reads a session, and says what is wrong with it.
pub(crate) fn examine(
    path: &Path,
    format: Option<Repairable>,
    moment: Moment,
) -> Result<Examined, Error> {
    let mut lines = Lines::open(path)?;
    let name = lines.name().to_owned();
    if lines.look(0)?.is_none() {
        return Ok(Examined::nothing(vec![format!("`{name}` is empty")]));
    }
    let api = match format {
        Some(Repairable::ClaudeCode) => return log::examine(lines, moment),
        Some(Repairable::Openai) => Some(Api::Chat),
        Some(Repairable::OpenaiResponses) => Some(Api::Responses),
        Some(Repairable::Anthropic) => Some(Api::Anthropic),
        None => match detect::detect(&mut lines) {
            Ok(Format::ClaudeCode) => return log::examine(lines, moment),
            Ok(Format::Anthropic) => Some(Api::Anthropic),
            Ok(Format::Openai) | Err(Error::UnknownFormat { .. }) => None,
            Ok(format @ (Format::Turns | Format::SweAgent)) => {
                return Err(Error::NotRepairable { name, format });
            }
            Err(error) => return Err(error),
        },
    };
    let mut text = String::new();
    let read = lines.into_bytes().read_to_string(&mut text);
    read.map_err(|cause| Error::of_system(&name, cause))?;
    list::examine(&name, text, api)
}
