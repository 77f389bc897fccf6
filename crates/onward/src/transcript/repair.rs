//! Examines and repairs saved sessions.
//!
//! A file is read twice: once to find defects, and once to write the repaired copy.
//! `onward_core::transcript` defines the defects. `log` (Claude Code), `codex`, `opencode`,
//! `event_log` (other agents) and `list` (API messages) map the rows to the file and back, and
//! `file` writes the result. Everything that is not part of a repair is copied byte for byte.

mod codex;
mod conversation;
mod event_log;
pub(crate) mod file;
mod layout;
mod list;
mod log;
mod opencode;
mod store_file;

use std::io::{self, Read, Write};
use std::path::Path;

use onward_core::Timestamp;
use onward_core::call::Cause;
use onward_core::transcript::{Api, Repair, RepairKind, Resolution};
use onward_engine::opencode::{PartChange, is_database};

use super::{Error, Format, Lines, copilot, detect, kimi};

/// Facts that are not in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepairContext {
    /// The current time.
    pub(crate) now: Timestamp,
    /// Whether the session has ended, so that none of its calls is still running.
    pub(crate) session_ended: bool,
}

impl RepairContext {
    /// How a call without a result is repaired; `None` if it may still be running.
    fn repair_of(&self, resolution: Resolution) -> Option<(Cause, RepairKind)> {
        match resolution {
            Resolution::Interrupted(Cause::TimedOut) => Some((Cause::TimedOut, RepairKind::Stale)),
            Resolution::Interrupted(cause) => Some((cause, RepairKind::Dangling)),
            Resolution::Open(_) if self.session_ended => {
                Some((Cause::OutcomeUnknown, RepairKind::Dangling))
            }
            Resolution::Open(_) | Resolution::Settled => None,
        }
    }
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
    /// Changes of a database of opencode.
    Parts(Vec<PartChange>),
    /// The format cannot be repaired.
    Unsupported(Format),
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

    /// The format of a session whose defects cannot be repaired.
    pub(crate) fn unsupported_format(&self) -> Option<Format> {
        match self.fix {
            Fix::Unsupported(format) if self.has_errors() => Some(format),
            Fix::Unsupported(_) | Fix::None | Fix::Text(_) | Fix::Edits(_) | Fix::Parts(_) => None,
        }
    }

    /// Writes the repaired session.
    pub(crate) fn write(&self, path: &Path, out: &mut dyn Write) -> io::Result<()> {
        match &self.fix {
            Fix::None | Fix::Parts(_) | Fix::Unsupported(_) => {
                io::copy(&mut open(path)?.into_bytes(), out).map(drop)
            }
            Fix::Text(text) => out.write_all(text.as_bytes()),
            Fix::Edits(edits) => {
                let moved = log::moved_lines(open(path)?, edits)?;
                log::rewrite(open(path)?, &moved, edits, out)
            }
        }
    }
}

fn open(path: &Path) -> io::Result<Lines> {
    Lines::open(path).map_err(io::Error::other)
}

/// Reads a session and finds its defects.
pub(crate) fn examine(
    path: &Path,
    format: Option<Format>,
    context: RepairContext,
) -> Result<Examination, Error> {
    if is_database(path) && matches!(format, None | Some(Format::Opencode)) {
        return opencode::examine_store(path, context);
    }
    let mut lines = Lines::open(path)?;
    let name = lines.name().to_owned();
    if lines.peek(0)?.is_none() {
        return Ok(Examination::clean(vec![format!("`{name}` is empty")]));
    }
    let format = match format {
        Some(format) => format,
        None => detect::detect(&mut lines)?,
    };
    match format.entry().examine {
        Some(examine) => examine(lines, context),
        None => Err(Error::NotRepairable { name, format }),
    }
}

/// The functions of the table of formats.
pub(super) fn claude_code(lines: Lines, context: RepairContext) -> Result<Examination, Error> {
    log::examine(lines, context)
}

pub(super) fn codex(lines: Lines, context: RepairContext) -> Result<Examination, Error> {
    codex::examine(lines, context)
}

pub(super) fn opencode(lines: Lines, context: RepairContext) -> Result<Examination, Error> {
    opencode::examine(lines, context)
}

pub(super) fn copilot(lines: Lines, context: RepairContext) -> Result<Examination, Error> {
    event_log::examine(&copilot::AGENT, lines, context)
}

pub(super) fn kimi(lines: Lines, context: RepairContext) -> Result<Examination, Error> {
    event_log::examine_kimi(&kimi::AGENT, lines, context)
}

pub(super) fn gemini(lines: Lines, context: RepairContext) -> Result<Examination, Error> {
    event_log::examine_gemini(lines, context)
}

pub(super) fn messages(lines: Lines, api: Api) -> Result<Examination, Error> {
    list::examine(lines, api)
}

/// The text of a file.
fn read_text(lines: Lines) -> Result<String, Error> {
    let name = lines.name().to_owned();
    let mut text = String::new();
    let read = lines.into_bytes().read_to_string(&mut text);
    read.map_err(|cause| Error::from_io(&name, cause))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_engine::store;

    #[test]
    fn write_errors_keep_their_cause() {
        let missing = Path::new("/missing/session");
        let error = open(missing).err().expect("the file is missing");
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
        assert!(matches!(cause, Some(Error::NotFound { .. })), "{error:?}");
        for written in [
            store_file::write_copy(missing, missing, &[]),
            store_file::write_in_place(missing, missing, &[]),
        ] {
            let error = written.expect_err("the database is missing");
            let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
            let is_address = matches!(cause, Some(store::Error::Address { .. }));
            assert!(is_address, "{error:?}");
        }
    }
}
