//! The inputs of the form.
//!
//! The tables list inputs with their labels. A field of the tool that no table lists gets an input
//! from its schema, so a new field of `create_research_plan` is in the form without a change here.
//! Add a row to give it another label or place.

use std::borrow::Cow;
use std::sync::LazyLock;

use onward_core::StepType;
use onward_core::policy::OnStall;
use serde_json::{Map, Value};

use crate::tools::create_research_plan;

/// How an input is displayed, and how its text becomes a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Line,
    Text,
    Integer,
    /// Minutes, of a field in milliseconds.
    Minutes,
    /// Numbers of steps.
    Orders,
    Choice(Cow<'static, [&'static str]>),
    Checkbox,
    /// A list with one text per line.
    Lines,
    Json,
}

/// An input of the form.
pub(super) struct Input {
    /// The field of the tool, relative to the plan, the step or the branch.
    pub(super) field: &'static str,
    pub(super) label: Cow<'static, str>,
    pub(super) hint: Cow<'static, str>,
    pub(super) kind: Kind,
    /// Whether the input is displayed without opening the options.
    pub(super) is_main: bool,
}

/// All inputs, by the object that they belong to.
pub(super) struct Inputs {
    pub(super) plan: Vec<Input>,
    pub(super) step: Vec<Input>,
    pub(super) branch: Vec<Input>,
}

/// Fields of the tool without an input: lists with their own rows, and fields for programs.
const WITHOUT_INPUT: [&str; 4] = [
    "steps",
    "branchingConditions",
    "sessionId",
    "idempotencyKey",
];
/// Texts of at least this length get several lines.
const TEXT_CHARS: u64 = 1_000;

pub(super) static INPUTS: LazyLock<Inputs> = LazyLock::new(|| {
    let schema = create_research_plan::own_schema();
    let complete = |mut inputs: Vec<Input>, path: &[&str]| {
        let fields = fields(schema, path);
        let others = fields.map_or_else(Vec::new, |fields| others(fields, &inputs));
        inputs.extend(others);
        inputs
    };
    Inputs {
        plan: complete(plan(), &[]),
        step: complete(step(), &["steps"]),
        branch: complete(branch(), &["branchingConditions"]),
    }
});

/// The fields of the plan, or of the entries of one of its lists.
fn fields<'s>(schema: &'s Map<String, Value>, path: &[&str]) -> Option<&'s Map<String, Value>> {
    let mut fields = schema.get("properties")?.as_object()?;
    for list in path {
        let entries = fields.get(*list)?.get("items")?;
        fields = entries.get("properties")?.as_object()?;
    }
    Some(fields)
}

/// Inputs for the fields that have none.
fn others(fields: &'static Map<String, Value>, inputs: &[Input]) -> Vec<Input> {
    let is_listed = |field: &str| {
        let of_input = |input: &Input| input.field.split(['.', '[']).next() == Some(field);
        WITHOUT_INPUT.contains(&field) || inputs.iter().any(of_input)
    };
    let fields = fields.iter().filter(|(field, _)| !is_listed(field));
    fields
        .map(|(field, schema)| from_schema(field, schema))
        .collect()
}

fn from_schema(field: &'static str, schema: &'static Value) -> Input {
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    let choices = schema.get("enum").and_then(Value::as_array);
    let kind = match (text("type"), choices) {
        (_, Some(choices)) => {
            // The first choice is the tool's default.
            let names = choices.iter().filter_map(Value::as_str);
            Kind::Choice(std::iter::once("").chain(names).collect())
        }
        (Some("string"), None) => {
            let max = schema.get("maxLength").and_then(Value::as_u64);
            if max.is_some_and(|max| max >= TEXT_CHARS) {
                Kind::Text
            } else {
                Kind::Line
            }
        }
        (Some("integer"), None) => Kind::Integer,
        (Some("boolean"), None) => Kind::Checkbox,
        (Some("array"), None) if schema.pointer("/items/type") == Some(&"string".into()) => {
            Kind::Lines
        }
        (Some(_) | None, None) => Kind::Json,
    };
    let note = if kind == Kind::Lines {
        "One per line."
    } else if kind == Kind::Json {
        "JSON."
    } else {
        ""
    };
    let description = text("description").unwrap_or_default();
    let separator = if description.is_empty() || note.is_empty() {
        ""
    } else {
        ". "
    };
    Input {
        field,
        label: label(field).into(),
        hint: format!("{description}{separator}{note}").into(),
        kind,
        is_main: false,
    }
}

/// `acceptanceCriteria` as "Acceptance criteria".
fn label(field: &str) -> String {
    let mut label = String::new();
    for char in field.chars() {
        if label.is_empty() {
            label.extend(char.to_uppercase());
        } else if char.is_uppercase() {
            label.push(' ');
            label.extend(char.to_lowercase());
        } else {
            label.push(char);
        }
    }
    label
}

fn shown(field: &'static str, label: &'static str, hint: &'static str, kind: Kind) -> Input {
    Input {
        field,
        label: Cow::Borrowed(label),
        hint: Cow::Borrowed(hint),
        kind,
        is_main: true,
    }
}

fn optional(field: &'static str, label: &'static str, hint: &'static str, kind: Kind) -> Input {
    Input {
        is_main: false,
        ..shown(field, label, hint, kind)
    }
}

const STEP_TYPES: [&str; StepType::ALL.len()] = {
    // The most general type is the default.
    let mut names = [StepType::Custom.as_str(); StepType::ALL.len()];
    let mut index = 0;
    while index + 1 < names.len() {
        names[index + 1] = StepType::ALL[index].as_str();
        index += 1;
    }
    names
};
const POLICIES: [&str; 4] = [
    OnStall::Mark.as_str(),
    OnStall::Requeue.as_str(),
    OnStall::Fail.as_str(),
    OnStall::Ignore.as_str(),
];
const ACTIONS: [&str; 4] = ["skip_to", "add_steps", "fail", "continue"];

fn plan() -> Vec<Input> {
    vec![
        shown("name", "Name", "", Kind::Line),
        shown("researchQuestion", "Question or goal", "", Kind::Text),
        optional("planDesignRationale", "Why these steps", "", Kind::Text),
        optional(
            "outputFormattingNotes",
            "Format of the final output",
            "",
            Kind::Text,
        ),
        optional(
            "stallThresholdMs",
            "Stuck after (minutes)",
            "Inactivity until a step counts as stuck. Default: 30.",
            Kind::Minutes,
        ),
        optional(
            "onStall",
            "When a step is stuck",
            "mark: mark the plan and notify; requeue: new attempt; fail: fail the step; ignore: no effect",
            Kind::Choice(Cow::Borrowed(&POLICIES)),
        ),
        optional(
            "budget.maxSteps",
            "Budget: steps",
            "Different steps that may be assigned.",
            Kind::Integer,
        ),
        optional(
            "budget.maxAttempts",
            "Budget: attempts",
            "Claims of all steps.",
            Kind::Integer,
        ),
        optional(
            "budget.maxDurationMs",
            "Budget: minutes",
            "Since the first claim.",
            Kind::Minutes,
        ),
        optional(
            "budget.maxTokens",
            "Budget: tokens",
            "Of the sessions while they work on the steps.",
            Kind::Integer,
        ),
    ]
}

fn step() -> Vec<Input> {
    vec![
        shown("title", "Title", "", Kind::Line),
        shown(
            "instructions",
            "Instructions",
            "What to do and what to return. The agent gets this text.",
            Kind::Text,
        ),
        shown(
            "stepType",
            "Type",
            "",
            Kind::Choice(Cow::Borrowed(&STEP_TYPES)),
        ),
        shown(
            "dependsOn",
            "Depends on steps",
            "Numbers of steps that must end first, such as 1, 2",
            Kind::Orders,
        ),
        optional(
            "stallThresholdMs",
            "Stuck after (minutes)",
            "",
            Kind::Minutes,
        ),
        optional(
            "maxAttempts",
            "Attempts before it fails",
            "Default: 3.",
            Kind::Integer,
        ),
    ]
}

fn branch() -> Vec<Input> {
    vec![
        shown("afterStepOrder", "After step", "", Kind::Integer),
        shown(
            "conditionExpression",
            "If",
            "CEL over the result, such as confidence < 0.5 or result.sources.size() < 3",
            Kind::Line,
        ),
        shown(
            "ifTrueAction",
            "Then",
            "",
            Kind::Choice(Cow::Borrowed(&ACTIONS)),
        ),
        shown(
            "actionParams.targetStepOrder",
            "Skip to step",
            "For skip_to.",
            Kind::Integer,
        ),
        optional("actionParams.reason", "Reason", "For fail.", Kind::Line),
        optional(
            "actionParams.steps[0].title",
            "Title of the added step",
            "For add_steps.",
            Kind::Line,
        ),
        optional(
            "actionParams.steps[0].instructions",
            "Instructions of the added step",
            "For add_steps.",
            Kind::Text,
        ),
        optional(
            "actionParams.steps[0].stepType",
            "Type of the added step",
            "For add_steps.",
            Kind::Choice(Cow::Borrowed(&STEP_TYPES)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_of_the_tool_has_an_input() {
        let schema = create_research_plan::own_schema();
        for (path, inputs) in [
            (&[][..], &INPUTS.plan),
            (&["steps"], &INPUTS.step),
            (&["branchingConditions"], &INPUTS.branch),
        ] {
            assert_eq!(others(fields(schema, path).unwrap(), inputs).len(), 0);
        }
    }

    #[test]
    fn a_field_without_a_row_gets_an_input_from_its_schema() {
        let schema = json!({
            "sessionId": { "type": "string" },
            "acceptanceCriteria": { "type": "array", "items": { "type": "string" }, "description": "Sentences" },
            "reviewBy": { "type": "string", "enum": ["person", "other_session"] },
            "reviewRequired": { "type": "boolean" },
            "resultSchema": { "type": "object", "description": "A schema" },
            "priority": { "type": "integer" },
            "notes": { "type": "string", "maxLength": 10_000 },
            "projectKey": { "type": "string", "maxLength": 100 },
        });
        // The schemas of the tools are static, too.
        let schema: &'static Value = Box::leak(Box::new(schema));
        let inputs = others(schema.as_object().unwrap(), &[]);
        let kinds: Vec<(&str, &str, &Kind)> = inputs
            .iter()
            .map(|input| (input.label.as_ref(), input.hint.as_ref(), &input.kind))
            .collect();
        let choices = Kind::Choice(vec!["", "person", "other_session"].into());
        assert_eq!(
            kinds,
            [
                (
                    "Acceptance criteria",
                    "Sentences. One per line.",
                    &Kind::Lines
                ),
                ("Notes", "", &Kind::Text),
                ("Priority", "", &Kind::Integer),
                ("Project key", "", &Kind::Line),
                ("Result schema", "A schema. JSON.", &Kind::Json),
                ("Review by", "", &choices),
                ("Review required", "", &Kind::Checkbox),
            ]
        );
    }
}
