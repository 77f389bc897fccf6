//! Second half of the execution loop: applies the events to the loaded rows and writes the result.

use onward_core::event::{Change, Decision, ReviewAction};
use onward_core::finding::Finding;
use onward_core::policy::stall_threshold;
use onward_core::{Event, PlanHead, Step, StepId, Timestamp};
use onward_store::{Commit, Due, Notifications, Plain, StepAfter, Transitions, Tx};

use super::command::{Applied, CommandContext, inconsistent_decision};
use super::evaluate::Evaluation;
use crate::error::Error;

/// Applies the events to the loaded facts and writes the changed rows.
pub(super) fn commit(
    tx: &mut Tx,
    evaluation: Evaluation,
    ctx: &CommandContext,
    commit_seq: Option<u64>,
) -> Result<Applied, Error> {
    let Evaluation {
        mut head,
        mut steps,
        mut no_dependents,
        ready: _,
        events,
    } = evaluation;
    let events = events?;
    let before = head.seq;
    let commit_seq = commit_seq.unwrap_or(before.saturating_add(1));
    let mut due = Due::Unchanged;
    if !events.is_empty() {
        for event in &events {
            head.apply(event, ctx.now).map_err(inconsistent_decision)?;
        }
        let mut after = Vec::new();
        for step in &mut steps {
            // Known for the first step only.
            let no_dependents = std::mem::take(&mut no_dependents);
            if let Some(changed) = apply_to_step(step, &head, &events, ctx.now)? {
                after.push(StepAfter {
                    has_no_dependents: no_dependents,
                    ..changed
                });
            }
        }
        due = next_check(&head, &after, &events, ctx.now);
        Transitions(tx).commit(&Commit {
            before,
            commit_seq,
            head: &head,
            steps: &after,
            events: &events,
            at: ctx.now,
            author: &ctx.author,
            due,
        });
        for event in &events {
            for finding in Finding::from_event(event, ctx.now) {
                Notifications(tx).add_notice(head.id, &finding, ctx.now);
            }
        }
    }
    Ok(Applied {
        head,
        steps,
        events,
        commit_seq,
        due,
    })
}

/// Applies the events to a step. `None` if none of them changes its row.
fn apply_to_step(
    step: &mut Step,
    head: &PlanHead,
    events: &[Event],
    at: Timestamp,
) -> Result<Option<StepAfter>, Error> {
    let (mut changed, mut rewritten) = (false, false);
    let before = Plain::of(step);
    for event in events {
        step.apply(event, at).map_err(inconsistent_decision)?;
        changed |= changes_row(event, step.id());
        rewritten |= changes_instructions(event, step.id());
    }
    let threshold = stall_threshold(None, step.spec.stall_threshold, head.stall_threshold);
    Ok(changed.then(|| StepAfter {
        stalls_at: stalls_at(step, threshold),
        advanced: before.is_some() && before == Plain::of(step),
        step: step.clone(),
        rewritten,
        has_no_dependents: false,
    }))
}

/// When a step exceeds its threshold. `None` unless it is in progress.
pub(crate) fn stalls_at(step: &Step, threshold: std::time::Duration) -> Option<Timestamp> {
    step.work()?;
    step.timestamp().stalls_at(threshold)
}

fn changes_row(event: &Event, step: StepId) -> bool {
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

fn changes_instructions(event: &Event, id: StepId) -> bool {
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
    *step == id
}

/// When the sweep must check the plan next. Too early is harmless, too late is not: a plan that
/// returns to a state in which it can stall is due immediately.
fn next_check(head: &PlanHead, after: &[StepAfter], events: &[Event], now: Timestamp) -> Due {
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
