//! What holds for a run, and who said so: flags over the environment over the project's `onward.toml`
//! over the user's `config.toml` over what is built in.
//!
//! A value keeps where it came from, so that `onward config` can say it and an error can point there.
//! How a file is read stands in `config/file.rs`, what only `onward serve` needs in
//! `config/serve.rs`, how turns are judged in `config/loop_control.rs`, which models are asked in
//! `config/models.rs`, who is told in `config/notify.rs`. Nothing is opened here, and
//! nothing is made.

mod file;
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

pub(crate) use models::{Embeddings, Extraction, Key, Provider};
pub(crate) use notify::Notify;
pub(crate) use serve::{Issuer, Limits, Serve};

/// The project's file: in the current directory, or the nearest one above it.
const PROJECT_FILE: &str = "onward.toml";
/// The user's file, in their directory for configuration.
const USER_FILE: &str = "onward/config.toml";
/// The database, in the user's directory for data.
const DATABASE: &str = "onward/onward.db";
/// Longer than anybody plans.
const MOST_DAYS: u32 = 36_500;
/// How long a person is asked in their agent's own window, at most.
const MOST_FORM_SECONDS: u32 = 60;

/// What can be said on the command line.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Flags {
    /// The database: a path for SQLite, or `postgres://…`; also `DATABASE_URL`
    #[arg(long, global = true, value_name = "URL|PATH")]
    database: Option<String>,
    /// Read this configuration file, and neither the project's nor the user's
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Whose plans, where several share a database
    #[arg(long, global = true, value_name = "NAME")]
    tenant: Option<String>,
}

/// What holds.
#[derive(Debug)]
pub(crate) struct Config {
    /// Where the database is.
    pub(crate) database: Setting<Address>,
    /// Whose plans.
    pub(crate) tenant: Setting<String>,
    /// How long plans are kept that are over.
    pub(crate) finished_plans_days: Setting<Option<u32>>,
    /// How long the log of tool calls is kept.
    pub(crate) tool_calls_days: Setting<Option<u32>>,
    /// How long agents' sessions are kept that have been silent.
    pub(crate) sessions_days: Setting<Option<u32>>,
    /// How turns are judged, and what is done about one that goes round in circles.
    pub(crate) loop_control: loop_control::Settings,
    /// How long a person is asked in their agent's own window; 0 asks nobody.
    pub(crate) form_seconds: Setting<u32>,
    /// Which model says what texts mean.
    pub(crate) embeddings: Embeddings,
    /// Which model says what stands in them.
    pub(crate) extraction: Extraction,
    /// Who is told of what was found, when nobody looks.
    pub(crate) notify: Notify,
    /// What holds for `onward serve`.
    pub(crate) serve: Serve,
    /// The files that were read, the one that counts more first.
    pub(crate) files: Vec<PathBuf>,
}

/// A value, and who gave it.
#[derive(Debug, Clone)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) from: Source,
}

/// Who gave a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Flag(&'static str),
    Environment(&'static str),
    File { path: PathBuf, line: usize },
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag(name) => write!(f, "the flag `{name}`"),
            Source::Environment(name) => write!(f, "the variable `{name}`"),
            Source::File { path, line } => write!(f, "{}:{line}", path.display()),
            Source::Default => f.write_str("the default"),
        }
    }
}

impl Source {
    /// What is wrong with a value that it gave.
    fn refuses(&self, what: &str, why: impl fmt::Display) -> Failure {
        let hint = match self {
            Source::File { .. } => "correct the file: `onward config --help` shows an example",
            Source::Environment(_) => "correct the variable, or unset it",
            Source::Flag(_) | Source::Default => "`onward config` shows what holds without it",
        };
        Failure::usage(format!("{self}: `{what}` {why}"), hint)
    }
}

impl Config {
    /// What holds for this run.
    pub(crate) fn read(flags: &Flags) -> Result<Self> {
        let paths = match flags
            .config
            .clone()
            .map(Ok)
            .or_else(|| path_variable("ONWARD_CONFIG"))
        {
            Some(named) => vec![named?],
            None => found_files(),
        };
        let files: Vec<file::File> = paths
            .iter()
            .map(|path| file::read(path))
            .collect::<Result<_>>()?;
        let text = |flag, name, given: &Option<String>| {
            let given = given.clone().map(|value| (value, Source::Flag(flag)));
            given.map(Ok).or_else(|| variable(name)).transpose()
        };
        let mut database = text("--database", "ONWARD_DATABASE", &flags.database)?;
        if database.is_none() {
            database = variable("DATABASE_URL").transpose()?;
        }
        let database = database.or_else(|| files.iter().find_map(|file| file.database.clone()));
        let tenant = text("--tenant", "ONWARD_TENANT", &flags.tenant)?;
        let tenant = tenant.or_else(|| files.iter().find_map(|file| file.tenant.clone()));
        let from_file = |read: fn(&file::File) -> &Option<(u32, Source)>| {
            files.iter().find_map(|file| read(file).clone())
        };
        let tables: Vec<&loop_control::Said> =
            files.iter().map(|file| &file.loop_control).collect();
        let notified: Vec<&notify::Table> = files.iter().map(|file| &file.notify).collect();
        Ok(Self {
            database: address(database)?,
            tenant: name(tenant)?,
            finished_plans_days: days(
                "retention.finished_plans_days",
                "ONWARD_RETENTION_FINISHED_PLANS_DAYS",
                from_file(|file| &file.finished_plans_days),
            )?,
            tool_calls_days: days(
                "retention.tool_calls_days",
                "ONWARD_RETENTION_TOOL_CALLS_DAYS",
                from_file(|file| &file.tool_calls_days),
            )?,
            sessions_days: days(
                "retention.sessions_days",
                "ONWARD_RETENTION_SESSIONS_DAYS",
                from_file(|file| &file.sessions_days),
            )?,
            loop_control: loop_control::Settings::read(&tables)?,
            form_seconds: form_seconds(from_file(|file| &file.form_seconds))?,
            embeddings: Embeddings::read(&files)?,
            extraction: Extraction::read(&files)?,
            notify: Notify::read(&notified)?,
            serve: Serve::read(&files)?,
            files: paths,
        })
    }

    /// How long things are kept.
    pub(crate) fn retention(&self) -> Retention {
        let span = |days: u32| Duration::from_secs(u64::from(days) * 24 * 60 * 60);
        Retention {
            finished_plans: self.finished_plans_days.value.map(span),
            tool_calls: self.tool_calls_days.value.map(span),
            sessions: self.sessions_days.value.map(span),
        }
    }
}

/// The project's file and the user's, where they are there.
fn found_files() -> Vec<PathBuf> {
    let here = env::current_dir().ok();
    let project = here.iter().flat_map(|here| here.ancestors());
    let project = project
        .map(|folder| folder.join(PROJECT_FILE))
        .find(|path| path.is_file());
    let user = home("XDG_CONFIG_HOME", ".config").map(|folder| folder.join(USER_FILE));
    project
        .into_iter()
        .chain(user.filter(|path| path.is_file()))
        .collect()
}

/// A directory of the user: the one that is named, or its place in their home.
fn home(variable: &str, place: &str) -> Option<PathBuf> {
    let absolute = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(place)))
}

/// A variable of the environment; an empty one says nothing.
fn variable(name: &'static str) -> Option<Result<(String, Source)>> {
    let source = Source::Environment(name);
    match env::var(name) {
        Ok(value) if value.is_empty() => None,
        Ok(value) => Some(Ok((value, source))),
        Err(env::VarError::NotPresent) => None,
        Err(env::VarError::NotUnicode(_)) => Some(Err(source.refuses(name, "is not UTF-8"))),
    }
}

fn path_variable(name: &'static str) -> Option<Result<PathBuf>> {
    let value = env::var_os(name).filter(|value| !value.is_empty());
    value.map(|value| Ok(PathBuf::from(value)))
}

fn address(given: Option<(String, Source)>) -> Result<Setting<Address>> {
    let Some((text, from)) = given else {
        let folder = home("XDG_DATA_HOME", ".local/share").ok_or_else(|| {
            Failure::usage(
                "there is no place for the database: neither `XDG_DATA_HOME` nor `HOME` is set",
                "name one with `--database PATH`",
            )
        })?;
        return Ok(Setting {
            value: Address::File(folder.join(DATABASE)),
            from: Source::Default,
        });
    };
    // The address is not repeated: it may hold a password.
    let refused = |_| from.refuses("database", "is neither a path nor `postgres://…`");
    let value = match (Address::parse(&text).map_err(refused)?, &from) {
        (Address::File(path), Source::File { path: file, .. }) => Address::File(beside(file, path)),
        (address, _) => address,
    };
    Ok(Setting { value, from })
}

/// A path in a file is seen from where the file is; `~` is the user's home.
fn beside(file: &Path, path: PathBuf) -> PathBuf {
    let at_home = path.strip_prefix("~").ok().zip(env::var_os("HOME"));
    match (at_home, file.parent()) {
        (Some((rest, home)), _) => PathBuf::from(home).join(rest),
        (None, Some(folder)) => folder.join(path),
        (None, None) => path,
    }
}

fn name(given: Option<(String, Source)>) -> Result<Setting<String>> {
    match given {
        Some((value, from)) if value.trim().is_empty() => Err(from.refuses("tenant", "is empty")),
        Some((value, from)) => Ok(Setting { value, from }),
        None => Ok(Setting {
            value: LOCAL.to_owned(),
            from: Source::Default,
        }),
    }
}

/// A number, from the environment or from a file.
fn number(
    what: &'static str,
    name: &'static str,
    of: &str,
    from_file: Option<(u32, Source)>,
) -> Result<Option<(u32, Source)>> {
    match variable(name).transpose()? {
        Some((text, from)) => match text.parse() {
            Ok(number) => Ok(Some((number, from))),
            Err(_) => Err(from.refuses(what, format_args!("is no number of {of}"))),
        },
        None => Ok(from_file),
    }
}

fn days(
    what: &'static str,
    name: &'static str,
    from_file: Option<(u32, Source)>,
) -> Result<Setting<Option<u32>>> {
    match number(what, name, "days", from_file)? {
        Some((number, from)) if number == 0 || number > MOST_DAYS => Err(from.refuses(
            what,
            format_args!("is {number}, and must be 1 to {MOST_DAYS} days"),
        )),
        Some((number, from)) => Ok(Setting {
            value: Some(number),
            from,
        }),
        None => Ok(Setting {
            value: None,
            from: Source::Default,
        }),
    }
}

fn form_seconds(from_file: Option<(u32, Source)>) -> Result<Setting<u32>> {
    let what = "reviews.form_seconds";
    match number(what, "ONWARD_REVIEWS_FORM_SECONDS", "seconds", from_file)? {
        Some((number, from)) if number > MOST_FORM_SECONDS => Err(from.refuses(
            what,
            format_args!("is {number}, and must be 0 to {MOST_FORM_SECONDS} seconds"),
        )),
        Some((value, from)) => Ok(Setting { value, from }),
        None => Ok(Setting {
            value: MOST_FORM_SECONDS,
            from: Source::Default,
        }),
    }
}

/// An address as it may be shown: without its password.
pub(crate) fn shown(address: &Address) -> String {
    match address {
        Address::File(path) => path.display().to_string(),
        Address::Server(url) => without_password(url),
    }
}

fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    // A password may hold anything that nobody encoded: the last `@` is the one before the host.
    let (who, rest) = match rest.rsplit_once('@') {
        Some((who, rest)) => (Some(who), rest),
        None => (None, rest),
    };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    let mut shown = format!("{scheme}://");
    if let Some(who) = who {
        shown.push_str(who.split_once(':').map_or(who, |(user, _)| user));
        shown.push_str(if who.contains(':') { ":…@" } else { "@" });
    }
    shown.push_str(place);
    let secret = |part: &&str| !part.to_lowercase().starts_with("password=");
    let kept: Vec<&str> = query
        .iter()
        .flat_map(|query| query.split('&'))
        .filter(secret)
        .collect();
    if !kept.is_empty() {
        shown.push('?');
        shown.push_str(&kept.join("&"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (url, shown) in [
            ("postgres://a@h/d", "postgres://a@h/d"),
            ("postgres://a:b@h:1/d", "postgres://a:…@h:1/d"),
            ("postgres://a:b@c@h/d", "postgres://a:…@h/d"),
            ("postgres://h/d?password=b&x=1", "postgres://h/d?x=1"),
            ("postgres://a:b?c@h/d", "postgres://a:…@h/d"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
