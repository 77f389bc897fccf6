//! Texts before they are decided upon: U+0000 becomes U+FFFD, on both databases alike, so that a plan
//! and its trail hold the same text as the answer. Other control characters stay as they are.
//!
//! Data that is nested deeper than a reader of JSON takes is refused here, before it can be stored
//! and never be read again.

use std::sync::Arc;

use onward_core::Refusal;
use onward_core::command::{
    ActionSpec, BranchSpec, CreatePlan, Modification, ReportSkill, StepSpec,
};
use onward_core::id::{ClaimToken, SessionId};
use onward_core::refusal::Issue;
use onward_core::step::StepResult;
use serde_json::{Map, Value};

/// How deep a result may be nested.
const DEPTH: usize = 100;

/// A text without U+0000.
pub(crate) fn text(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{FFFD}");
    }
}

pub(crate) fn maybe(words: &mut Option<String>) {
    if let Some(words) = words {
        text(words);
    }
}

pub(crate) fn session(session: Option<SessionId>) -> Option<SessionId> {
    session.map(|session| match session.as_str().contains('\0') {
        true => SessionId::new(session.as_str().replace('\0', "\u{FFFD}")),
        false => session,
    })
}

/// A token that an agent made up may become the claim's.
pub(crate) fn token(token: Option<ClaimToken>) -> Option<ClaimToken> {
    token.map(|token| match token.as_str().contains('\0') {
        true => ClaimToken::new(token.as_str().replace('\0', "\u{FFFD}")),
        false => token,
    })
}

pub(crate) fn plan(command: &mut CreatePlan) {
    text(&mut command.name);
    text(&mut command.research_question);
    maybe(&mut command.design_rationale);
    maybe(&mut command.output_formatting_notes);
    command.session = session(command.session.take());
    command.steps.iter_mut().for_each(step);
    command.branches.iter_mut().for_each(branch);
}

pub(crate) fn modification(modification: &mut Modification) {
    match modification {
        Modification::AddSteps { steps, .. } => steps.iter_mut().for_each(step),
        Modification::UpdateInstructions { instructions, .. } => text(instructions),
        Modification::FailStep { reason, .. } => maybe(reason),
        Modification::AddBranch { branch: added } => branch(added),
        Modification::RemoveStep { .. }
        | Modification::ReorderSteps { .. }
        | Modification::RequeueStep { .. } => {}
    }
}

fn step(spec: &mut StepSpec) {
    maybe(&mut spec.title);
    text(&mut spec.instructions);
}

fn branch(spec: &mut BranchSpec) {
    text(&mut spec.condition);
    match &mut spec.action {
        ActionSpec::Continue | ActionSpec::SkipTo(_) => {}
        ActionSpec::AddSteps(steps) => steps.iter_mut().for_each(step),
        ActionSpec::Fail { reason } => maybe(reason),
    }
}

/// A result without U+0000 in any of its texts, however deep.
pub(crate) fn result(result: &mut Arc<StepResult>) -> Result<(), Refusal> {
    for (path, data) in [
        ("result", &result.data),
        ("stepExecutionReport", &result.report),
    ] {
        if data.as_ref().is_some_and(|data| is_deeper(data, DEPTH)) {
            return Err(too_deep(path));
        }
    }
    let result = Arc::make_mut(result);
    text(&mut result.summary);
    maybe(&mut result.formatting_notes);
    // A negative zero is a zero: a column of numbers keeps no sign of it on SQLite.
    result.confidence = result.confidence.map(|confidence| confidence + 0.0);
    for data in result.data.iter_mut().chain(&mut result.report) {
        value(data);
    }
    Ok(())
}

/// A report without U+0000 in any of its texts. An error without a word is none.
pub(crate) fn skill(report: &mut ReportSkill) -> Result<(), Refusal> {
    text(&mut report.skill);
    maybe(&mut report.error);
    report.error = report.error.take().filter(|error| !error.trim().is_empty());
    report.session = session(report.session.take());
    metadata(&mut report.metadata)
}

/// Whatever else is known about something, without U+0000 in any of its texts.
pub(crate) fn metadata(metadata: &mut Map<String, Value>) -> Result<(), Refusal> {
    let mut all = Value::Object(std::mem::take(metadata));
    if is_deeper(&all, DEPTH) {
        return Err(too_deep("metadata"));
    }
    value(&mut all);
    if let Value::Object(clean) = all {
        *metadata = clean;
    }
    Ok(())
}

fn too_deep(path: &str) -> Refusal {
    let message = format!("is nested deeper than {DEPTH} levels");
    let path = path.to_owned();
    Refusal::InvalidInput(vec![Issue { path, message }])
}

/// Data without U+0000 in any of its texts.
pub(crate) fn value(data: &mut Value) {
    match data {
        Value::String(words) => text(words),
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

fn is_deeper(data: &Value, than: usize) -> bool {
    let Some(left) = than.checked_sub(1) else {
        return true;
    };
    match data {
        Value::Array(all) => all.iter().any(|one| is_deeper(one, left)),
        Value::Object(object) => object.values().any(|one| is_deeper(one, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
