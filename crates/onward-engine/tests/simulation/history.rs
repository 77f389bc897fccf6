//! What must hold of every trail, whatever was asked: told from what is stored alone, without the
//! model.

use std::collections::BTreeMap;

use onward_core::event::Change;
use onward_core::{Event, StepId, StepStatus};
use onward_engine::transfer::Whole;

/// Whether the trail, and the rows beside it, keep the law.
pub(crate) fn is_lawful(whole: &Whole) -> Result<(), String> {
    let mut open: BTreeMap<StepId, bool> = BTreeMap::new();
    let mut ended: Option<u64> = None;
    let mut over: BTreeMap<StepId, u64> = BTreeMap::new();
    let mut commit = 1;
    for (entry, seq) in whole.trail.iter().zip(1u64..) {
        let broken = |what: &str| Err(format!("entry {seq}: {what}: {:?}", entry.event));
        if entry.seq != seq {
            return broken("the numbers have a gap");
        }
        if entry.commit_seq < commit || entry.commit_seq > seq {
            return broken("it belongs to no transaction");
        }
        commit = entry.commit_seq;
        let kept = matches!(entry.event, Event::LateResultKept { .. });
        if ended.is_some() && !kept {
            return broken("the plan was over");
        }
        let rewritten = matches!(
            entry.event,
            Event::PlanModified {
                change: Change::InstructionsUpdated { .. },
                ..
            } | Event::BranchTaken { .. }
        );
        let step = entry.event.step();
        if step.is_some_and(|step| over.contains_key(&step)) && !kept && !rewritten {
            return broken("the step was over");
        }
        let nobody = "nobody had the step";
        let wrong = match &entry.event {
            Event::StepStarted { step, .. } => {
                let had = open.insert(*step, true) == Some(true);
                had.then_some("somebody had the step already")
            }
            Event::StepRequeued { step, .. } => {
                let had = open.insert(*step, false) == Some(true);
                (!had).then_some(nobody)
            }
            Event::StepCompleted { step, .. } => {
                over.insert(*step, seq);
                let had = open.insert(*step, false) == Some(true);
                (!had).then_some(nobody)
            }
            Event::StepFailed { step, .. } | Event::StepSkipped { step, .. } => {
                open.insert(*step, false);
                over.insert(*step, seq);
                None
            }
            Event::PlanCompleted | Event::PlanFailed { .. } => {
                ended = Some(seq);
                None
            }
            Event::UserReviewed { step, .. } | Event::StepProgressed { step, .. } => {
                let has = open.get(step) == Some(&true);
                (!has).then_some(nobody)
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            return broken(wrong);
        }
    }
    rows_are_lawful(whole, &open)
}

fn rows_are_lawful(whole: &Whole, open: &BTreeMap<StepId, bool>) -> Result<(), String> {
    for (step, order) in whole.plan.steps.iter().zip(1u32..) {
        let id = step.id();
        if step.order != order {
            return Err(format!("step {id} has order {}, not {order}", step.order));
        }
        if step.attempt() > step.spec.max_attempts {
            return Err(format!("step {id} was handed out too often"));
        }
        let claimed = open.get(&id) == Some(&true);
        let status = step.status();
        let is_open = matches!(status, StepStatus::InProgress | StepStatus::AwaitingInput);
        if claimed != is_open {
            return Err(format!(
                "step {id} is {status}, and its trail says otherwise"
            ));
        }
    }
    Ok(())
}
