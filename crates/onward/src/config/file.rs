//! One configuration file. Rejects unknown keys and values of the wrong type, with file and line,
//! because a misspelt key must not be ignored.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::{Setting, Source, loop_control};
use crate::failure::{Failure, Result};

/// The value of a key, with its position in the file.
pub(super) type Entry<T> = Option<Spanned<T>>;

/// A parsed file.
pub(super) struct File {
    path: PathBuf,
    text: String,
    pub(super) tables: Tables,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tables {
    pub(super) database: Entry<String>,
    pub(super) tenant: Entry<String>,
    pub(super) retention: Retention,
    pub(super) loop_control: loop_control::Table,
    pub(super) reviews: Reviews,
    pub(super) embeddings: Embeddings,
    pub(super) extraction: Extraction,
    pub(super) notify: Notify,
    pub(super) serve: Serve,
    pub(super) access: Access,
    pub(super) limits: Limits,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Retention {
    pub(super) finished_plans_days: Entry<u32>,
    pub(super) tool_calls_days: Entry<u32>,
    pub(super) sessions_days: Entry<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Reviews {
    pub(super) form_seconds: Entry<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Embeddings {
    pub(super) url: Entry<String>,
    pub(super) model: Entry<String>,
    pub(super) dimensions: Entry<u32>,
    pub(super) batch_size: Entry<u32>,
    pub(super) timeout_seconds: Entry<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Extraction {
    pub(super) provider: Entry<String>,
    pub(super) url: Entry<String>,
    pub(super) model: Entry<String>,
    pub(super) timeout_seconds: Entry<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Notify {
    pub(super) webhook: Entry<String>,
    pub(super) secret: Entry<String>,
    pub(super) kinds: Entry<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Serve {
    pub(super) bind: Entry<String>,
    pub(super) public_url: Entry<String>,
    pub(super) allowed_origins: Entry<Vec<String>>,
    pub(super) secret: Entry<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Access {
    pub(super) require_tokens: Entry<bool>,
    pub(super) issuer: Issuer,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Issuer {
    pub(super) url: Entry<String>,
    pub(super) audience: Entry<String>,
    pub(super) jwks_url: Entry<String>,
    pub(super) client_id: Entry<String>,
    pub(super) client_secret: Entry<String>,
    pub(super) scopes: Entry<Vec<String>>,
    pub(super) tenant_claim: Entry<String>,
    pub(super) role_claim: Entry<String>,
    pub(super) default_role: Entry<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) token_calls_per_second: Entry<u32>,
    pub(super) tenant_calls_per_second: Entry<u32>,
    pub(super) body_bytes: Entry<u32>,
    pub(super) request_seconds: Entry<u32>,
    pub(super) requests: Entry<u32>,
    pub(super) streams: Entry<u32>,
}

impl File {
    /// Reads a file, which must exist.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::usage(
                format!(
                    "cannot read the configuration `{}`: {error}",
                    path.display()
                ),
                "check the path and the file's permissions",
            )
        })?;
        let tables = toml::from_str(&text).map_err(|error| {
            let line = line(&text, error.span().map_or(0, |span| span.start));
            Failure::usage(
                format!("{}:{line}: {}", path.display(), error.message()),
                "see the example in `onward config --help`",
            )
        })?;
        Ok(Self {
            path: path.to_owned(),
            text,
            tables,
        })
    }

    /// A value of this file, with its line as the source.
    pub(super) fn setting<T: Clone>(&self, entry: &Entry<T>) -> Option<Setting<T>> {
        entry.as_ref().map(|entry| Setting {
            value: entry.get_ref().clone(),
            source: Source::File {
                path: self.path.clone(),
                line: line(&self.text, entry.span().start),
            },
        })
    }
}

/// The line of a byte offset, counted from 1.
fn line(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}
