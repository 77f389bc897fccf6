//! Checks the gates of a step at its definition, and a submission against them.
//!
//! A rejected submission changes nothing. The issues name the path of each mismatch and each
//! criterion without evidence.

use std::sync::Arc;

use serde_json::Value;

use super::check::Check;
use crate::json::Json;
use crate::policy::{
    MAX_CRITERIA, MAX_CRITERION, MAX_EVIDENCE, MAX_EVIDENCE_TEXT, MAX_RESULT_SCHEMA_BYTES,
    MAX_SCHEMA_BYTES_PER_COMMAND, MAX_VALIDATION_STEPS,
};
use crate::schema::SchemaValidator;
use crate::step::{Evidence, Gates, StepResult};

impl Check {
    /// The gates of a step at this path; empty for the root.
    pub(super) fn gates(&mut self, path: &str, gates: &Gates) {
        let criteria = &gates.acceptance_criteria;
        if criteria.len() > MAX_CRITERIA {
            let message = format!(
                "has {} criteria, at most {MAX_CRITERIA} are allowed",
                criteria.len()
            );
            self.issue(field(path, "acceptanceCriteria"), message);
        }
        for (index, criterion) in criteria.iter().enumerate() {
            let path = format!("{}[{index}]", field(path, "acceptanceCriteria"));
            self.text(&path, criterion, MAX_CRITERION);
            let is_same = |other: &String| other.trim() == criterion.trim();
            if criteria.iter().take(index).any(is_same) {
                self.issue(path, "repeats an earlier criterion");
            }
        }
        if let Some(schema) = &gates.result_schema {
            self.result_schema(&field(path, "resultSchema"), schema);
        }
    }

    /// A schema that can be compiled. The total size of one command's schemas bounds the time.
    fn result_schema(&mut self, path: &str, schema: &Json) {
        let bytes = schema.as_str().len();
        if bytes > MAX_RESULT_SCHEMA_BYTES {
            let message =
                format!("has {bytes} bytes, at most {MAX_RESULT_SCHEMA_BYTES} are allowed");
            self.issue(path, message);
            return;
        }
        if !self.add_schema_bytes(bytes) {
            let message = format!(
                "exceeds {MAX_SCHEMA_BYTES_PER_COMMAND} bytes of schemas in one request; add the \
                 steps in several requests"
            );
            self.issue(path, message);
            return;
        }
        if let Err(message) = compile(schema) {
            self.issue(path, message);
        }
    }

    /// A submission to a step with these gates.
    pub(super) fn submission(&mut self, gates: Option<&Gates>, result: &StepResult) {
        self.evidence(gates, &result.evidence);
        let Some(gates) = gates else { return };
        for (number, criterion) in (1..).zip(&gates.acceptance_criteria) {
            let answers = |evidence: &Evidence| {
                gates.criterion(&evidence.criterion) == Some(criterion.as_str())
            };
            if !result.evidence.iter().any(answers) {
                let message = format!("has no entry for criterion {number}: `{criterion}`");
                self.issue("evidence", message);
            }
        }
        match (&gates.result_schema, &result.data) {
            (Some(_), None) => self.issue("result", "is required by the step's `resultSchema`"),
            // Other issues may be about the size of the data.
            (Some(schema), Some(data)) if !self.has_issues() => self.match_schema(schema, data),
            (Some(_), Some(_)) | (None, _) => {}
        }
    }

    fn evidence(&mut self, gates: Option<&Gates>, evidence: &[Evidence]) {
        if evidence.len() > MAX_EVIDENCE {
            let message = format!(
                "has {} entries, at most {MAX_EVIDENCE} are allowed",
                evidence.len()
            );
            self.issue("evidence", message);
        }
        let criteria = gates.map_or(0, |gates| gates.acceptance_criteria.len());
        for (index, entry) in evidence.iter().enumerate() {
            let path = |field: &str| format!("evidence[{index}].{field}");
            self.text(&path("criterion"), &entry.criterion, MAX_CRITERION);
            self.text(&path("value"), &entry.value, MAX_EVIDENCE_TEXT);
            self.text(&path("outcome"), &entry.outcome, MAX_EVIDENCE_TEXT);
            let is_known = gates.is_some_and(|gates| gates.criterion(&entry.criterion).is_some());
            if criteria > 0 && !is_known {
                let message = format!(
                    "must be the text of an acceptance criterion or its number, 1 to {criteria}"
                );
                self.issue(path("criterion"), message);
            }
        }
    }

    fn match_schema(&mut self, schema: &Json, data: &Json) {
        let issues = match (compile(schema), data.parse()) {
            (Ok(schema), Some(data)) => schema.issues(&data, MAX_VALIDATION_STEPS),
            // Both were checked before: the schema with the step, the data with the result.
            (Err(message), _) => return self.issue("result", message),
            (Ok(_), None) => return self.issue("result", "cannot be parsed"),
        };
        for issue in issues {
            self.issue(field_path("result", &issue.path), issue.message);
        }
    }
}

fn field(path: &str, name: &str) -> String {
    let separator = if path.is_empty() { "" } else { "." };
    format!("{path}{separator}{name}")
}

fn compile(schema: &Json) -> Result<SchemaValidator, String> {
    match schema.parse() {
        Some(Value::Object(schema)) => {
            SchemaValidator::compile(schema).map_err(|why| why.to_string())
        }
        Some(_) | None => Err("must be a JSON Schema: an object".to_owned()),
    }
}

/// The path of a field: `result.moons[0].name` for the pointer `/moons/0/name`.
fn field_path(root: &str, pointer: &str) -> String {
    let mut path = root.to_owned();
    for segment in pointer.split('/').skip(1) {
        if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{segment}]"));
        } else {
            path.push('.');
            path.push_str(&segment.replace("~1", "/").replace("~0", "~"));
        }
    }
    path
}

/// The result with the texts of criteria instead of their numbers, so that its evidence can be read
/// without the step.
pub(super) fn with_criteria(gates: Option<&Gates>, result: &Arc<StepResult>) -> Arc<StepResult> {
    let Some(gates) = gates.filter(|_| !result.evidence.is_empty()) else {
        return Arc::clone(result);
    };
    let mut named = Arc::clone(result);
    for entry in &mut Arc::make_mut(&mut named).evidence {
        if let Some(criterion) = gates.criterion(&entry.criterion) {
            entry.criterion = criterion.to_owned();
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::field_path;

    #[test]
    fn writes_pointers_as_paths_of_fields() {
        assert_eq!(field_path("result", ""), "result");
        assert_eq!(
            field_path("result", "/moons/0/name"),
            "result.moons[0].name"
        );
        assert_eq!(field_path("result", "/a~1b/~0c"), "result.a/b.~c");
    }
}
