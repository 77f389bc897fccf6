//! Tenants know nothing of each other: what is another's is answered as if it had never been.

use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::id::SkillExecutionId;
use onward_core::turn::LoopControl;
use onward_core::{PlanId, Role, StepId};
use onward_engine::engine::Settings;
use onward_engine::ledger::{Begins, NewCall};
use onward_engine::session::{Fingerprint, Heard};
use onward_engine::{Caller, Engine, Error};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::place::Place;
use crate::research::{deliverable, finding};
use crate::table::{Call, Ids, changes, lists, makers, reads};
use crate::verbs::{Made, code, document, error, result_without_token};

/// Somebody else, with a plan in the middle of its work, a review and a token.
struct Other {
    caller: Caller,
    plan: Made,
    ids: Ids,
}

async fn other(desk: &Desk) -> Other {
    let caller = desk.tenant("other").await;
    let plan = desk.create_for(&caller, desk.draft(3)).await;
    desk.engine
        .next_step(&caller, plan.id, None, false)
        .await
        .unwrap();
    let (_, token) = desk
        .engine
        .create_token(&caller, "theirs", Role::Owner, None)
        .await
        .unwrap();
    let heard = Heard {
        session: "theirs".to_owned(),
        agent: "codex".to_owned(),
        directory: Some("/src".to_owned()),
        ..Heard::default()
    };
    let control = LoopControl::default();
    desk.engine
        .begin_turn(&caller, heard.clone(), Fingerprint::None, control)
        .await
        .unwrap();
    let call = NewCall::seen(None, "Bash".to_owned(), serde_json::json!("theirs"), None);
    desk.engine
        .record_call(&caller, heard, None, call, Begins::Running)
        .await
        .unwrap();
    let stored = finding("Theirs", "words of theirs");
    desk.engine.store_research(&caller, stored).await.unwrap();
    let output = deliverable(plan.id, "Theirs", "words of theirs");
    desk.engine.store_output(&caller, output).await.unwrap();
    let ids = Ids {
        plan: plan.id,
        step: plan.steps[0],
        token: token.id.to_string(),
        skill: desk.start_skill(&caller, "survey", "theirs", None).await,
        session: "theirs".to_owned(),
    };
    Other { caller, plan, ids }
}

fn never_were() -> Ids {
    Ids {
        plan: PlanId::from_u128(0xdead),
        step: StepId::from_u128(0xbeef),
        token: "f00df00d-0000-4000-8000-000000000000".to_owned(),
        skill: SkillExecutionId::from_u128(0xfeed),
        session: "nobody's".to_owned(),
    }
}

/// All that can be seen of a tenant.
async fn all_of(desk: &Desk, other: &Other) -> String {
    let plan = document(&desk.engine, &other.caller, other.plan.id).await;
    let mut seen = plan.to_string();
    for call in lists() {
        let made = (call.make)(desk.engine.clone(), other.caller.clone(), other.ids.clone());
        seen.push_str(&made.await.unwrap());
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
    ] {
        let tenant = &other.caller.tenant;
        let rows = desk.sql(&format!(
            "SELECT * FROM {table} WHERE tenant_id = '{tenant}'"
        ));
        seen.push_str(&rows.unwrap());
    }
    seen
}

/// What an error says, without the ids that it was about.
fn said(why: &Error, ids: &Ids) -> String {
    let kept = why.kept().is_some();
    let said = format!("{}: {why} ({}, kept: {kept})", why.code(), why.hint());
    [
        ids.plan.to_string(),
        ids.step.to_string(),
        ids.token.clone(),
        ids.skill.to_string(),
        ids.session.clone(),
    ]
    .iter()
    .fold(said, |said, id| said.replace(id.as_str(), "…"))
}

async fn fails_with(desk: &Desk, call: &Call, ids: &Ids) -> String {
    let made = (call.make)(desk.engine.clone(), desk.me.clone(), ids.clone()).await;
    said(&made.expect_err(call.name), ids)
}

async fn what_is_another_tenants_is_answered_as_if_it_had_never_been(desk: &Desk) {
    let other = other(desk).await;
    let before = all_of(desk, &other).await;
    for call in reads().iter().chain(&changes()) {
        let theirs = fails_with(desk, call, &other.ids).await;
        let nobodys = fails_with(desk, call, &never_were()).await;
        assert_eq!(theirs, nobodys, "{}", call.name);
    }
    assert_eq!(
        all_of(desk, &other).await,
        before,
        "nothing of theirs has changed"
    );
}

async fn lists_hold_nothing_of_another_tenant(desk: &Desk) {
    let empty = async || {
        let mut seen = Vec::new();
        for call in lists() {
            let made = (call.make)(desk.engine.clone(), desk.me.clone(), never_were());
            seen.push((call.name, made.await.unwrap()));
        }
        seen
    };
    let before = empty().await;
    let other = other(desk).await;
    let review = onward_engine::step::Question {
        step: other.ids.step,
        summary: "theirs".to_owned(),
        questions: Vec::new(),
        token: None,
        session: None,
    };
    desk.engine
        .request_review(&other.caller, review)
        .await
        .unwrap();
    assert_eq!(empty().await, before);
}

async fn a_step_of_another_tenant_does_not_fit_into_a_plan_of_ours(desk: &Desk) {
    let other = other(desk).await;
    let own = desk.plan(2).await;
    let (theirs, nobodys) = (other.plan.steps[2], never_were().step);
    let changes = |step: StepId| {
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
                branch: desk.branch(1, "true", to),
            },
        ]
    };
    let before = all_of(desk, &other).await;
    for (with_theirs, with_nobodys) in changes(theirs).into_iter().zip(changes(nobodys)) {
        let words = async |change, id: StepId| {
            let why = error(desk.modify(own.id, change).await);
            format!("{} {why}", why.code()).replace(&id.to_string(), "…")
        };
        let found = words(with_theirs, theirs).await;
        assert_eq!(found, words(with_nobodys, nobodys).await);
    }
    assert_eq!(all_of(desk, &other).await, before);
}

async fn a_late_result_for_another_tenants_step_is_kept_by_whom_it_came_from(desk: &Desk) {
    let other = other(desk).await;
    let late = result_without_token(other.ids.step, "ours");
    let kept = error(desk.submit(late).await).kept().expect("it is kept");
    let row = desk.sql(&format!(
        "SELECT tenant_id, plan_id FROM artifacts WHERE artifact_id = {}",
        desk.literal(kept)
    ));
    assert_eq!(row, Ok(format!("{}|", desk.me.tenant)));
}

async fn the_same_ids_live_side_by_side_in_two_tenants(desk: &Desk) {
    let other = other(desk).await;
    let theirs = document(&desk.engine, &other.caller, other.plan.id).await;
    desk.engine.import(&desk.me, &theirs).await.unwrap();
    let plan = other.plan.id;
    assert_eq!(document(&desk.engine, &desk.me, plan).await, theirs);
    desk.take(plan).await;
    desk.modify(
        plan,
        Modification::RemoveStep {
            step: other.plan.steps[2],
        },
    )
    .await
    .unwrap();
    desk.engine
        .abandon_plan(&desk.me, plan, None)
        .await
        .unwrap();
    assert_eq!(document(&desk.engine, &other.caller, plan).await, theirs);
    desk.engine.delete_plan(&desk.me, plan).await.unwrap();
    assert_eq!(document(&desk.engine, &other.caller, plan).await, theirs);
}

async fn a_plan_is_made_under_the_ids_of_another_tenants(desk: &Desk) {
    let other = other(desk).await;
    let mut draft = desk.draft(3);
    draft.plan = other.plan.id;
    for (step, theirs) in draft.steps.iter_mut().zip(&other.plan.steps) {
        step.id = *theirs;
    }
    let before = all_of(desk, &other).await;
    let ours = desk.create(draft).await;
    desk.work_off(ours.id, 3).await;
    assert_eq!(all_of(desk, &other).await, before);
}

async fn a_tenant_that_does_not_exist_has_nothing_and_gets_no_token(desk: &Desk) {
    let nobody = Caller {
        tenant: "nobody".into(),
        ..desk.me.clone()
    };
    assert!(desk.engine.operator("nobody", "me").await.is_err());
    let refused = desk
        .engine
        .create_token(&nobody, "token", Role::Viewer, None)
        .await;
    assert_eq!(error(refused).to_string(), "no tenant `nobody`");
    for call in makers()
        .iter()
        .filter(|call| call.name == "create_token of an owner")
    {
        let made = (call.make)(desk.engine.clone(), nobody.clone(), never_were());
        assert!(made.await.is_err());
    }
}

async fn a_name_of_a_tenant_is_plain_and_taken_once(desk: &Desk) {
    let taken = desk.engine.create_tenant(&desk.me.tenant).await;
    assert_eq!(code(taken), "conflict");
    for name in ["", "Upper", "with space", "ümlaut", "a'b", &"x".repeat(65)] {
        assert_eq!(
            code(desk.engine.create_tenant(name).await),
            "invalid_input",
            "{name}"
        );
    }
}

async fn an_operator_sees_every_tenant_however_many_there_are(desk: &Desk) {
    let place = Place::fresh(desk.place.kind());
    let engine = Engine::open(&place.address(), Settings::default())
        .await
        .unwrap();
    let mut total = 1;
    for number in [1, 10, 100, 1_000, 5_000] {
        let insert = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {number}) \
             INSERT INTO tenants SELECT 'many-{number}-' || i, 0, 1 FROM n; ANALYZE tenants"
        );
        place.sql(&insert).unwrap();
        total += number;
        // A server chooses another plan for a long table than for a short one, and a connection
        // may keep the one that it chose first.
        let other = Engine::open(&place.address(), Settings::default())
            .await
            .unwrap();
        for engine in [&engine, &other] {
            let seen = engine.tenants().await.unwrap();
            assert_eq!(seen.len(), total, "{number} more");
            assert!(
                seen.is_sorted_by(|one, next| one.name < next.name),
                "by name"
            );
        }
        other.close().await;
    }
    engine.close().await;
}

on_both_databases![
    an_operator_sees_every_tenant_however_many_there_are,
    what_is_another_tenants_is_answered_as_if_it_had_never_been,
    lists_hold_nothing_of_another_tenant,
    a_step_of_another_tenant_does_not_fit_into_a_plan_of_ours,
    a_late_result_for_another_tenants_step_is_kept_by_whom_it_came_from,
    the_same_ids_live_side_by_side_in_two_tenants,
    a_plan_is_made_under_the_ids_of_another_tenants,
    a_tenant_that_does_not_exist_has_nothing_and_gets_no_token,
    a_name_of_a_tenant_is_plain_and_taken_once,
];
