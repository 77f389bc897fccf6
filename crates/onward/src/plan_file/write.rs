//! Arguments of `create_research_plan` as a plan file in Markdown.
//!
//! Names, questions, titles and instructions become headings and text if reading the file returns
//! them unchanged, otherwise TOML fields. Instructions that contain a `##` heading are an example.

use serde_json::{Map, Value, json};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table};

use super::markdown::{DEFAULT_STEP_TYPE, FENCE, FIELDS_LANGUAGE, parse};

/// The file for these arguments.
pub(crate) fn markdown(arguments: &Map<String, Value>) -> String {
    let mut fields = arguments.clone();
    let steps = fields.remove("steps");
    let name = take(&mut fields, "name", |name| reads_back_as_plan(name, "A"));
    let question = take(&mut fields, "researchQuestion", |question| {
        reads_back_as_plan("A", question)
    });
    let mut text = String::new();
    let front_matter = toml(&fields);
    if !front_matter.is_empty() {
        text.push_str(&format!("{FENCE}\n{front_matter}{FENCE}\n\n"));
    }
    if name.is_some() || question.is_some() {
        push_section(&mut text, "#", name, "", question);
    }
    for step in steps
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let mut fields = step.as_object().cloned().unwrap_or_default();
        let title = take(&mut fields, "title", |title| reads_back_as_step(title, "A"));
        let instructions = take(&mut fields, "instructions", |instructions| {
            reads_back_as_step("A", instructions)
        });
        if fields.get("stepType").and_then(Value::as_str) == Some(DEFAULT_STEP_TYPE) {
            fields.remove("stepType");
        }
        push_section(&mut text, "##", title, &toml(&fields), instructions);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn push_section(
    text: &mut String,
    marks: &str,
    heading: Option<String>,
    fields: &str,
    body: Option<String>,
) {
    let heading = format!("{marks} {}", heading.unwrap_or_default());
    text.push_str(heading.trim_end());
    text.push_str("\n\n");
    if !fields.is_empty() {
        let fence = code_fence(fields);
        text.push_str(&format!("{fence}{FIELDS_LANGUAGE}\n{fields}{fence}\n\n"));
    }
    if let Some(body) = body {
        text.push_str(&format!("{body}\n\n"));
    }
}

/// Removes a text from the fields if it can be written as Markdown.
fn take(
    fields: &mut Map<String, Value>,
    name: &str,
    reads_back: impl Fn(&str) -> bool,
) -> Option<String> {
    let text = fields.get(name)?.as_str()?.to_owned();
    if !reads_back(&text) {
        return None;
    }
    fields.remove(name);
    Some(text)
}

fn reads_back_as_plan(name: &str, question: &str) -> bool {
    let next = json!({ "title": "B", "instructions": "C", "stepType": DEFAULT_STEP_TYPE });
    let expected = json!({ "name": name, "researchQuestion": question, "steps": [next] });
    reads_back(&format!("# {name}\n\n{question}\n\n## B\n\nC\n"), &expected)
}

fn reads_back_as_step(title: &str, instructions: &str) -> bool {
    let step = |title, instructions| json!({ "title": title, "instructions": instructions, "stepType": DEFAULT_STEP_TYPE });
    // A step follows, because an open code block would contain it.
    let expected = json!({ "steps": [step(title, instructions), step("B", "C")] });
    reads_back(
        &format!("## {title}\n\n{instructions}\n\n## B\n\nC\n"),
        &expected,
    )
}

fn reads_back(document: &str, expected: &Value) -> bool {
    parse(document).is_ok_and(|read| Some(&read.arguments) == expected.as_object())
}

/// A fence that is longer than all runs of backticks in the text.
fn code_fence(text: &str) -> String {
    let runs = text.split(|char| char != '`').map(str::len);
    "`".repeat(runs.max().unwrap_or(0).max(2) + 1)
}

/// The fields as a TOML document. Lists of objects are arrays of tables.
fn toml(fields: &Map<String, Value>) -> String {
    let mut document = DocumentMut::new();
    for (name, value) in fields {
        let objects = value.as_array().filter(|all| !all.is_empty());
        let objects: Option<Vec<_>> =
            objects.and_then(|all| all.iter().map(Value::as_object).collect());
        if let Some(objects) = objects {
            let mut tables = ArrayOfTables::new();
            for object in objects {
                let mut table = Table::new();
                // Objects last: they are the longest values.
                let (nested, plain): (Vec<_>, Vec<_>) =
                    object.iter().partition(|(_, value)| value.is_object());
                for (name, value) in plain.into_iter().chain(nested) {
                    if let Some(value) = toml_value(value) {
                        table.insert(name, Item::Value(value));
                    }
                }
                tables.push(table);
            }
            document.insert(name, Item::ArrayOfTables(tables));
        } else if let Some(value) = toml_value(value) {
            document.insert(name, Item::Value(value));
        }
    }
    document.to_string()
}

/// The value in TOML, which has no null.
fn toml_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => toml_text(text),
        Value::Array(all) => all.iter().filter_map(toml_value).collect::<Array>().into(),
        Value::Object(fields) => {
            let mut table = InlineTable::new();
            for (name, value) in fields {
                if let Some(value) = toml_value(value) {
                    table.insert(name, value);
                }
            }
            table.into()
        }
    })
}

fn toml_text(text: &str) -> toml_edit::Value {
    // A line `+++` in a text of several lines would end the front matter. The escapes of JSON are
    // escapes of TOML, too.
    let one_line = text.contains(FENCE).then(|| Value::from(text).to_string());
    let one_line = one_line.and_then(|text| text.parse().ok());
    one_line.unwrap_or_else(|| text.into())
}
