//! Generates invalid commands: unknown steps; empty, huge or hostile texts; numbers out of range;
//! invalid orders; cyclic dependencies. Some are accepted and must then be harmless.

use std::sync::Arc;
use std::time::Duration;

use onward_core::apply::Plan;
use onward_core::branch::Action;
use onward_core::command::{
    AbandonPlan, ActionSpec, BranchSpec, DecideReview, HandleStalls, KeepLateResult, LogSkill,
    Modification, ModifyPlan, OrphanStep, PlanUpdate, ReportProgress, RequestReview, ResumeSession,
    Reviewer, SkillPhase, StartNext, StepRef, StepSpec, StepUpdate, SubmitResult,
};
use onward_core::event::{Decision, ProgressSource};
use onward_core::id::{BranchId, ClaimToken, SessionId, StepId};
use onward_core::policy::{MAX_DEPENDENCIES, OnStall};
use onward_core::step::{
    Deadline, Evidence, EvidenceKind, FieldKind, FieldOption, Gates, OnDeadline, ReviewField,
    ReviewOptions, ReviewScope, StepResult, StepType,
};
use onward_core::{Code, Command, Step, Timestamp};
use serde_json::json;

use crate::rng::Rng;
use crate::state::WalkState;

const SPANS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    Duration::from_millis(1),
    Duration::from_secs(366 * 24 * 60 * 60),
    Duration::MAX,
];

const NUMBERS: [f64; 8] = [
    f64::NAN,
    -1.0,
    7.0,
    101.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    -0.0,
    f64::MIN_POSITIVE,
];

/// An invalid or implausible command. If `hostile`, ids that should be new are sometimes reused.
pub(crate) fn command(state: &mut WalkState, rng: &mut Rng<'_>, hostile: bool) -> Command {
    let step = any_step(state, rng);
    match rng.below(16) {
        0 => Command::StartNext(StartNext {
            token: if hostile {
                any_token(state, rng)
            } else {
                state.ids().token()
            },
            session: Some(SessionId::new(text(rng))),
            include_stalled: rng.one_in(2),
            labels: rng.one_in(2).then(|| vec![text(rng)]),
        }),
        1 | 2 => Command::SubmitResult(SubmitResult {
            step,
            result: Arc::new(result(rng)),
            token: rng.one_in(2).then(|| any_token(state, rng)),
            fresh_token: any_token(state, rng),
            review: state.ids().review(),
            session: Some(SessionId::new(text(rng))),
        }),
        3 => Command::ReportProgress(ReportProgress {
            step,
            source: rng.pick_weighted(&[
                (3, ProgressSource::Reported),
                (1, ProgressSource::Written),
                (1, ProgressSource::Seen),
            ]),
            note: Some(text(rng)),
            percent: rng.pick(&NUMBERS).copied(),
            token: rng.one_in(2).then(|| any_token(state, rng)),
            session: None,
        }),
        4 => Command::RequestReview(RequestReview {
            step,
            review: state.ids().review(),
            summary: text(rng),
            questions: vec![text(rng); rng.pick(&[0, 1, 51]).copied().unwrap_or(0)],
            scope: rng.pick(&ReviewScope::ALL).copied().unwrap_or_default(),
            options: ReviewOptions {
                fields: vec![invalid_field(rng); rng.pick(&[0, 1, 21]).copied().unwrap_or(0)],
                deadline: rng.one_in(3).then_some(Deadline {
                    at: Timestamp::MIN,
                    action: OnDeadline::Approve,
                }),
                assignee: rng.one_in(3).then(|| text(rng)),
            },
            token: rng.one_in(2).then(|| any_token(state, rng)),
            session: None,
        }),
        5 => Command::DecideReview(DecideReview {
            step,
            decision: rng.pick(&Decision::ALL).copied().unwrap_or(Decision::Skip),
            review: rng.one_in(2).then(|| state.ids().review()),
            reviewer: if rng.one_in(2) {
                Reviewer::Person
            } else {
                let recipient = text(rng);
                Reviewer::Link { recipient }
            },
            feedback: rng.one_in(2).then(|| text(rng)),
            answers: [(text(rng), json!([1]))]
                .into_iter()
                .take(rng.below(2))
                .collect(),
            token: None,
            session: None,
        }),
        6 => Command::HandleStalls(HandleStalls {
            policy: rng.pick(&OnStall::ALL).copied(),
            threshold: rng.pick(&SPANS).copied(),
        }),
        7 => Command::ResumePlan,
        8 => record(state, rng, step),
        _ => Command::ModifyPlan(ModifyPlan {
            modification: modification(state, rng, hostile),
            rationale: rng.one_in(8).then(|| text(rng)),
            resume: rng.one_in(2),
            token: None,
            session: None,
        }),
    }
}

fn record(state: &mut WalkState, rng: &mut Rng<'_>, step: StepId) -> Command {
    match rng.below(5) {
        3 => Command::OrphanStep(OrphanStep {
            step,
            session: SessionId::new(text(rng)),
            token: None,
        }),
        0 => Command::LogSkill(LogSkill {
            execution: state.ids().execution(),
            skill: text(rng),
            phase: SkillPhase::Failed {
                error: Some(text(rng)),
            },
        }),
        1 => Command::KeepLateResult(KeepLateResult {
            step,
            artifact: state.ids().artifact(),
            rejection: rng.pick(&Code::ALL).copied().unwrap_or(Code::Conflict),
            attempt: None,
        }),
        2 => Command::ResumeSession(ResumeSession {
            session: SessionId::new(text(rng)),
        }),
        // Always rejected, because an abandoned plan has few further transitions.
        _ => Command::AbandonPlan(AbandonPlan {
            reason: Some("x".repeat(10_001)),
        }),
    }
}

fn modification(state: &mut WalkState, rng: &mut Rng<'_>, hostile: bool) -> Modification {
    let total = state.plan.head().counts.last_order();
    let step = any_step(state, rng);
    match rng.below(12) {
        11 => Modification::UpdatePlan {
            update: PlanUpdate {
                project_key: Some(text(rng)),
                labels: Some(vec![text(rng); rng.pick(&[0, 1, 21]).copied().unwrap_or(0)]),
                priority: rng.pick(&[None, Some(9), Some(10)]).copied().flatten(),
            },
        },
        10 => Modification::UpdateStep {
            step,
            update: StepUpdate {
                depends_on: Some(vec![
                    StepRef::Order(any_order(rng, total)),
                    StepRef::Id(any_step(state, rng)),
                ]),
                title: rng.one_in(2).then(|| text(rng)),
                instructions: rng.one_in(4).then(|| text(rng)),
                stall_threshold: rng.one_in(4).then_some(Some(Duration::ZERO)),
                labels: rng.one_in(4).then(|| vec![text(rng); 2]),
                priority: rng.one_in(4).then_some(10),
                acceptance_criteria: rng.one_in(4).then(|| vec![text(rng), text(rng)]),
                ..StepUpdate::default()
            },
        },
        9 => Modification::RedoStep {
            step,
            reason: text(rng),
            cascade: false,
            ids: if hostile && rng.one_in(3) {
                vec![any_step(state, rng)]
            } else {
                (0..rng.below(2)).map(|_| state.ids().step()).collect()
            },
        },
        0 => Modification::RemoveStep { step },
        1 => Modification::FailStep {
            step,
            reason: Some(text(rng)),
        },
        2 => Modification::RequeueStep { step },
        3 => Modification::UpdateInstructions {
            step,
            instructions: text(rng),
        },
        4 => {
            let mut steps: Vec<StepId> = state.plan.steps().iter().map(Step::id).collect();
            match rng.below(3) {
                0 => steps.truncate(steps.len().saturating_sub(1)),
                1 => steps.push(step),
                _ => steps.reverse(),
            }
            Modification::ReorderSteps { steps }
        }
        5 | 6 => Modification::AddSteps {
            steps: (0..rng.below(4))
                .map(|_| spec(state, rng, total, hostile))
                .collect(),
            insert_after: rng.one_in(2).then(|| any_order(rng, total)),
        },
        _ => Modification::AddBranch {
            branch: branch(state, rng, total, hostile),
        },
    }
}

fn branch(state: &mut WalkState, rng: &mut Rng<'_>, total: u32, hostile: bool) -> BranchSpec {
    let conditions = ["true", "", "confidence >=", "\0", "1 +", "unknown.key > 3"];
    BranchSpec {
        id: if rng.one_in(4) {
            BranchId::from_u128(7)
        } else {
            state.ids().branch()
        },
        after_order: any_order(rng, total),
        condition: rng.pick(&conditions).copied().unwrap_or("true").to_owned(),
        action: match rng.below(4) {
            0 => ActionSpec::SkipTo(StepRef::Order(any_order(rng, total))),
            1 => ActionSpec::SkipTo(StepRef::Id(any_step(state, rng))),
            2 => ActionSpec::AddSteps(
                (0..rng.below(3))
                    .map(|_| spec(state, rng, total, hostile))
                    .collect(),
            ),
            _ => ActionSpec::Fail {
                reason: Some(text(rng)),
            },
        },
    }
}

/// A step with arbitrary dependencies, possibly on itself.
fn spec(state: &mut WalkState, rng: &mut Rng<'_>, total: u32, hostile: bool) -> StepSpec {
    let id = if hostile && rng.one_in(3) {
        any_step(state, rng)
    } else {
        state.ids().step()
    };
    let instructions = if rng.one_in(4) {
        text(rng)
    } else {
        "test instructions".to_owned()
    };
    let mut spec = StepSpec::new(id, StepType::Custom, instructions);
    spec.depends_on = (0..rng.below(3))
        .map(|_| any_order(rng, total + 3))
        .collect();
    if rng.one_in(3) {
        spec.depends_on = vec![1; MAX_DEPENDENCIES + 1];
    }
    if rng.one_in(5) {
        spec.stall_threshold = rng.pick(&SPANS).copied();
    }
    if rng.one_in(5) {
        spec.max_attempts = rng.pick(&[0, 1, 100, 101, u32::MAX]).copied();
    }
    if rng.one_in(5) {
        let schemas = [
            json!({ "$ref": "#" }),
            json!([]),
            json!({ "type": "moon" }),
            json!({ "pattern": "(" }),
        ];
        spec.gates = Some(Arc::new(Gates {
            result_schema: rng.pick(&schemas).cloned().map(Into::into),
            acceptance_criteria: vec![text(rng); rng.pick(&[0, 1, 2, 21]).copied().unwrap_or(0)],
            review_by: None,
        }));
    }
    spec
}

fn result(rng: &mut Rng<'_>) -> StepResult {
    let data = [
        json!({}),
        json!(null),
        json!([1, 2, 3]),
        json!("text"),
        json!({ "confidence": { "step": 1e308 }, "\0": "\u{202e}" }),
    ];
    StepResult {
        data: rng
            .one_in(2)
            .then(|| rng.pick(&data).cloned())
            .flatten()
            .map(Into::into),
        confidence: rng.one_in(2).then(|| rng.pick(&NUMBERS).copied()).flatten(),
        report: rng.one_in(8).then(|| json!(17)).map(Into::into),
        formatting_notes: rng.one_in(8).then(|| text(rng)),
        evidence: if rng.one_in(8) {
            vec![Evidence {
                criterion: text(rng),
                kind: EvidenceKind::Note,
                value: text(rng),
                outcome: text(rng),
            }]
        } else {
            Vec::new()
        },
        ..StepResult::from_summary(text(rng))
    }
}

/// A typed question with invalid texts, options or default.
fn invalid_field(rng: &mut Rng<'_>) -> ReviewField {
    let kind = rng.pick(&FieldKind::ALL).copied();
    let option = FieldOption {
        value: text(rng),
        title: rng.one_in(2).then(|| text(rng)),
    };
    ReviewField {
        name: text(rng),
        title: rng.one_in(2).then(|| text(rng)),
        kind: kind.unwrap_or(FieldKind::Text),
        options: vec![option; rng.pick(&[0, 1, 2, 51]).copied().unwrap_or(0)],
        default: rng.one_in(2).then(|| json!({ "in": [1] }).into()),
    }
}

/// A hostile text.
pub(crate) fn text(rng: &mut Rng<'_>) -> String {
    match rng.below(9) {
        0 => "\u{202e}desrever\u{2066}\u{feff}".to_owned(),
        1 => String::new(),
        2 => " \t\n\u{a0}".to_owned(),
        3 => "\0".to_owned(),
        4 => "'; DROP TABLE plans; --\u{1b}[2J".to_owned(),
        5 => "\u{1f469}\u{200d}\u{1f680}".repeat(60),
        6 => "e\u{301}".repeat(300),
        7 => "ä".repeat(10_001),
        _ => "x".repeat(100_001),
    }
}

fn any_order(rng: &mut Rng<'_>, total: u32) -> u32 {
    match rng.below(8) {
        0 => 0,
        1 => u32::MAX,
        2 => u32::MAX - 1,
        3 => total.saturating_add(1),
        _ => 1 + rng.order_below(total),
    }
}

fn any_step(state: &WalkState, rng: &mut Rng<'_>) -> StepId {
    let unknown = StepId::from_u128(u128::MAX);
    if rng.one_in(4) {
        unknown
    } else {
        rng.pick(state.plan.steps()).map_or(unknown, Step::id)
    }
}

fn any_token(state: &mut WalkState, rng: &mut Rng<'_>) -> ClaimToken {
    match rng.below(3) {
        0 => ClaimToken::new(text(rng)),
        1 => state.ids().token(),
        _ => {
            let earlier = rng.pick(&state.tokens).map(|(_, token)| token.clone());
            earlier.unwrap_or_else(|| ClaimToken::new(""))
        }
    }
}

/// Whether a command adds a step with an id that exists already: in the plan, in one of its
/// branches, or earlier in the command.
pub(crate) fn reuses_step_ids(plan: &Plan, command: &Command) -> bool {
    let Command::ModifyPlan(modify) = command else {
        return false;
    };
    let specs = match &modify.modification {
        Modification::RedoStep { ids, .. } => {
            return ids.iter().any(|id| plan.step(*id).is_some());
        }
        Modification::AddSteps { steps, .. }
        | Modification::AddBranch {
            branch:
                BranchSpec {
                    action: ActionSpec::AddSteps(steps),
                    ..
                },
        } => steps,
        Modification::AddBranch { .. }
        | Modification::RemoveStep { .. }
        | Modification::SkipStep { .. }
        | Modification::ReorderSteps { .. }
        | Modification::UpdateInstructions { .. }
        | Modification::RenameStep { .. }
        | Modification::UpdateStep { .. }
        | Modification::SetBudget { .. }
        | Modification::UpdatePlan { .. }
        | Modification::FailStep { .. }
        | Modification::RequeueStep { .. } => return false,
    };
    let branches = plan
        .steps()
        .iter()
        .flat_map(|step| plan.branches_after(step.id()));
    let mut existing: Vec<StepId> = plan.steps().iter().map(Step::id).collect();
    for branch in branches {
        if let Action::AddSteps { steps } = &branch.action {
            existing.extend(steps.iter().map(|step| step.id));
        }
    }
    specs.iter().any(|spec| {
        let exists = existing.contains(&spec.id);
        existing.push(spec.id);
        exists
    })
}
