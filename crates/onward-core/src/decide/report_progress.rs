//! A sign of life: the step is not stalled until its threshold has passed again.
//!
//! A progress report is always recorded, resumes a stalled plan, and may be refused. The other signs
//! (something was written about the step, the guard saw its session) come by themselves: they are
//! recorded now and then, resume nothing, and where they do not fit, nothing happens.

use std::time::Duration;

use super::check::Check;
use super::draft::Draft;
use super::take_up::{self, Voice};
use crate::command::ReportProgress;
use crate::event::{Event, ResumedBy, Sign};
use crate::plan::{PlanHead, PlanStatus};
use crate::policy::{SIGN_INTERVAL, stall_threshold};
use crate::refusal::Refusal;
use crate::step::{Step, StepStatus};
use crate::time::Timestamp;

/// What must be known.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The plan.
    pub plan: &'a PlanHead,
    /// The step.
    pub step: &'a Step,
}

/// Decides whether the sign is recorded.
pub fn decide(
    facts: &Facts<'_>,
    command: &ReportProgress,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    match command.sign {
        Sign::Reported => reported(facts, command, now),
        Sign::Written | Sign::Seen => noticed(facts, command, now),
    }
}

fn reported(
    facts: &Facts<'_>,
    command: &ReportProgress,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let Facts { plan, step } = *facts;
    let mut check = Check::default();
    check.remark("note", command.note.as_deref());
    if command
        .percent
        .is_some_and(|percent| !(0.0..=100.0).contains(&percent))
    {
        check.issue("percent", "must be between 0 and 100");
    }
    check.done()?;
    take_up::voice(step, command.token.as_ref())?;
    if plan.status().is_terminal() {
        return Err(Refusal::PlanIsTerminal(plan.status()));
    }
    let mut draft = Draft::of(plan, now);
    if plan.status() == PlanStatus::Stalled {
        draft.push(Event::PlanResumed {
            by: ResumedBy::Progress,
        })?;
    }
    let (token, session) = (command.token.as_ref(), command.session.as_ref());
    if !take_up::take_up_again(&mut draft, step, token, session)? {
        in_progress(step)?;
    }
    draft.push(progressed(command))?;
    Ok(draft.done())
}

/// Once in 10 seconds, or in a quarter of the threshold, whichever is less.
fn noticed(
    facts: &Facts<'_>,
    command: &ReportProgress,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let Facts { plan, step } = *facts;
    let spoken_for = take_up::voice(step, command.token.as_ref()) == Ok(Voice::Current)
        && is_own_session(step, command);
    if plan.status().is_terminal() || !spoken_for || in_progress(step).is_err() {
        return Ok(Vec::new());
    }
    let threshold = stall_threshold(None, step.spec.stall_threshold, plan.stall_threshold);
    let interval = SIGN_INTERVAL
        .min(threshold / 4)
        .max(Duration::from_millis(1));
    if now.since(step.timestamp().reference()) < interval {
        return Ok(Vec::new());
    }
    let mut draft = Draft::of(plan, now);
    // Such a sign says nothing, so there are no words of it to check or to keep.
    draft.push(progressed(&ReportProgress {
        note: None,
        percent: None,
        ..command.clone()
    }))?;
    Ok(draft.done())
}

/// What the guard sees of a session counts for the steps that this session holds.
fn is_own_session(step: &Step, command: &ReportProgress) -> bool {
    let holder = step.claim().and_then(|claim| claim.session.as_ref());
    match (command.sign, holder, &command.session) {
        (Sign::Seen, Some(holder), Some(seen)) => holder == seen,
        (Sign::Seen, _, _) | (Sign::Written | Sign::Reported, _, _) => true,
    }
}

/// Only a step that somebody works on can show that somebody does.
fn in_progress(step: &Step) -> Result<(), Refusal> {
    match step.status() {
        StepStatus::InProgress => Ok(()),
        from @ (StepStatus::Pending
        | StepStatus::AwaitingInput
        | StepStatus::Completed
        | StepStatus::Skipped
        | StepStatus::Failed) => Err(Refusal::StepNotInProgress(from)),
    }
}

fn progressed(command: &ReportProgress) -> Event {
    Event::StepProgressed {
        step: command.step,
        sign: command.sign,
        note: command.note.clone(),
        percent: command.percent,
        session: command.session.clone(),
    }
}
