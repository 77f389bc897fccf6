//! Typed questions of a review. Their answers are part of the step's result.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use super::StepResult;
use crate::json::Json;
use crate::policy::{MAX_SUMMARY, UnknownVariant, parse_variant};

/// A typed question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewField {
    /// The key of the answer.
    pub name: String,
    /// The question as the reviewer reads it.
    pub title: Option<String>,
    /// The type of the answer.
    pub kind: FieldKind,
    /// The values to choose from. Empty unless the type is a choice.
    pub options: Vec<FieldOption>,
    /// The answer if the reviewer gives none. Without a default, approval requires an answer.
    pub default: Option<Json>,
}

impl ReviewField {
    /// The title, or the name.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// A value to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldOption {
    /// The value in the answer.
    pub value: String,
    /// The value as the reviewer reads it.
    pub title: Option<String>,
}

impl FieldOption {
    /// The title, or the value.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.value)
    }
}

/// The type of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// One of the options.
    Choice,
    /// Any of the options.
    Choices,
}

impl FieldKind {
    /// All types.
    pub const ALL: [Self; 5] = [
        Self::Text,
        Self::Number,
        Self::Boolean,
        Self::Choice,
        Self::Choices,
    ];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            FieldKind::Text => "text",
            FieldKind::Number => "number",
            FieldKind::Boolean => "boolean",
            FieldKind::Choice => "choice",
            FieldKind::Choices => "choices",
        }
    }

    /// Whether the answer is chosen from options.
    pub const fn has_options(self) -> bool {
        matches!(self, FieldKind::Choice | FieldKind::Choices)
    }
}

impl fmt::Display for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FieldKind {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}

impl StepResult {
    /// The result of a step whose review asked typed questions: the summary of the review with the
    /// answers, one per line, and `review.answers` in the data.
    pub(crate) fn from_review(mut summary: String, answers: &Map<String, Value>) -> Self {
        let data =
            (!answers.is_empty()).then(|| json!({ "review": { "answers": answers } }).into());
        for (name, answer) in answers {
            let line = format!("\n→ {name}: {}", answer_text(answer));
            let left = MAX_SUMMARY.saturating_sub(summary.chars().count());
            if line.chars().count() > left {
                // The data has the complete answers.
                summary.extend(line.chars().take(left.saturating_sub(1)));
                summary.extend((left > 0).then_some('…'));
                break;
            }
            summary.push_str(&line);
        }
        Self {
            data,
            ..Self::from_summary(summary)
        }
    }
}

/// An answer as text: a list of choices is separated by commas.
fn answer_text(answer: &Value) -> String {
    match answer {
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(answer_text).collect();
            values.join(", ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => answer.to_string(),
    }
}
