//! The second half of the loop: what the events make of what was loaded, and what of that is written.

use onward_core::event::{Change, Decision, ReviewAction};
use onward_core::finding::Finding;
use onward_core::policy::stall_threshold;
use onward_core::{Event, PlanHead, Step, StepId, Timestamp};
use onward_store::{Commit, Due, Plain, StepAfter, Tx};

use super::{Decided, Done, Moment, misfit};
use crate::error::Error;

/// Applies the events to what was loaded, and writes what that gives.
pub(super) fn commit(
    tx: &mut Tx,
    decided: Decided,
    moment: &Moment,
    commit_seq: Option<u64>,
) -> Result<Done, Error> {
    let Decided {
        mut head,
        mut steps,
        mut frees_nobody,
        ready: _,
        events,
    } = decided;
    let events = events?;
    let before = head.seq;
    let commit_seq = commit_seq.unwrap_or(before.saturating_add(1));
    let mut due = Due::Unchanged;
    if !events.is_empty() {
        for event in &events {
            head.apply(event, moment.now).map_err(misfit)?;
        }
        let mut after = Vec::new();
        for step in &mut steps {
            // Known of the first step alone.
            let frees_nobody = std::mem::take(&mut frees_nobody);
            if let Some(changed) = follow(step, &head, &events, moment.now)? {
                after.push(StepAfter {
                    frees_nobody,
                    ..changed
                });
            }
        }
        due = next_look(&head, &after, &events, moment.now);
        tx.commit(&Commit {
            before,
            commit_seq,
            head: &head,
            steps: &after,
            events: &events,
            at: moment.now,
            author: &moment.author,
            due,
        });
        for event in &events {
            for finding in Finding::of_event(event, moment.now) {
                tx.add_notice(head.id, &finding, moment.now);
            }
        }
    }
    Ok(Done {
        head,
        steps,
        events,
        commit_seq,
        due,
    })
}

/// The step with the events applied, where any of them is about its state.
fn follow(
    step: &mut Step,
    head: &PlanHead,
    events: &[Event],
    at: Timestamp,
) -> Result<Option<StepAfter>, Error> {
    let (mut changed, mut rewritten) = (false, false);
    let before = Plain::of(step);
    for event in events {
        step.apply(event, at).map_err(misfit)?;
        changed |= changes(event, step.id());
        rewritten |= rewrites(event, step.id());
    }
    let threshold = stall_threshold(None, step.spec.stall_threshold, head.stall_threshold);
    Ok(changed.then(|| StepAfter {
        stalls_at: stalls_at(step, threshold),
        advanced: before.is_some() && before == Plain::of(step),
        step: step.clone(),
        rewritten,
        frees_nobody: false,
    }))
}

/// When a step is past its threshold; only one that is in progress ever is.
pub(crate) fn stalls_at(step: &Step, threshold: std::time::Duration) -> Option<Timestamp> {
    step.work()?;
    step.timestamp().stalls_at(threshold)
}

fn changes(event: &Event, step: StepId) -> bool {
    match event {
        Event::PlanStalled { stalls } => stalls.iter().any(|stall| stall.step == step),
        Event::PlanModified { change, .. } => {
            matches!(change, Change::InstructionsUpdated { step: of, .. } if *of == step)
        }
        Event::BranchTaken { .. } | Event::LateResultKept { .. } => false,
        Event::StepStarted { .. }
        | Event::StepCompleted { .. }
        | Event::StepFailed { .. }
        | Event::StepSkipped { .. }
        | Event::StepRequeued { .. }
        | Event::StepProgressed { .. }
        | Event::FeedbackDelivered { .. }
        | Event::UserReviewed { .. }
        | Event::SessionResumed { .. }
        | Event::SkillStarted { .. }
        | Event::SkillCompleted { .. }
        | Event::PlanResumed { .. }
        | Event::PlanCompleted
        | Event::PlanFailed { .. } => event.step() == Some(step),
    }
}

fn rewrites(event: &Event, of: StepId) -> bool {
    let (Event::PlanModified {
        change: Change::InstructionsUpdated { step, .. },
        ..
    }
    | Event::UserReviewed {
        step,
        action:
            ReviewAction::Decided {
                decision: Decision::Modify,
                ..
            },
        ..
    }) = event
    else {
        return false;
    };
    *step == of
}

/// When the sweep must look at the plan. Too early is harmless, too late is not: where a plan gets
/// back to where a stall could mark it, that is at once.
fn next_look(head: &PlanHead, after: &[StepAfter], events: &[Event], now: Timestamp) -> Due {
    if head.status().is_terminal() {
        return Due::Never;
    }
    let reopens = |event: &Event| {
        matches!(
            event,
            Event::PlanResumed { .. }
                | Event::UserReviewed {
                    action: ReviewAction::Decided { .. },
                    ..
                }
        )
    };
    if events.iter().any(reopens) {
        return Due::By(now);
    }
    let started = after.iter().filter_map(|after| after.stalls_at).min();
    started.map_or(Due::Unchanged, |at| Due::By(at.next()))
}
