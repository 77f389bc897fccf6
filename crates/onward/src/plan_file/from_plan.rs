//! The arguments that create a stored plan again: its definition without its progress.
//!
//! Steps that a branch has inserted are left out, because the branch inserts them again. If another
//! step depends on them, they stay and their branch is left out. Superseded steps are left out;
//! references to them are references to their successors.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use onward_core::branch::{Action, Branch};
use onward_core::budget::{Budget, Limit};
use onward_core::event::ReviewAction;
use onward_core::policy::{DEFAULT_MAX_ATTEMPTS, OnDependencyFailure, OnStall};
use onward_core::routing::DEFAULT_PRIORITY;
use onward_core::step::{NewStep, ReviewScope};
use onward_core::{Event, Json, StepId};
use onward_engine::transfer::FullPlan;
use serde_json::{Map, Value, json};

/// The arguments of `create_research_plan`. Add new fields of plans and steps here.
pub(crate) fn arguments(full: &FullPlan) -> Map<String, Value> {
    let plan = &full.plan;
    let (brief, head) = (&plan.sheet.brief, &plan.sheet.head);
    let current = plan
        .steps
        .iter()
        .filter(|step| step.superseded_by.is_none());
    let all: Vec<&NewStep> = current.map(|step| &step.spec).collect();
    let branches = plan.branches.iter();
    let kept: Vec<&Branch> = branches
        .filter(|branch| !is_needed_by_others(branch, &all))
        .collect();
    let inserted = kept.iter().flat_map(|branch| added(branch));
    let inserted: HashSet<StepId> = inserted.map(|step| step.id).collect();
    let steps: Vec<&NewStep> = all
        .into_iter()
        .filter(|step| !inserted.contains(&step.id))
        .collect();
    let mut orders: HashMap<StepId, usize> = steps.iter().map(|step| step.id).zip(1..).collect();
    // One round, unless the steps were reordered: a successor comes after the step it supersedes.
    let mut known = 0;
    while orders.len() > known {
        known = orders.len();
        for step in plan.steps.iter().rev() {
            let successor = step.superseded_by.and_then(|id| orders.get(&id).copied());
            orders.extend(successor.map(|order| (step.id(), order)));
        }
    }
    let mut fields = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    };
    set("name", Some(brief.name.as_str().into()));
    set(
        "researchQuestion",
        Some(brief.research_question.as_str().into()),
    );
    set(
        "planDesignRationale",
        brief.design_rationale.clone().map(Value::from),
    );
    set(
        "outputFormattingNotes",
        brief.output_formatting_notes.clone().map(Value::from),
    );
    set("stallThresholdMs", head.stall_threshold.map(millis));
    let on_stall = (head.on_stall != OnStall::default()).then(|| head.on_stall.as_str().into());
    set("onStall", on_stall);
    let policy = head.on_dependency_failure;
    let policy = (policy != OnDependencyFailure::default()).then(|| policy.as_str().into());
    set("onDependencyFailure", policy);
    let is_approval = |event: &Event| {
        matches!(event, Event::UserReviewed { action: ReviewAction::Requested { scope, .. }, .. }
            if *scope == ReviewScope::Start)
    };
    let has_approval = full.events.iter().any(|entry| is_approval(&entry.event));
    set("requiresApproval", has_approval.then(|| true.into()));
    let routing = &head.routing;
    set(
        "projectKey",
        routing.project_key.as_deref().map(Value::from),
    );
    set("labels", some_labels(&routing.labels));
    set("priority", some_priority(routing.priority));
    set("budget", head.budget.map(|budget| limits(&budget.limits)));
    let branches: Vec<Value> = kept
        .iter()
        .filter_map(|branch| branch_fields(branch, &orders))
        .collect();
    set(
        "branchingConditions",
        (!branches.is_empty()).then(|| branches.into()),
    );
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| step_fields(step, &orders))
        .collect();
    set("steps", Some(steps.into()));
    fields
}

fn limits(budget: &Budget) -> Value {
    let set = Limit::ALL.iter();
    let set = set.filter_map(|limit| Some((limit.to_string(), budget.max(*limit)?.into())));
    Value::Object(set.collect())
}

fn some_labels(labels: &[String]) -> Option<Value> {
    (!labels.is_empty()).then(|| labels.to_vec().into())
}

fn some_priority(priority: u8) -> Option<Value> {
    (priority != DEFAULT_PRIORITY).then(|| priority.into())
}

/// The steps that a branch adds.
fn added(branch: &Branch) -> &[NewStep] {
    if let Action::AddSteps { steps } = &branch.action {
        steps
    } else {
        &[]
    }
}

/// Whether a step of the plan that the branch did not insert depends on one that it did.
fn is_needed_by_others(branch: &Branch, steps: &[&NewStep]) -> bool {
    let own: HashSet<StepId> = added(branch).iter().map(|step| step.id).collect();
    let others = steps.iter().filter(|step| !own.contains(&step.id));
    others
        .flat_map(|step| &step.depends_on)
        .any(|needed| own.contains(needed))
}

fn step_fields(step: &NewStep, orders: &HashMap<StepId, usize>) -> Value {
    let mut fields = json!({
        "stepType": step.step_type.as_str(),
        "instructions": step.instructions,
    });
    let needed = step.depends_on.iter().filter_map(|id| orders.get(id));
    let needed: Vec<usize> = needed.copied().collect();
    let gates = step.gates.as_deref();
    let review_by = gates.and_then(|gates| gates.review_by);
    let optional = [
        ("title", step.title.clone().map(Value::from)),
        ("dependsOn", (!needed.is_empty()).then(|| needed.into())),
        ("stallThresholdMs", step.stall_threshold.map(millis)),
        (
            "maxAttempts",
            (step.max_attempts != DEFAULT_MAX_ATTEMPTS).then(|| step.max_attempts.into()),
        ),
        (
            "resultSchema",
            gates.and_then(|gates| gates.result_schema.as_ref().and_then(Json::parse)),
        ),
        (
            "acceptanceCriteria",
            gates
                .map(|gates| &gates.acceptance_criteria)
                .filter(|criteria| !criteria.is_empty())
                .map(|criteria| criteria.clone().into()),
        ),
        ("reviewRequired", review_by.map(|_| true.into())),
        ("reviewBy", review_by.map(|by| by.as_str().into())),
        ("labels", some_labels(&step.labels)),
        ("priority", some_priority(step.priority)),
    ];
    for (name, value) in optional {
        if let (Some(fields), Some(value)) = (fields.as_object_mut(), value) {
            fields.insert(name.to_owned(), value);
        }
    }
    fields
}

/// `None` if the branch refers to a step that is left out.
fn branch_fields(branch: &Branch, orders: &HashMap<StepId, usize>) -> Option<Value> {
    let params = match &branch.action {
        Action::Continue => None,
        Action::SkipTo { target } => Some(json!({ "targetStepOrder": orders.get(target)? })),
        Action::AddSteps { steps } => {
            // New steps are numbered after the last one.
            let mut orders = orders.clone();
            let first = orders.values().max().map_or(1, |last| last + 1);
            orders.extend(steps.iter().map(|step| step.id).zip(first..));
            let steps: Vec<Value> = steps
                .iter()
                .map(|step| step_fields(step, &orders))
                .collect();
            Some(json!({ "steps": steps }))
        }
        Action::Fail { reason } => reason.as_ref().map(|reason| json!({ "reason": reason })),
    };
    let mut fields = json!({
        "afterStepOrder": orders.get(&branch.after)?,
        "conditionExpression": branch.condition.source(),
        "ifTrueAction": branch.action.as_str(),
    });
    if let (Some(fields), Some(params)) = (fields.as_object_mut(), params) {
        fields.insert("actionParams".to_owned(), params);
    }
    Some(fields)
}

fn millis(duration: Duration) -> Value {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .into()
}
