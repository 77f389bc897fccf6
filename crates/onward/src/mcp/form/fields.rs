//! The review form of a client: the typed questions, an answer to each other question, a comment and
//! the decision, as on the review page.

use onward_core::Json;
use onward_core::event::Decision as CoreDecision;
use onward_core::policy::MAX_REMARK;
use onward_core::step::{FieldKind, Review, ReviewField, ReviewScope};
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, ProtocolVersion,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::output::format;
use crate::tools::submit_user_decision::{Decision, feedback_with_answers, question_line};

/// Characters of the form's message. The dashboard shows the full text.
const MAX_MESSAGE: usize = 4_000;
/// Columns of the title of an answer. The message has the full question.
const MAX_TITLE: usize = 100;
/// The first version with defaults, and with titles of the values of a field.
const TITLES_SINCE: ProtocolVersion = ProtocolVersion::V_2025_11_25;

/// The decisions with the labels of the review page.
const DECISIONS: [(&str, &str); 4] = [
    ("approve", "Approve and continue"),
    ("modify", "Request changes"),
    ("skip", "Skip step"),
    ("reject", "Reject and fail plan"),
];

/// What the agent asks the user.
#[derive(Default)]
pub(in crate::mcp) struct Asked {
    summary: String,
    questions: Vec<String>,
    fields: Vec<ReviewField>,
    scope: ReviewScope,
}

/// The user's answer.
pub(in crate::mcp) struct Form {
    pub(in crate::mcp) decision: Decision,
    pub(in crate::mcp) feedback: Option<String>,
    /// The answers to the typed questions.
    pub(in crate::mcp) answers: Map<String, Value>,
}

impl From<&Review> for Asked {
    fn from(review: &Review) -> Self {
        Self {
            summary: review.summary.clone(),
            questions: review.questions.clone(),
            fields: review.options.fields.clone(),
            scope: review.scope,
        }
    }
}

impl Asked {
    /// The summary and the questions.
    pub(in crate::mcp) fn message(&self) -> String {
        let mut message = self.summary.clone();
        for (index, question) in self.questions.iter().enumerate() {
            message.push_str("\n\n");
            message.push_str(&question_line(index, question));
        }
        if message.chars().count() > MAX_MESSAGE {
            message = message.chars().take(MAX_MESSAGE).chain(['…']).collect();
        }
        message
    }

    /// The form for a client of this version. Returns `None` if the client cannot show a question
    /// that has no default.
    pub(in crate::mcp) fn form(
        &self,
        version: Option<&ProtocolVersion>,
    ) -> Option<ElicitRequestParams> {
        let has_titles = version.is_some_and(|version| version.as_str() >= TITLES_SINCE.as_str());
        let answers = self.questions.iter().enumerate().map(|(index, question)| {
            let title = format::truncate(&format::sanitize_line(question), MAX_TITLE);
            (
                answer_name(index),
                text(&question_line(index, &title), None, has_titles),
            )
        });
        let comment = "Your comment for the agent; required to request changes, unless you \
            answered a question";
        let feedback = text("Feedback", Some(comment), has_titles);
        // Older clients cannot select several values. The default applies.
        let is_hidden = |field: &&ReviewField| !has_titles && field.kind == FieldKind::Choices;
        let mut hidden = self.fields.iter().filter(is_hidden);
        if hidden.any(|field| field.default.is_none()) {
            return None;
        }
        let typed = self.fields.iter().filter(|field| !is_hidden(field));
        let typed = typed.map(|field| (field_name(field), typed_field(field, has_titles)));
        // In the order of the review page.
        let fields = typed.chain(answers).chain([
            ("feedback".to_owned(), feedback),
            ("decision".to_owned(), decision(self.scope, has_titles)),
        ]);
        let (names, fields): (Vec<String>, Vec<Value>) = fields.unzip();
        let properties: Map<String, Value> = names.iter().cloned().zip(fields).collect();
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": ["decision"],
        });
        let mut requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
        requested_schema.property_order = Some(names);
        Some(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.message(),
            requested_schema,
        })
    }

    /// Reads an answer. Returns `None` without a decision.
    pub(in crate::mcp) fn parse(&self, response: ElicitResult) -> Option<Form> {
        match response.action {
            ElicitationAction::Accept => {
                let content: Content = serde_json::from_value(response.content?).ok()?;
                let answer = |index: usize| {
                    let answer = content.answers.get(&answer_name(index));
                    let answer = answer.and_then(Value::as_str).unwrap_or_default();
                    answer.trim().to_owned()
                };
                let answers: Vec<String> = (0..self.questions.len()).map(answer).collect();
                let comment = content.feedback.filter(|text| !text.trim().is_empty());
                let typed = self.fields.iter().filter_map(|field| {
                    let answer = content.answers.get(&field_name(field))?;
                    // A client sends an empty text for a field that the user left empty.
                    let is_empty = answer.as_str().is_some_and(str::is_empty);
                    (!answer.is_null() && !is_empty).then(|| (field.name.clone(), answer.clone()))
                });
                Some(Form {
                    answers: typed.collect(),
                    decision: content.decision,
                    feedback: feedback_with_answers(&self.questions, &answers, comment.as_deref()),
                })
            }
            ElicitationAction::Decline | ElicitationAction::Cancel | _ => None,
        }
    }
}

/// The content of an answer.
#[derive(Deserialize)]
struct Content {
    decision: Decision,
    feedback: Option<String>,
    #[serde(flatten)]
    answers: Map<String, Value>,
}

fn answer_name(index: usize) -> String {
    format!("answer{}", index + 1)
}

/// No dots: some clients read them as paths.
fn field_name(field: &ReviewField) -> String {
    format!("field_{}", field.name)
}

/// A typed question.
fn typed_field(field: &ReviewField, has_titles: bool) -> Value {
    let options: Vec<(&str, &str)> = (field.options.iter())
        .map(|option| (option.value.as_str(), option.label()))
        .collect();
    let mut schema = match field.kind {
        FieldKind::Text => json!({ "type": "string", "maxLength": MAX_REMARK }),
        FieldKind::Number => json!({ "type": "number" }),
        FieldKind::Boolean => json!({ "type": "boolean" }),
        FieldKind::Choice => choice(&options, has_titles),
        FieldKind::Choices => json!({ "type": "array", "items": { "anyOf": titled(&options) } }),
    };
    schema["title"] = format::sanitize_line(field.label()).into();
    let default = field.default.as_ref().and_then(Json::parse);
    if let Some(default) = default.filter(|_| has_titles) {
        schema["default"] = default;
    }
    schema
}

fn titled(options: &[(&str, &str)]) -> Vec<Value> {
    let option = |(value, title): &(&str, &str)| json!({ "const": value, "title": title });
    options.iter().map(option).collect()
}

/// One of several values. Clients of older versions have the titles in a separate list.
fn choice(options: &[(&str, &str)], has_titles: bool) -> Value {
    if has_titles {
        return json!({ "type": "string", "oneOf": titled(options) });
    }
    let (values, titles): (Vec<&str>, Vec<&str>) = options.iter().copied().unzip();
    json!({ "type": "string", "enum": values, "enumNames": titles })
}

/// The decision. It has no default: the user must choose it.
fn decision(scope: ReviewScope, has_titles: bool) -> Value {
    let description = match scope {
        ReviewScope::Plan | ReviewScope::Step => {
            "Approve: the summary becomes the step's result. Request changes: the agent revises \
             the step with your feedback. Skip: the step ends without a result. Reject: the step \
             and the plan fail."
        }
        ReviewScope::Start => "Approve: the plan starts. Reject: the plan fails.",
    };
    let decisions = CoreDecision::on(scope);
    let is_possible = |(value, _): &(&str, &str)| {
        let mut decisions = decisions.iter();
        decisions.any(|decision| decision.as_str() == *value)
    };
    let options: Vec<(&str, &str)> = DECISIONS.into_iter().filter(is_possible).collect();
    let mut field = choice(&options, has_titles);
    field["title"] = "Decision".into();
    field["description"] = description.into();
    field
}

/// An optional text.
fn text(title: &str, description: Option<&str>, has_default: bool) -> Value {
    let mut field = json!({ "type": "string", "title": title, "maxLength": MAX_REMARK });
    if let Some(description) = description {
        field["description"] = description.into();
    }
    if has_default {
        field["default"] = "".into();
    }
    field
}
