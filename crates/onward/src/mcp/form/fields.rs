//! The review form of a client: the decision, an answer to each question, and a comment, as on the
//! review page. No field selects several values, because a review has one decision.

use onward_core::policy::MAX_REMARK;
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, JsonObject,
    ProtocolVersion,
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
pub(in crate::mcp) struct Asked {
    summary: String,
    questions: Vec<String>,
}

/// The user's answer.
pub(in crate::mcp) struct Form {
    pub(in crate::mcp) decision: Decision,
    pub(in crate::mcp) feedback: Option<String>,
}

impl Asked {
    pub(in crate::mcp) fn new(summary: String, questions: Vec<String>) -> Self {
        Self { summary, questions }
    }

    /// The summary and the questions in the arguments of a call.
    pub(in crate::mcp) fn from_arguments(arguments: &JsonObject) -> Self {
        let summary = arguments.get("summary").and_then(Value::as_str);
        let questions = arguments.get("questions").and_then(Value::as_array);
        let questions = questions.into_iter().flatten().filter_map(Value::as_str);
        Self::new(
            summary.unwrap_or_default().to_owned(),
            questions.map(str::to_owned).collect(),
        )
    }

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

    /// The form for a client of this version.
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
        // In the order of the review page.
        let fields = answers.chain([
            ("feedback".to_owned(), feedback),
            ("decision".to_owned(), decision(has_titles)),
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
                Some(Form {
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

/// The decision. It has no default: the user must choose it.
fn decision(has_titles: bool) -> Value {
    let description = "Approve: the summary becomes the step's result. Request changes: the agent \
        revises the step with your feedback. Skip: the step ends without a result. Reject: the \
        step and the plan fail.";
    let mut field = json!({ "type": "string", "title": "Decision", "description": description });
    if has_titles {
        let titled = DECISIONS.map(|(value, title)| json!({ "const": value, "title": title }));
        field["oneOf"] = titled.to_vec().into();
    } else {
        field["enum"] = DECISIONS.map(|(value, _)| value).to_vec().into();
        field["enumNames"] = DECISIONS.map(|(_, title)| title).to_vec().into();
    }
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
