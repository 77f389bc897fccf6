//! Plan creation: atomic, and once per idempotency key.

use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef};
use onward_core::id::SessionId;
use onward_core::policy::{MAX_NAME, OnStall};
use onward_engine::list::PlanQuery;
use std::time::Duration;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, refusal};

async fn a_new_plan_has_status_planning_and_pending_steps(harness: &Harness) {
    let plan = harness.plan(3).await;
    let status = harness.status(plan.id).await;
    assert_eq!(status.sheet.head.status().as_str(), "planning");
    assert_eq!(status.sheet.head.counts.pending, 3);
    assert_eq!(status.sheet.head.counts.progress(), 0);
    assert_eq!(status.sheet.created_at, harness.now());
    assert_eq!(harness.step_ids(plan.id).await, plan.steps);
    assert_eq!(
        harness.audit_trail(plan.id).await,
        ["plan_modified created"]
    );
}

async fn stores_all_fields_of_the_plan_and_its_steps(harness: &Harness) {
    let mut draft = harness.draft(2);
    draft.design_rationale = Some("because".to_owned());
    draft.output_formatting_notes = Some("as a table".to_owned());
    draft.stall_threshold = Some(Duration::from_millis(1_234));
    draft.on_stall = OnStall::Requeue;
    draft.steps[1].title = Some("second".to_owned());
    draft.steps[1].depends_on = vec![1, 1];
    draft.steps[1].stall_threshold = Some(Duration::from_millis(7));
    draft.steps[1].max_attempts = Some(100);
    let plan = harness.create(draft.clone()).await;
    let whole = harness
        .engine
        .full_plan(&harness.me, plan.id)
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

type Invalidate = fn(&mut CreatePlan, &Harness);

fn skip_branch(harness: &Harness, after: u32, condition: &str, to: u32) -> BranchSpec {
    harness.branch(after, condition, ActionSpec::SkipTo(StepRef::Order(to)))
}

async fn a_rejected_plan_leaves_no_rows(harness: &Harness) {
    let cases: [(&str, Invalidate); 11] = [
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
        ("invalid_condition", |plan, harness| {
            plan.branches
                .push(skip_branch(harness, 1, "confidence >", 2));
        }),
        ("INVALID_STEP_REFERENCE", |plan, harness| {
            plan.branches.push(skip_branch(harness, 2, "true", 2));
        }),
    ];
    for (expected, invalidate) in cases {
        let mut draft = harness.draft(3);
        invalidate(&mut draft, harness);
        let key = Some("rejected".to_owned());
        let rejected = harness
            .engine
            .create_plan(&harness.me, draft.clone(), key)
            .await;
        assert_eq!(code(rejected), expected);
        let missing = harness.engine.sheet(&harness.me, draft.plan).await;
        assert_eq!(code(missing), "plan_not_found");
    }
    for table in [
        "plans",
        "steps",
        "events",
        "branches",
        "idempotency_keys",
        "dependencies",
    ] {
        let tenant = &harness.me.tenant;
        let count = format!("SELECT count(*) FROM {table} WHERE tenant_id = '{tenant}'");
        assert_eq!(harness.sql(&count).as_deref(), Ok("0"), "{table}");
    }
}

async fn reports_every_invalid_field_with_its_path(harness: &Harness) {
    let mut draft = harness.draft(2);
    draft.name.clear();
    draft.steps[1].instructions.clear();
    let refusal = refusal(harness.engine.create_plan(&harness.me, draft, None).await);
    let onward_core::Refusal::InvalidInput(issues) = refusal else {
        panic!("rejected for another reason: {refusal}")
    };
    let paths: Vec<&str> = issues.iter().map(|issue| issue.path.as_str()).collect();
    assert_eq!(paths, ["name", "steps[1].instructions"]);
}

async fn the_same_key_and_content_return_the_same_plan(harness: &Harness) {
    let key = || Some("key".to_owned());
    let draft = harness.draft(2);
    let first = harness
        .engine
        .create_plan(&harness.me, draft.clone(), key())
        .await
        .unwrap();
    harness.complete_steps(first.created.plan, 1).await;
    // A retry generates different ids, and may come from the agent's next session.
    let mut again = harness.draft(2);
    again.session = Some(SessionId::new("next session"));
    assert_ne!(again.session, draft.session);
    let second = harness
        .engine
        .create_plan(&harness.me, again, key())
        .await
        .unwrap();
    assert_eq!(second, first);
    let query = PlanQuery {
        limit: 10,
        ..PlanQuery::default()
    };
    let page = harness.engine.list_plans(&harness.me, query).await.unwrap();
    assert_eq!(page.plans.len(), 1);
}

async fn the_same_key_with_different_content_is_a_conflict(harness: &Harness) {
    let key = || Some("key".to_owned());
    let draft = harness.draft(2);
    harness
        .engine
        .create_plan(&harness.me, draft.clone(), key())
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
        let rejected = harness.engine.create_plan(&harness.me, other, key()).await;
        assert_eq!(code(rejected), "conflict");
    }
}

async fn idempotency_keys_are_scoped_to_a_tenant(harness: &Harness) {
    let other = harness.create_tenant("other").await;
    let key = || Some("key".to_owned());
    let ours = harness
        .engine
        .create_plan(&harness.me, harness.draft(1), key())
        .await
        .unwrap();
    let theirs = harness
        .engine
        .create_plan(&other, harness.draft(2), key())
        .await
        .unwrap();
    assert_ne!(ours.created.plan, theirs.created.plan);
    assert_eq!(theirs.created.steps.len(), 2);
}

async fn accepts_idempotency_keys_of_1_to_200_characters(harness: &Harness) {
    for (characters, valid) in [(0, false), (1, true), (200, true), (201, false)] {
        let key = Some("🔑".repeat(characters));
        let created = harness
            .engine
            .create_plan(&harness.me, harness.draft(1), key)
            .await;
        assert_eq!(created.is_ok(), valid, "{characters}");
    }
}

async fn concurrent_requests_with_one_key_create_one_plan(harness: &Harness) {
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let (engine, me, draft) =
                (harness.engine.clone(), harness.me.clone(), harness.draft(2));
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

async fn rejects_existing_ids_without_changes(harness: &Harness) {
    let plan = harness.plan(2).await;
    let mut draft = harness.draft(1);
    draft.plan = plan.id;
    draft.name = "another".to_owned();
    assert!(
        harness
            .engine
            .create_plan(&harness.me, draft, None)
            .await
            .is_err()
    );
    assert_eq!(harness.status(plan.id).await.sheet.brief.name, "Tides");
    let mut draft = harness.draft(1);
    draft.steps[0].id = plan.steps[0];
    let id = draft.plan;
    assert!(
        harness
            .engine
            .create_plan(&harness.me, draft, None)
            .await
            .is_err()
    );
    assert_eq!(
        code(harness.engine.sheet(&harness.me, id).await),
        "plan_not_found"
    );
}

on_both_databases![
    a_new_plan_has_status_planning_and_pending_steps,
    stores_all_fields_of_the_plan_and_its_steps,
    a_rejected_plan_leaves_no_rows,
    reports_every_invalid_field_with_its_path,
    the_same_key_and_content_return_the_same_plan,
    the_same_key_with_different_content_is_a_conflict,
    idempotency_keys_are_scoped_to_a_tenant,
    accepts_idempotency_keys_of_1_to_200_characters,
    concurrent_requests_with_one_key_create_one_plan,
    rejects_existing_ids_without_changes,
];
