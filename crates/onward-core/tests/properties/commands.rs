//! Generates plausible commands: an open review is usually decided, a stalled plan usually resumed,
//! a step in progress usually gets its result. Some are rejected, for example because the token is
//! superseded.

use std::sync::Arc;

use onward_core::command::{
    AbandonPlan, CountTokens, DecideReview, HandleStalls, KeepLateResult, LogSkill, Modification,
    ModifyPlan, OrphanStep, PlanUpdate, ReportProgress, RequestReview, ResumeSession, Reviewer,
    SkillPhase, StartNext, StepRef, StepUpdate, SubmitResult,
};
use onward_core::event::{Decision, ProgressSource};
use onward_core::id::{ClaimToken, SessionId, StepId};
use onward_core::policy::{OnDependencyFailure, OnStall};
use onward_core::step::{
    Deadline, Evidence, EvidenceKind, OnDeadline, Review, ReviewBy, ReviewOptions, ReviewScope,
    StepResult, StepState,
};
use onward_core::{Code, Command, PlanStatus, Step, StepStatus, StepType};
use serde_json::{Map, Value, json};

use crate::plans::{self, millis};
use crate::rng::Rng;
use crate::state::WalkState;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Start,
    Submit,
    Report,
    RequestReview,
    Decide,
    Modify,
    Sweep,
    Resume,
    Abandon,
    Record,
}

/// A command that is plausible for the plan's status.
pub(crate) fn plausible(state: &mut WalkState, rng: &mut Rng<'_>) -> Command {
    use Kind::{
        Abandon, Decide, Modify, Record, Report, RequestReview, Resume, Start, Submit, Sweep,
    };
    let stalled = if state.has_stalls() { 20 } else { 2 };
    let is_reviewed = state.plan.head().counts.awaiting_input > 0;
    let reviews = if is_reviewed { 6 } else { 1 };
    let weights = match state.plan.head().status() {
        PlanStatus::Planning => [10, 3, 1, 1, 1, 8, 1, 1, 1, 2],
        // Without a step in progress, claiming one is the main option.
        PlanStatus::Executing if state.plan.head().counts.in_progress == 0 => {
            [20, 3, 2, 1, reviews, 6, 1, 1, 1, 2]
        }
        PlanStatus::Executing => [9, 8, 7, 5, reviews, 9, stalled, 1, 1, 2],
        PlanStatus::AwaitingReview => [2, 5, 2, 1, 14, 2, 3, 1, 1, 1],
        PlanStatus::Stalled => [3, 4, 4, 1, reviews, 6, 6, 3, 2, 2],
        PlanStatus::Completed | PlanStatus::Failed => [1, 4, 2, 1, 1, 3, 1, 1, 1, 3],
    };
    let kinds = [
        Start,
        Submit,
        Report,
        RequestReview,
        Decide,
        Modify,
        Sweep,
        Resume,
        Abandon,
        Record,
    ];
    let weighted: Vec<(usize, Kind)> = weights.into_iter().zip(kinds).collect();
    match rng.pick_weighted(&weighted) {
        Kind::Start => start(state, rng),
        Kind::Submit => submit(state, rng),
        Kind::Report => report(state, rng),
        Kind::RequestReview => request_review(state, rng),
        Kind::Decide => decide_review(state, rng),
        Kind::Modify => modify(state, rng),
        Kind::Sweep if rng.one_in(4) => Command::CountTokens(CountTokens {
            total: u64::try_from(rng.below(1_500)).unwrap_or(0),
        }),
        Kind::Sweep => Command::HandleStalls(sweep(rng)),
        Kind::Resume => Command::ResumePlan,
        // An abandoned plan has few further transitions, so abandon rarely.
        Kind::Abandon if rng.one_in(5) => Command::AbandonPlan(AbandonPlan {
            reason: rng.one_in(2).then(|| "test reason".to_owned()),
        }),
        Kind::Abandon => start(state, rng),
        Kind::Record => record(state, rng),
    }
}

/// Usually a step with one of these statuses, sometimes any step.
fn step_with(state: &WalkState, rng: &mut Rng<'_>, statuses: &[StepStatus]) -> StepId {
    let all = state.plan.steps();
    let matching: Vec<&Step> = all
        .iter()
        .filter(|step| statuses.contains(&step.status()))
        .collect();
    let any = rng.one_in(10) || matching.is_empty();
    let chosen = if any {
        rng.pick(all)
    } else {
        rng.pick(&matching).copied()
    };
    // The last step of the plan may have been removed.
    chosen.map_or(StepId::from_u128(u128::MAX), Step::id)
}

/// The step's current token, no token, an earlier one, or an unknown one.
fn token(state: &mut WalkState, rng: &mut Rng<'_>, step: StepId) -> Option<ClaimToken> {
    let current = || Some(state.plan.step(step)?.claim()?.token.clone());
    match rng.below(10) {
        0..=3 => current(),
        4..=6 => None,
        7 | 8 => {
            let own = state.tokens.iter().filter(|(of, _)| *of == step);
            let own: Vec<&ClaimToken> = own.map(|(_, token)| token).collect();
            rng.pick(&own).map(|token| (*token).clone())
        }
        _ => Some(state.ids().token()),
    }
}

fn start(state: &mut WalkState, rng: &mut Rng<'_>) -> Command {
    Command::StartNext(StartNext {
        token: state.ids().token(),
        session: plans::session(rng),
        include_stalled: rng.one_in(3),
        labels: plans::offered_labels(rng),
    })
}

/// A step's result.
fn result(rng: &mut Rng<'_>) -> Arc<StepResult> {
    let confidences = [None, Some(0.9), Some(0.3), Some(0.0), Some(1.0)];
    let data = [
        None,
        Some(json!({ "n": 1 })),
        Some(json!({ "n": 7, "sources": ["a", "b"] })),
    ];
    Arc::new(StepResult {
        confidence: rng.pick(&confidences).copied().flatten(),
        data: rng.pick(&data).cloned().flatten().map(Into::into),
        ..StepResult::from_summary("test result")
    })
}

fn evidence(criterion: &str) -> Evidence {
    Evidence {
        criterion: criterion.to_owned(),
        kind: EvidenceKind::Test,
        value: "test name".to_owned(),
        outcome: "passed".to_owned(),
    }
}

fn submit(state: &mut WalkState, rng: &mut Rng<'_>) -> Command {
    if rng.one_in(8)
        && let Some(previous) = rng.pick(&state.accepted).cloned()
    {
        return Command::SubmitResult(previous);
    }
    let mut statuses = vec![StepStatus::InProgress];
    if rng.one_in(5) {
        statuses = vec![StepStatus::Pending];
    }
    if rng.one_in(10) {
        statuses = vec![StepStatus::AwaitingInput, StepStatus::Completed];
    }
    let step = step_with(state, rng, &statuses);
    let mut result = result(rng);
    let gates = state
        .plan
        .step(step)
        .and_then(|step| step.spec.gates.clone());
    if let Some(gates) = gates
        && !rng.one_in(4)
    {
        let result = Arc::make_mut(&mut result);
        result.evidence = (1..=gates.acceptance_criteria.len())
            .map(|number| evidence(&number.to_string()))
            .collect();
        result.data = Some(json!({ "n": 7 }).into());
    }
    Command::SubmitResult(SubmitResult {
        step,
        result,
        token: token(state, rng, step),
        fresh_token: state.ids().token(),
        review: state.ids().review(),
        session: plans::session(rng),
    })
}

fn report(state: &mut WalkState, rng: &mut Rng<'_>) -> Command {
    let status = if rng.one_in(4) {
        StepStatus::Pending
    } else {
        StepStatus::InProgress
    };
    let step = step_with(state, rng, &[status]);
    let source = rng.pick_weighted(&[
        (3, ProgressSource::Reported),
        (1, ProgressSource::Written),
        (1, ProgressSource::Seen),
    ]);
    Command::ReportProgress(ReportProgress {
        step,
        source,
        note: rng.one_in(2).then(|| "test note".to_owned()),
        percent: rng.one_in(2).then_some(50.0),
        token: token(state, rng, step),
        session: plans::session(rng),
    })
}

fn request_review(state: &mut WalkState, rng: &mut Rng<'_>) -> Command {
    let status = if rng.one_in(5) {
        StepStatus::Pending
    } else {
        StepStatus::InProgress
    };
    let step = step_with(state, rng, &[status]);
    let token = token(state, rng, step);
    Command::RequestReview(RequestReview {
        step,
        review: state.ids().review(),
        summary: "test summary".to_owned(),
        questions: vec!["test question".to_owned()],
        scope: rng.pick(&ReviewScope::ALL).copied().unwrap_or_default(),
        options: ReviewOptions {
            fields: vec![plans::field(rng); usize::from(rng.one_in(3))],
            deadline: deadline(state, rng),
            assignee: rng.one_in(3).then(|| "ann".to_owned()),
        },
        token,
        session: plans::session(rng),
    })
}

fn deadline(state: &WalkState, rng: &mut Rng<'_>) -> Option<Deadline> {
    let after = rng.pick(&[1, 1_000, 60_000]).copied().unwrap_or(1);
    let action = rng.pick(&OnDeadline::ALL).copied().unwrap_or_default();
    let at = state.offset_by(after);
    rng.one_in(3).then_some(Deadline { at, action })
}

/// The decision of the sweep at the deadline of a review, usually not too early.
fn decide_by_policy(state: &WalkState, step: StepId) -> Option<DecideReview> {
    let review = review(state, step)?;
    Some(DecideReview {
        step,
        decision: Decision::at_deadline(review.options.deadline?.action)?,
        review: Some(review.id),
        reviewer: Reviewer::Policy,
        feedback: None,
        answers: Map::new(),
        token: None,
        session: None,
    })
}

fn review(state: &WalkState, step: StepId) -> Option<&Review> {
    match &state.plan.step(step)?.state {
        StepState::AwaitingInput { review, .. } => Some(review),
        StepState::Pending { .. }
        | StepState::InProgress(_)
        | StepState::Completed { .. }
        | StepState::Skipped { .. }
        | StepState::Failed { .. } => None,
    }
}

fn decide_review(state: &mut WalkState, rng: &mut Rng<'_>) -> Command {
    let decision = rng.pick_weighted(&[
        (3, Decision::Modify),
        (3, Decision::Approve),
        (2, Decision::Skip),
        (1, Decision::Reject),
    ]);
    let feedback =
        (decision == Decision::Modify || rng.one_in(3)).then(|| "test feedback".to_owned());
    let step = step_with(state, rng, &[StepStatus::AwaitingInput]);
    if let Some(command) = decide_by_policy(state, step).filter(|_| rng.one_in(2)) {
        return Command::DecideReview(command);
    }
    Command::DecideReview(DecideReview {
        step,
        decision,
        review: None,
        reviewer: rng.pick_weighted(&[
            (6, Reviewer::Person),
            (1, Reviewer::Agent { permitted: true }),
            (1, Reviewer::Agent { permitted: false }),
            (
                1,
                Reviewer::Link {
                    recipient: "ann".to_owned(),
                },
            ),
        ]),
        feedback: feedback.filter(|_| !rng.one_in(5)),
        answers: answers(state, rng, step),
        token: token(state, rng, step).filter(|_| rng.one_in(4)),
        session: plans::session(rng),
    })
}

/// Usually an answer to each typed question of the step's review.
fn answers(state: &WalkState, rng: &mut Rng<'_>, step: StepId) -> Map<String, Value> {
    let Some(review) = review(state, step) else {
        return Map::new();
    };
    let fields = review.options.fields.iter();
    let answer = if rng.one_in(5) {
        json!(7)
    } else {
        json!("red")
    };
    let answered = fields.filter(|_| !rng.one_in(4));
    answered
        .map(|field| (field.name.clone(), answer.clone()))
        .collect()
}

fn modify(state: &mut WalkState, rng: &mut Rng<'_>) -> Command {
    let total = state.plan.head().counts.last_order();
    let open = [StepStatus::Pending, StepStatus::InProgress];
    let ended = [
        StepStatus::Completed,
        StepStatus::Failed,
        StepStatus::Skipped,
    ];
    let modification = match rng.below(15) {
        14 => Modification::SkipStep {
            step: step_with(state, rng, &[StepStatus::Pending]),
        },
        13 => Modification::SetBudget {
            budget: rng.one_in(3).then(|| plans::budget(rng)),
            by_person: !rng.one_in(3),
        },
        12 => Modification::UpdatePlan {
            update: PlanUpdate {
                project_key: rng.one_in(2).then(|| "site".to_owned()),
                labels: rng.one_in(2).then(|| vec!["urgent".to_owned()]),
                priority: rng.one_in(2).then_some(9),
            },
        },
        11 => {
            let needed = (0..rng.below(3)).map(|_| {
                if rng.one_in(2) {
                    StepRef::Order(rng.order_below(total + 1) + 1)
                } else {
                    StepRef::Id(step_with(state, rng, &StepStatus::ALL))
                }
            });
            let depends_on: Vec<StepRef> = needed.collect();
            Modification::UpdateStep {
                step: step_with(state, rng, &[StepStatus::Pending]),
                update: StepUpdate {
                    depends_on: Some(depends_on).filter(|_| !rng.one_in(4)),
                    title: rng.one_in(2).then(|| "new title".to_owned()),
                    step_type: rng.one_in(2).then_some(StepType::Critique),
                    stall_threshold: rng.one_in(3).then_some(None),
                    review_by: rng.one_in(6).then_some(Some(ReviewBy::Person)),
                    priority: rng.one_in(2).then_some(7),
                    labels: rng.one_in(6).then(|| vec!["gpu".to_owned()]),
                    on_dependency_failure: rng.one_in(3).then_some(OnDependencyFailure::Continue),
                    ..StepUpdate::default()
                },
            }
        }
        10 => Modification::RedoStep {
            step: step_with(state, rng, &ended),
            reason: "test reason".to_owned(),
            cascade: rng.one_in(2),
            ids: (0..20).map(|_| state.ids().step()).collect(),
        },
        9 => Modification::RenameStep {
            step: step_with(state, rng, &StepStatus::ALL),
            title: "new title".to_owned(),
            instructions: "new instructions".to_owned(),
        },
        0 => Modification::UpdateInstructions {
            step: step_with(state, rng, &StepStatus::ALL),
            instructions: "new instructions".to_owned(),
        },
        1 | 2 => Modification::RequeueStep {
            step: step_with(state, rng, &[StepStatus::InProgress]),
        },
        3 => Modification::FailStep {
            step: step_with(state, rng, &open),
            reason: rng.one_in(2).then(|| "test reason".to_owned()),
        },
        4 => Modification::RemoveStep {
            step: step_with(state, rng, &[StepStatus::Pending]),
        },
        5 => reorder(state, rng),
        6 => {
            let after = rng.order_below(total + 1);
            Modification::AddSteps {
                steps: plans::steps_to_insert(state.ids(), rng, total),
                insert_after: Some(after).filter(|after| *after != total || rng.one_in(2)),
            }
        }
        _ => {
            let after = step_with(state, rng, &open);
            let after = state.plan.step(after).map_or(1, |step| step.order);
            Modification::AddBranch {
                branch: plans::branch(state.ids(), rng, after, total),
            }
        }
    };
    let named = match &modification {
        Modification::UpdateInstructions { step, .. }
        | Modification::RenameStep { step, .. }
        | Modification::UpdateStep { step, .. }
        | Modification::RequeueStep { step }
        | Modification::FailStep { step, .. }
        | Modification::SkipStep { step }
        | Modification::RedoStep { step, .. }
        | Modification::RemoveStep { step } => Some(*step),
        Modification::ReorderSteps { .. }
        | Modification::AddSteps { .. }
        | Modification::AddBranch { .. }
        | Modification::SetBudget { .. }
        | Modification::UpdatePlan { .. } => None,
    };
    Command::ModifyPlan(ModifyPlan {
        modification,
        rationale: rng.one_in(3).then(|| "test rationale".to_owned()),
        resume: rng.one_in(2),
        token: named
            .and_then(|step| token(state, rng, step))
            .filter(|_| rng.one_in(4)),
        session: plans::session(rng),
    })
}

fn reorder(state: &WalkState, rng: &mut Rng<'_>) -> Modification {
    let mut left: Vec<StepId> = state.plan.steps().iter().map(Step::id).collect();
    // Reversing moves the target of a `skip_to` before its branch.
    if rng.below(2) == 0 {
        left.reverse();
        return Modification::ReorderSteps { steps: left };
    }
    let mut steps = Vec::with_capacity(left.len());
    while !left.is_empty() {
        steps.push(left.swap_remove(rng.below(left.len())));
    }
    Modification::ReorderSteps { steps }
}

/// Usually with the plan's policy and thresholds.
fn sweep(rng: &mut Rng<'_>) -> HandleStalls {
    let policies: Vec<Option<OnStall>> = std::iter::once(None)
        .chain(OnStall::ALL.map(Some))
        .collect();
    let thresholds = [None, None, None, None, Some(millis(0)), Some(millis(500))];
    HandleStalls {
        policy: if rng.one_in(3) {
            rng.pick(&policies).copied().flatten()
        } else {
            None
        },
        threshold: rng.pick(&thresholds).copied().flatten(),
    }
}

/// A command that only records something.
fn record(state: &mut WalkState, rng: &mut Rng<'_>) -> Command {
    match rng.below(4) {
        3 => {
            let step = step_with(state, rng, &[StepStatus::InProgress]);
            let claim = state.plan.step(step).and_then(Step::claim);
            let holder = claim.and_then(|claim| claim.session.clone());
            Command::OrphanStep(OrphanStep {
                step,
                session: holder.unwrap_or_else(|| SessionId::new("four")),
                token: claim.map(|claim| claim.token.clone()),
            })
        }
        0 => Command::ResumeSession(ResumeSession {
            session: plans::session(rng).unwrap_or_else(|| SessionId::new("four")),
        }),
        1 => {
            let phases = [
                SkillPhase::Started,
                SkillPhase::Completed,
                SkillPhase::Failed { error: None },
            ];
            Command::LogSkill(LogSkill {
                execution: state.ids().execution(),
                skill: "search".to_owned(),
                phase: rng.pick(&phases).cloned().unwrap_or(SkillPhase::Started),
            })
        }
        _ => Command::KeepLateResult(KeepLateResult {
            step: step_with(state, rng, &StepStatus::ALL),
            artifact: state.ids().artifact(),
            rejection: Code::ClaimSuperseded,
            attempt: None,
        }),
    }
}
