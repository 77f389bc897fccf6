//! Lookup of one configuration key: the environment first, then the files in order of precedence.
//!
//! The environment variable of a key is its path in capitals with `__` between tables and key:
//! `access.issuer.url` is `ONWARD_ACCESS__ISSUER__URL`. The older spelling with a single `_` is
//! accepted with a warning; if both are set, the `__` spelling wins.

use std::cell::RefCell;
use std::env;
use std::ops::RangeInclusive;

use super::file::{Entry, File, Tables};
use super::{Setting, Source};
use crate::failure::Result;

/// The sources below the flags, and the warnings that reading them produced.
pub(super) struct Lookup<'a> {
    /// Highest precedence first.
    files: &'a [File],
    warnings: RefCell<Vec<String>>,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(files: &'a [File]) -> Self {
        Self {
            files,
            warnings: RefCell::default(),
        }
    }

    /// The warnings of all lookups so far.
    pub(super) fn into_warnings(self) -> Vec<String> {
        self.warnings.into_inner()
    }

    /// The value of a key from the environment; an empty variable counts as unset.
    pub(super) fn variable(&self, key: &str) -> Result<Option<Setting<String>>> {
        let (name, deprecated) = (variable_name(key, "__"), variable_name(key, "_"));
        let setting = read_variable(&name)?;
        if name == deprecated {
            return Ok(setting);
        }
        if setting.is_some() {
            if is_set(&deprecated) {
                self.warn(format!(
                    "`{deprecated}` is ignored because `{name}` is set; unset `{deprecated}`"
                ));
            }
            return Ok(setting);
        }
        let setting = read_variable(&deprecated)?;
        if setting.is_some() {
            self.warn(format!("`{deprecated}` is deprecated; use `{name}`"));
        }
        Ok(setting)
    }

    /// The value of a key from the first file that sets it.
    pub(super) fn file<T: Clone>(
        &self,
        entry: impl Fn(&Tables) -> &Entry<T>,
    ) -> Option<Setting<T>> {
        self.files
            .iter()
            .find_map(|file| file.setting(entry(&file.tables)))
    }

    /// A text that is not blank.
    pub(super) fn text(
        &self,
        key: &str,
        entry: impl Fn(&Tables) -> &Entry<String>,
    ) -> Result<Option<Setting<String>>> {
        let setting = self.variable(key)?.or_else(|| self.file(entry));
        match setting {
            Some(setting) if setting.value.trim().is_empty() => {
                Err(setting.source.invalid(key, "must not be empty"))
            }
            setting => Ok(setting),
        }
    }

    /// A list of texts; the environment separates them with spaces.
    pub(super) fn list(
        &self,
        key: &str,
        entry: impl Fn(&Tables) -> &Entry<Vec<String>>,
    ) -> Result<Option<Setting<Vec<String>>>> {
        let variable = self
            .variable(key)?
            .map(|Setting { value, source }| Setting {
                value: value.split_whitespace().map(str::to_owned).collect(),
                source,
            });
        let setting = variable.or_else(|| self.file(entry));
        match setting {
            Some(setting) if setting.value.iter().any(|item| item.trim().is_empty()) => {
                Err(setting
                    .source
                    .invalid(key, "must not contain an empty item"))
            }
            setting => Ok(setting),
        }
    }

    /// A number within a range.
    pub(super) fn number(
        &self,
        key: &str,
        range: RangeInclusive<u32>,
        entry: impl Fn(&Tables) -> &Entry<u32>,
    ) -> Result<Option<Setting<u32>>> {
        let invalid = |source: &Source, value: &str| {
            let (first, last) = (range.start(), range.end());
            let why = format!("must be a number from {first} to {last}, not `{value}`");
            source.invalid(key, why)
        };
        let setting = match self.variable(key)? {
            Some(Setting { value, source }) => match value.parse() {
                Ok(value) => Some(Setting { value, source }),
                Err(_) => return Err(invalid(&source, &value)),
            },
            None => self.file(entry),
        };
        match setting {
            Some(Setting { value, source }) if !range.contains(&value) => {
                Err(invalid(&source, &value.to_string()))
            }
            setting => Ok(setting),
        }
    }

    /// `true` or `false`.
    pub(super) fn boolean(
        &self,
        key: &str,
        entry: impl Fn(&Tables) -> &Entry<bool>,
    ) -> Result<Option<Setting<bool>>> {
        match self.variable(key)? {
            Some(Setting { value, source }) => match value.parse() {
                Ok(value) => Ok(Some(Setting { value, source })),
                Err(_) => Err(source.invalid(key, "must be `true` or `false`")),
            },
            None => Ok(self.file(entry)),
        }
    }

    fn warn(&self, warning: String) {
        self.warnings.borrow_mut().push(warning);
    }
}

/// The variable of a key, with a separator between tables and key.
fn variable_name(key: &str, separator: &str) -> String {
    format!("ONWARD_{}", key.replace('.', separator).to_uppercase())
}

fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// An environment variable that is set and not empty.
pub(super) fn read_variable(name: &str) -> Result<Option<Setting<String>>> {
    let source = Source::Environment(name.to_owned());
    match env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some(Setting { value, source })),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(source.invalid(name, "must be UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derives_both_variable_names_from_the_path_of_a_key() {
        for (key, name, deprecated) in [
            ("database", "ONWARD_DATABASE", "ONWARD_DATABASE"),
            ("serve.bind", "ONWARD_SERVE__BIND", "ONWARD_SERVE_BIND"),
            (
                "loop_control.on_stall",
                "ONWARD_LOOP_CONTROL__ON_STALL",
                "ONWARD_LOOP_CONTROL_ON_STALL",
            ),
            (
                "access.issuer.jwks_url",
                "ONWARD_ACCESS__ISSUER__JWKS_URL",
                "ONWARD_ACCESS_ISSUER_JWKS_URL",
            ),
        ] {
            assert_eq!(variable_name(key, "__"), name);
            assert_eq!(variable_name(key, "_"), deprecated);
        }
    }
}
