//! Configuration of a run. Precedence, highest first: flags, environment, the project's
//! `onward.toml`, the user's `config.toml`, defaults.
//!
//! `config/keys.rs` is the table of keys. `kind` validates values, `file` parses a file, `settings`
//! finds the value and the source of each key, and `reference` describes the keys to readers. The
//! database is not opened here.

mod file;
mod keys;
mod kind;
mod policy;
pub(crate) mod reference;
mod settings;
mod source;
mod values;

use std::env;
use std::path::{Path, PathBuf};

use clap::Args;
use onward_engine::Address;
use serde::Deserialize;

use crate::failure::{Failure, Result};
use crate::output::GLOBAL_OPTIONS;
use file::File;

pub(crate) use keys::{
    Access, DefaultValue, Embeddings, Extraction, Issuer, Key, Limits, LoopControl, Notify,
    Retention, Reviews, Serve, TopLevel,
};
pub(crate) use kind::Kind;
pub(crate) use settings::{Setting, Settings};
pub(crate) use source::Source;
pub(crate) use values::{ApiKey, Provider, display_origin};

/// The project's file, in the current directory or its nearest ancestor.
const PROJECT_FILE: &str = "onward.toml";
/// The user's file, relative to the user's configuration directory.
const USER_FILE: &str = "onward/config.toml";
/// The default database, relative to the user's data directory.
const DATABASE_FILE: &str = "onward/onward.db";

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
    pub(crate) loop_control: LoopControl,
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
}

fn no_database() -> Address {
    Address::File(PathBuf::new())
}

impl Config {
    pub(crate) fn read(flags: &Flags) -> Result<Self> {
        let named = flags.config.clone().or_else(|| {
            let path = env::var_os("ONWARD_CONFIG").filter(|path| !path.is_empty());
            path.map(PathBuf::from)
        });
        let paths = named.map_or_else(find_files, |path| vec![path]);
        let files: Vec<File> = paths
            .iter()
            .map(|path| File::read(path))
            .collect::<Result<_>>()?;
        let settings = Settings::read(|key| flags.get(key), &files)?;
        Self::new(settings, paths)
    }

    fn new(mut settings: Settings, files: Vec<PathBuf>) -> Result<Self> {
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
        config.files = files;
        Ok(config)
    }
}

/// The existing configuration files: the project's, then the user's.
fn find_files() -> Vec<PathBuf> {
    let here = env::current_dir().ok();
    let project = here.iter().flat_map(|here| here.ancestors());
    let project = project
        .map(|folder| folder.join(PROJECT_FILE))
        .find(|path| path.is_file());
    let user = user_directory("XDG_CONFIG_HOME", ".config").map(|folder| folder.join(USER_FILE));
    project
        .into_iter()
        .chain(user.filter(|path| path.is_file()))
        .collect()
}

/// A directory of the user, from the variable or from the default below `HOME`.
fn user_directory(variable: &str, default: &str) -> Option<PathBuf> {
    let absolute = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(default)))
}

/// The configured database, or the default one. A path in a file is relative to that file.
fn database(address: Option<&str>, source: &Source) -> Result<Address> {
    let Some(address) = address else {
        let folder = user_directory("XDG_DATA_HOME", ".local/share").ok_or_else(|| {
            Failure::usage(
                "no default database: neither `XDG_DATA_HOME` nor `HOME` is set",
                "set the database with `--database PATH`",
            )
        })?;
        return Ok(Address::File(folder.join(DATABASE_FILE)));
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
    let at_home = path.strip_prefix("~").ok().zip(env::var_os("HOME"));
    match (at_home, file.parent()) {
        (Some((rest, home)), _) => PathBuf::from(home).join(rest),
        (None, Some(folder)) => folder.join(path),
        (None, None) => path,
    }
}

#[cfg(test)]
mod tests {
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
        Config::new(settings, Vec::new())
    }

    #[test]
    fn the_defaults_are_those_of_the_core() {
        let config = config(&[("database", "a.db")]).expect("the defaults are valid");
        assert_eq!(config.loop_control.control(), turn::LoopControl::default());
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
    fn addresses_and_secrets_require_trust() {
        for key in KEYS {
            let kind = if let Kind::List(kind) = key.kind {
                kind
            } else {
                &key.kind
            };
            let is_harmless = matches!(
                kind,
                Kind::Text | Kind::Number(..) | Kind::Boolean | Kind::Choice(_)
            );
            assert!(is_harmless || key.trust == Trust::User, "{}", key.path);
        }
    }
}
