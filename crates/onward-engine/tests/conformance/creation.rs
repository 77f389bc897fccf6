//! Making a plan: all of it or nothing, and once per key.

use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef};
use onward_core::policy::{MAX_NAME, OnStall};
use onward_engine::list::PlanQuery;
use std::time::Duration;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, refusal};

async fn a_new_plan_is_in_planning_with_all_its_steps_pending(desk: &Desk) {
    let plan = desk.plan(3).await;
    let status = desk.status(plan.id).await;
    assert_eq!(status.sheet.head.status().as_str(), "planning");
    assert_eq!(status.sheet.head.counts.pending, 3);
    assert_eq!(status.sheet.head.counts.progress(), 0);
    assert_eq!(status.sheet.created_at, desk.now());
    assert_eq!(desk.order(plan.id).await, plan.steps);
    assert_eq!(desk.trail(plan.id).await, ["plan_modified created"]);
}

async fn everything_that_an_author_says_is_kept(desk: &Desk) {
    let mut draft = desk.draft(2);
    draft.design_rationale = Some("because".to_owned());
    draft.output_formatting_notes = Some("as a table".to_owned());
    draft.stall_threshold = Some(Duration::from_millis(1_234));
    draft.on_stall = OnStall::Requeue;
    draft.steps[1].title = Some("second".to_owned());
    draft.steps[1].depends_on = vec![1, 1];
    draft.steps[1].stall_threshold = Some(Duration::from_millis(7));
    draft.steps[1].max_attempts = Some(100);
    let plan = desk.create(draft.clone()).await;
    let whole = desk
        .engine
        .whole_plan(&desk.me, plan.id)
        .await
        .unwrap()
        .plan;
    assert_eq!(whole.sheet.brief.name, draft.name);
    assert_eq!(whole.sheet.brief.research_question, draft.research_question);
    assert_eq!(whole.sheet.brief.design_rationale, draft.design_rationale);
    assert_eq!(
        whole.sheet.brief.output_formatting_notes,
        draft.output_formatting_notes
    );
    assert_eq!(whole.sheet.head.stall_threshold, draft.stall_threshold);
    assert_eq!(whole.sheet.head.on_stall, OnStall::Requeue);
    let second = &whole.steps[1].spec;
    assert_eq!(second.title, draft.steps[1].title);
    assert_eq!(second.depends_on, [plan.steps[0]]);
    assert_eq!(second.stall_threshold, Some(Duration::from_millis(7)));
    assert_eq!(second.max_attempts, 100);
    assert_eq!(whole.derived[1].open_dependencies, 1);
}

type Spoil = fn(&mut CreatePlan, &Desk);

fn bad_branch(desk: &Desk, after: u32, condition: &str, to: u32) -> BranchSpec {
    desk.branch(after, condition, ActionSpec::SkipTo(StepRef::Order(to)))
}

async fn a_plan_that_is_refused_leaves_no_row(desk: &Desk) {
    let spoils: [(&str, Spoil); 11] = [
        ("invalid_input", |plan, _| plan.name = " ".to_owned()),
        ("invalid_input", |plan, _| {
            plan.name = "x".repeat(MAX_NAME + 1)
        }),
        ("invalid_input", |plan, _| plan.steps.clear()),
        ("invalid_input", |plan, _| {
            plan.steps[1].instructions.clear()
        }),
        ("invalid_input", |plan, _| {
            plan.steps[1].id = plan.steps[0].id
        }),
        ("invalid_input", |plan, _| {
            plan.stall_threshold = Some(Duration::ZERO)
        }),
        ("invalid_input", |plan, _| {
            plan.steps[0].max_attempts = Some(101)
        }),
        ("invalid_dependency", |plan, _| {
            plan.steps[0].depends_on = vec![4]
        }),
        ("invalid_dependency", |plan, _| {
            plan.steps[0].depends_on = vec![2];
            plan.steps[1].depends_on = vec![1];
        }),
        ("invalid_condition", |plan, desk| {
            plan.branches.push(bad_branch(desk, 1, "confidence >", 2));
        }),
        ("INVALID_STEP_REFERENCE", |plan, desk| {
            plan.branches.push(bad_branch(desk, 2, "true", 2));
        }),
    ];
    for (expected, spoil) in spoils {
        let mut draft = desk.draft(3);
        spoil(&mut draft, desk);
        let key = Some("refused".to_owned());
        let refused = desk.engine.create_plan(&desk.me, draft.clone(), key).await;
        assert_eq!(code(refused), expected);
        let gone = desk.engine.sheet(&desk.me, draft.plan).await;
        assert_eq!(code(gone), "plan_not_found");
    }
    for table in [
        "plans",
        "steps",
        "events",
        "branches",
        "idempotency_keys",
        "dependencies",
    ] {
        let tenant = &desk.me.tenant;
        let count = format!("SELECT count(*) FROM {table} WHERE tenant_id = '{tenant}'");
        assert_eq!(desk.sql(&count).as_deref(), Ok("0"), "{table}");
    }
}

async fn every_issue_of_an_input_is_named_with_its_path(desk: &Desk) {
    let mut draft = desk.draft(2);
    draft.name.clear();
    draft.steps[1].instructions.clear();
    let refusal = refusal(desk.engine.create_plan(&desk.me, draft, None).await);
    let onward_core::Refusal::InvalidInput(issues) = refusal else {
        panic!("refused for another reason: {refusal}")
    };
    let paths: Vec<&str> = issues.iter().map(|issue| issue.path.as_str()).collect();
    assert_eq!(paths, ["name", "steps[1].instructions"]);
}

async fn the_same_key_with_the_same_content_gives_the_same_plan(desk: &Desk) {
    let key = || Some("key".to_owned());
    let draft = desk.draft(2);
    let first = desk
        .engine
        .create_plan(&desk.me, draft.clone(), key())
        .await
        .unwrap();
    desk.work_off(first.created.plan, 1).await;
    // The ids are made anew for every call.
    let mut again = desk.draft(2);
    again.session = draft.session.clone();
    let second = desk
        .engine
        .create_plan(&desk.me, again, key())
        .await
        .unwrap();
    assert_eq!(second, first);
    let query = PlanQuery {
        limit: 10,
        ..PlanQuery::default()
    };
    let page = desk.engine.list_plans(&desk.me, query).await.unwrap();
    assert_eq!(page.plans.len(), 1);
}

async fn the_same_key_with_other_content_is_a_conflict(desk: &Desk) {
    let key = || Some("key".to_owned());
    let draft = desk.draft(2);
    desk.engine
        .create_plan(&desk.me, draft.clone(), key())
        .await
        .unwrap();
    let changes: [fn(&mut CreatePlan); 6] = [
        |plan| plan.name.push('!'),
        |plan| plan.steps.truncate(1),
        |plan| plan.steps[1].depends_on = vec![1],
        |plan| plan.steps[0].title = Some(String::new()),
        |plan| plan.on_stall = OnStall::Ignore,
        |plan| plan.stall_threshold = Some(Duration::from_millis(1)),
    ];
    for change in changes {
        let mut other = draft.clone();
        change(&mut other);
        let refused = desk.engine.create_plan(&desk.me, other, key()).await;
        assert_eq!(code(refused), "conflict");
    }
}

async fn the_same_key_of_another_tenant_is_another_plan(desk: &Desk) {
    let other = desk.tenant("other").await;
    let key = || Some("key".to_owned());
    let ours = desk
        .engine
        .create_plan(&desk.me, desk.draft(1), key())
        .await
        .unwrap();
    let theirs = desk
        .engine
        .create_plan(&other, desk.draft(2), key())
        .await
        .unwrap();
    assert_ne!(ours.created.plan, theirs.created.plan);
    assert_eq!(theirs.created.steps.len(), 2);
}

async fn a_key_has_1_to_200_characters(desk: &Desk) {
    for (characters, fits) in [(0, false), (1, true), (200, true), (201, false)] {
        let key = Some("🔑".repeat(characters));
        let made = desk.engine.create_plan(&desk.me, desk.draft(1), key).await;
        assert_eq!(made.is_ok(), fits, "{characters}");
    }
}

async fn one_of_many_who_create_under_one_key_at_once_makes_the_plan(desk: &Desk) {
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let (engine, me, draft) = (desk.engine.clone(), desk.me.clone(), desk.draft(2));
            tokio::spawn(
                async move { engine.create_plan(&me, draft, Some("key".to_owned())).await },
            )
        })
        .collect();
    let mut plans = Vec::new();
    for call in calls {
        plans.push(call.await.unwrap().unwrap().created.plan);
    }
    plans.sort();
    plans.dedup();
    assert_eq!(plans.len(), 1);
}

async fn an_id_that_is_taken_is_refused_and_changes_nothing(desk: &Desk) {
    let plan = desk.plan(2).await;
    let mut draft = desk.draft(1);
    draft.plan = plan.id;
    draft.name = "another".to_owned();
    assert!(
        desk.engine
            .create_plan(&desk.me, draft, None)
            .await
            .is_err()
    );
    assert_eq!(desk.status(plan.id).await.sheet.brief.name, "Tides");
    let mut draft = desk.draft(1);
    draft.steps[0].id = plan.steps[0];
    let id = draft.plan;
    assert!(
        desk.engine
            .create_plan(&desk.me, draft, None)
            .await
            .is_err()
    );
    assert_eq!(
        code(desk.engine.sheet(&desk.me, id).await),
        "plan_not_found"
    );
}

on_both_databases![
    a_new_plan_is_in_planning_with_all_its_steps_pending,
    everything_that_an_author_says_is_kept,
    a_plan_that_is_refused_leaves_no_row,
    every_issue_of_an_input_is_named_with_its_path,
    the_same_key_with_the_same_content_gives_the_same_plan,
    the_same_key_with_other_content_is_a_conflict,
    the_same_key_of_another_tenant_is_another_plan,
    a_key_has_1_to_200_characters,
    one_of_many_who_create_under_one_key_at_once_makes_the_plan,
    an_id_that_is_taken_is_refused_and_changes_nothing,
];
