//! Limits: the limit itself is accepted, one more is rejected.

use onward_core::command::{ActionSpec, CreatePlan, Modification, ModifyPlan, RequestReview};
use onward_core::decide::create;
use onward_core::id::ReviewId;
use onward_core::policy::{
    MAX_BRANCHES_PER_STEP, MAX_DEPENDENCIES, MAX_INSTRUCTIONS, MAX_MAX_ATTEMPTS, MAX_QUESTIONS,
    MAX_REMARK, MAX_STEPS, MAX_TITLE,
};
use onward_core::{Code, Command};

use crate::harness::{Harness, branch, create_plan, id, modify, spec};

/// The rejection code of a creation after `change`.
fn create_error(change: impl FnOnce(&mut CreatePlan)) -> Option<Code> {
    let mut command = create_plan(2);
    change(&mut command);
    create::decide(&command).err().map(|refusal| refusal.code())
}

fn error_code(harness: &mut Harness, command: &Command) -> Option<Code> {
    harness.execute(command).err().map(|refusal| refusal.code())
}

#[test]
fn limits_the_texts_of_a_plan() {
    for (over, expected) in [(0, None), (1, Some(Code::InvalidInput))] {
        let text = |most: usize| "x".repeat(most + over);
        assert_eq!(
            create_error(|plan| plan.steps[0].instructions = text(MAX_INSTRUCTIONS)),
            expected
        );
        assert_eq!(
            create_error(|plan| plan.steps[0].title = Some(text(MAX_TITLE))),
            expected
        );
        assert_eq!(
            create_error(|plan| plan.design_rationale = Some(text(MAX_REMARK))),
            expected
        );
        assert_eq!(
            create_error(|plan| plan.output_formatting_notes = Some(text(MAX_REMARK))),
            expected
        );
        let reason = Some(text(MAX_REMARK));
        let failing = branch(1, 1, "true", ActionSpec::Fail { reason });
        assert_eq!(create_error(|plan| plan.branches.push(failing)), expected);
    }
}

#[test]
fn counts_title_length_in_characters() {
    assert_eq!(
        create_error(|plan| plan.steps[0].title = Some("ü".repeat(MAX_TITLE))),
        None
    );
}

#[test]
fn limits_the_maximum_number_of_attempts() {
    let with_attempts = |n| create_error(|plan| plan.steps[0].max_attempts = Some(n));
    assert_eq!(with_attempts(1), None);
    assert_eq!(with_attempts(MAX_MAX_ATTEMPTS), None);
    assert_eq!(with_attempts(0), Some(Code::InvalidInput));
    assert_eq!(
        with_attempts(MAX_MAX_ATTEMPTS + 1),
        Some(Code::InvalidInput)
    );
}

#[test]
fn limits_the_steps_of_an_add_steps_branch() {
    let adding = |count: usize| {
        create_error(|plan| {
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
fn limits_the_dependencies_in_one_command() {
    let with_dependencies = |count: usize| {
        let per_step = 500;
        let mut command = create_plan(u32::try_from(count.div_ceil(per_step)).unwrap() + 500);
        let mut left = count;
        for step in command.steps.iter_mut().skip(500) {
            let take = left.min(per_step);
            step.depends_on = (1..=u32::try_from(take).unwrap()).collect();
            left -= take;
        }
        create::decide(&command).err().map(|refusal| refusal.code())
    };
    assert_eq!(with_dependencies(MAX_DEPENDENCIES), None);
    assert_eq!(
        with_dependencies(MAX_DEPENDENCIES + 1),
        Some(Code::LimitExceeded)
    );
}

#[test]
fn limits_branches_added_later() {
    let mut command = create_plan(1);
    let most = u32::try_from(MAX_BRANCHES_PER_STEP).unwrap();
    command.branches = (1..most)
        .map(|n| branch(n, 1, "false", ActionSpec::Continue))
        .collect();
    let mut harness = Harness::new(command);
    let add = |n| {
        let branch = branch(n, 1, "false", ActionSpec::Continue);
        modify(Modification::AddBranch { branch })
    };
    assert_eq!(error_code(&mut harness, &add(most)), None);
    assert_eq!(
        error_code(&mut harness, &add(most + 1)),
        Some(Code::LimitExceeded)
    );
}

#[test]
fn limits_the_questions_of_a_review() {
    for (questions, expected) in [
        (MAX_QUESTIONS, None),
        (MAX_QUESTIONS + 1, Some(Code::InvalidInput)),
    ] {
        let command = Command::from(RequestReview {
            step: id(1),
            review: ReviewId::from_u128(1),
            summary: "test summary".to_owned(),
            questions: vec!["test question".to_owned(); questions],
            scope: onward_core::step::ReviewScope::Plan,
            options: Default::default(),
            token: None,
            session: None,
        });
        assert_eq!(
            error_code(&mut Harness::with_steps(1).started(), &command),
            expected
        );
    }
}

#[test]
fn limits_the_rationale_of_a_modification() {
    for (over, expected) in [(0, None), (1, Some(Code::InvalidInput))] {
        let command = Command::from(ModifyPlan {
            modification: Modification::RemoveStep { step: id(2) },
            rationale: Some("x".repeat(MAX_REMARK + over)),
            resume: false,
            token: None,
            session: None,
        });
        assert_eq!(error_code(&mut Harness::with_steps(2), &command), expected);
    }
}
