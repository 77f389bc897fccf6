//! Log lines of commits: one line per stall, failure, review, requeue and budget stop.
//!
//! The events of every commit pass through here, whether an agent, a user or the sweep caused them.
//! A line contains ids, names and codes, no texts of agents; the audit trail contains the texts.

use std::sync::Arc;

use onward_core::event::{DecidedBy, ReviewAction};
use onward_core::id::SessionId;
use onward_core::policy::OnStall;
use onward_core::{Event, PlanHead, PlanId, Step, StepId, Timestamp};
use onward_store::Tx;

/// Target of the log lines about plans, for log filters.
pub const PLAN_LOG: &str = "onward::plan";

/// A log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    what: &'static str,
    step: Option<StepId>,
    /// The session that held the step, or that requested the review.
    session: Option<SessionId>,
    /// The policy that applied.
    policy: Option<&'static str>,
    cause: &'static str,
    /// Last activity on the step, if it was in progress.
    active_at: Option<Timestamp>,
}

impl Line {
    fn new(what: &'static str, cause: &'static str) -> Self {
        Self {
            what,
            step: None,
            session: None,
            policy: None,
            cause,
            active_at: None,
        }
    }

    /// A line about a step, with its state before the events.
    fn on_step(self, id: StepId, steps: &[Step]) -> Self {
        let step = steps.iter().find(|step| step.id() == id);
        let claim = step.and_then(Step::claim);
        let session = claim.and_then(|claim| claim.session.clone());
        Self {
            step: Some(id),
            session: self.session.or(session),
            active_at: step
                .filter(|_| claim.is_some())
                .map(|step| step.timestamp().reference()),
            ..self
        }
    }

    fn session(self, session: Option<&SessionId>) -> Self {
        Self {
            session: session.cloned().or(self.session),
            ..self
        }
    }

    fn policy(self, policy: &'static str) -> Self {
        Self {
            policy: Some(policy),
            ..self
        }
    }
}

/// The lines of a commit. `head` and `steps` are the state before the events.
pub(super) fn lines(head: &PlanHead, steps: &[Step], events: &[Event]) -> Vec<Line> {
    let of_event = |event| of_event(event, head.on_stall, steps);
    events.iter().flat_map(of_event).collect()
}

/// The table from events to lines.
fn of_event(event: &Event, on_stall: OnStall, steps: &[Step]) -> Vec<Line> {
    let line = match event {
        Event::PlanStalled { stalls } if !stalls.is_empty() => {
            let line = Line::new("step stalled", "no_activity").policy(on_stall.as_str());
            let of_stall = |id| line.clone().on_step(id, steps);
            return stalls.iter().map(|stall| of_stall(stall.step)).collect();
        }
        Event::PlanStalled { .. } => Line::new("plan stalled", "budget_exhausted"),
        Event::BudgetExhausted { exhausted } => {
            Line::new("budget exhausted", exhausted.limit.as_str())
        }
        Event::StepFailed { step, reason, .. } => Line::new("step failed", reason.kind())
            .policy(on_stall.as_str())
            .on_step(*step, steps),
        Event::StepRequeued { step, reason, .. } => Line::new("step requeued", reason.as_str())
            .policy(on_stall.as_str())
            .on_step(*step, steps),
        Event::UserReviewed { step, action, .. } => match action {
            ReviewAction::Requested { scope, session, .. } => {
                Line::new("review requested", scope.as_str()).session(session.as_ref())
            }
            ReviewAction::Decided { decision, by, .. } => {
                Line::new("review decided", decision.as_str()).policy(match by {
                    DecidedBy::Reviewer => "reviewer",
                    DecidedBy::Policy => "deadline",
                    DecidedBy::Link { .. } => "link",
                })
            }
        }
        .on_step(*step, steps),
        Event::PlanFailed { reason, .. } => Line::new("plan failed", reason.kind()),
        Event::PlanModified { .. }
        | Event::StepStarted { .. }
        | Event::StepCompleted { .. }
        | Event::StepSkipped { .. }
        | Event::StepProgressed { .. }
        | Event::FeedbackDelivered { .. }
        | Event::StepOrphaned { .. }
        | Event::BranchTaken { .. }
        | Event::SessionResumed { .. }
        | Event::SkillStarted { .. }
        | Event::SkillCompleted { .. }
        | Event::PlanResumed { .. }
        | Event::PlanCompleted
        | Event::PlanStatusChanged { .. }
        | Event::LateResultKept { .. } => return Vec::new(),
    };
    vec![line]
}

/// Writes the lines if the transaction is committed. `session` is the calling session.
pub(super) fn write_after_commit(
    tx: &mut Tx,
    plan: PlanId,
    lines: Vec<Line>,
    actor: &str,
    session: Option<&SessionId>,
) {
    if lines.is_empty() {
        return;
    }
    let (tenant, actor, caller) = (Arc::clone(tx.tenant()), actor.to_owned(), session.cloned());
    tx.after_commit(move || {
        for line in lines {
            let session = line.session.as_ref().or(caller.as_ref());
            tracing::info!(
                target: PLAN_LOG,
                %tenant,
                %plan,
                step = line.step.map(tracing::field::display),
                session = session.map(SessionId::as_str),
                policy = line.policy,
                cause = line.cause,
                last_activity = line.active_at.map(tracing::field::display),
                actor,
                "{}", line.what
            );
        }
    });
}
