//! The typed questions of a review, as inputs of the review form.

use onward_core::Json;
use onward_core::step::{FieldKind, ReviewField};
use serde_json::{Map, Value};

use super::Fields;
use super::format::sentence;
use crate::output::format;
use crate::tools::review_fields::answers_of_texts;

/// The input of a typed question.
pub(super) struct FieldInput {
    /// The name of the question.
    pub(super) name: String,
    pub(super) label: String,
    pub(super) kind: FieldKind,
    /// The entered text or number.
    pub(super) text: String,
    /// Whether one of the options is selected at first.
    pub(super) has_default: bool,
    pub(super) options: Vec<OptionInput>,
    /// Why the answer was rejected.
    pub(super) error: Option<String>,
    /// Whether it is the first rejected answer.
    pub(super) has_focus: bool,
}

/// A value to choose.
pub(super) struct OptionInput {
    pub(super) value: String,
    pub(super) label: String,
    pub(super) is_selected: bool,
}

impl FieldInput {
    pub(super) fn list(fields: &[ReviewField]) -> Vec<Self> {
        fields.iter().map(Self::new).collect()
    }

    fn new(field: &ReviewField) -> Self {
        let default = field.default.as_ref().and_then(Json::parse);
        let default = default.unwrap_or_default();
        let is_default = |value: &str| match &default {
            Value::Array(values) => values.iter().any(|default| default == value),
            Value::Bool(default) => default.to_string() == value,
            Value::String(default) => default == value,
            Value::Null | Value::Number(_) | Value::Object(_) => false,
        };
        let option = |value: &str, label: &str| OptionInput {
            value: value.to_owned(),
            label: format::sanitize_line(label),
            is_selected: is_default(value),
        };
        let options = match field.kind {
            FieldKind::Boolean => vec![option("true", "Yes"), option("false", "No")],
            FieldKind::Text | FieldKind::Number | FieldKind::Choice | FieldKind::Choices => {
                let options = field.options.iter();
                options
                    .map(|entry| option(&entry.value, entry.label()))
                    .collect()
            }
        };
        let text = match &default {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
        };
        Self {
            name: field.name.clone(),
            label: format::sanitize_line(field.label()),
            kind: field.kind,
            text,
            has_default: field.default.is_some(),
            options,
            error: None,
            has_focus: false,
        }
    }

    /// Whether an approval needs an answer. A list may be empty.
    pub(super) fn is_required(&self) -> bool {
        !self.has_default && !self.is_list()
    }

    pub(super) fn is_text(&self) -> bool {
        self.kind == FieldKind::Text
    }

    pub(super) fn is_number(&self) -> bool {
        self.kind == FieldKind::Number
    }

    pub(super) fn is_list(&self) -> bool {
        self.kind == FieldKind::Choices
    }
}

fn input_name(name: &str) -> String {
    format!("field-{name}")
}

/// Sets the entered values, for a form that is displayed again.
pub(super) fn restore(inputs: &mut [FieldInput], fields: &Fields) {
    for input in inputs {
        let name = input_name(&input.name);
        let entered: Vec<&str> = fields.all(&name).collect();
        input.text = entered.first().copied().unwrap_or_default().to_owned();
        for option in &mut input.options {
            option.is_selected = entered.contains(&option.value.as_str());
        }
    }
}

/// Marks the rejected answers: paths of the form `answers.NAME` with their messages. Returns the
/// labels of the marked questions.
pub(super) fn mark(inputs: &mut [FieldInput], issues: &[(String, String)]) -> Vec<String> {
    let mut marked = Vec::new();
    for input in inputs {
        let path = format!("answers.{}", input.name);
        let Some((_, message)) = issues.iter().find(|(issue, _)| *issue == path) else {
            continue;
        };
        let is_missing = input.is_required() && input.text.trim().is_empty();
        let is_missing = is_missing && input.options.iter().all(|option| !option.is_selected);
        input.error = Some(if is_missing {
            "An answer is required.".to_owned()
        } else {
            sentence(message)
        });
        input.has_focus = marked.is_empty();
        marked.push(input.label.clone());
    }
    marked
}

/// The answers in a submitted form.
pub(super) fn answers(asked: &[ReviewField], fields: &Fields) -> Map<String, Value> {
    let entered = |name: &str| {
        let name = input_name(name);
        let entered = fields.0.iter().filter(|(field, _)| *field == name);
        entered.map(|(_, text)| text.as_str()).collect()
    };
    let mut answers = answers_of_texts(asked, entered);
    // A list without a selected value is not sent.
    for field in asked
        .iter()
        .filter(|field| field.kind == FieldKind::Choices)
    {
        let none = || Value::Array(Vec::new());
        answers.entry(field.name.as_str()).or_insert_with(none);
    }
    answers
}
