//! Bounds: each is itself allowed, and one more is refused.

use onward_core::command::{ActionSpec, CreatePlan, Modification, ModifyPlan, RequestReview};
use onward_core::decide::create;
use onward_core::id::ReviewId;
use onward_core::policy::{
    MAX_BRANCHES_PER_STEP, MAX_DEPENDENCIES, MAX_INSTRUCTIONS, MAX_MAX_ATTEMPTS, MAX_QUESTIONS,
    MAX_REMARK, MAX_STEPS, MAX_TITLE,
};
use onward_core::{Code, Command};

use crate::desk::{Desk, branch, id, modify, plan_of, spec};

fn created(change: impl FnOnce(&mut CreatePlan)) -> Option<Code> {
    let mut command = plan_of(2);
    change(&mut command);
    create::decide(&command).err().map(|refusal| refusal.code())
}

fn asked(desk: &mut Desk, command: &Command) -> Option<Code> {
    desk.try_to(command).err().map(|refusal| refusal.code())
}

#[test]
fn texts_of_a_plan() {
    for (over, expected) in [(0, None), (1, Some(Code::InvalidInput))] {
        let text = |most: usize| "x".repeat(most + over);
        assert_eq!(
            created(|plan| plan.steps[0].instructions = text(MAX_INSTRUCTIONS)),
            expected
        );
        assert_eq!(
            created(|plan| plan.steps[0].title = Some(text(MAX_TITLE))),
            expected
        );
        assert_eq!(
            created(|plan| plan.design_rationale = Some(text(MAX_REMARK))),
            expected
        );
        assert_eq!(
            created(|plan| plan.output_formatting_notes = Some(text(MAX_REMARK))),
            expected
        );
        let reason = Some(text(MAX_REMARK));
        let failing = branch(1, 1, "true", ActionSpec::Fail { reason });
        assert_eq!(created(|plan| plan.branches.push(failing)), expected);
    }
}

#[test]
fn a_title_is_counted_in_characters() {
    assert_eq!(
        created(|plan| plan.steps[0].title = Some("ü".repeat(MAX_TITLE))),
        None
    );
}

#[test]
fn attempts() {
    let attempts = |n| created(|plan| plan.steps[0].max_attempts = Some(n));
    assert_eq!(attempts(1), None);
    assert_eq!(attempts(MAX_MAX_ATTEMPTS), None);
    assert_eq!(attempts(0), Some(Code::InvalidInput));
    assert_eq!(attempts(MAX_MAX_ATTEMPTS + 1), Some(Code::InvalidInput));
}

#[test]
fn steps_that_a_branch_may_add() {
    let adding = |count: usize| {
        created(|plan| {
            let first = 10u32;
            let steps = (first..).take(count).map(spec).collect();
            plan.branches
                .push(branch(1, 1, "true", ActionSpec::AddSteps(steps)));
        })
    };
    assert_eq!(adding(MAX_STEPS), None);
    assert_eq!(adding(MAX_STEPS + 1), Some(Code::InvalidInput));
}

#[test]
fn dependencies_of_one_command() {
    let naming = |count: usize| {
        let per_step = 500;
        let mut command = plan_of(u32::try_from(count.div_ceil(per_step)).unwrap() + 500);
        let mut left = count;
        for step in command.steps.iter_mut().skip(500) {
            let take = left.min(per_step);
            step.depends_on = (1..=u32::try_from(take).unwrap()).collect();
            left -= take;
        }
        create::decide(&command).err().map(|refusal| refusal.code())
    };
    assert_eq!(naming(MAX_DEPENDENCIES), None);
    assert_eq!(naming(MAX_DEPENDENCIES + 1), Some(Code::LimitExceeded));
}

#[test]
fn branches_that_a_step_gets_later() {
    let mut command = plan_of(1);
    let most = u32::try_from(MAX_BRANCHES_PER_STEP).unwrap();
    command.branches = (1..most)
        .map(|n| branch(n, 1, "false", ActionSpec::Continue))
        .collect();
    let mut desk = Desk::of(command);
    let add = |n| {
        let branch = branch(n, 1, "false", ActionSpec::Continue);
        modify(Modification::AddBranch { branch })
    };
    assert_eq!(asked(&mut desk, &add(most)), None);
    assert_eq!(asked(&mut desk, &add(most + 1)), Some(Code::LimitExceeded));
}

#[test]
fn questions_of_a_review() {
    for (questions, expected) in [
        (MAX_QUESTIONS, None),
        (MAX_QUESTIONS + 1, Some(Code::InvalidInput)),
    ] {
        let command = Command::from(RequestReview {
            step: id(1),
            review: ReviewId::from_u128(1),
            summary: "look".to_owned(),
            questions: vec!["good?".to_owned(); questions],
            token: None,
            session: None,
        });
        assert_eq!(asked(&mut Desk::with(1).started(), &command), expected);
    }
}

#[test]
fn the_rationale_of_a_modification() {
    for (over, expected) in [(0, None), (1, Some(Code::InvalidInput))] {
        let command = Command::from(ModifyPlan {
            modification: Modification::RemoveStep { step: id(2) },
            rationale: Some("x".repeat(MAX_REMARK + over)),
            resume: false,
        });
        assert_eq!(asked(&mut Desk::with(2), &command), expected);
    }
}
