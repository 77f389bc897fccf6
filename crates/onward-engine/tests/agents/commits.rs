//! Is every commit of a trail one whole answer? A call that was cut off is there with all that it
//! led to, or not at all; and between two commits a plan is as the rules want it.
//!
//! What is checked here is checked from the trail alone; that the rows say the same is for
//! [`Engine::verify`](onward_engine::Engine::verify).

use std::collections::BTreeSet;

use onward_core::branch::Effect;
use onward_core::event::{Change, Decision, ReviewAction};
use onward_core::{Event, Plan, PlanStatus, StepId, StepStatus};
use onward_store::Entry;

use crate::trails::commits;

/// What is not as it should be.
pub fn faults(trail: &[Entry]) -> Vec<String> {
    let mut found = Vec::new();
    let mut plan: Option<Plan> = None;
    let mut tokens = BTreeSet::new();
    for commit in commits(trail) {
        let number = commit[0].commit_seq;
        let mut fault = |what: &str| found.push(format!("commit {number}: {what}"));
        if commit[0].seq != number {
            fault("its first entry is not its first");
        }
        if commit.iter().any(|entry| entry.author != commit[0].author) {
            fault("it has two authors");
        }
        for entry in commit {
            if let (Event::StepStarted { step, claim }, Some(plan)) = (&entry.event, &plan) {
                // An agent may come back, under its old token, to a step that it had before.
                let returns = plan
                    .step(*step)
                    .is_some_and(|step| step.superseded.contains(&claim.token));
                if !tokens.insert(claim.token.as_str()) && !returns {
                    fault("a token was given out twice");
                }
                may_start(plan, *step, claim.attempt).unwrap_or_else(&mut fault);
            }
            if let Err(why) = apply(&mut plan, entry) {
                fault(&why);
                return found;
            }
        }
        if let Some(plan) = &plan {
            whole(commit, plan, &mut fault);
            lawful(plan, &mut fault);
        }
    }
    found
}

/// The plan as it was right after a commit, which is one of the trail's.
pub fn after(trail: &[Entry], commit: &[Entry]) -> Option<Plan> {
    let last = commit.last()?.seq;
    let before = trail.iter().take_while(|entry| entry.seq <= last);
    Plan::replay(before.map(|entry| (&entry.event, entry.at))).ok()
}

/// Whether a step of the plan can be handed out.
pub fn has_ready(plan: &Plan) -> bool {
    let open = matches!(
        plan.head().status(),
        PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled
    );
    open && plan.steps().iter().any(|step| {
        let waits = step
            .spec
            .depends_on
            .iter()
            .any(|needed| !is_over(plan, *needed));
        step.status() == StepStatus::Pending && !waits
    })
}

fn apply(plan: &mut Option<Plan>, entry: &Entry) -> Result<(), String> {
    match (plan, &entry.event) {
        (Some(plan), event) => plan.apply(event, entry.at).map_err(|why| why.to_string()),
        (
            none,
            Event::PlanModified {
                change: Change::Created(created),
                ..
            },
        ) => {
            *none = Some(Plan::created(created, entry.at));
            Ok(())
        }
        (_, _) => Err("it comes before the plan's creation".to_owned()),
    }
}

fn is_over(plan: &Plan, step: StepId) -> bool {
    plan.step(step)
        .is_some_and(|step| step.status().is_terminal())
}

/// No step has two claims at once, and none is handed out before what it waits for.
fn may_start(plan: &Plan, step: StepId, attempt: u32) -> Result<(), &'static str> {
    let step = plan
        .step(step)
        .ok_or("a step was handed out that is not there")?;
    if step.status() != StepStatus::Pending {
        return Err("a step was handed out while somebody had it");
    }
    if step.attempt() != attempt {
        return Err("an attempt was left out, or given out twice");
    }
    if step
        .spec
        .depends_on
        .iter()
        .any(|needed| !is_over(plan, *needed))
    {
        return Err("a step was handed out before what it waits for was over");
    }
    Ok(())
}

/// Everything that an event leads to stands beside it.
fn whole(commit: &[Entry], plan: &Plan, fault: &mut impl FnMut(&str)) {
    let has = |such: &dyn Fn(&Event) -> bool| commit.iter().any(|entry| such(&entry.event));
    let completes = |of: StepId| {
        has(&|event| matches!(event, Event::StepCompleted { step, .. } if *step == of))
    };
    let fails =
        |of: StepId| has(&|event| matches!(event, Event::StepFailed { step, .. } if *step == of));
    let skips =
        |of: StepId| has(&|event| matches!(event, Event::StepSkipped { step, .. } if *step == of));
    let requeues =
        |of: StepId| has(&|event| matches!(event, Event::StepRequeued { step, .. } if *step == of));
    let ends = || has(&|event| matches!(event, Event::PlanFailed { .. }));
    for entry in commit {
        let kept = match &entry.event {
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
                    Effect::FailedPlan { .. } => ends(),
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
                Decision::Approve => completes(*step),
                Decision::Reject => fails(*step) && ends(),
                Decision::Skip => skips(*step),
                Decision::Modify => true,
            },
            _ => true,
        };
        if !kept {
            fault(&format!(
                "entry {} is there without what it leads to",
                entry.seq
            ));
        }
    }
}

/// What holds of a plan whenever nobody is in the middle of a call.
fn lawful(plan: &Plan, fault: &mut impl FnMut(&str)) {
    let status = plan.head().status();
    let over = plan.steps().iter().all(|step| step.status().is_terminal());
    let awaits = |step: &onward_core::Step| step.status() == StepStatus::AwaitingInput;
    let awaits = plan.steps().iter().any(awaits);
    if over && !status.is_terminal() {
        fault("every step is over, and the plan is not");
    }
    if status == PlanStatus::Completed && !over {
        fault("the plan is completed, and a step is not over");
    }
    if (status == PlanStatus::AwaitingReview) != (awaits && !status.is_terminal()) {
        fault("the plan awaits a review that no step has, or the other way round");
    }
    let orders = plan.steps().iter().map(|step| step.order);
    if !orders.eq(1..=u32::try_from(plan.steps().len()).unwrap_or(u32::MAX)) {
        fault("the orders have a gap");
    }
}
