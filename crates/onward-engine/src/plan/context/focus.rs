//! The current work of a session: the steps that it holds, the interrupted and the next steps with
//! their instructions and branches, progress notes, user feedback and significant events.

use onward_core::apply::BranchOutline;
use onward_core::event::{Decision, ReviewAction};
use onward_core::id::{ClaimToken, SessionId};
use onward_core::{Event, Json, PlanId, Step, StepId, Timestamp};
use onward_store::{Contexts, Facts, Plans, Sheet, Significant, StepLine, Tx, UserFeedback, codec};
use serde_json::Value;

use super::budget::{Budget, cost};
use super::excerpts::ENTRY_COST;
use crate::error::Error;
use crate::plan::next_step::{MAX_HELD, StepInProgress};

/// Maximum number of interrupted steps with instructions.
const MAX_INTERRUPTED: usize = 2;
/// Maximum number of pending steps with instructions.
const MAX_PENDING: u32 = 3;
/// Maximum number of branches of a step.
const MAX_BRANCHES: usize = 10;
/// Maximum number of notes, of feedback texts and of events.
const MAX_ENTRIES: usize = 6;
/// Number of latest audit entries that are searched for notes and significant events.
const WINDOW: u64 = 500;
/// Maximum number of entries read from the window.
const MAX_READ: u32 = 100;
/// Maximum cost of a note, a feedback text or the detail of an event.
const MAX_REMARK: usize = 300;

/// A step with the texts that an agent needs to work on it.
#[derive(Debug, Clone, PartialEq)]
pub struct FocusedStep {
    /// The step.
    pub id: StepId,
    /// Its instructions.
    pub instructions: String,
    /// Its branches, in evaluation order.
    pub branches: Vec<BranchOutline>,
    /// The acceptance criteria of its result.
    pub criteria: Vec<String>,
}

/// A step that the session holds.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnStep {
    /// The step's texts.
    pub focus: FocusedStep,
    /// Position in the plan.
    pub order: u32,
    /// Display title.
    pub title: Option<String>,
    /// The attempt number.
    pub attempt: u32,
    /// The claim token.
    pub token: ClaimToken,
    /// When the session claimed it.
    pub since: Timestamp,
}

/// A step that another session has in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct InterruptedStep {
    /// The step.
    pub in_progress: StepInProgress,
    /// Its texts, for the first steps.
    pub focus: Option<FocusedStep>,
}

/// A progress note of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressNote {
    /// The order of its step.
    pub order: Option<u32>,
    /// Time of the report.
    pub at: Timestamp,
    /// The note.
    pub note: String,
}

/// Feedback of a user, on a step or on the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedbackEntry {
    /// The step that the decision was about.
    pub step: Option<StepId>,
    /// The decision.
    pub decision: Option<Decision>,
    /// The feedback.
    pub text: String,
}

/// A significant event.
#[derive(Debug, Clone, PartialEq)]
pub struct SignificantEvent {
    /// Sequence number in the plan.
    pub seq: u64,
    /// Time of the event.
    pub at: Timestamp,
    /// Name of the event.
    pub name: String,
    /// The order of its step.
    pub order: Option<u32>,
    /// A short description.
    pub detail: Option<String>,
}

/// The steps that a session holds, with half of the budget.
pub(super) async fn own_steps(
    tx: &mut Tx,
    plan: PlanId,
    session: Option<&SessionId>,
    budget: &mut Budget,
) -> Result<Vec<OwnStep>, Error> {
    let Some(session) = session else {
        return Ok(Vec::new());
    };
    let mut own = Vec::new();
    let mut share = budget.share(2);
    let steps = Contexts(tx).held_steps(plan, session, MAX_HELD).await?;
    for (left, step) in (1..=steps.len()).rev().zip(steps) {
        let Some(work) = step.work() else { continue };
        let (attempt, token) = (work.claim.attempt, work.claim.token.clone());
        let (order, since, title) = (step.order, work.started_at, step.spec.title.clone());
        let fixed = ENTRY_COST.saturating_add(title.as_deref().map_or(0, cost));
        // Long instructions of one step must not displace the token of another.
        let mut part = share.share(left);
        let focus = focused(tx, plan, step, fixed, &mut part).await?;
        share.return_share(part);
        let Some(focus) = focus else { continue };
        own.push(OwnStep {
            focus,
            order,
            title,
            attempt,
            token,
            since,
        });
    }
    budget.return_share(share);
    Ok(own)
}

/// The steps in progress of other sessions; the first ones with their texts.
pub(super) async fn interrupted(
    tx: &mut Tx,
    plan: PlanId,
    others: Vec<StepInProgress>,
    budget: &mut Budget,
) -> Result<Vec<InterruptedStep>, Error> {
    let mut steps = Vec::new();
    for (place, in_progress) in others.into_iter().enumerate() {
        let mut focus = None;
        if place < MAX_INTERRUPTED
            && let Some((_, step)) = Plans(tx).sheet_of_step(in_progress.step).await?
        {
            let mut share = budget.share(4);
            focus = focused(tx, plan, step, 0, &mut share).await?;
            budget.return_share(share);
        }
        steps.push(InterruptedStep { in_progress, focus });
    }
    Ok(steps)
}

/// The texts of the next pending steps, from an order on.
pub(super) async fn next_steps(
    tx: &mut Tx,
    sheet: &Sheet,
    from: u32,
    budget: &mut Budget,
) -> Result<Vec<FocusedStep>, Error> {
    let mut next = Vec::new();
    if sheet.head.status().is_terminal() {
        return Ok(next);
    }
    let plan = sheet.head.id;
    for step in Contexts(tx).pending_from(plan, from, MAX_PENDING).await? {
        let mut share = budget.share(4);
        let focus = focused(tx, plan, step, 0, &mut share).await?;
        budget.return_share(share);
        next.extend(focus);
    }
    Ok(next)
}

/// The texts of a step. `None` if they do not fit.
async fn focused(
    tx: &mut Tx,
    plan: PlanId,
    step: Step,
    fixed_cost: usize,
    budget: &mut Budget,
) -> Result<Option<FocusedStep>, Error> {
    let id = step.id();
    let mut instructions = step.spec.instructions;
    let mut branches = Contexts(tx).branches_after(id).await?;
    if branches.len() > MAX_BRANCHES {
        branches.truncate(MAX_BRANCHES);
        budget.mark_truncated();
    }
    let mut share = budget.share(3);
    branches.retain(|branch| {
        let condition = cost(branch.condition.source());
        share.spend(condition.saturating_add(60))
    });
    budget.return_share(share);
    if !budget.entry(fixed_cost, &mut instructions) {
        return Ok(None);
    }
    let branches = Facts(tx).outlines(plan, branches).await?;
    let mut criteria = step
        .spec
        .gates
        .map_or_else(Vec::new, |gates| gates.acceptance_criteria.clone());
    criteria.retain(|criterion| budget.spend(cost(criterion).saturating_add(3)));
    Ok(Some(FocusedStep {
        id,
        instructions,
        branches,
        criteria,
    }))
}

/// The latest progress notes and significant events, oldest first. Older ones do not count as
/// truncated.
pub(super) async fn recent(
    tx: &mut Tx,
    sheet: &Sheet,
    budget: &mut Budget,
) -> Result<(Vec<ProgressNote>, Vec<SignificantEvent>), Error> {
    let after = sheet.head.seq.saturating_sub(WINDOW);
    let (mut notes, mut events) = (Vec::new(), Vec::new());
    for significant in Contexts(tx)
        .significant(sheet.head.id, after, MAX_READ)
        .await?
    {
        let Significant { entry, order } = significant;
        let details = entry.details.as_ref().map(codec::shown);
        let details = details.as_ref().and_then(Json::parse);
        if entry.name == "step_progressed" {
            let note = details.as_ref().and_then(|details| text(details, "note"));
            if let Some(mut note) = note.filter(|_| notes.len() < MAX_ENTRIES) {
                budget.text(&mut note, MAX_REMARK);
                if budget.spend(ENTRY_COST / 2) {
                    notes.push(ProgressNote {
                        order,
                        at: entry.at,
                        note,
                    });
                }
            }
            continue;
        }
        let is_creation = entry.seq == 1;
        if is_creation || events.len() >= MAX_ENTRIES {
            continue;
        }
        let mut detail = details.as_ref().and_then(describe);
        if let Some(detail) = &mut detail {
            budget.text(detail, MAX_REMARK);
        }
        if budget.spend(ENTRY_COST / 2) {
            events.push(SignificantEvent {
                seq: entry.seq,
                at: entry.at,
                name: entry.name,
                order,
                detail,
            });
        }
    }
    notes.reverse();
    events.reverse();
    Ok((notes, events))
}

/// A short description of an event.
fn describe(details: &Value) -> Option<String> {
    let words = ["action", "decision", "reason", "rationale", "refused"];
    let words = words.iter().filter_map(|name| text(details, name));
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(": "))
}

fn text(details: &Value, name: &str) -> Option<String> {
    details.get(name)?.as_str().map(str::to_owned)
}

/// The latest feedback of users: on steps, then on the plan, each newest first.
pub(super) async fn feedback(
    tx: &mut Tx,
    plan: PlanId,
    budget: &mut Budget,
) -> Result<Vec<FeedbackEntry>, Error> {
    let mut all = Vec::new();
    for entry in Contexts(tx).reviews_of_plan(plan, MAX_READ).await? {
        if let Event::UserReviewed {
            step,
            action:
                ReviewAction::Decided {
                    decision,
                    feedback: Some(text),
                    ..
                },
            ..
        } = entry.event
        {
            all.push(FeedbackEntry {
                step: Some(step),
                decision: Some(decision),
                text,
            });
        }
    }
    all.truncate(MAX_ENTRIES);
    let limit = u32::try_from(MAX_ENTRIES).unwrap_or(u32::MAX);
    let about_plan = UserFeedback(tx).feedback_of(plan, limit).await?;
    let about_plan = about_plan
        .into_iter()
        .filter_map(|feedback| feedback.comment);
    all.extend(about_plan.map(|text| FeedbackEntry {
        step: None,
        decision: None,
        text,
    }));
    let mut listed = Vec::new();
    for mut entry in all {
        if !budget.entry(ENTRY_COST / 2, &mut entry.text) {
            break;
        }
        listed.push(entry);
    }
    Ok(listed)
}

/// Steps in progress whose session is not the caller's.
pub(super) fn others<'l>(
    lines: &'l [StepLine],
    session: Option<&'l SessionId>,
    now: Timestamp,
) -> impl Iterator<Item = StepInProgress> + 'l {
    let is_own = move |line: &StepLine| session.is_some() && line.session.as_ref() == session;
    lines
        .iter()
        .filter(move |line| !is_own(line))
        .map(move |line| StepInProgress::new(line, now))
}
