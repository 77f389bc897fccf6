//! Errors of reading a transcript, with their hints. `exit` maps them to exit codes.

use std::io;

use onward_engine::store;

use super::{FORMATS, Format};

/// An error of reading a transcript.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("`{name}` does not exist")]
    NotFound { name: String },
    #[error("`{name}` is a directory")]
    IsDirectory { name: String },
    #[error("cannot read `{name}`: {cause}")]
    Unreadable {
        name: String,
        #[source]
        cause: io::Error,
    },
    #[error("`{name}`, line {line}: not JSON: {}", without_line(cause))]
    NotJson {
        name: String,
        line: u64,
        #[source]
        cause: serde_json::Error,
    },
    #[error("`{name}`, line {line}: not {expected}: {}", without_line(cause))]
    InvalidShape {
        name: String,
        line: u64,
        /// A noun with its article.
        expected: &'static str,
        #[source]
        cause: serde_json::Error,
    },
    #[error("`{name}`: value {number} is neither a message nor a list of messages")]
    NoMessages {
        name: String,
        /// The number of the JSON value in the file, from 1.
        number: usize,
    },
    #[error("cannot repair `{name}`: not supported for the format `{}`", format.name())]
    NotRepairable { name: String, format: Format },
    #[error("{cause}")]
    Store {
        #[source]
        cause: store::Error,
    },
    #[error("unknown format: `{name}`")]
    UnknownFormat { name: String },
}

impl Error {
    /// An I/O error of a file.
    pub(super) fn from_io(name: &str, cause: io::Error) -> Self {
        let name = name.to_owned();
        if cause.kind() == io::ErrorKind::NotFound {
            Error::NotFound { name }
        } else if cause.kind() == io::ErrorKind::IsADirectory {
            Error::IsDirectory { name }
        } else {
            Error::Unreadable { name, cause }
        }
    }

    /// An error in JSON that starts at line `first`.
    pub(super) fn from_json(
        name: &str,
        first: u64,
        expected: &'static str,
        cause: serde_json::Error,
    ) -> Self {
        let name = name.to_owned();
        let line = first + (cause.line() as u64).saturating_sub(1);
        if cause.is_io() {
            let cause = cause.into();
            return Error::Unreadable { name, cause };
        }
        if cause.is_data() {
            Error::InvalidShape {
                name,
                line,
                expected,
                cause,
            }
        } else {
            Error::NotJson { name, line, cause }
        }
    }

    /// The next action for the user.
    pub(crate) fn hint(&self) -> String {
        match self {
            Error::NotFound { .. } => "check the path".to_owned(),
            Error::IsDirectory { .. } => "pass the files in that directory".to_owned(),
            Error::Unreadable { .. } => {
                "check that the file is complete and that you have read permission".to_owned()
            }
            Error::NotJson { .. } => {
                "check that line; a file that is being written may be truncated".to_owned()
            }
            Error::InvalidShape { .. } | Error::NoMessages { .. } => {
                format!("set the format with `--format`: {}", formats())
            }
            Error::NotRepairable { .. } => format!(
                "supported formats: {}",
                names(|format| format.entry().is_repairable)
            ),
            Error::Store { .. } => {
                "pass the database `opencode.db`, or an export written by `opencode export`"
                    .to_owned()
            }
            Error::UnknownFormat { .. } => format!("supported formats: {}", formats()),
        }
    }
}

/// The reason and the column of an error in JSON. `serde_json` counts lines within the value; the
/// message has the line of the file instead.
fn without_line(cause: &serde_json::Error) -> String {
    let (text, column) = (cause.to_string(), cause.column());
    let position = format!(" at line {} column {column}", cause.line());
    let reason = text.strip_suffix(&position).unwrap_or(&text);
    format!("{reason}, column {column}")
}

/// The names of the supported formats.
pub(super) fn formats() -> String {
    names(|_| true)
}

fn names(is_listed: fn(Format) -> bool) -> String {
    let formats = FORMATS.iter().map(|entry| entry.format);
    let names: Vec<_> = formats
        .filter(|format| is_listed(*format))
        .map(Format::name)
        .collect();
    names.join(", ")
}
