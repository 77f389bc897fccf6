//! Records activity on a step, which restarts its stall threshold.
//!
//! A progress report is always recorded, resumes a stalled plan, delivers changed instructions and
//! may be rejected. Other activity (data written for the step, an active session) is recorded at
//! intervals, resumes nothing and is ignored if it does not apply.

use super::check::Check;
use super::claim::{self, ClaimStatus};
use super::draft::Draft;
use super::facts::StepFacts;
use crate::command::ReportProgress;
use crate::event::{Event, ProgressSource, ResumedBy};
use crate::plan::PlanStatus;
use crate::policy::{stall_threshold, written_interval};
use crate::refusal::Refusal;
use crate::step::{Step, StepStatus};
use crate::time::Timestamp;

/// Decides the command.
pub fn decide(
    facts: &StepFacts,
    command: &ReportProgress,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    match command.source {
        ProgressSource::Reported => record_report(facts, command, now),
        ProgressSource::Written | ProgressSource::Seen => record_implicit(facts, command, now),
    }
}

fn record_report(
    facts: &StepFacts,
    command: &ReportProgress,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let StepFacts {
        head: plan, step, ..
    } = facts;
    let mut check = Check::default();
    check.remark("note", command.note.as_deref());
    if command
        .percent
        .is_some_and(|percent| !(0.0..=100.0).contains(&percent))
    {
        check.issue("percent", "must be between 0 and 100");
    }
    check.finish()?;
    claim::check_claim(step, command.token.as_ref())?;
    if plan.status().is_terminal() {
        return Err(Refusal::PlanIsTerminal(plan.status()));
    }
    let mut draft = Draft::new(plan, now);
    if plan.status() == PlanStatus::Stalled {
        draft.push(Event::PlanResumed {
            by: ResumedBy::Progress,
        })?;
    }
    let (token, session) = (command.token.as_ref(), command.session.as_ref());
    if !claim::reclaim(&mut draft, step, token, session)? {
        check_in_progress(step)?;
    }
    draft.push(Event::StepProgressed {
        step: command.step,
        source: command.source,
        note: command.note.clone(),
        percent: command.percent,
        session: claim::calling_session(step, token, session),
    })?;
    claim::deliver(&mut draft, step, token, session)?;
    Ok(draft.into_events())
}

/// Recorded at most once per interval, which depends on the source.
fn record_implicit(
    facts: &StepFacts,
    command: &ReportProgress,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let StepFacts {
        head: plan, step, ..
    } = facts;
    let is_current_claim = claim::check_claim(step, command.token.as_ref())
        == Ok(ClaimStatus::Current)
        && is_claiming_session(step, command);
    if plan.status().is_terminal() || !is_current_claim || check_in_progress(step).is_err() {
        return Ok(Vec::new());
    }
    let times = step.timestamp();
    let is_due = match command.source {
        ProgressSource::Seen => {
            let is_monitored = step.work().is_some_and(|work| work.monitored);
            let limit = step.silence_limit(None, plan.stall_threshold);
            // The first event of a session links it to a claim without a session.
            let is_linked = step.claim().is_some_and(|claim| claim.session.is_some());
            let links = !is_linked && !is_monitored && command.session.is_some();
            links || times.records_event(limit, is_monitored, now)
        }
        ProgressSource::Written | ProgressSource::Reported => {
            let threshold = stall_threshold(None, step.spec.stall_threshold, plan.stall_threshold);
            now.since(times.reference()) >= written_interval(threshold) || times.is_ahead_of(now)
        }
    };
    // The holder's session had ended, and is active again.
    if !is_due && !step.is_orphaned() {
        return Ok(Vec::new());
    }
    let mut draft = Draft::new(plan, now);
    draft.push(Event::StepProgressed {
        step: command.step,
        source: command.source,
        note: None,
        percent: None,
        session: command.session.clone(),
    })?;
    Ok(draft.into_events())
}

/// Session activity counts only for the steps that the session has claimed. The token proves the
/// claim: an agent may pass another session id to its tools than its hooks report.
fn is_claiming_session(step: &Step, command: &ReportProgress) -> bool {
    let holder = step.claim().and_then(|claim| claim.session.as_ref());
    match (command.source, holder, &command.session) {
        (ProgressSource::Seen, Some(holder), Some(seen)) => {
            holder == seen || command.token.is_some()
        }
        (ProgressSource::Seen, _, _)
        | (ProgressSource::Written | ProgressSource::Reported, _, _) => true,
    }
}

/// Rejects progress for a step that is not in progress.
fn check_in_progress(step: &Step) -> Result<(), Refusal> {
    match step.status() {
        StepStatus::InProgress => Ok(()),
        from @ (StepStatus::Pending
        | StepStatus::AwaitingInput
        | StepStatus::Completed
        | StepStatus::Skipped
        | StepStatus::Failed) => Err(Refusal::StepNotInProgress(from)),
    }
}
