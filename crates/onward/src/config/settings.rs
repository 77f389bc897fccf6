//! The value and the source of every configuration key. Precedence, highest first: flags,
//! environment, files, default.
//!
//! The environment variable of a key is its path in capitals with `__` between tables and name. The
//! deprecated name with a single `_` is accepted with a warning; if both are set, `__` wins.

use std::env;

use serde_json::Value as Json;
use toml_edit::Value;

use super::file::File;
use super::keys::{DefaultValue, KEYS, Key};
use super::kind::{Kind, is_encrypted};
use super::source::Source;
use crate::failure::Result;

/// A value, which is `null` if the key has none, and its source.
pub(crate) struct Setting {
    pub(crate) key: &'static Key,
    pub(crate) value: Json,
    pub(crate) source: Source,
}

/// The settings of all keys.
#[derive(Default)]
pub(crate) struct Settings {
    /// In the order of [`KEYS`].
    pub(crate) all: Vec<Setting>,
    /// Warnings about deprecated environment variables.
    pub(crate) warnings: Vec<String>,
}

impl Settings {
    /// Reads all keys. `flag` returns the name and the value of the flag of a key. The first file
    /// has the highest precedence.
    pub(super) fn read<'a>(
        flag: impl Fn(&Key) -> Option<(&'static str, &'a str)>,
        files: &[File],
    ) -> Result<Self> {
        let mut settings = Self::default();
        for key in KEYS {
            let found = match flag(key) {
                Some((name, text)) => Some((key.kind.toml_value(text), Source::Flag { name })),
                None => read_environment(key, &mut settings.warnings)?,
            };
            let found = found.or_else(|| files.iter().find_map(|file| file.get(key)));
            settings.all.push(Setting::new(key, found)?);
        }
        settings.check()?;
        Ok(settings)
    }

    /// Checks the rules about several keys.
    fn check(&self) -> Result<()> {
        for Setting { key, value, source } in self.all.iter().filter(|one| !one.value.is_null()) {
            if let Some(other) = key.requires.filter(|other| !self.is_set(other)) {
                return Err(source.invalid(key.path, format!("requires `{other}`")));
            }
            if let Kind::Endpoint(api_key) = key.kind
                && self.is_set(api_key)
                && !value.as_str().is_some_and(is_encrypted)
            {
                let why = format!("must begin with `https://`, because `{api_key}` is set");
                return Err(source.invalid(key.path, why));
            }
        }
        Ok(())
    }

    fn get(&self, path: &str) -> Option<&Setting> {
        self.all.iter().find(|setting| setting.key.path == path)
    }

    pub(crate) fn source(&self, path: &str) -> &Source {
        self.get(path).map_or(&Source::Default, |one| &one.source)
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.get(path)?.value.as_str()
    }

    pub(super) fn is_set(&self, path: &str) -> bool {
        self.get(path).is_some_and(|one| !one.value.is_null())
    }

    /// Whether the key has an effect: its feature is on.
    pub(crate) fn is_effective(&self, key: &Key) -> bool {
        key.table.switch.is_none_or(|switch| self.is_set(switch))
    }

    /// Replaces the value of a key. The source stays.
    pub(super) fn set_value(&mut self, path: &str, value: impl Into<Json>) {
        if let Some(setting) = self.all.iter_mut().find(|one| one.key.path == path) {
            setting.value = value.into();
        }
    }

    /// The values by table and name, without features that are off.
    pub(super) fn to_json(&self) -> Json {
        let mut tables = Json::Null;
        for Setting { key, value, .. } in self.all.iter().filter(|one| self.is_effective(one.key)) {
            tables[key.table.name()][key.name()] = value.clone();
        }
        tables
    }
}

impl Setting {
    /// Validates the value that was found. If there is none, uses the default.
    pub(super) fn new(key: &'static Key, found: Option<(Value, Source)>) -> Result<Self> {
        let default = || match key.default {
            DefaultValue::Fixed(text) => Some((key.kind.toml_value(text), Source::Default)),
            DefaultValue::Unset(_) => None,
        };
        let (value, source) = match found.or_else(default) {
            Some((value, source)) => match key.kind.parse(&value) {
                Ok(value) => (value, source),
                Err(why) => return Err(source.invalid(key.path, why)),
            },
            None => (Json::Null, Source::Default),
        };
        Ok(Self { key, value, source })
    }
}

/// The value of a key from the environment. Warns about the deprecated variable.
fn read_environment(key: &Key, warnings: &mut Vec<String>) -> Result<Option<(Value, Source)>> {
    let (name, deprecated) = (key.variable("__"), key.variable("_"));
    let mut found = read_variable(&name)?;
    if deprecated != name && env::var_os(&deprecated).is_some_and(|value| !value.is_empty()) {
        if found.is_some() {
            warnings.push(format!(
                "`{deprecated}` is ignored because `{name}` is set; unset `{deprecated}`"
            ));
        } else {
            found = read_variable(&deprecated)?;
            warnings.push(format!("`{deprecated}` is deprecated; use `{name}`"));
        }
    }
    if found.is_none() && matches!(key.kind, Kind::Database) {
        found = read_variable("DATABASE_URL")?;
    }
    Ok(found.map(|(text, source)| (key.kind.toml_value(&text), source)))
}

/// An environment variable that is set and not empty.
fn read_variable(name: &str) -> Result<Option<(String, Source)>> {
    let source = Source::Environment {
        name: name.to_owned(),
    };
    match env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some((value, source))),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(source.invalid(name, "must be UTF-8")),
    }
}
