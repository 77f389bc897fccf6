//! Tenant isolation: objects of another tenant get the same response as objects that do not exist.

use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::id::{ArtifactId, OutputId, SkillExecutionId};
use onward_core::turn::LoopControl;
use onward_core::{PlanId, Role, StepId};
use onward_engine::engine::Settings;
use onward_engine::session::{Fingerprint, HookSource};
use onward_engine::tool_calls::{InitialState, NewCall};
use onward_engine::{Caller, Engine, Error, ObjectKind};

use crate::database::TestDatabase;
use crate::engine_calls::{Call, Ids, list_calls, read_calls, update_calls};
use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{CreatedPlan, code, document, error, submission_without_token};
use crate::research::{deliverable, finding};

/// Another tenant with a plan in progress, a token, a session, an artifact and an output.
struct OtherTenant {
    caller: Caller,
    plan: CreatedPlan,
    ids: Ids,
}

async fn other_tenant(harness: &Harness) -> OtherTenant {
    let caller = harness.create_tenant("other").await;
    let plan = harness.create_for(&caller, harness.draft(3)).await;
    harness
        .engine
        .next_step(&caller, plan.id, None, false)
        .await
        .unwrap();
    let (_, token) = harness
        .engine
        .create_token(&caller, "theirs", Role::Owner, None)
        .await
        .unwrap();
    let source = HookSource {
        session: "theirs".to_owned(),
        agent: "codex".to_owned(),
        directory: Some("/src".to_owned()),
        ..HookSource::default()
    };
    let control = LoopControl::default();
    harness
        .engine
        .begin_turn(&caller, source.clone(), Fingerprint::Unavailable, control)
        .await
        .unwrap();
    let call = NewCall::from_hook(None, "Bash".to_owned(), serde_json::json!("theirs"), None);
    harness
        .engine
        .record_call(&caller, source, None, call, InitialState::Running)
        .await
        .unwrap();
    let stored = finding("Theirs", "text of theirs");
    let artifact = harness.engine.store_research(&caller, stored).await;
    let output = deliverable(plan.id, "Theirs", "text of theirs");
    let output = harness.engine.store_output(&caller, output).await;
    let ids = Ids {
        plan: plan.id,
        step: plan.steps[0],
        token: token.id.to_string(),
        skill: harness.start_skill(&caller, "survey", "theirs", None).await,
        session: "theirs".to_owned(),
        artifact: artifact.unwrap().id,
        output: output.unwrap().id,
    };
    OtherTenant { caller, plan, ids }
}

fn missing_ids() -> Ids {
    Ids {
        plan: PlanId::from_u128(0xdead),
        step: StepId::from_u128(0xbeef),
        token: "f00df00d-0000-4000-8000-000000000000".to_owned(),
        skill: SkillExecutionId::from_u128(0xfeed),
        session: "missing".to_owned(),
        artifact: ArtifactId::from_u128(0xa),
        output: OutputId::from_u128(0xb),
    }
}

/// All visible data of a tenant.
async fn snapshot(harness: &Harness, other: &OtherTenant) -> String {
    let plan = document(&harness.engine, &other.caller, other.plan.id).await;
    let mut text = plan.to_string();
    for call in list_calls() {
        let result = (call.make)(
            harness.engine.clone(),
            other.caller.clone(),
            other.ids.clone(),
        );
        text.push_str(&result.await.unwrap());
    }
    for table in [
        "skill_executions",
        "feedback",
        "sessions",
        "turns",
        "session_calls",
        "due_calls",
        "outputs",
        "artifacts",
        "results",
    ] {
        let tenant = &other.caller.tenant;
        let rows = harness.sql(&format!(
            "SELECT * FROM {table} WHERE tenant_id = '{tenant}'"
        ));
        text.push_str(&rows.unwrap());
    }
    text
}

/// The code, message and hint of an error, without the ids.
fn describe(err: &Error, ids: &Ids) -> String {
    let kept = err.kept().is_some();
    let text = format!("{}: {err} ({}, kept: {kept})", err.code(), err.hint());
    [
        ids.plan.to_string(),
        ids.step.to_string(),
        ids.token.clone(),
        ids.skill.to_string(),
        ids.session.clone(),
        ids.artifact.to_string(),
        ids.output.to_string(),
    ]
    .iter()
    .fold(text, |text, id| text.replace(id.as_str(), "…"))
}

async fn call_error(harness: &Harness, call: &Call, ids: &Ids) -> String {
    let result = (call.make)(harness.engine.clone(), harness.me.clone(), ids.clone()).await;
    describe(&result.expect_err(call.name), ids)
}

async fn objects_of_another_tenant_are_indistinguishable_from_missing_ones(harness: &Harness) {
    let other = other_tenant(harness).await;
    let before = snapshot(harness, &other).await;
    for call in read_calls().iter().chain(&update_calls()) {
        let theirs = call_error(harness, call, &other.ids).await;
        let missing = call_error(harness, call, &missing_ids()).await;
        assert_eq!(theirs, missing, "{}", call.name);
    }
    assert_eq!(
        snapshot(harness, &other).await,
        before,
        "the other tenant's data has changed"
    );
}

async fn lists_contain_no_data_of_another_tenant(harness: &Harness) {
    let lists = async || {
        let mut responses = Vec::new();
        for call in list_calls() {
            let result = (call.make)(harness.engine.clone(), harness.me.clone(), missing_ids());
            responses.push((call.name, result.await.unwrap()));
        }
        responses
    };
    let before = lists().await;
    let other = other_tenant(harness).await;
    let review = onward_engine::step::ReviewRequest {
        step: other.ids.step,
        summary: "theirs".to_owned(),
        questions: Vec::new(),
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: None,
        session: None,
    };
    harness
        .engine
        .request_review(&other.caller, review)
        .await
        .unwrap();
    assert_eq!(lists().await, before);
}

async fn modifications_cannot_refer_to_a_step_of_another_tenant(harness: &Harness) {
    let other = other_tenant(harness).await;
    let own = harness.plan(2).await;
    let (theirs, missing) = (other.plan.steps[2], missing_ids().step);
    let modifications = |step: StepId| {
        let to = ActionSpec::SkipTo(StepRef::Id(step));
        vec![
            Modification::RemoveStep { step },
            Modification::RequeueStep { step },
            Modification::FailStep { step, reason: None },
            Modification::UpdateInstructions {
                step,
                instructions: "ours".to_owned(),
            },
            Modification::ReorderSteps {
                steps: vec![own.steps[1], own.steps[0], step],
            },
            Modification::AddBranch {
                branch: harness.branch(1, "true", to),
            },
        ]
    };
    let before = snapshot(harness, &other).await;
    let pairs = modifications(theirs)
        .into_iter()
        .zip(modifications(missing));
    for (with_theirs, with_missing) in pairs {
        let rejection = async |change, id: StepId| {
            let err = error(harness.modify(own.id, change).await);
            format!("{} {err}", err.code()).replace(&id.to_string(), "…")
        };
        let expected = rejection(with_missing, missing).await;
        assert_eq!(rejection(with_theirs, theirs).await, expected);
    }
    assert_eq!(snapshot(harness, &other).await, before);
}

async fn a_late_result_for_a_step_of_another_tenant_is_stored_in_the_callers_tenant(
    harness: &Harness,
) {
    let other = other_tenant(harness).await;
    let late = submission_without_token(other.ids.step, "ours");
    let artifact = error(harness.submit(late).await)
        .kept()
        .expect("result is stored");
    let row = harness.sql(&format!(
        "SELECT tenant_id, plan_id FROM artifacts WHERE artifact_id = {}",
        harness.id_literal(artifact)
    ));
    assert_eq!(row, Ok(format!("{}|", harness.me.tenant)));
}

async fn two_tenants_can_use_the_same_ids(harness: &Harness) {
    let other = other_tenant(harness).await;
    let theirs = document(&harness.engine, &other.caller, other.plan.id).await;
    harness.engine.import(&harness.me, &theirs).await.unwrap();
    let plan = other.plan.id;
    assert_eq!(document(&harness.engine, &harness.me, plan).await, theirs);
    harness.claim(plan).await;
    harness
        .modify(
            plan,
            Modification::RemoveStep {
                step: other.plan.steps[2],
            },
        )
        .await
        .unwrap();
    harness
        .engine
        .abandon_plan(&harness.me, plan, None)
        .await
        .unwrap();
    assert_eq!(document(&harness.engine, &other.caller, plan).await, theirs);
    harness.engine.delete_plan(&harness.me, plan).await.unwrap();
    assert_eq!(document(&harness.engine, &other.caller, plan).await, theirs);
}

async fn a_plan_can_be_created_with_ids_used_by_another_tenant(harness: &Harness) {
    let other = other_tenant(harness).await;
    let mut draft = harness.draft(3);
    draft.plan = other.plan.id;
    for (step, theirs) in draft.steps.iter_mut().zip(&other.plan.steps) {
        step.id = *theirs;
    }
    let before = snapshot(harness, &other).await;
    let ours = harness.create(draft).await;
    harness.complete_steps(ours.id, 3).await;
    assert_eq!(snapshot(harness, &other).await, before);
}

async fn a_missing_tenant_has_no_operator_and_no_tokens(harness: &Harness) {
    let caller = Caller {
        tenant: "missing".into(),
        ..harness.me.clone()
    };
    assert!(harness.engine.operator("missing", "me").await.is_err());
    let rejected = harness
        .engine
        .create_token(&caller, "token", Role::Viewer, None)
        .await;
    assert!(
        matches!(
            &rejected,
            Err(Error::NotFound { kind: ObjectKind::Tenant, name }) if name == "missing"
        ),
        "{rejected:?}"
    );
    let owner_token = harness
        .engine
        .create_token(&caller, "token", Role::Owner, None)
        .await;
    assert!(owner_token.is_err());
}

async fn rejects_invalid_and_duplicate_tenant_names(harness: &Harness) {
    let duplicate = harness.engine.create_tenant(&harness.me.tenant).await;
    assert_eq!(code(duplicate), "conflict");
    for name in ["", "Upper", "with space", "ümlaut", "a'b", &"x".repeat(65)] {
        assert_eq!(
            code(harness.engine.create_tenant(name).await),
            "invalid_input",
            "{name}"
        );
    }
}

async fn lists_all_tenants_regardless_of_the_query_plan(harness: &Harness) {
    let database = TestDatabase::create(harness.database.backend());
    let engine = Engine::open(&database.address(), Settings::default())
        .await
        .unwrap();
    let mut total = 1;
    for number in [1, 10, 100, 1_000, 5_000] {
        let insert = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {number}) \
             INSERT INTO tenants SELECT 'many-{number}-' || i, 0, 1, NULL FROM n; ANALYZE tenants"
        );
        database.sql(&insert).unwrap();
        total += number;
        // PostgreSQL chooses a different query plan for a larger table, and a connection may cache
        // an earlier plan.
        let other = Engine::open(&database.address(), Settings::default())
            .await
            .unwrap();
        for engine in [&engine, &other] {
            let tenants = engine.tenants().await.unwrap();
            assert_eq!(tenants.len(), total, "{number} more");
            assert!(
                tenants.is_sorted_by(|one, next| one.name < next.name),
                "sorted by name"
            );
        }
        other.close().await;
    }
    engine.close().await;
}

on_both_databases![
    lists_all_tenants_regardless_of_the_query_plan,
    objects_of_another_tenant_are_indistinguishable_from_missing_ones,
    lists_contain_no_data_of_another_tenant,
    modifications_cannot_refer_to_a_step_of_another_tenant,
    a_late_result_for_a_step_of_another_tenant_is_stored_in_the_callers_tenant,
    two_tenants_can_use_the_same_ids,
    a_plan_can_be_created_with_ids_used_by_another_tenant,
    a_missing_tenant_has_no_operator_and_no_tokens,
    rejects_invalid_and_duplicate_tenant_names,
];
