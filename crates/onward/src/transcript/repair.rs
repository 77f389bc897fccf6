//! Examines and repairs saved sessions.
//!
//! A file is read twice: once to find defects, and once to write the repaired copy.
//! `onward_core::transcript` defines the defects. `log` (Claude Code) and `list` (API messages) map
//! the rows to the file and back, and `file` writes the result. Everything that is not part of a
//! repair is copied byte for byte.

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
    /// Claude Code session logs, JSON lines
    ClaudeCode,
    /// OpenAI Chat Completions messages
    Openai,
    /// OpenAI Responses items
    OpenaiResponses,
    /// Anthropic Messages API messages
    Anthropic,
}

/// Facts that are not in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepairContext {
    /// The current time.
    pub(crate) now: Timestamp,
    /// Whether the session has ended, so that none of its calls is still running.
    pub(crate) session_ended: bool,
}

/// A defect and its location.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The line in the file, from 1, for line-based files.
    pub(crate) line: Option<u64>,
    /// The index in the list, from 0, for lists.
    pub(crate) row: Option<usize>,
    pub(crate) repair: Repair,
}

/// The defects of a session, and how to fix them.
pub(crate) struct Examination {
    pub(crate) findings: Vec<Finding>,
    /// Calls without a result that may still get one.
    pub(crate) open_calls: usize,
    /// Problems that were skipped.
    pub(crate) warnings: Vec<String>,
    fix: Fix,
}

enum Fix {
    /// No change.
    None,
    /// The repaired text.
    Text(String),
    /// Edits by line.
    Edits(log::Edits),
}

impl Examination {
    fn clean(warnings: Vec<String>) -> Self {
        Examination {
            findings: Vec::new(),
            open_calls: 0,
            warnings,
            fix: Fix::None,
        }
    }

    /// Whether the session has defects that break it.
    pub(crate) fn has_errors(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| finding.repair.kind.is_error())
    }

    /// Writes the repaired session.
    pub(crate) fn write(&self, path: &Path, out: &mut dyn Write) -> io::Result<()> {
        match &self.fix {
            Fix::None => io::copy(&mut open(path)?.into_bytes(), out).map(drop),
            Fix::Text(text) => out.write_all(text.as_bytes()),
            Fix::Edits(edits) => log::rewrite(open(path)?, edits, out),
        }
    }
}

fn open(path: &Path) -> io::Result<Lines> {
    Lines::open(path).map_err(|error| io::Error::other(error.to_string()))
}

/// Reads a session and finds its defects.
pub(crate) fn examine(
    path: &Path,
    format: Option<Repairable>,
    context: RepairContext,
) -> Result<Examination, Error> {
    let mut lines = Lines::open(path)?;
    let name = lines.name().to_owned();
    if lines.peek(0)?.is_none() {
        return Ok(Examination::clean(vec![format!("`{name}` is empty")]));
    }
    let api = match format {
        Some(Repairable::ClaudeCode) => return log::examine(lines, context),
        Some(Repairable::Openai) => Some(Api::Chat),
        Some(Repairable::OpenaiResponses) => Some(Api::Responses),
        Some(Repairable::Anthropic) => Some(Api::Anthropic),
        None => match detect::detect(&mut lines) {
            Ok(Format::ClaudeCode) => return log::examine(lines, context),
            Ok(Format::Anthropic) => Some(Api::Anthropic),
            Ok(Format::Openai) | Err(Error::UnknownFormat { .. }) => None,
            Ok(format @ Format::Turns) => {
                return Err(Error::NotRepairable { name, format });
            }
            Err(error) => return Err(error),
        },
    };
    let mut text = String::new();
    let read = lines.into_bytes().read_to_string(&mut text);
    read.map_err(|cause| Error::from_io(&name, cause))?;
    list::examine(&name, text, api)
}
