//! `[loop_control]`: how turns are judged, and what is done about one that goes round in circles.
//!
//! A value that does not fit is refused with who said it and the range, whatever kind it is of. The
//! environment says a key as `ONWARD_LOOP_CONTROL__` and its name in capitals. The project's file and
//! the user's may each say a part of the table.

use std::ops::RangeInclusive;

use onward_core::turn::{LoopControl, OnStall, Parts, Rule, TurnPolicy};
use serde::Deserialize;
use toml::{Spanned, Value};

use super::{Setting, Source, variable};
use crate::failure::Result;

const THRESHOLDS: RangeInclusive<u32> = 1..=1_000;
const LENGTHS: RangeInclusive<u32> = 0..=100_000;
const STEPS: RangeInclusive<u32> = 0..=100_000;

/// The table as a file holds it: what is in range is seen later, with the line at hand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Text {
    progress_stall_threshold: Option<Spanned<Value>>,
    progress_min_info_gain_length: Option<Spanned<Value>>,
    max_steps_per_turn: Option<Spanned<Value>>,
    on_stall: Option<Spanned<Value>>,
    progress_rule: Option<Spanned<Value>>,
}

/// What a file says about each key.
#[derive(Debug, Default)]
pub(super) struct Said {
    threshold: Option<(Value, Source)>,
    length: Option<(Value, Source)>,
    steps: Option<(Value, Source)>,
    on_stall: Option<(Value, Source)>,
    rule: Option<(Value, Source)>,
}

impl Text {
    /// With the place of each value.
    pub(super) fn placed(self, at: impl Fn(std::ops::Range<usize>) -> Source) -> Said {
        let placed = |value: Option<Spanned<Value>>| {
            value.map(|value| {
                let from = at(value.span());
                (value.into_inner(), from)
            })
        };
        Said {
            threshold: placed(self.progress_stall_threshold),
            length: placed(self.progress_min_info_gain_length),
            steps: placed(self.max_steps_per_turn),
            on_stall: placed(self.on_stall),
            rule: placed(self.progress_rule),
        }
    }
}

/// Which rule judges.
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

/// What holds, and who said it.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) progress_stall_threshold: Setting<u32>,
    pub(crate) progress_min_info_gain_length: Setting<u32>,
    pub(crate) max_steps_per_turn: Setting<u32>,
    pub(crate) on_stall: Setting<OnStall>,
    pub(crate) progress_rule: Setting<ProgressRule>,
}

impl Settings {
    /// What holds for this run; the file that counts more comes first.
    pub(super) fn read(files: &[&Said]) -> Result<Self> {
        let said = |of: fn(&Said) -> &Option<(Value, Source)>| {
            files.iter().find_map(|file| of(file).clone())
        };
        let least = LoopControl::default();
        let length = u32::try_from(least.turn.min_info_gain_length).unwrap_or(u32::MAX);
        Ok(Self {
            progress_stall_threshold: number(
                "progress_stall_threshold",
                "ONWARD_LOOP_CONTROL__PROGRESS_STALL_THRESHOLD",
                said(|file| &file.threshold),
                THRESHOLDS,
                least.turn.stall_threshold,
            )?,
            progress_min_info_gain_length: number(
                "progress_min_info_gain_length",
                "ONWARD_LOOP_CONTROL__PROGRESS_MIN_INFO_GAIN_LENGTH",
                said(|file| &file.length),
                LENGTHS,
                length,
            )?,
            max_steps_per_turn: number(
                "max_steps_per_turn",
                "ONWARD_LOOP_CONTROL__MAX_STEPS_PER_TURN",
                said(|file| &file.steps),
                STEPS,
                least.max_steps,
            )?,
            on_stall: word(
                "on_stall",
                "ONWARD_LOOP_CONTROL__ON_STALL",
                said(|file| &file.on_stall),
                &OnStall::ALL,
                OnStall::as_str,
            )?,
            progress_rule: word(
                "progress_rule",
                "ONWARD_LOOP_CONTROL__PROGRESS_RULE",
                said(|file| &file.rule),
                &[ProgressRule::Default, ProgressRule::Plain],
                ProgressRule::as_str,
            )?,
        })
    }

    /// The same, as the detector and the ladder take it.
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

/// What the environment says, or else a file.
fn given(name: &'static str, file: Option<(Value, Source)>) -> Result<Option<(Value, Source)>> {
    let Some((text, from)) = variable(name).transpose()? else {
        return Ok(file);
    };
    let value = match text.trim().parse() {
        Ok(number) => Value::Integer(number),
        Err(_) => Value::String(text),
    };
    Ok(Some((value, from)))
}

fn number(
    key: &str,
    name: &'static str,
    file: Option<(Value, Source)>,
    range: RangeInclusive<u32>,
    default: u32,
) -> Result<Setting<u32>> {
    let Some((value, from)) = given(name, file)? else {
        let from = Source::Default;
        return Ok(Setting {
            value: default,
            from,
        });
    };
    let fits = value.as_integer().and_then(|number| number.try_into().ok());
    match fits.filter(|number| range.contains(number)) {
        Some(value) => Ok(Setting { value, from }),
        None => Err(from.refuses(
            &format!("loop_control.{key}"),
            format_args!(
                "is {}, and must be a whole number from {} to {}",
                shown(&value),
                range.start(),
                range.end()
            ),
        )),
    }
}

/// One of these words; the first where nobody says anything.
fn word<T: Copy>(
    key: &str,
    name: &'static str,
    file: Option<(Value, Source)>,
    all: &[T],
    as_str: fn(T) -> &'static str,
) -> Result<Setting<T>> {
    let (given, from) = match given(name, file)? {
        Some(given) => given,
        None => {
            let first = all.first().copied().map(as_str).unwrap_or_default();
            (Value::String(first.to_owned()), Source::Default)
        }
    };
    let word = given.as_str().unwrap_or_default();
    match all.iter().copied().find(|value| as_str(*value) == word) {
        Some(value) => Ok(Setting { value, from }),
        None => {
            let words: Vec<String> = all
                .iter()
                .map(|value| format!("`{}`", as_str(*value)))
                .collect();
            Err(from.refuses(
                &format!("loop_control.{key}"),
                format_args!(
                    "is {}, and must be one of {}",
                    shown(&given),
                    words.join(", ")
                ),
            ))
        }
    }
}

/// A value as the error names it.
fn shown(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::String(text) => format!("`{text}`"),
        Value::Datetime(_) => "a date".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}
