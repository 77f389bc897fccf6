//! Configuration of a run. Precedence, highest first: flags, environment, the project's
//! `onward.toml`, the user's `config.toml`, defaults.
//!
//! `config/keys.rs` is the table of keys. `kind` validates values, `file` parses a file, `settings`
//! finds the value and the source of each key, `trust` limits the project's file, and `reference`
//! describes the keys to readers. The database is not opened here.

mod file;
mod keys;
mod kind;
pub(crate) mod location;
mod policy;
pub(crate) mod reference;
mod settings;
mod source;
pub(crate) mod trust;
mod values;

use std::env;
use std::path::{Path, PathBuf};

use clap::Args;
use onward_engine::Address;
use serde::Deserialize;

use crate::failure::{Failure, Result};
use crate::output::GLOBAL_OPTIONS;
use file::File;
use trust::Ignored;

pub(crate) use keys::{
    Access, Calls, Capture, DefaultValue, Embeddings, Extraction, Issuer, Key, Limits, LoopControl,
    Notify, Retention, Reviews, Serve, Sessions, TopLevel, Watch,
};
pub(crate) use kind::Kind;
pub(crate) use location::home;
pub(crate) use settings::{Setting, Settings};
pub(crate) use source::Source;
pub(crate) use values::{ApiKey, MessageFormat, Provider, display_origin};

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Flags {
    /// Database: a file path for SQLite, or a `postgres://` URL; also `DATABASE_URL`
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS, value_name = "URL|PATH")]
    database: Option<String>,
    /// Read this configuration file only, not the project's and the user's
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Tenant whose plans to use, if several share the database
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS, value_name = "NAME")]
    tenant: Option<String>,
    /// `--bind` of `onward serve`.
    #[arg(skip)]
    pub(crate) bind: Option<String>,
}

impl Flags {
    /// `--database`, valid in every directory.
    pub(crate) fn absolute_database(&self) -> Result<Option<String>> {
        let Some(database) = &self.database else {
            return Ok(None);
        };
        let invalid = |why: &str| {
            Failure::usage(
                format!("invalid `--database`: `{database}` {why}"),
                "set a file path or a `postgres://` URL",
            )
        };
        let address = Address::parse(database);
        match address.map_err(|_| invalid("is not a file path or a `postgres://` URL"))? {
            Address::Server(_) => Ok(Some(database.clone())),
            Address::File(path) => {
                let path = std::path::absolute(path).ok();
                let path = path.and_then(|path| path.to_str().map(str::to_owned));
                path.map(Some).ok_or_else(|| invalid("is not a valid path"))
            }
        }
    }

    /// The flag of a key, and its value.
    fn get(&self, key: &Key) -> Option<(&'static str, &str)> {
        let (name, value) = match key.path {
            "database" => ("--database", &self.database),
            "tenant" => ("--tenant", &self.tenant),
            "serve.bind" => ("--bind", &self.bind),
            _ => return None,
        };
        Some((name, value.as_deref()?))
    }
}

#[derive(Deserialize)]
pub(crate) struct Config {
    /// Resolved separately, because a path need not be UTF-8.
    #[serde(skip, default = "no_database")]
    pub(crate) database: Address,
    #[serde(rename = "")]
    pub(crate) top: TopLevel,
    pub(crate) retention: Retention,
    pub(crate) sessions: Sessions,
    pub(crate) loop_control: LoopControl,
    pub(crate) capture: Capture,
    pub(crate) calls: Calls,
    pub(crate) watch: Watch,
    pub(crate) reviews: Reviews,
    /// `None` if search is full-text only.
    pub(crate) embeddings: Option<Embeddings>,
    /// `None` if the agent's own model extracts.
    pub(crate) extraction: Option<Extraction>,
    pub(crate) notify: Notify,
    pub(crate) serve: Serve,
    pub(crate) access: Access,
    #[serde(rename = "access.issuer")]
    pub(crate) issuer: Option<Issuer>,
    pub(crate) limits: Limits,
    /// All keys with their sources.
    #[serde(skip)]
    pub(crate) settings: Settings,
    /// The files that were read, highest precedence first.
    #[serde(skip)]
    pub(crate) files: Vec<PathBuf>,
    /// The part of the project's file that does not apply.
    #[serde(skip)]
    pub(crate) ignored: Option<Ignored>,
}

fn no_database() -> Address {
    Address::File(PathBuf::new())
}

impl Config {
    pub(crate) fn read(flags: &Flags) -> Result<Self> {
        Self::read_in(flags, None)
    }

    /// The configuration of a project; `None` is the current directory.
    pub(crate) fn read_in(flags: &Flags, directory: Option<&Path>) -> Result<Self> {
        let named = flags.config.clone().or_else(|| {
            let path = env::var_os("ONWARD_CONFIG").filter(|path| !path.is_empty());
            path.map(PathBuf::from)
        });
        let (files, ignored) = match named {
            Some(path) => (vec![File::read(&path)?], None),
            None => read_files(directory)?,
        };
        let mut settings = Settings::read(|key| flags.get(key), &files)?;
        settings
            .warnings
            .extend(ignored.iter().map(Ignored::to_string));
        let mut config = Self::new(settings)?;
        config.files = files.into_iter().map(|file| file.path).collect();
        config.ignored = ignored;
        Ok(config)
    }

    fn new(mut settings: Settings) -> Result<Self> {
        if !settings.is_set("extraction.url") {
            let url = match settings.text("extraction.provider") {
                Some("anthropic") => "https://api.anthropic.com/v1",
                _ => "https://api.openai.com/v1",
            };
            settings.set_value("extraction.url", url);
        }
        let mut config: Self = serde_json::from_value(settings.to_json()).map_err(|error| {
            Failure::failed(
                format!("cannot apply the configuration: {error}"),
                "report this as a bug in Onward",
            )
        })?;
        config.database = database(config.top.database.as_deref(), settings.source("database"))?;
        settings.set_value("database", config.database.to_string());
        config.settings = settings;
        Ok(config)
    }
}

/// The existing configuration files, the project's and the user's, and the ignored part of the
/// project's.
fn read_files(directory: Option<&Path>) -> Result<(Vec<File>, Option<Ignored>)> {
    let (project, ignored) = match location::project_file(directory) {
        Some(path) => trust::read_project_file(&path)?,
        None => (None, None),
    };
    let user = location::user_file();
    let user = user.map(|path| File::read(&path)).transpose()?;
    Ok((project.into_iter().chain(user).collect(), ignored))
}

/// The configured database, or the default one. A path in a file is relative to that file.
fn database(address: Option<&str>, source: &Source) -> Result<Address> {
    let Some(address) = address else {
        let path = location::default_database().ok_or_else(|| {
            Failure::usage(
                "no default database: neither `XDG_DATA_HOME` nor `HOME` is set",
                "set the database with `--database PATH`",
            )
        })?;
        return Ok(Address::File(path));
    };
    let address = Address::parse(address)
        .map_err(|_| source.invalid("database", "must be a file path or a `postgres://` URL"))?;
    Ok(match (address, source) {
        (Address::File(path), Source::File { path: file, .. }) => {
            Address::File(resolve_path(file, path))
        }
        (address, _) => address,
    })
}

/// Resolves a path of a configuration file relative to that file; `~` is the user's home.
fn resolve_path(file: &Path, path: PathBuf) -> PathBuf {
    let at_home = path.strip_prefix("~").ok().zip(location::home());
    match (at_home, file.parent()) {
        (Some((rest, home)), _) => home.join(rest),
        (None, Some(folder)) => folder.join(path),
        (None, None) => path,
    }
}

#[cfg(test)]
mod tests {
    use onward_core::capture::CapturePolicy;
    use onward_core::finding;
    use onward_core::turn;

    use super::keys::{KEYS, Trust};
    use super::*;

    /// A configuration with these values and the defaults of the other keys.
    fn config(values: &[(&str, &str)]) -> Result<Config> {
        let setting = |key: &'static Key| {
            let value = values.iter().find(|(path, _)| *path == key.path);
            let value = value.map(|(_, text)| (key.kind.toml_value(text), Source::Default));
            Setting::new(key, value)
        };
        let settings = Settings {
            all: KEYS.iter().map(setting).collect::<Result<_>>()?,
            warnings: Vec::new(),
        };
        Config::new(settings)
    }

    #[test]
    fn the_defaults_are_those_of_the_core() {
        let config = config(&[("database", "a.db")]).expect("the defaults are valid");
        assert_eq!(config.loop_control.control(), turn::LoopControl::default());
        assert_eq!(config.capture.policy(), CapturePolicy::default());
        assert_eq!(config.notify.kinds, finding::Kind::ALL);
        assert!(config.embeddings.is_none());
        assert!(config.extraction.is_none());
        assert!(config.issuer.is_none());
    }

    #[test]
    fn examples_and_choices_have_a_field_that_accepts_them() {
        let examples = KEYS.iter().filter_map(|key| Some((key.path, key.example?)));
        let mut values: Vec<_> = examples.filter(|(_, text)| !text.contains('…')).collect();
        assert!(config(&values).is_ok_and(|config| config.extraction.is_some()));
        for key in KEYS {
            if let Kind::Choice(choices) = key.kind {
                for choice in choices() {
                    values.push((key.path, choice));
                    assert!(config(&values).is_ok(), "{} = {choice}", key.path);
                    values.pop();
                }
            }
        }
    }

    #[test]
    fn addresses_secrets_and_switches_require_trust() {
        for key in KEYS {
            let kind = if let Kind::List(kind) = key.kind {
                kind
            } else {
                &key.kind
            };
            let is_harmless = matches!(
                kind,
                Kind::Text | Kind::Number(..) | Kind::Boolean | Kind::Choice(_) | Kind::ToolTimeout
            );
            let is_switch = key.table.switch == Some(key.path);
            let requires_trust = key.requires.is_some() || is_switch || !is_harmless;
            assert!(!requires_trust || key.trust == Trust::User, "{}", key.path);
        }
    }
}
