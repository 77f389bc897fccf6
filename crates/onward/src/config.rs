//! Configuration of a run. Precedence, highest first: flags, environment, the project's
//! `onward.toml`, the user's `config.toml`, defaults.
//!
//! Each value keeps its source, for `onward config` and for error messages. `config/lookup.rs`
//! finds the value of a key and derives its environment variable, `config/file.rs` parses a file,
//! and the other files check the values of one or two tables. The database is not opened here.

mod file;
mod lookup;
pub(crate) mod loop_control;
mod models;
mod notify;
mod serve;

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use onward_engine::Address;
use onward_engine::caller::LOCAL;
use onward_engine::retention::Retention;

use crate::failure::{Failure, Result};
use crate::output::GLOBAL_OPTIONS;
use file::File;
use lookup::{Lookup, read_variable};

pub(crate) use models::{Embeddings, Extraction, Key, Provider};
pub(crate) use notify::Notify;
pub(crate) use serve::{Issuer, Limits, Serve};

/// The project's file, in the current directory or its nearest ancestor.
const PROJECT_FILE: &str = "onward.toml";
/// The user's file, relative to the user's configuration directory.
const USER_FILE: &str = "onward/config.toml";
/// The default database, relative to the user's data directory.
const DATABASE_FILE: &str = "onward/onward.db";
const MAX_DAYS: u32 = 36_500;
const MAX_FORM_SECONDS: u32 = 60;

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
}

#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) database: Setting<Address>,
    pub(crate) tenant: Setting<String>,
    /// How long to keep completed and failed plans; forever if `None`.
    pub(crate) finished_plans_days: Setting<Option<u32>>,
    /// How long to keep the log of tool calls; forever if `None`.
    pub(crate) tool_calls_days: Setting<Option<u32>>,
    /// How long to keep inactive agent sessions; forever if `None`.
    pub(crate) sessions_days: Setting<Option<u32>>,
    /// Detection of looping turns.
    pub(crate) loop_control: loop_control::Settings,
    /// How long a review form stays open in the agent's window; 0 turns forms off.
    pub(crate) form_seconds: Setting<u32>,
    pub(crate) embeddings: Embeddings,
    pub(crate) extraction: Extraction,
    pub(crate) notify: Notify,
    pub(crate) serve: Serve,
    /// The files that were read, highest precedence first.
    pub(crate) files: Vec<PathBuf>,
    /// Warnings about deprecated environment variables.
    pub(crate) warnings: Vec<String>,
}

/// A value and its source.
#[derive(Debug, Clone)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) source: Source,
}

impl<T> Setting<T> {
    fn from_default(value: T) -> Self {
        Self {
            value,
            source: Source::Default,
        }
    }

    fn or_default(setting: Option<Self>, default: T) -> Self {
        setting.unwrap_or_else(|| Self::from_default(default))
    }

    fn optional(setting: Option<Self>) -> Setting<Option<T>> {
        match setting {
            Some(Self { value, source }) => Setting {
                value: Some(value),
                source,
            },
            None => Setting::from_default(None),
        }
    }
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Flag(&'static str),
    Environment(String),
    File { path: PathBuf, line: usize },
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag(name) => write!(f, "flag `{name}`"),
            Source::Environment(name) => write!(f, "environment variable `{name}`"),
            Source::File { path, line } => write!(f, "{}:{line}", path.display()),
            Source::Default => f.write_str("default"),
        }
    }
}

impl Source {
    /// An error about a value from this source. `why` continues the sentence: "must be …".
    fn invalid(&self, key: &str, why: impl fmt::Display) -> Failure {
        match self {
            Source::Flag(name) => Failure::usage(
                format!("`{name}` {why}"),
                "correct the flag, or omit it to use the configured value",
            ),
            Source::Environment(name) => Failure::usage(
                format!("environment variable `{name}` {why}"),
                "correct the variable, or unset it",
            ),
            Source::File { .. } => Failure::usage(
                format!("{self}: `{key}` {why}"),
                "correct the file; see the example in `onward config --help`",
            ),
            Source::Default => Failure::usage(
                format!("`{key}` {why}"),
                "set it; see the example in `onward config --help`",
            ),
        }
    }
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
        let lookup = Lookup::new(&files);
        let days = |key, entry: fn(&file::Retention) -> &file::Entry<u32>| {
            let days = lookup.number(key, 1..=MAX_DAYS, |tables| entry(&tables.retention));
            days.map(Setting::optional)
        };
        let form_seconds =
            lookup.number("reviews.form_seconds", 0..=MAX_FORM_SECONDS, |tables| {
                &tables.reviews.form_seconds
            })?;
        Ok(Self {
            database: database(flags, &lookup)?,
            tenant: tenant(flags, &lookup)?,
            finished_plans_days: days("retention.finished_plans_days", |table| {
                &table.finished_plans_days
            })?,
            tool_calls_days: days("retention.tool_calls_days", |table| &table.tool_calls_days)?,
            sessions_days: days("retention.sessions_days", |table| &table.sessions_days)?,
            loop_control: loop_control::Settings::read(&lookup)?,
            form_seconds: Setting::or_default(form_seconds, MAX_FORM_SECONDS),
            embeddings: Embeddings::read(&lookup)?,
            extraction: Extraction::read(&lookup)?,
            notify: Notify::read(&lookup)?,
            serve: Serve::read(&lookup)?,
            warnings: lookup.into_warnings(),
            files: paths,
        })
    }

    pub(crate) fn retention(&self) -> Retention {
        let duration = |days: u32| Duration::from_secs(u64::from(days) * 24 * 60 * 60);
        Retention {
            finished_plans: self.finished_plans_days.value.map(duration),
            tool_calls: self.tool_calls_days.value.map(duration),
            sessions: self.sessions_days.value.map(duration),
        }
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

fn from_flag(flag: &'static str, value: Option<&String>) -> Option<Setting<String>> {
    value.map(|value| Setting {
        value: value.clone(),
        source: Source::Flag(flag),
    })
}

fn database(flags: &Flags, lookup: &Lookup<'_>) -> Result<Setting<Address>> {
    let mut setting = from_flag("--database", flags.database.as_ref());
    if setting.is_none() {
        setting = lookup.variable("database")?;
    }
    if setting.is_none() {
        setting = read_variable("DATABASE_URL")?;
    }
    let setting = setting.or_else(|| lookup.file(|tables| &tables.database));
    let Some(Setting {
        value: text,
        source,
    }) = setting
    else {
        let folder = user_directory("XDG_DATA_HOME", ".local/share").ok_or_else(|| {
            Failure::usage(
                "no default database: neither `XDG_DATA_HOME` nor `HOME` is set",
                "set the database with `--database PATH`",
            )
        })?;
        return Ok(Setting::from_default(Address::File(
            folder.join(DATABASE_FILE),
        )));
    };
    // The message does not repeat the address, which may contain a password.
    let address = Address::parse(&text)
        .map_err(|_| source.invalid("database", "must be a file path or a `postgres://` URL"))?;
    let value = match (address, &source) {
        (Address::File(path), Source::File { path: file, .. }) => {
            Address::File(resolve_path(file, path))
        }
        (address, _) => address,
    };
    Ok(Setting { value, source })
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

fn tenant(flags: &Flags, lookup: &Lookup<'_>) -> Result<Setting<String>> {
    let mut setting = from_flag("--tenant", flags.tenant.as_ref());
    if setting.is_none() {
        setting = lookup.variable("tenant")?;
    }
    match setting.or_else(|| lookup.file(|tables| &tables.tenant)) {
        Some(Setting { value, source }) if value.trim().is_empty() => {
            Err(source.invalid("tenant", "must not be empty"))
        }
        setting => Ok(Setting::or_default(setting, LOCAL.to_owned())),
    }
}

/// An address for display, without its password.
pub(crate) fn display_address(address: &Address) -> String {
    match address {
        Address::File(path) => path.display().to_string(),
        Address::Server(url) => without_password(url),
    }
}

fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    // A password may contain an unencoded `@`; the last one precedes the host.
    let (user_info, rest) = match rest.rsplit_once('@') {
        Some((user_info, rest)) => (Some(user_info), rest),
        None => (None, rest),
    };
    let (location, query) = match rest.split_once('?') {
        Some((location, query)) => (location, Some(query)),
        None => (rest, None),
    };
    let mut text = format!("{scheme}://");
    if let Some(user_info) = user_info {
        let user = user_info
            .split_once(':')
            .map_or(user_info, |(user, _)| user);
        text.push_str(user);
        text.push_str(if user_info.contains(':') {
            ":…@"
        } else {
            "@"
        });
    }
    text.push_str(location);
    let is_public = |part: &&str| !part.to_lowercase().starts_with("password=");
    let kept: Vec<&str> = query
        .iter()
        .flat_map(|query| query.split('&'))
        .filter(is_public)
        .collect();
    if !kept.is_empty() {
        text.push('?');
        text.push_str(&kept.join("&"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hides_passwords_in_database_urls() {
        for (url, displayed) in [
            ("postgres://a@h/d", "postgres://a@h/d"),
            ("postgres://a:b@h:1/d", "postgres://a:…@h:1/d"),
            ("postgres://a:b@c@h/d", "postgres://a:…@h/d"),
            ("postgres://h/d?password=b&x=1", "postgres://h/d?x=1"),
            ("postgres://a:b?c@h/d", "postgres://a:…@h/d"),
        ] {
            assert_eq!(without_password(url), displayed);
        }
    }
}
