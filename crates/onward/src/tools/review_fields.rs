//! Typed questions of a review: as arguments of `request_user_review`, and answers that are entered as
//! text, on a page or on the command line.

use onward_core::policy::{MAX_FIELD_NAME, MAX_OPTIONS, MAX_TITLE};
use onward_core::step::{FieldKind, FieldOption, ReviewField};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A typed question.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Field {
    /// Key of the answer
    #[schemars(length(min = 1, max = MAX_FIELD_NAME))]
    name: String,
    #[serde(rename = "type")]
    kind: Kind,
    /// The question
    #[schemars(length(min = 1, max = MAX_TITLE))]
    title: Option<String>,
    /// Values to choose from
    #[schemars(length(min = 1, max = MAX_OPTIONS))]
    options: Option<Vec<Choice>>,
    /// Answer if the user gives none
    default: Option<Value>,
}

/// text: a string; number: a number; boolean: true or false; choice: one of `options`; choices: a
/// list of them
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Text,
    Number,
    Boolean,
    Choice,
    Choices,
}

/// A value to choose.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Choice {
    /// Value
    #[schemars(length(min = 1, max = MAX_TITLE))]
    value: String,
    /// Label
    #[schemars(length(min = 1, max = MAX_TITLE))]
    title: Option<String>,
}

impl From<Field> for ReviewField {
    fn from(field: Field) -> Self {
        let options = field.options.into_iter().flatten();
        Self {
            name: field.name,
            title: field.title,
            kind: match field.kind {
                Kind::Text => FieldKind::Text,
                Kind::Number => FieldKind::Number,
                Kind::Boolean => FieldKind::Boolean,
                Kind::Choice => FieldKind::Choice,
                Kind::Choices => FieldKind::Choices,
            },
            options: options
                .map(|option| FieldOption {
                    value: option.value,
                    title: option.title,
                })
                .collect(),
            default: field.default.map(Into::into),
        }
    }
}

/// The answers of texts: `texts` returns all entered values of a field. A text that does not have
/// the type of its field stays a text, which the core rejects.
pub(crate) fn answers_of_texts<'t>(
    fields: &[ReviewField],
    texts: impl Fn(&str) -> Vec<&'t str>,
) -> Map<String, Value> {
    let answer = |field: &ReviewField| {
        let texts = texts(&field.name);
        let first = *texts.first()?;
        let entered = Some(first).filter(|text| !text.trim().is_empty());
        let answer = match field.kind {
            FieldKind::Choices => {
                let chosen = texts.into_iter().filter(|text| !text.is_empty());
                chosen.collect::<Vec<_>>().into()
            }
            // An empty text replaces the default.
            FieldKind::Text if field.default.is_some() => first.replace("\r\n", "\n").into(),
            FieldKind::Text | FieldKind::Choice => entered?.replace("\r\n", "\n").into(),
            FieldKind::Number | FieldKind::Boolean => {
                let text = entered?.trim();
                serde_json::from_str(text).unwrap_or_else(|_| text.into())
            }
        };
        Some((field.name.clone(), answer))
    };
    fields.iter().filter_map(answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_get_the_types_of_their_fields() {
        let field = |kind: FieldKind| ReviewField {
            name: kind.to_string(),
            title: None,
            kind,
            options: Vec::new(),
            default: None,
        };
        let fields = FieldKind::ALL.map(field);
        let texts = |name: &str| match name {
            "text" => vec!["a\r\nb"],
            "number" => vec![" 2.5 "],
            "boolean" => vec!["true"],
            "choice" => vec!["red"],
            _ => vec!["red", "blue"],
        };
        assert_eq!(
            Value::Object(answers_of_texts(&fields, texts)),
            json!({
                "text": "a\nb", "number": 2.5, "boolean": true, "choice": "red",
                "choices": ["red", "blue"],
            })
        );
        let invalid = answers_of_texts(&fields, |name| match name {
            "number" => vec!["many"],
            "text" | "boolean" => vec![" "],
            _ => Vec::new(),
        });
        assert_eq!(Value::Object(invalid), json!({ "number": "many" }));
        let with_default = |kind| ReviewField {
            default: Some(json!("").into()),
            ..field(kind)
        };
        let cleared = answers_of_texts(&FieldKind::ALL.map(with_default), |_| vec![""]);
        assert_eq!(Value::Object(cleared), json!({ "text": "", "choices": [] }));
    }
}
