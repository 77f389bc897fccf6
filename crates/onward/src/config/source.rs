//! The origin of a configuration value, for display and for errors about the value.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::location;
use crate::failure::Failure;

/// The origin of a value.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "source", rename_all = "lowercase")]
pub(crate) enum Source {
    Flag {
        name: &'static str,
    },
    Environment {
        name: String,
    },
    File {
        #[serde(rename = "file", serialize_with = "serialize_path")]
        path: PathBuf,
        line: usize,
    },
    Default,
}

pub(super) fn serialize_path<S: Serializer>(
    path: &Path,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag { name } => write!(f, "flag `{name}`"),
            Source::Environment { name } => write!(f, "environment variable `{name}`"),
            Source::File { path, line } => write!(f, "{}:{line}", path.display()),
            Source::Default => f.write_str("default"),
        }
    }
}

impl Source {
    /// The source in a table.
    pub(crate) fn short(&self) -> String {
        match self {
            Source::Flag { name } => (*name).to_owned(),
            Source::Environment { name } => format!("${name}"),
            Source::File { path, line } => format!("{}:{line}", location::display(path)),
            Source::Default => "default".to_owned(),
        }
    }

    /// An error about a value from this source. `why` continues the sentence: "must be …".
    pub(super) fn invalid(&self, path: &str, why: impl fmt::Display) -> Failure {
        let (message, hint) = match self {
            Source::Flag { name } => (
                format!("`{name}` {why}"),
                "correct the flag, or omit it to use the configured value",
            ),
            Source::Environment { .. } => {
                (format!("{self} {why}"), "correct the variable, or unset it")
            }
            Source::File { .. } | Source::Default => (
                format!("{self}: `{path}` {why}"),
                "correct the file; see the example in `onward config --help`",
            ),
        };
        Failure::usage(message, hint)
    }
}
