//! Commands that mean nothing: steps that are not there, texts that are empty, huge or hostile,
//! numbers out of every range, orders that no plan has, dependencies in a circle.
//!
//! Some of it is accepted all the same, and must then be harmless.

use std::sync::Arc;
use std::time::Duration;

use onward_core::apply::Plan;
use onward_core::branch::Action;
use onward_core::command::{
    AbandonPlan, ActionSpec, BranchSpec, DecideReview, HandleStalls, KeepLateResult, LogSkill,
    Modification, ModifyPlan, ReportProgress, RequestReview, ResumeSession, SkillPhase, StartNext,
    StepRef, StepSpec, SubmitResult,
};
use onward_core::event::{Decision, Sign};
use onward_core::id::{BranchId, ClaimToken, SessionId, StepId};
use onward_core::policy::{MAX_DEPENDENCIES, OnStall};
use onward_core::step::{StepResult, StepType};
use onward_core::{Code, Command, Step};
use serde_json::json;

use crate::dice::Dice;
use crate::walk::World;

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

/// A command that means nothing here, or little. Where `wild`, ids that should be fresh are not
/// always.
pub(crate) fn command(world: &mut World, dice: &mut Dice<'_>, wild: bool) -> Command {
    let step = any_step(world, dice);
    match dice.below(16) {
        0 => Command::StartNext(StartNext {
            token: match wild {
                true => any_token(world, dice),
                false => world.fresh().token(),
            },
            session: Some(SessionId::new(text(dice))),
            include_stalled: dice.one_in(2),
        }),
        1 | 2 => Command::SubmitResult(SubmitResult {
            step,
            result: Arc::new(result(dice)),
            token: dice.one_in(2).then(|| any_token(world, dice)),
            fresh_token: any_token(world, dice),
            session: Some(SessionId::new(text(dice))),
        }),
        3 => Command::ReportProgress(ReportProgress {
            step,
            sign: dice.weighed(&[(3, Sign::Reported), (1, Sign::Written), (1, Sign::Seen)]),
            note: Some(text(dice)),
            percent: dice.pick(&NUMBERS).copied(),
            token: dice.one_in(2).then(|| any_token(world, dice)),
            session: None,
        }),
        4 => Command::RequestReview(RequestReview {
            step,
            review: world.fresh().review(),
            summary: text(dice),
            questions: vec![text(dice); dice.pick(&[0, 1, 51]).copied().unwrap_or(0)],
            token: dice.one_in(2).then(|| any_token(world, dice)),
            session: None,
        }),
        5 => Command::DecideReview(DecideReview {
            step,
            decision: dice.pick(&Decision::ALL).copied().unwrap_or(Decision::Skip),
            feedback: dice.one_in(2).then(|| text(dice)),
        }),
        6 => Command::HandleStalls(HandleStalls {
            policy: dice.pick(&OnStall::ALL).copied(),
            threshold: dice.pick(&SPANS).copied(),
        }),
        7 => Command::ResumePlan,
        8 => noted(world, dice, step),
        _ => Command::ModifyPlan(ModifyPlan {
            modification: modification(world, dice, wild),
            rationale: dice.one_in(8).then(|| text(dice)),
            resume: dice.one_in(2),
        }),
    }
}

fn noted(world: &mut World, dice: &mut Dice<'_>, step: StepId) -> Command {
    match dice.below(4) {
        0 => Command::LogSkill(LogSkill {
            execution: world.fresh().execution(),
            skill: text(dice),
            phase: SkillPhase::Failed {
                error: Some(text(dice)),
            },
        }),
        1 => Command::KeepLateResult(KeepLateResult {
            step,
            artifact: world.fresh().artifact(),
            refused: dice.pick(&Code::ALL).copied().unwrap_or(Code::Conflict),
        }),
        2 => Command::ResumeSession(ResumeSession {
            session: SessionId::new(text(dice)),
        }),
        // Only with a reason that is too long: a plan that was given up shows little more.
        _ => Command::AbandonPlan(AbandonPlan {
            reason: Some("x".repeat(10_001)),
        }),
    }
}

fn modification(world: &mut World, dice: &mut Dice<'_>, wild: bool) -> Modification {
    let total = world.plan.head().counts.total();
    let step = any_step(world, dice);
    match dice.below(9) {
        0 => Modification::RemoveStep { step },
        1 => Modification::FailStep {
            step,
            reason: Some(text(dice)),
        },
        2 => Modification::RequeueStep { step },
        3 => Modification::UpdateInstructions {
            step,
            instructions: text(dice),
        },
        4 => {
            let mut steps: Vec<StepId> = world.plan.steps().iter().map(Step::id).collect();
            match dice.below(3) {
                0 => steps.truncate(steps.len().saturating_sub(1)),
                1 => steps.push(step),
                _ => steps.reverse(),
            }
            Modification::ReorderSteps { steps }
        }
        5 | 6 => Modification::AddSteps {
            steps: (0..dice.below(4))
                .map(|_| spec(world, dice, total, wild))
                .collect(),
            insert_after: dice.one_in(2).then(|| any_order(dice, total)),
        },
        _ => Modification::AddBranch {
            branch: branch(world, dice, total, wild),
        },
    }
}

fn branch(world: &mut World, dice: &mut Dice<'_>, total: u32, wild: bool) -> BranchSpec {
    let conditions = ["true", "", "confidence >=", "\0", "1 +", "nobody.knows > 3"];
    BranchSpec {
        id: if dice.one_in(4) {
            BranchId::from_u128(7)
        } else {
            world.fresh().branch()
        },
        after_order: any_order(dice, total),
        condition: dice.pick(&conditions).copied().unwrap_or("true").to_owned(),
        action: match dice.below(4) {
            0 => ActionSpec::SkipTo(StepRef::Order(any_order(dice, total))),
            1 => ActionSpec::SkipTo(StepRef::Id(any_step(world, dice))),
            2 => ActionSpec::AddSteps(
                (0..dice.below(3))
                    .map(|_| spec(world, dice, total, wild))
                    .collect(),
            ),
            _ => ActionSpec::Fail {
                reason: Some(text(dice)),
            },
        },
    }
}

/// A step with any dependencies at all, itself among them.
fn spec(world: &mut World, dice: &mut Dice<'_>, total: u32, wild: bool) -> StepSpec {
    let id = match wild && dice.one_in(3) {
        true => any_step(world, dice),
        false => world.fresh().step(),
    };
    let instructions = match dice.one_in(4) {
        true => text(dice),
        false => "find out".to_owned(),
    };
    let mut spec = StepSpec::new(id, StepType::Custom, instructions);
    spec.depends_on = (0..dice.below(3))
        .map(|_| any_order(dice, total + 3))
        .collect();
    if dice.one_in(3) {
        spec.depends_on = vec![1; MAX_DEPENDENCIES + 1];
    }
    if dice.one_in(5) {
        spec.stall_threshold = dice.pick(&SPANS).copied();
    }
    if dice.one_in(5) {
        spec.max_attempts = dice.pick(&[0, 1, 100, 101, u32::MAX]).copied();
    }
    spec
}

fn result(dice: &mut Dice<'_>) -> StepResult {
    let data = [
        json!({}),
        json!(null),
        json!([1, 2, 3]),
        json!("text"),
        json!({ "confidence": { "step": 1e308 }, "\0": "\u{202e}" }),
    ];
    StepResult {
        data: dice.one_in(2).then(|| dice.pick(&data).cloned()).flatten(),
        confidence: dice
            .one_in(2)
            .then(|| dice.pick(&NUMBERS).copied())
            .flatten(),
        report: dice.one_in(8).then(|| json!(17)),
        formatting_notes: dice.one_in(8).then(|| text(dice)),
        ..StepResult::of_summary(text(dice))
    }
}

/// A text that nobody would write.
pub(crate) fn text(dice: &mut Dice<'_>) -> String {
    match dice.below(9) {
        0 => "\u{202e}drawkcab\u{2066}\u{feff}".to_owned(),
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

fn any_order(dice: &mut Dice<'_>, total: u32) -> u32 {
    match dice.below(8) {
        0 => 0,
        1 => u32::MAX,
        2 => u32::MAX - 1,
        3 => total.saturating_add(1),
        _ => 1 + dice.order_below(total),
    }
}

fn any_step(world: &World, dice: &mut Dice<'_>) -> StepId {
    let unknown = StepId::from_u128(u128::MAX);
    match dice.one_in(4) {
        true => unknown,
        false => dice.pick(world.plan.steps()).map_or(unknown, Step::id),
    }
}

fn any_token(world: &mut World, dice: &mut Dice<'_>) -> ClaimToken {
    match dice.below(3) {
        0 => ClaimToken::new(text(dice)),
        1 => world.fresh().token(),
        _ => {
            let given = dice.pick(&world.tokens).map(|(_, token)| token.clone());
            given.unwrap_or_else(|| ClaimToken::new(""))
        }
    }
}

/// Whether a command names as fresh what is known already: in the plan, in one of its branches, or
/// twice in the command itself.
pub(crate) fn brings_known_ids(plan: &Plan, command: &Command) -> bool {
    let Command::ModifyPlan(modify) = command else {
        return false;
    };
    let specs = match &modify.modification {
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
        | Modification::ReorderSteps { .. }
        | Modification::UpdateInstructions { .. }
        | Modification::FailStep { .. }
        | Modification::RequeueStep { .. } => return false,
    };
    let branches = plan
        .steps()
        .iter()
        .flat_map(|step| plan.branches_after(step.id()));
    let mut known: Vec<StepId> = plan.steps().iter().map(Step::id).collect();
    for branch in branches {
        if let Action::AddSteps { steps } = &branch.action {
            known.extend(steps.iter().map(|step| step.id));
        }
    }
    specs.iter().any(|spec| {
        let is_known = known.contains(&spec.id);
        known.push(spec.id);
        is_known
    })
}
