//! Checks that each commit of an audit trail is complete, and that the plan satisfies the rules
//! after each commit.
//!
//! Only the audit trail is read. [`Engine::verify`](onward_engine::Engine::verify) compares it with
//! the rows.

use std::collections::BTreeSet;

use onward_core::branch::Effect;
use onward_core::event::{Change, Decision, ReviewAction};
use onward_core::{Event, Plan, PlanStatus, StepId, StepStatus};
use onward_store::Entry;

use crate::agents::audit_trails::commits;

/// Violations in an audit trail.
pub fn violations(entries: &[Entry]) -> Vec<String> {
    let mut found = Vec::new();
    let mut plan: Option<Plan> = None;
    let mut tokens = BTreeSet::new();
    for commit in commits(entries) {
        let number = commit[0].commit_seq;
        let mut report = |violation: &str| found.push(format!("commit {number}: {violation}"));
        if commit[0].seq != number {
            report("the sequence number of its first entry differs from the commit number");
        }
        if commit.iter().any(|entry| entry.author != commit[0].author) {
            report("it has more than one author");
        }
        for entry in commit {
            if let (Event::StepStarted { step, claim }, Some(plan)) = (&entry.event, &plan) {
                // An agent may claim a step again with its own superseded token.
                let reclaimed = plan
                    .step(*step)
                    .is_some_and(|step| step.superseded.contains(&claim.token));
                if !tokens.insert(claim.token.as_str()) && !reclaimed {
                    report("a token was issued twice");
                }
                check_start(plan, *step, claim.attempt).unwrap_or_else(&mut report);
            }
            if let Err(error) = apply(&mut plan, entry) {
                report(&error);
                return found;
            }
        }
        if let Some(plan) = &plan {
            check_effects(commit, plan, &mut report);
            check_invariants(plan, &mut report);
        }
    }
    found
}

/// The plan after this commit of the audit trail.
pub fn plan_after(entries: &[Entry], commit: &[Entry]) -> Option<Plan> {
    let last = commit.last()?.seq;
    let until = entries.iter().take_while(|entry| entry.seq <= last);
    Plan::replay(until.map(|entry| (&entry.event, entry.at))).ok()
}

/// Whether a step of the plan can be assigned.
pub fn has_ready_step(plan: &Plan) -> bool {
    let open = matches!(
        plan.head().status(),
        PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled
    );
    let budget = plan.head().budget;
    let is_exhausted = budget.is_some_and(|budget| budget.exhausted.is_some());
    open && !is_exhausted
        && plan.steps().iter().any(|step| {
            let blocked = step
                .spec
                .depends_on
                .iter()
                .any(|dependency| !is_terminal(plan, *dependency));
            step.status() == StepStatus::Pending && !blocked
        })
}

fn apply(plan: &mut Option<Plan>, entry: &Entry) -> Result<(), String> {
    match (plan, &entry.event) {
        (Some(plan), event) => plan
            .apply(event, entry.at)
            .map_err(|error| error.to_string()),
        (
            none,
            Event::PlanModified {
                change: Change::Created(created),
                ..
            },
        ) => {
            *none = Some(Plan::from_created(created, entry.at));
            Ok(())
        }
        (_, _) => Err("an event precedes the creation of the plan".to_owned()),
    }
}

fn is_terminal(plan: &Plan, step: StepId) -> bool {
    plan.step(step)
        .is_some_and(|step| step.status().is_terminal())
}

/// A step starts only if it is pending, with the next attempt number, after its dependencies.
fn check_start(plan: &Plan, step: StepId, attempt: u32) -> Result<(), &'static str> {
    let step = plan
        .step(step)
        .ok_or("a step was started that does not exist")?;
    if step.status() != StepStatus::Pending {
        return Err("a step was started that was not pending");
    }
    if step.attempt() != attempt {
        return Err("an attempt number was skipped or repeated");
    }
    if step
        .spec
        .depends_on
        .iter()
        .any(|dependency| !is_terminal(plan, *dependency))
    {
        return Err("a step was started before its dependencies ended");
    }
    Ok(())
}

/// Each commit contains all effects of its events.
fn check_effects(commit: &[Entry], plan: &Plan, report: &mut impl FnMut(&str)) {
    let has = |matches: &dyn Fn(&Event) -> bool| commit.iter().any(|entry| matches(&entry.event));
    let completes = |id: StepId| {
        has(&|event| matches!(event, Event::StepCompleted { step, .. } if *step == id))
    };
    let fails =
        |id: StepId| has(&|event| matches!(event, Event::StepFailed { step, .. } if *step == id));
    let skips =
        |id: StepId| has(&|event| matches!(event, Event::StepSkipped { step, .. } if *step == id));
    let requeues =
        |id: StepId| has(&|event| matches!(event, Event::StepRequeued { step, .. } if *step == id));
    let fails_plan = || has(&|event| matches!(event, Event::PlanFailed { .. }));
    for entry in commit {
        let complete = match &entry.event {
            Event::StepCompleted { verdicts, .. } => {
                let matched = verdicts.iter().filter(|verdict| verdict.matched);
                matched.clone().all(|verdict| {
                    has(&|event| matches!(event, Event::BranchTaken { branch, .. } if *branch == verdict.branch))
                })
            }
            Event::BranchTaken { step, effect, .. } => {
                let done = match effect {
                    Effect::Skipped { steps, .. } => steps.iter().all(|step| skips(*step)),
                    Effect::Added { steps } => {
                        steps.iter().all(|step| plan.step(step.id).is_some())
                    }
                    Effect::FailedPlan { .. } => fails_plan(),
                    Effect::Continued | Effect::Nothing { .. } => true,
                };
                done && completes(*step)
            }
            Event::PlanModified {
                change: Change::StepFailed { step },
                ..
            } => fails(*step),
            Event::PlanModified {
                change: Change::StepRequeued { step },
                ..
            } => requeues(*step) || fails(*step),
            Event::UserReviewed {
                step,
                action: ReviewAction::Decided { decision, .. },
                ..
            } => match decision {
                // The approval of a start releases the step.
                Decision::Approve => completes(*step) || requeues(*step),
                Decision::Reject => fails(*step) && fails_plan(),
                Decision::Skip => skips(*step),
                Decision::Modify => true,
            },
            _ => true,
        };
        if !complete {
            report(&format!("the effects of entry {} are missing", entry.seq));
        }
    }
}

/// Invariants of a plan between commits.
fn check_invariants(plan: &Plan, report: &mut impl FnMut(&str)) {
    let status = plan.head().status();
    let all_terminal = plan.steps().iter().all(|step| step.status().is_terminal());
    let awaits_input = |step: &onward_core::Step| step.status() == StepStatus::AwaitingInput;
    let awaits_input = plan.steps().iter().any(awaits_input);
    if all_terminal && !status.is_terminal() {
        report("every step has ended, but the plan has not");
    }
    if status == PlanStatus::Completed && !all_terminal {
        report("the plan is completed, but a step has not ended");
    }
    if (status == PlanStatus::AwaitingReview) != (awaits_input && !status.is_terminal()) {
        report("the plan and its steps disagree about a pending review");
    }
    let config = plan.steps().iter().map(|step| step.order);
    if !config.eq(1..=u32::try_from(plan.steps().len()).unwrap_or(u32::MAX)) {
        report("the step orders are not consecutive");
    }
}
