//! Input sanitizing: replaces U+0000 with U+FFFD, so that both databases store the text that the
//! response contains. Other control characters are unchanged.
//!
//! Rejects data nested deeper than a JSON parser accepts: it could be stored but not read back.

use std::sync::Arc;

use onward_core::command::{
    ActionSpec, BranchSpec, CreatePlan, ForkPlan, Modification, ReportSkill, StepSpec, StepUpdate,
};
use onward_core::id::SessionId;
use onward_core::refusal::Issue;
use onward_core::step::{ReviewOptions, StepResult};
use onward_core::{Json, Refusal};
use serde_json::{Map, Value};

/// Maximum nesting depth.
const MAX_DEPTH: usize = 100;

/// Replaces U+0000 in a text.
pub(crate) fn text(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{FFFD}");
    }
}

pub(crate) fn optional_text(string: &mut Option<String>) {
    if let Some(string) = string {
        text(string);
    }
}

pub(crate) fn session(session: Option<SessionId>) -> Option<SessionId> {
    session.map(|session| {
        if session.as_str().contains('\0') {
            SessionId::new(session.as_str().replace('\0', "\u{FFFD}"))
        } else {
            session
        }
    })
}

pub(crate) fn plan(command: &mut CreatePlan) {
    text(&mut command.name);
    text(&mut command.research_question);
    optional_text(&mut command.design_rationale);
    optional_text(&mut command.output_formatting_notes);
    command.session = session(command.session.take());
    command.steps.iter_mut().for_each(step);
    command.branches.iter_mut().for_each(branch);
    optional_text(&mut command.routing.project_key);
    command.routing.labels.iter_mut().for_each(text);
}

pub(crate) fn fork(command: &mut ForkPlan) {
    optional_text(&mut command.name);
    optional_text(&mut command.research_question);
    optional_text(&mut command.design_rationale);
    command.session = session(command.session.take());
}

pub(crate) fn modification(modification: &mut Modification) {
    match modification {
        Modification::AddSteps { steps, .. } => steps.iter_mut().for_each(step),
        Modification::UpdateInstructions { instructions, .. } => text(instructions),
        Modification::RenameStep {
            title,
            instructions,
            ..
        } => {
            text(title);
            text(instructions);
        }
        Modification::UpdateStep { update, .. } => step_update(update),
        Modification::UpdatePlan { update } => {
            optional_text(&mut update.project_key);
            update.labels.iter_mut().flatten().for_each(text);
        }
        Modification::FailStep { reason, .. } => optional_text(reason),
        Modification::RedoStep { reason, .. } => text(reason),
        Modification::AddBranch { branch: added } => branch(added),
        Modification::RemoveStep { .. }
        | Modification::SetBudget { .. }
        | Modification::ReorderSteps { .. }
        | Modification::SkipStep { .. }
        | Modification::RequeueStep { .. } => {}
    }
}

fn step(spec: &mut StepSpec) {
    optional_text(&mut spec.title);
    text(&mut spec.instructions);
    spec.labels.iter_mut().for_each(text);
    if let Some(gates) = &mut spec.gates {
        let gates = Arc::make_mut(gates);
        gates.acceptance_criteria.iter_mut().for_each(text);
        gates.result_schema.iter_mut().for_each(json);
    }
}

fn step_update(update: &mut StepUpdate) {
    optional_text(&mut update.title);
    optional_text(&mut update.instructions);
    update
        .acceptance_criteria
        .iter_mut()
        .flatten()
        .for_each(text);
    update.result_schema.iter_mut().flatten().for_each(json);
    update.labels.iter_mut().flatten().for_each(text);
}

fn branch(spec: &mut BranchSpec) {
    text(&mut spec.condition);
    match &mut spec.action {
        ActionSpec::Continue | ActionSpec::SkipTo(_) => {}
        ActionSpec::AddSteps(steps) => steps.iter_mut().for_each(step),
        ActionSpec::Fail { reason } => optional_text(reason),
    }
}

/// Sanitizes a result, including nested data.
pub(crate) fn result(result: &mut Arc<StepResult>) -> Result<(), Refusal> {
    for (path, data) in [
        ("result", &result.data),
        ("stepExecutionReport", &result.report),
    ] {
        if data
            .as_ref()
            .is_some_and(|data| data.shape().depth > MAX_DEPTH)
        {
            return Err(too_deep(path));
        }
    }
    let result = Arc::make_mut(result);
    text(&mut result.summary);
    optional_text(&mut result.formatting_notes);
    for evidence in &mut result.evidence {
        text(&mut evidence.criterion);
        text(&mut evidence.value);
        text(&mut evidence.outcome);
    }
    // Normalize negative zero: SQLite does not preserve its sign.
    result.confidence = result.confidence.map(|confidence| confidence + 0.0);
    for data in result.data.iter_mut().chain(&mut result.report) {
        json(data);
    }
    Ok(())
}

/// Sanitizes the typed questions of a review.
pub(crate) fn review_options(options: &mut ReviewOptions) {
    optional_text(&mut options.assignee);
    for field in &mut options.fields {
        text(&mut field.name);
        optional_text(&mut field.title);
        field.default.iter_mut().for_each(json);
        for option in &mut field.options {
            text(&mut option.value);
            optional_text(&mut option.title);
        }
    }
}

/// Sanitizes the answers to typed questions. The core accepts only texts, numbers and lists of texts.
pub(crate) fn answers(answers: &mut Map<String, Value>) {
    let mut all = Value::Object(std::mem::take(answers));
    value(&mut all);
    if let Value::Object(clean) = all {
        *answers = clean;
    }
}

/// Sanitizes a skill report. A blank error is removed.
pub(crate) fn skill(report: &mut ReportSkill) -> Result<(), Refusal> {
    text(&mut report.skill);
    optional_text(&mut report.error);
    report.error = report.error.take().filter(|error| !error.trim().is_empty());
    report.session = session(report.session.take());
    metadata(&mut report.metadata)
}

/// Sanitizes a metadata object.
pub(crate) fn metadata(metadata: &mut Map<String, Value>) -> Result<(), Refusal> {
    let mut all = Value::Object(std::mem::take(metadata));
    if is_deeper_than(&all, MAX_DEPTH) {
        return Err(too_deep("metadata"));
    }
    value(&mut all);
    if let Value::Object(clean) = all {
        *metadata = clean;
    }
    Ok(())
}

fn too_deep(path: &str) -> Refusal {
    let message = format!("is nested deeper than {MAX_DEPTH} levels");
    let path = path.to_owned();
    Refusal::InvalidInput(vec![Issue { path, message }])
}

/// Sanitizes a JSON text. It contains a null character only as an escape.
fn json(data: &mut Json) {
    if data.as_str().contains("\\u0000")
        && let Some(mut tree) = data.parse()
    {
        value(&mut tree);
        *data = tree.into();
    }
}

/// Sanitizes a JSON value.
pub(crate) fn value(data: &mut Value) {
    match data {
        Value::String(string) => text(string),
        Value::Array(all) => all.iter_mut().for_each(value),
        Value::Object(object) => {
            if object.keys().any(|key| key.contains('\0')) {
                let taken = std::mem::take(object);
                let clean = |key: String| key.replace('\0', "\u{FFFD}");
                object.extend(taken.into_iter().map(|(key, value)| (clean(key), value)));
            }
            object.values_mut().for_each(value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_deeper_than(data: &Value, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else {
        return true;
    };
    match data {
        Value::Array(all) => all.iter().any(|one| is_deeper_than(one, left)),
        Value::Object(object) => object.values().any(|one| is_deeper_than(one, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
