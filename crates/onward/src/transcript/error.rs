//! Why a file could not be read, and what to do about it.
//!
//! How each of these ends the process stands in `exit`.

use std::io;

use clap::ValueEnum;

use super::Format;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("`{name}` does not exist")]
    NotFound { name: String },
    #[error("`{name}` is a folder")]
    Folder { name: String },
    #[error("`{name}` cannot be read: {cause}")]
    Unreadable { name: String, cause: io::Error },
    #[error("`{name}`, line {line}: not JSON: {cause}")]
    NotJson {
        name: String,
        line: u64,
        cause: String,
    },
    #[error("`{name}`, line {line}: not {expected}: {cause}")]
    Misshapen {
        name: String,
        line: u64,
        /// With its article.
        expected: &'static str,
        cause: String,
    },
    #[error("`{name}`: value {number} is neither a message nor a list of messages")]
    NoMessages {
        name: String,
        /// Of the JSON values in the file, from 1.
        number: usize,
    },
    #[error("`{name}` holds `{}`, in which there is nothing to repair", format.name())]
    NotRepairable { name: String, format: Format },
    #[error("`{name}` is in no format that can be read")]
    UnknownFormat { name: String },
}

impl Error {
    /// What is wrong with a file on disk, from what the system says.
    pub(super) fn of_system(name: &str, cause: io::Error) -> Self {
        let name = name.to_owned();
        if cause.kind() == io::ErrorKind::NotFound {
            Error::NotFound { name }
        } else if cause.kind() == io::ErrorKind::IsADirectory {
            Error::Folder { name }
        } else {
            Error::Unreadable { name, cause }
        }
    }

    /// What is wrong with a piece of JSON that begins in line `first`.
    pub(super) fn of_json(
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
        // The position is said in our own words; the column alone is left of it.
        let text = cause.to_string();
        let said = text.split(" at line ").next().unwrap_or_default();
        let column = cause.column();
        let text = format!("{said}, column {column}");
        if cause.is_data() {
            Error::Misshapen {
                name,
                line,
                expected,
                cause: text,
            }
        } else {
            Error::NotJson {
                name,
                line,
                cause: text,
            }
        }
    }

    /// What to do next.
    pub(crate) fn hint(&self) -> String {
        match self {
            Error::NotFound { .. } => "check the path".to_owned(),
            Error::Folder { .. } => "name the files in it".to_owned(),
            Error::Unreadable { .. } => {
                "check that it is whole, and that you may read it".to_owned()
            }
            Error::NotJson { .. } => {
                "look at that line; what is written while you read may be torn".to_owned()
            }
            Error::Misshapen { .. } | Error::NoMessages { .. } => {
                format!("name the format with `--format`: {}", formats())
            }
            Error::NotRepairable { .. } => {
                "it can be a log of Claude Code, or messages of OpenAI's or Anthropic's API"
                    .to_owned()
            }
            Error::UnknownFormat { .. } => format!("it can be one of: {}", formats()),
        }
    }
}

/// The formats that there are, as they are written on the command line.
fn formats() -> String {
    let names: Vec<_> = Format::value_variants().iter().map(|f| f.name()).collect();
    names.join(", ")
}
