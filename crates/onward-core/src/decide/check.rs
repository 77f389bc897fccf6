//! Input checks: lengths, ranges, sizes. Reports all issues, not only the first.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::budget::{Budget, Limit};
use crate::command::StepSpec;
use crate::id::StepId;
use crate::json::{Json, Shape};
use crate::policy::{
    MAX_INSTRUCTIONS, MAX_JSON_DEPTH, MAX_JSON_VALUES, MAX_MAX_ATTEMPTS, MAX_REMARK,
    MAX_RESULT_BYTES, MAX_SCHEMA_BYTES_PER_COMMAND, MAX_SUMMARY, MAX_THRESHOLD, MAX_TITLE,
    MIN_THRESHOLD,
};
use crate::refusal::{Issue, Refusal};
use crate::routing::{MAX_LABEL, MAX_LABELS, MAX_PRIORITY, MAX_PROJECT_KEY, Routing};
use crate::step::StepResult;

/// The maximum number of reported issues.
const MAX_ISSUES: usize = 20;

/// The issues found so far.
#[derive(Debug, Default)]
pub(super) struct Check {
    issues: Vec<Issue>,
    /// The ids of existing and new steps.
    taken: BTreeSet<StepId>,
    /// The size of all result schemas.
    schema_bytes: usize,
}

impl Check {
    /// A check of steps that are added to existing ones with these ids.
    pub(super) fn with_taken_ids(taken: &[StepId]) -> Self {
        Self {
            taken: taken.iter().copied().collect(),
            ..Self::default()
        }
    }

    pub(super) fn issue(&mut self, path: impl Into<String>, message: impl Into<String>) {
        if self.issues.len() < MAX_ISSUES {
            self.issues.push(Issue {
                path: path.into(),
                message: message.into(),
            });
        }
    }

    pub(super) fn has_issues(&self) -> bool {
        !self.issues.is_empty()
    }

    /// Counts a result schema. Returns whether the command may have that many bytes of schemas.
    pub(super) fn add_schema_bytes(&mut self, bytes: usize) -> bool {
        self.schema_bytes = self.schema_bytes.saturating_add(bytes);
        self.schema_bytes <= MAX_SCHEMA_BYTES_PER_COMMAND
    }

    pub(super) fn finish(self) -> Result<(), Refusal> {
        if self.issues.is_empty() {
            Ok(())
        } else {
            Err(Refusal::InvalidInput(self.issues))
        }
    }

    /// A non-blank text with at most `max` characters.
    pub(super) fn text(&mut self, path: &str, text: &str, max: usize) {
        if text.trim().is_empty() {
            self.issue(path, "must not be empty");
        } else {
            self.length(path, text, max);
        }
    }

    /// A text with at most `max` characters.
    pub(super) fn length(&mut self, path: &str, text: &str, max: usize) {
        // A text never has more characters than bytes, so most texts need no counting.
        if text.len() > max {
            let length = text.chars().count();
            if length > max {
                self.issue(
                    path,
                    format!("has {length} characters, at most {max} are allowed"),
                );
            }
        }
    }

    pub(super) fn remark(&mut self, path: &str, remark: Option<&str>) {
        if let Some(remark) = remark {
            self.length(path, remark, MAX_REMARK);
        }
    }

    pub(super) fn threshold(&mut self, path: &str, threshold: Option<Duration>) {
        if let Some(threshold) = threshold
            && !(MIN_THRESHOLD..=MAX_THRESHOLD).contains(&threshold)
        {
            let (min, max) = (MIN_THRESHOLD.as_millis(), MAX_THRESHOLD.as_millis());
            self.issue(
                path,
                format!("must be between {min} and {max} milliseconds"),
            );
        }
    }

    /// Ids of new steps.
    pub(super) fn fresh_ids<'i>(&mut self, path: &str, ids: impl Iterator<Item = &'i StepId>) {
        for (index, id) in ids.enumerate() {
            if !self.taken.insert(*id) {
                self.issue(format!("{path}[{index}]"), "already used by another step");
            }
        }
    }

    pub(super) fn steps(&mut self, path: &str, steps: &[StepSpec]) {
        for (index, step) in steps.iter().enumerate() {
            // Build the paths only for invalid steps: a plan may have 10,000 steps.
            let is_valid = !step.instructions.trim().is_empty()
                && step.instructions.len() <= MAX_INSTRUCTIONS
                && step
                    .title
                    .as_ref()
                    .is_none_or(|title| title.len() <= MAX_TITLE)
                && step.stall_threshold.is_none()
                && step.max_attempts.is_none()
                && step.gates.is_none()
                && step.labels.is_empty()
                && step.priority <= MAX_PRIORITY;
            if !self.taken.insert(step.id) {
                self.issue(
                    format!("{path}[{index}].id"),
                    "already used by another step",
                );
            }
            if !is_valid {
                self.step(&format!("{path}[{index}]"), step);
            }
        }
    }

    fn step(&mut self, path: &str, step: &StepSpec) {
        self.text(
            &format!("{path}.instructions"),
            &step.instructions,
            MAX_INSTRUCTIONS,
        );
        if let Some(title) = &step.title {
            self.length(&format!("{path}.title"), title, MAX_TITLE);
        }
        self.threshold(&format!("{path}.stallThresholdMs"), step.stall_threshold);
        if let Some(attempts) = step.max_attempts
            && !(1..=MAX_MAX_ATTEMPTS).contains(&attempts)
        {
            let message = format!("must be between 1 and {MAX_MAX_ATTEMPTS}");
            self.issue(format!("{path}.maxAttempts"), message);
        }
        if let Some(gates) = &step.gates {
            self.gates(path, gates);
        }
        self.labels(&format!("{path}.labels"), &step.labels);
        self.priority(&format!("{path}.priority"), step.priority);
    }

    pub(super) fn labels(&mut self, path: &str, labels: &[String]) {
        if labels.len() > MAX_LABELS {
            let message = format!(
                "has {} labels, at most {MAX_LABELS} are allowed",
                labels.len()
            );
            self.issue(path, message);
        }
        for (index, label) in labels.iter().take(MAX_LABELS).enumerate() {
            self.text(&format!("{path}[{index}]"), label, MAX_LABEL);
        }
    }

    pub(super) fn priority(&mut self, path: &str, priority: u8) {
        if priority > MAX_PRIORITY {
            self.issue(path, format!("must be between 0 and {MAX_PRIORITY}"));
        }
    }

    pub(super) fn budget(&mut self, budget: Option<&Budget>) {
        let Some(budget) = budget else { return };
        if *budget == Budget::default() {
            self.issue("budget", "must have at least one limit");
        }
        for limit in Limit::ALL {
            let bound = limit.upper_bound();
            let is_valid = |max: u64| (1..=bound).contains(&max);
            if budget.max(limit).is_some_and(|max| !is_valid(max)) {
                let message = format!("must be between 1 and {bound}");
                self.issue(format!("budget.{limit}"), message);
            }
        }
    }

    pub(super) fn routing(&mut self, routing: &Routing) {
        if let Some(key) = &routing.project_key {
            self.text("projectKey", key, MAX_PROJECT_KEY);
        }
        self.labels("labels", &routing.labels);
        self.priority("priority", routing.priority);
    }

    pub(super) fn result(&mut self, result: &StepResult) {
        self.text("resultSummary", &result.summary, MAX_SUMMARY);
        self.object("result", result.data.as_ref());
        self.object("stepExecutionReport", result.report.as_ref());
        self.remark("outputFormattingNotes", result.formatting_notes.as_deref());
        if let Some(confidence) = result.confidence
            && !(0.0..=1.0).contains(&confidence)
        {
            self.issue("confidence", "must be between 0 and 1");
        }
    }

    fn object(&mut self, path: &str, json: Option<&Json>) {
        let Some(json) = json else { return };
        if !json.is_object() {
            self.issue(path, "must be an object");
        }
        self.size(path, json, MAX_RESULT_BYTES);
    }

    /// A value with at most `max` bytes as JSON, [`MAX_JSON_DEPTH`] levels and [`MAX_JSON_VALUES`]
    /// values.
    pub(super) fn size(&mut self, path: &str, json: &Json, max: usize) {
        let Shape { depth, values } = json.shape();
        if depth > MAX_JSON_DEPTH {
            let message = format!("must have at most {MAX_JSON_DEPTH} levels of nesting");
            self.issue(path, message);
            return;
        }
        if values > MAX_JSON_VALUES {
            let message = format!("has {values} values, at most {MAX_JSON_VALUES} are allowed");
            self.issue(path, message);
        }
        let size = json.as_str().len();
        if size > max {
            self.issue(path, format!("has {size} bytes, at most {max} are allowed"));
        }
    }
}
