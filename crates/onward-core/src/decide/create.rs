//! Creates a plan. The whole input is checked, orders are resolved to ids and conditions are
//! parsed, so that every stored plan can be executed. With an approval, the first event is followed by
//! the review of the plan's start.

use std::collections::{BTreeMap, BTreeSet};

use super::approval;
use super::check::Check;
use super::draft::Draft;
use super::resolve::{self, ExistingSteps, ReferencedStep};
use crate::command::{ActionSpec, BranchSpec, CreatePlan};
use crate::event::{Change, Created, Event};
use crate::id::StepId;
use crate::plan::{Brief, PlanHead};
use crate::policy::{
    MAX_BRANCHES, MAX_BRANCHES_PER_STEP, MAX_NAME, MAX_PATTERN_BYTES, MAX_QUESTION, MAX_STEPS,
};
use crate::refusal::Refusal;
use crate::routing::{Routing, sorted_labels};
use crate::step::StepStatus;
use crate::time::Timestamp;

/// Decides the command.
pub fn decide(command: &CreatePlan) -> Result<Vec<Event>, Refusal> {
    check_limit("branches", MAX_BRANCHES, command.branches.len())?;
    check_input(command)?;
    let on_dependency_failure = command.on_dependency_failure;
    let none = ExistingSteps {
        total: 0,
        on_dependency_failure,
        by_order: &|_| None,
        by_id: &|_| None,
    };
    let steps = resolve::steps(&command.steps, &none)?;
    let total = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let at = |order: u32| {
        let index = usize::try_from(order).ok()?.checked_sub(1)?;
        let step = steps.get(index)?;
        Some(ReferencedStep {
            id: step.id,
            order,
            status: StepStatus::Pending,
        })
    };
    let orders: BTreeMap<StepId, u32> = steps.iter().map(|step| step.id).zip(1u32..).collect();
    let by_id = |id: StepId| orders.get(&id).and_then(|order| at(*order));
    let existing = ExistingSteps {
        total,
        on_dependency_failure,
        by_order: &at,
        by_id: &by_id,
    };
    let mut branches = Vec::with_capacity(command.branches.len());
    let mut per_step: BTreeMap<u32, usize> = BTreeMap::new();
    let mut patterns = 0usize;
    for (index, spec) in command.branches.iter().enumerate() {
        let count = per_step.entry(spec.after_order).or_default();
        *count += 1;
        check_limit("branches after one step", MAX_BRANCHES_PER_STEP, *count)?;
        let path = format!("branchingConditions[{index}]");
        let branch = resolve::branch(spec, &path, &existing)?;
        patterns = patterns.saturating_add(branch.condition.pattern_bytes());
        check_limit("bytes of patterns", MAX_PATTERN_BYTES, patterns)?;
        branches.push(branch);
    }
    let created = Created {
        plan: command.plan,
        origin: command.origin,
        brief: Brief {
            name: command.name.clone(),
            research_question: command.research_question.clone(),
            design_rationale: command.design_rationale.clone(),
            output_formatting_notes: command.output_formatting_notes.clone(),
            forked_from: None,
        },
        steps,
        branches,
        stall_threshold: command.stall_threshold,
        on_stall: command.on_stall,
        on_dependency_failure,
        session: command.session.clone(),
        routing: normalized(&command.routing),
        budget: command.budget,
    };
    let mut events = Vec::new();
    if let Some(review) = command.approval {
        // The time of an event is not part of the head of an open plan.
        let mut draft = Draft::new(&PlanHead::new(&created), Timestamp::MIN);
        approval::request(&mut draft, &created, created.steps.iter(), review)?;
        events = draft.into_events();
    }
    let change = Change::Created(Box::new(created));
    let rationale = command.design_rationale.clone();
    events.insert(0, Event::PlanModified { change, rationale });
    Ok(events)
}

/// The values as they are stored.
pub(super) fn normalized(routing: &Routing) -> Routing {
    let key = routing.project_key.as_deref().map(str::trim);
    Routing {
        project_key: key.map(str::to_owned),
        labels: sorted_labels(&routing.labels),
        priority: routing.priority,
    }
}

fn check_input(command: &CreatePlan) -> Result<(), Refusal> {
    let mut check = Check::default();
    check.text("name", &command.name, MAX_NAME);
    check.text("researchQuestion", &command.research_question, MAX_QUESTION);
    check.remark("planDesignRationale", command.design_rationale.as_deref());
    check.remark(
        "outputFormattingNotes",
        command.output_formatting_notes.as_deref(),
    );
    check.threshold("stallThresholdMs", command.stall_threshold);
    check.routing(&command.routing);
    check.budget(command.budget.as_ref());
    if command.steps.is_empty() || command.steps.len() > MAX_STEPS {
        let message = format!(
            "must contain 1 to {MAX_STEPS} steps, not {}",
            command.steps.len()
        );
        check.issue("steps", message);
    } else {
        check.steps("steps", &command.steps);
    }
    let mut ids = BTreeSet::new();
    for (index, branch) in command.branches.iter().enumerate() {
        let path = format!("branchingConditions[{index}]");
        check_branch(&mut check, &path, branch);
        if !ids.insert(branch.id) {
            check.issue(format!("{path}.id"), "already used by another branch");
        }
    }
    check.finish()
}

/// Checks a branch without looking up steps.
pub(super) fn check_branch(check: &mut Check, path: &str, branch: &BranchSpec) {
    match &branch.action {
        ActionSpec::Continue | ActionSpec::SkipTo(_) => {}
        ActionSpec::Fail { reason } => {
            check.remark(&format!("{path}.actionParams.reason"), reason.as_deref());
        }
        ActionSpec::AddSteps(steps) => {
            let path = format!("{path}.actionParams.steps");
            if steps.is_empty() || steps.len() > MAX_STEPS {
                check.issue(
                    path,
                    format!("must contain 1 to {MAX_STEPS} steps, not {}", steps.len()),
                );
            } else {
                check.steps(&path, steps);
            }
        }
    }
}

/// Returns an error if the limit is exceeded.
pub(super) fn check_limit(what: &'static str, limit: usize, actual: usize) -> Result<(), Refusal> {
    if actual > limit {
        return Err(Refusal::LimitExceeded {
            what,
            limit,
            actual,
        });
    }
    Ok(())
}
