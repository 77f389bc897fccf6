//! Mirror of the optional parts of a review, and of how it was decided.

use onward_core::event::DecidedBy;
use onward_core::step::{Deadline, FieldKind, FieldOption, OnDeadline, ReviewField, ReviewOptions};
use onward_core::{Json, Timestamp};
use serde::{Deserialize, Serialize};

use super::part::each;
use super::scalar::{Text, optional};
use super::{Undecodable, required, unknown};

const POLICY: &str = "policy";
const LINK: &str = "link";

/// Mirror of a question. Keys are in alphabetical order, here and below.
#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct FieldJson<T> {
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    default: Option<Json>,
    name: T,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    options: Option<Vec<OptionJson<T>>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    title: Option<T>,
    #[serde(rename = "type")]
    kind: Text<FieldKind>,
}

/// Mirror of a value to choose.
#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct OptionJson<T> {
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    title: Option<T>,
    value: T,
}

impl<'f> From<&'f ReviewField> for FieldJson<&'f str> {
    fn from(field: &'f ReviewField) -> Self {
        Self {
            default: field.default.clone(),
            name: &field.name,
            options: (!field.options.is_empty()).then(|| each(&field.options)),
            title: field.title.as_deref(),
            kind: Text(field.kind),
        }
    }
}

impl From<FieldJson<String>> for ReviewField {
    fn from(json: FieldJson<String>) -> Self {
        Self {
            name: json.name,
            title: json.title,
            kind: json.kind.0,
            options: each(json.options.unwrap_or_default()),
            default: json.default,
        }
    }
}

impl<'o> From<&'o FieldOption> for OptionJson<&'o str> {
    fn from(option: &'o FieldOption) -> Self {
        Self {
            title: option.title.as_deref(),
            value: &option.value,
        }
    }
}

impl From<OptionJson<String>> for FieldOption {
    fn from(json: OptionJson<String>) -> Self {
        Self {
            value: json.value,
            title: json.title,
        }
    }
}

/// The mirror of a list of questions, if it is not empty.
pub(crate) fn fields(list: &[ReviewField]) -> Option<Vec<FieldJson<&str>>> {
    (!list.is_empty()).then(|| each(list))
}

/// The optional parts of a review.
pub(crate) fn options(
    fields: Option<Vec<FieldJson<String>>>,
    due_at: Option<Text<Timestamp>>,
    on_deadline: Option<Text<OnDeadline>>,
    assignee: Option<String>,
) -> ReviewOptions {
    let action = on_deadline.map(|action| action.0).unwrap_or_default();
    ReviewOptions {
        fields: each(fields.unwrap_or_default()),
        deadline: due_at.map(|at| Deadline { at: at.0, action }),
        assignee,
    }
}

/// The action at a deadline. A review without a deadline has none.
pub(crate) fn on_deadline(options: &ReviewOptions) -> Option<Text<OnDeadline>> {
    options.deadline.map(|deadline| Text(deadline.action))
}

/// The time of a deadline.
pub(crate) fn due_at(options: &ReviewOptions) -> Option<Text<Timestamp>> {
    options.deadline.map(|deadline| Text(deadline.at))
}

/// The mirror of how a review was decided: `by` and the recipient of a link. A reviewer is the author
/// of the event.
pub(crate) fn decided_by(by: &DecidedBy) -> (Option<&str>, Option<&str>) {
    match by {
        DecidedBy::Reviewer => (None, None),
        DecidedBy::Policy => (Some(POLICY), None),
        DecidedBy::Link { recipient } => (Some(LINK), Some(recipient)),
    }
}

/// How a review was decided.
pub(crate) fn parse_decided_by(
    by: Option<String>,
    recipient: Option<String>,
) -> Result<DecidedBy, Undecodable> {
    match by.as_deref() {
        None => Ok(DecidedBy::Reviewer),
        Some(POLICY) => Ok(DecidedBy::Policy),
        Some(LINK) => Ok(DecidedBy::Link {
            recipient: required("recipient", recipient)?,
        }),
        Some(other) => Err(unknown("by", other, &[POLICY, LINK])),
    }
}
