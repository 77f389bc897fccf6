//! Commands that mean something where the plan stands: a review that is open is mostly decided, a
//! stalled plan mostly resumed, a step in progress mostly gets its result.
//!
//! They are not always accepted: a token may be an old one, a step the wrong one.

use std::sync::Arc;

use onward_core::command::{
    AbandonPlan, DecideReview, HandleStalls, KeepLateResult, LogSkill, Modification, ModifyPlan,
    ReportProgress, RequestReview, ResumeSession, SkillPhase, StartNext, SubmitResult,
};
use onward_core::event::{Decision, Sign};
use onward_core::id::{ClaimToken, SessionId, StepId};
use onward_core::policy::OnStall;
use onward_core::step::StepResult;
use onward_core::{Code, Command, PlanStatus, Step, StepStatus};
use serde_json::json;

use crate::dice::Dice;
use crate::plans;
use crate::walk::{World, millis};

#[derive(Debug, Clone, Copy)]
enum Verb {
    Start,
    Submit,
    Report,
    Ask,
    Decide,
    Modify,
    Sweep,
    Resume,
    Abandon,
    Note,
}

/// A command that means something here.
pub(crate) fn sensible(world: &mut World, dice: &mut Dice<'_>) -> Command {
    use Verb::{Abandon, Ask, Decide, Modify, Note, Report, Resume, Start, Submit, Sweep};
    let stalled = if world.has_stalls() { 20 } else { 2 };
    let weights = match world.plan.head().status() {
        PlanStatus::Planning => [10, 3, 1, 1, 1, 8, 1, 1, 1, 2],
        // Where nobody works, there is not much to do but to take a step on.
        PlanStatus::Executing if world.plan.head().counts.in_progress == 0 => {
            [20, 3, 2, 1, 1, 6, 1, 1, 1, 2]
        }
        PlanStatus::Executing => [9, 8, 7, 5, 1, 9, stalled, 1, 1, 2],
        PlanStatus::AwaitingReview => [2, 5, 2, 1, 14, 2, 3, 1, 1, 1],
        PlanStatus::Stalled => [3, 4, 4, 1, 1, 6, 6, 3, 2, 2],
        PlanStatus::Completed | PlanStatus::Failed => [1, 4, 2, 1, 1, 3, 1, 1, 1, 3],
    };
    let verbs = [
        Start, Submit, Report, Ask, Decide, Modify, Sweep, Resume, Abandon, Note,
    ];
    let weighed: Vec<(usize, Verb)> = weights.into_iter().zip(verbs).collect();
    match dice.weighed(&weighed) {
        Verb::Start => start(world, dice),
        Verb::Submit => submit(world, dice),
        Verb::Report => report(world, dice),
        Verb::Ask => ask(world, dice),
        Verb::Decide => decide_review(world, dice),
        Verb::Modify => modify(world, dice),
        Verb::Sweep => Command::HandleStalls(sweep(dice)),
        Verb::Resume => Command::ResumePlan,
        // Once given up, a walk has not much more to show.
        Verb::Abandon if dice.one_in(5) => Command::AbandonPlan(AbandonPlan {
            reason: dice.one_in(2).then(|| "enough".to_owned()),
        }),
        Verb::Abandon => start(world, dice),
        Verb::Note => note(world, dice),
    }
}

/// Mostly a step in one of these statuses, where there is one; now and then any step.
fn step_that_is(world: &World, dice: &mut Dice<'_>, statuses: &[StepStatus]) -> StepId {
    let all = world.plan.steps();
    let fitting: Vec<&Step> = all
        .iter()
        .filter(|step| statuses.contains(&step.status()))
        .collect();
    let any = dice.one_in(10) || fitting.is_empty();
    let chosen = if any {
        dice.pick(all)
    } else {
        dice.pick(&fitting).copied()
    };
    // A plan may have lost its last step.
    chosen.map_or(StepId::from_u128(u128::MAX), Step::id)
}

/// The step's current token, none, one that it had before, or one that nobody ever had.
fn token(world: &mut World, dice: &mut Dice<'_>, step: StepId) -> Option<ClaimToken> {
    let current = || Some(world.plan.step(step)?.claim()?.token.clone());
    match dice.below(10) {
        0..=3 => current(),
        4..=6 => None,
        7 | 8 => {
            let own = world.tokens.iter().filter(|(of, _)| *of == step);
            let own: Vec<&ClaimToken> = own.map(|(_, token)| token).collect();
            dice.pick(&own).map(|token| (*token).clone())
        }
        _ => Some(world.fresh().token()),
    }
}

fn start(world: &mut World, dice: &mut Dice<'_>) -> Command {
    Command::StartNext(StartNext {
        token: world.fresh().token(),
        session: plans::session(dice),
        include_stalled: dice.one_in(3),
    })
}

/// What a step may come out with.
fn result(dice: &mut Dice<'_>) -> Arc<StepResult> {
    let confidences = [None, Some(0.9), Some(0.3), Some(0.0), Some(1.0)];
    let data = [
        None,
        Some(json!({ "n": 1 })),
        Some(json!({ "n": 7, "sources": ["a", "b"] })),
    ];
    Arc::new(StepResult {
        confidence: dice.pick(&confidences).copied().flatten(),
        data: dice.pick(&data).cloned().flatten(),
        ..StepResult::of_summary("found")
    })
}

fn submit(world: &mut World, dice: &mut Dice<'_>) -> Command {
    if dice.one_in(8)
        && let Some(before) = dice.pick(&world.accepted).cloned()
    {
        return Command::SubmitResult(before);
    }
    let mut wanted = vec![StepStatus::InProgress];
    if dice.one_in(5) {
        wanted = vec![StepStatus::Pending];
    }
    if dice.one_in(10) {
        wanted = vec![StepStatus::AwaitingInput, StepStatus::Completed];
    }
    let step = step_that_is(world, dice, &wanted);
    Command::SubmitResult(SubmitResult {
        step,
        result: result(dice),
        token: token(world, dice, step),
        fresh_token: world.fresh().token(),
        session: plans::session(dice),
    })
}

fn report(world: &mut World, dice: &mut Dice<'_>) -> Command {
    let wanted = match dice.one_in(4) {
        true => StepStatus::Pending,
        false => StepStatus::InProgress,
    };
    let step = step_that_is(world, dice, &[wanted]);
    let sign = dice.weighed(&[(3, Sign::Reported), (1, Sign::Written), (1, Sign::Seen)]);
    Command::ReportProgress(ReportProgress {
        step,
        sign,
        note: dice.one_in(2).then(|| "halfway".to_owned()),
        percent: dice.one_in(2).then_some(50.0),
        token: token(world, dice, step),
        session: plans::session(dice),
    })
}

fn ask(world: &mut World, dice: &mut Dice<'_>) -> Command {
    let wanted = match dice.one_in(5) {
        true => StepStatus::Pending,
        false => StepStatus::InProgress,
    };
    let step = step_that_is(world, dice, &[wanted]);
    let token = token(world, dice, step);
    Command::RequestReview(RequestReview {
        step,
        review: world.fresh().review(),
        summary: "found".to_owned(),
        questions: vec!["is it enough?".to_owned()],
        token,
        session: plans::session(dice),
    })
}

fn decide_review(world: &World, dice: &mut Dice<'_>) -> Command {
    let decision = dice.weighed(&[
        (3, Decision::Modify),
        (3, Decision::Approve),
        (2, Decision::Skip),
        (1, Decision::Reject),
    ]);
    let feedback = (decision == Decision::Modify || dice.one_in(3)).then(|| "more".to_owned());
    Command::DecideReview(DecideReview {
        step: step_that_is(world, dice, &[StepStatus::AwaitingInput]),
        decision,
        feedback: feedback.filter(|_| !dice.one_in(5)),
    })
}

fn modify(world: &mut World, dice: &mut Dice<'_>) -> Command {
    let total = world.plan.head().counts.total();
    let open = [StepStatus::Pending, StepStatus::InProgress];
    let modification = match dice.below(9) {
        0 => Modification::UpdateInstructions {
            step: step_that_is(world, dice, &StepStatus::ALL),
            instructions: "look again".to_owned(),
        },
        1 | 2 => Modification::RequeueStep {
            step: step_that_is(world, dice, &[StepStatus::InProgress]),
        },
        3 => Modification::FailStep {
            step: step_that_is(world, dice, &open),
            reason: dice.one_in(2).then(|| "no use".to_owned()),
        },
        4 => Modification::RemoveStep {
            step: step_that_is(world, dice, &[StepStatus::Pending]),
        },
        5 => reordered(world, dice),
        6 => {
            let after = dice.order_below(total + 1);
            Modification::AddSteps {
                steps: plans::inserted(world.fresh(), dice, after, total),
                insert_after: Some(after).filter(|after| *after != total || dice.one_in(2)),
            }
        }
        _ => {
            let after = step_that_is(world, dice, &open);
            let after = world.plan.step(after).map_or(1, |step| step.order);
            Modification::AddBranch {
                branch: plans::branch(world.fresh(), dice, after, total),
            }
        }
    };
    Command::ModifyPlan(ModifyPlan {
        modification,
        rationale: dice.one_in(3).then(|| "better".to_owned()),
        resume: dice.one_in(2),
    })
}

fn reordered(world: &World, dice: &mut Dice<'_>) -> Modification {
    let mut left: Vec<StepId> = world.plan.steps().iter().map(Step::id).collect();
    // The other way around, what a branch leads to comes to stand in front of it.
    if dice.below(2) == 0 {
        left.reverse();
        return Modification::ReorderSteps { steps: left };
    }
    let mut steps = Vec::with_capacity(left.len());
    while !left.is_empty() {
        steps.push(left.swap_remove(dice.below(left.len())));
    }
    Modification::ReorderSteps { steps }
}

/// By the plan's policy and thresholds, mostly.
fn sweep(dice: &mut Dice<'_>) -> HandleStalls {
    let policies: Vec<Option<OnStall>> = std::iter::once(None)
        .chain(OnStall::ALL.map(Some))
        .collect();
    let thresholds = [None, None, None, None, Some(millis(0)), Some(millis(500))];
    HandleStalls {
        policy: match dice.one_in(3) {
            true => dice.pick(&policies).copied().flatten(),
            false => None,
        },
        threshold: dice.pick(&thresholds).copied().flatten(),
    }
}

fn note(world: &mut World, dice: &mut Dice<'_>) -> Command {
    match dice.below(3) {
        0 => Command::ResumeSession(ResumeSession {
            session: plans::session(dice).unwrap_or_else(|| SessionId::new("four")),
        }),
        1 => {
            let phases = [
                SkillPhase::Started,
                SkillPhase::Completed,
                SkillPhase::Failed { error: None },
            ];
            Command::LogSkill(LogSkill {
                execution: world.fresh().execution(),
                skill: "search".to_owned(),
                phase: dice.pick(&phases).cloned().unwrap_or(SkillPhase::Started),
            })
        }
        _ => Command::KeepLateResult(KeepLateResult {
            step: step_that_is(world, dice, &StepStatus::ALL),
            artifact: world.fresh().artifact(),
            refused: Code::ClaimSuperseded,
        }),
    }
}
