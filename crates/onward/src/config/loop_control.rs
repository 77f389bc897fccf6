//! `[loop_control]`: when a turn counts as looping, and the response to it.
//!
//! The file may hold a value of any type here: the range check rejects it later and names the
//! allowed values, which a type error would not.

use std::ops::RangeInclusive;

use onward_core::turn::{LoopControl, OnStall, Parts, Rule, TurnPolicy};
use serde::Deserialize;
use toml::Value;

use super::file::Entry;
use super::lookup::Lookup;
use super::{Setting, Source};
use crate::failure::Result;

const THRESHOLD_RANGE: RangeInclusive<u32> = 1..=1_000;
const LENGTH_RANGE: RangeInclusive<u32> = 0..=100_000;
const STEPS_RANGE: RangeInclusive<u32> = 0..=100_000;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Table {
    progress_stall_threshold: Entry<Value>,
    progress_min_info_gain_length: Entry<Value>,
    max_steps_per_turn: Entry<Value>,
    on_stall: Entry<Value>,
    progress_rule: Entry<Value>,
}

/// The rule that decides whether a step made progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressRule {
    Default,
    Plain,
}

impl ProgressRule {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            ProgressRule::Default => "default",
            ProgressRule::Plain => "plain",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) progress_stall_threshold: Setting<u32>,
    pub(crate) progress_min_info_gain_length: Setting<u32>,
    pub(crate) max_steps_per_turn: Setting<u32>,
    pub(crate) on_stall: Setting<OnStall>,
    pub(crate) progress_rule: Setting<ProgressRule>,
}

impl Settings {
    pub(super) fn read(lookup: &Lookup<'_>) -> Result<Self> {
        let defaults = LoopControl::default();
        let length = u32::try_from(defaults.turn.min_info_gain_length).unwrap_or(u32::MAX);
        Ok(Self {
            progress_stall_threshold: number(
                lookup,
                "loop_control.progress_stall_threshold",
                |table| &table.progress_stall_threshold,
                THRESHOLD_RANGE,
                defaults.turn.stall_threshold,
            )?,
            progress_min_info_gain_length: number(
                lookup,
                "loop_control.progress_min_info_gain_length",
                |table| &table.progress_min_info_gain_length,
                LENGTH_RANGE,
                length,
            )?,
            max_steps_per_turn: number(
                lookup,
                "loop_control.max_steps_per_turn",
                |table| &table.max_steps_per_turn,
                STEPS_RANGE,
                defaults.max_steps,
            )?,
            on_stall: choice(
                lookup,
                "loop_control.on_stall",
                |table| &table.on_stall,
                &OnStall::ALL,
                OnStall::as_str,
            )?,
            progress_rule: choice(
                lookup,
                "loop_control.progress_rule",
                |table| &table.progress_rule,
                &[ProgressRule::Default, ProgressRule::Plain],
                ProgressRule::as_str,
            )?,
        })
    }

    /// The policy for the detector and the escalation.
    pub(crate) fn control(&self) -> LoopControl {
        let length = usize::try_from(self.progress_min_info_gain_length.value);
        LoopControl {
            turn: TurnPolicy {
                stall_threshold: self.progress_stall_threshold.value,
                min_info_gain_length: length.unwrap_or(usize::MAX),
                rule: match self.progress_rule.value {
                    ProgressRule::Default => Rule::Default(Parts::ALL),
                    ProgressRule::Plain => Rule::Plain,
                },
            },
            max_steps: self.max_steps_per_turn.value,
            on_stall: self.on_stall.value,
        }
    }
}

fn find(
    lookup: &Lookup<'_>,
    key: &str,
    entry: fn(&Table) -> &Entry<Value>,
) -> Result<Option<Setting<Value>>> {
    let Some(Setting { value, source }) = lookup.variable(key)? else {
        return Ok(lookup.file(|tables| entry(&tables.loop_control)));
    };
    let value = match value.trim().parse() {
        Ok(number) => Value::Integer(number),
        Err(_) => Value::String(value),
    };
    Ok(Some(Setting { value, source }))
}

fn number(
    lookup: &Lookup<'_>,
    key: &str,
    entry: fn(&Table) -> &Entry<Value>,
    range: RangeInclusive<u32>,
    default: u32,
) -> Result<Setting<u32>> {
    let Some(Setting { value, source }) = find(lookup, key, entry)? else {
        return Ok(Setting::from_default(default));
    };
    let number = value.as_integer().and_then(|number| number.try_into().ok());
    match number.filter(|number| range.contains(number)) {
        Some(value) => Ok(Setting { value, source }),
        None => Err(source.invalid(
            key,
            format_args!(
                "must be a whole number from {} to {}, not {}",
                range.start(),
                range.end(),
                describe(&value)
            ),
        )),
    }
}

/// One of the allowed values; the first one is the default.
fn choice<T: Copy>(
    lookup: &Lookup<'_>,
    key: &str,
    entry: fn(&Table) -> &Entry<Value>,
    allowed: &[T],
    as_str: fn(T) -> &'static str,
) -> Result<Setting<T>> {
    let setting = find(lookup, key, entry)?.unwrap_or_else(|| {
        let first = allowed.first().copied().map(as_str).unwrap_or_default();
        Setting {
            value: Value::String(first.to_owned()),
            source: Source::Default,
        }
    });
    let Setting { value, source } = setting;
    let name = value.as_str().unwrap_or_default();
    match allowed.iter().copied().find(|one| as_str(*one) == name) {
        Some(value) => Ok(Setting { value, source }),
        None => {
            let names: Vec<String> = allowed
                .iter()
                .map(|one| format!("`{}`", as_str(*one)))
                .collect();
            Err(source.invalid(
                key,
                format_args!(
                    "must be one of {}, not {}",
                    names.join(", "),
                    describe(&value)
                ),
            ))
        }
    }
}

/// A value for an error message.
fn describe(value: &Value) -> String {
    match value {
        Value::Integer(number) => format!("`{number}`"),
        Value::Float(number) => format!("`{number}`"),
        Value::Boolean(flag) => format!("`{flag}`"),
        Value::String(text) => format!("`{text}`"),
        Value::Datetime(_) => "a date".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}
