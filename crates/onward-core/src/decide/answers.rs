//! Checks the typed questions of a review, and the answers to them.

use serde_json::{Map, Value};

use super::check::Check;
use crate::json::Json;
use crate::policy::{MAX_FIELD_NAME, MAX_FIELDS, MAX_OPTIONS, MAX_REMARK, MAX_TITLE};
use crate::step::{FieldKind, ReviewField};

impl Check {
    /// The questions of a new review.
    pub(super) fn fields(&mut self, fields: &[ReviewField]) {
        if fields.len() > MAX_FIELDS {
            let message = format!(
                "has {} fields, at most {MAX_FIELDS} are allowed",
                fields.len()
            );
            self.issue("fields", message);
            return;
        }
        for (index, field) in fields.iter().enumerate() {
            let path = |name: &str| format!("fields[{index}].{name}");
            if !is_name(&field.name) {
                let message = format!(
                    "must have 1 to {MAX_FIELD_NAME} letters, digits and underscores, and begin \
                     with a letter"
                );
                self.issue(path("name"), message);
            }
            if fields
                .iter()
                .take(index)
                .any(|other| other.name == field.name)
            {
                self.issue(path("name"), "is already used by another field");
            }
            if let Some(title) = &field.title {
                self.text(&path("title"), title, MAX_TITLE);
            }
            self.options(&path("options"), field);
            if let Some(default) = &field.default {
                let default = default.parse().unwrap_or_default();
                if let Err(message) = matches(field, &default) {
                    self.issue(path("default"), message);
                }
            }
        }
    }

    fn options(&mut self, path: &str, field: &ReviewField) {
        let options = &field.options;
        if !field.kind.has_options() {
            if !options.is_empty() {
                self.issue(
                    path,
                    format!("is not allowed for the type `{}`", field.kind),
                );
            }
            return;
        }
        if options.is_empty() || options.len() > MAX_OPTIONS {
            let message = format!(
                "must have 1 to {MAX_OPTIONS} entries, not {}",
                options.len()
            );
            self.issue(path, message);
            return;
        }
        for (index, option) in options.iter().enumerate() {
            let path = |name: &str| format!("{path}[{index}].{name}");
            self.text(&path("value"), &option.value, MAX_TITLE);
            if let Some(title) = &option.title {
                self.text(&path("title"), title, MAX_TITLE);
            }
            let mut others = options.iter().take(index);
            if others.any(|other| other.value == option.value) {
                self.issue(path("value"), "repeats an earlier value");
            }
        }
    }

    /// The answers of a decision. With `is_complete`, unanswered questions get their defaults, and
    /// those without a default are issues.
    pub(super) fn answers(
        &mut self,
        fields: &[ReviewField],
        given: &Map<String, Value>,
        is_complete: bool,
    ) -> Map<String, Value> {
        let mut answers = Map::new();
        for (name, answer) in given {
            let path = format!("answers.{name}");
            match fields.iter().find(|field| field.name == *name) {
                None => self.issue(path, "is not a field of the review"),
                Some(field) => match matches(field, answer) {
                    Ok(()) => drop(answers.insert(name.clone(), answer.clone())),
                    Err(message) => self.issue(path, message),
                },
            }
        }
        for field in fields.iter().filter(|_| is_complete) {
            if given.contains_key(&field.name) {
                continue;
            }
            match field.default.as_ref().and_then(Json::parse) {
                Some(default) => drop(answers.insert(field.name.clone(), default)),
                None => {
                    let path = format!("answers.{}", field.name);
                    self.issue(path, format!("is required: {}", field.label()));
                }
            }
        }
        answers
    }
}

/// A name that conditions can use: `result.review.answers.NAME`.
fn is_name(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.len() <= MAX_FIELD_NAME
        && name.bytes().all(is_valid)
        && name
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic())
}

/// Whether the answer has the type of the field.
fn matches(field: &ReviewField, answer: &Value) -> Result<(), String> {
    let is_option = |value: &Value| {
        let value = value.as_str();
        let mut options = field.options.iter();
        value.is_some_and(|value| options.any(|option| option.value == value))
    };
    let options = || {
        let values = field.options.iter();
        let values: Vec<String> = values.map(|option| format!("`{}`", option.value)).collect();
        values.join(", ")
    };
    match field.kind {
        FieldKind::Text => match answer.as_str() {
            None => Err("must be a string".to_owned()),
            Some(text) if text.chars().count() > MAX_REMARK => {
                Err(format!("must have at most {MAX_REMARK} characters"))
            }
            Some(_) => Ok(()),
        },
        FieldKind::Number if !answer.is_number() => Err("must be a number".to_owned()),
        FieldKind::Boolean if !answer.is_boolean() => Err("must be true or false".to_owned()),
        FieldKind::Choice if !is_option(answer) => Err(format!("must be one of {}", options())),
        FieldKind::Choices => {
            let values = answer.as_array();
            let is_set = |values: &Vec<Value>| {
                let is_new = |(index, value): (usize, &Value)| {
                    values.iter().take(index).all(|other| other != value)
                };
                values.iter().all(is_option) && values.iter().enumerate().all(is_new)
            };
            match values.filter(|values| is_set(values)) {
                Some(_) => Ok(()),
                None => Err(format!(
                    "must be a list of different values of {}",
                    options()
                )),
            }
        }
        FieldKind::Number | FieldKind::Boolean | FieldKind::Choice => Ok(()),
    }
}
