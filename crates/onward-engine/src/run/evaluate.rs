//! First half of the execution loop: loads the facts for a command and calls the core.

use onward_core::branch::Branch;
use onward_core::command::{HandleStalls, ModifyPlan, ResumeSession, StartNext};
use onward_core::decide::{self, Outcome, With};
use onward_core::event::Created;
use onward_core::id::SessionId;
use onward_core::{Command, Event, PlanHead, PlanId, Refusal, Step, StepId, Timestamp};
use onward_store::{Cached, Facts, Tx};

use super::command::{CommandContext, Target};
use crate::error::Error;

/// The loaded facts and the core's decision.
pub(super) struct Evaluation {
    pub(super) head: PlanHead,
    pub(super) steps: Vec<Step>,
    /// The step of `steps` that no other step depends on, if known.
    pub(super) independent: Option<StepId>,
    /// The calling session, as reported or inferred from the claim.
    pub(super) session: Option<SessionId>,
    pub(super) events: Result<Vec<Event>, Refusal>,
    /// The branches whose references change with the events.
    pub(super) branches: Vec<Branch>,
}

impl Evaluation {
    fn new(head: PlanHead, steps: Vec<Step>, events: Result<Vec<Event>, Refusal>) -> Self {
        Self {
            head,
            steps,
            independent: None,
            session: None,
            events,
            branches: Vec::new(),
        }
    }
}

pub(super) async fn evaluate(
    tx: &mut Tx,
    target: Target,
    command: &Command,
    ctx: &CommandContext,
) -> Result<Option<Evaluation>, Error> {
    match (target, command) {
        (Target::Plan(plan), Command::StartNext(command)) => {
            start_next(tx, plan, command, ctx.now).await
        }
        (Target::Plan(plan), Command::ModifyPlan(command)) => {
            modify(tx, plan, command, ctx.now).await
        }
        (Target::Plan(plan), Command::HandleStalls(command)) => {
            handle_stalls(tx, plan, command, ctx).await
        }
        (Target::Plan(plan), Command::ResumeSession(command)) => {
            resume_session(tx, plan, command).await
        }
        (Target::Plan(plan), Command::ResumePlan) => {
            let head = Facts(tx).plan(plan).await?;
            Ok(head.map(|head| evaluate_head(decide::resume::decide(&head, ctx.now), head)))
        }
        (Target::Plan(plan), Command::CountTokens(command)) => {
            let head = Facts(tx).plan(plan).await?;
            Ok(head.map(|head| {
                let events = decide::count_tokens::decide(&head, command, ctx.now);
                evaluate_head(events, head)
            }))
        }
        (Target::Plan(plan), Command::AbandonPlan(command)) => {
            let head = Facts(tx).plan(plan).await?;
            Ok(head
                .map(|head| evaluate_head(decide::abandon::decide(&head, command, ctx.now), head)))
        }
        (Target::Plan(plan), Command::LogSkill(command)) => {
            let head = Facts(tx).plan(plan).await?;
            Ok(head.map(|head| evaluate_head(Ok(decide::log_skill::decide(command)), head)))
        }
        (Target::Plan(plan), Command::KeepLateResult(command)) => {
            let events = Ok(decide::keep_late_result::decide(command));
            if command.attempt.is_none() {
                let head = Facts(tx).plan(plan).await?;
                return Ok(head.map(|head| evaluate_head(events, head)));
            }
            let facts = Cached(Facts(tx)).step(command.step, With::Head).await?;
            Ok(facts.map(|facts| Evaluation::new(facts.head, vec![facts.step], events)))
        }
        (Target::Step(step), command) => evaluate_step(tx, step, command, None, ctx.now).await,
        (Target::Plan(_), _) => Ok(None),
    }
}

/// The events that follow the creation of a plan.
pub(super) async fn evaluate_new_plan(
    tx: &mut Tx,
    created: &Created,
    events: Vec<Event>,
    now: Timestamp,
) -> Result<Option<Evaluation>, Error> {
    let head = Facts(tx).plan(created.plan).await?;
    let steps = (1u32..).zip(&created.steps);
    let steps = steps.map(|(order, spec)| Step::new(spec.clone(), order, now));
    Ok(head.map(|head| Evaluation::new(head, steps.collect(), Ok(events))))
}

fn evaluate_head(events: Result<Vec<Event>, Refusal>, head: PlanHead) -> Evaluation {
    Evaluation::new(head, Vec::new(), events)
}

/// Evaluates a command on a step and, with `next`, the claim of the next step in the same commit.
pub(super) async fn evaluate_step(
    tx: &mut Tx,
    id: StepId,
    command: &Command,
    next: Option<&StartNext>,
    now: Timestamp,
) -> Result<Option<Evaluation>, Error> {
    let with = match (command, next) {
        (_, Some(_)) => With::Ready,
        (Command::SubmitResult(_), None) => decide::submit::FACTS,
        (Command::DecideReview(_), None) => decide::review::FACTS,
        (_, None) => With::Head,
    };
    let Some(facts) = Cached(Facts(tx)).step(id, with).await? else {
        return Ok(None);
    };
    let outcome = match command {
        Command::SubmitResult(command) => decide::submit::decide(&facts, command, now),
        Command::DecideReview(command) => decide::review::decide(&facts, command, now),
        Command::ReportProgress(command) => {
            decide::report_progress::decide(&facts, command, now).map(Outcome::Events)
        }
        Command::RequestReview(command) => {
            decide::request_review::decide(&facts, command, now).map(Outcome::Events)
        }
        Command::StartStep(command) => {
            decide::start_step::decide(&facts, command, now).map(Outcome::Events)
        }
        Command::OrphanStep(command) => {
            let events = decide::orphan_step::decide(&facts, command);
            Ok(Outcome::Events(events))
        }
        Command::StartNext(_)
        | Command::ModifyPlan(_)
        | Command::HandleStalls(_)
        | Command::CountTokens(_)
        | Command::ResumePlan
        | Command::AbandonPlan(_)
        | Command::ResumeSession(_)
        | Command::LogSkill(_)
        | Command::KeepLateResult(_) => return Ok(None),
    };
    let mut others = Vec::new();
    let mut events = match outcome {
        Err(refusal) => Err(refusal),
        Ok(Outcome::Events(events)) => Ok(events),
        Ok(Outcome::SkipTo(skip)) => {
            let (plan, order) = (facts.head.id, facts.step.order);
            let (skip_target, passed) = Facts(tx).skip_target(plan, order, skip.target()).await?;
            others = passed;
            skip.resolve(skip_target)
        }
    };
    let session = command_session(command, &facts.step);
    if let (Some(next), Ok(events)) = (next, &mut events) {
        let next = StartNext {
            session: session.clone(),
            ..next.clone()
        };
        let claim = decide::start_next::claim_ready(&facts, events, &next, now)?;
        if !claim.is_empty() {
            events.extend(claim);
            others.extend(facts.ready);
        }
    }
    let steps = std::iter::once(facts.step).chain(others).collect();
    Ok(Some(Evaluation {
        independent: (!facts.has_dependents).then_some(id),
        session,
        ..Evaluation::new(facts.head, steps, events)
    }))
}

/// The session that calls a command on a step.
fn command_session(command: &Command, step: &Step) -> Option<SessionId> {
    let (token, session) = match command {
        Command::StartStep(command) => return command.session.clone(),
        Command::SubmitResult(command) => (&command.token, &command.session),
        Command::ReportProgress(command) => (&command.token, &command.session),
        Command::RequestReview(command) => (&command.token, &command.session),
        Command::DecideReview(command) => (&command.token, &command.session),
        Command::StartNext(_)
        | Command::ModifyPlan(_)
        | Command::HandleStalls(_)
        | Command::CountTokens(_)
        | Command::ResumePlan
        | Command::AbandonPlan(_)
        | Command::ResumeSession(_)
        | Command::OrphanStep(_)
        | Command::LogSkill(_)
        | Command::KeepLateResult(_) => return None,
    };
    decide::calling_session(step, token.as_ref(), session.as_ref())
}

async fn start_next(
    tx: &mut Tx,
    plan: PlanId,
    command: &StartNext,
    now: Timestamp,
) -> Result<Option<Evaluation>, Error> {
    let stalled_at = command.include_stalled.then_some(now);
    let session = command.session.as_ref();
    let labels = command.labels.as_deref();
    let Some(mut facts) = Cached(Facts(tx))
        .next_of(plan, session, stalled_at, labels)
        .await?
    else {
        return Ok(None);
    };
    let exhausted = facts.exhausted();
    if !exhausted.is_empty() {
        facts.add_ready(Facts(tx).ready_without(&exhausted, labels).await?);
    }
    let events = decide::start_next::decide(&facts, command, now);
    let mut steps = facts.stalled;
    for step in facts.undelivered.into_iter().chain(facts.ready) {
        if steps.iter().all(|known| known.id() != step.id()) {
            steps.push(step);
        }
    }
    Ok(Some(Evaluation {
        session: command.session.clone(),
        ..Evaluation::new(facts.head, steps, events)
    }))
}

async fn modify(
    tx: &mut Tx,
    plan: PlanId,
    command: &ModifyPlan,
    now: Timestamp,
) -> Result<Option<Evaluation>, Error> {
    let Some(head) = Facts(tx).plan(plan).await? else {
        return Ok(None);
    };
    let needs = decide::modify::needs(&command.modification, &head);
    let facts = Facts(tx).modification(head, &needs).await?;
    let events = decide::modify::decide(&facts, command, now);
    let branches = events.as_ref().map_or_else(
        |_| Vec::new(),
        |events| decide::modify::redirected_branches(&facts, events),
    );
    let (token, session) = (command.token.as_ref(), command.session.as_ref());
    let step = facts.step.as_ref();
    let session = step.and_then(|step| decide::calling_session(step, token, session));
    let steps = facts.step.into_iter().collect();
    Ok(Some(Evaluation {
        session,
        branches,
        ..Evaluation::new(facts.head, steps, events)
    }))
}

async fn handle_stalls(
    tx: &mut Tx,
    plan: PlanId,
    command: &HandleStalls,
    ctx: &CommandContext,
) -> Result<Option<Evaluation>, Error> {
    let facts = Facts(tx)
        .stalls_of(plan, command, ctx.watcher, ctx.now)
        .await?;
    Ok(facts.map(|(facts, _)| evaluate_stalls(facts, command, ctx.now)))
}

pub(super) fn evaluate_stalls(
    facts: decide::handle_stalls::Facts,
    command: &HandleStalls,
    now: Timestamp,
) -> Evaluation {
    let events = decide::handle_stalls::decide(&facts, command, now);
    Evaluation::new(facts.head, facts.in_progress, events)
}

async fn resume_session(
    tx: &mut Tx,
    plan: PlanId,
    command: &ResumeSession,
) -> Result<Option<Evaluation>, Error> {
    let facts = Facts(tx).resumption_of(plan, &command.session).await?;
    Ok(facts.map(|facts| {
        let events = decide::resume_session::decide(&facts, command);
        evaluate_head(Ok(events), facts.head)
    }))
}
