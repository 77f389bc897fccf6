//! Lists that do not read all rows: plans by status and by text with their counts, and skill
//! executions.

use std::time::Duration;

use onward_core::command::{Modification, ReportSkill, StepSpec};
use onward_core::skill::SkillStatus;
use onward_core::{PlanId, StepType};
use onward_engine::Error;
use onward_engine::list::PlanQuery;
use onward_engine::skill::{SkillQuery, SkillStats};
use onward_testbed::Backend;
use serde_json::Map;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::code;

const MILLISECOND: Duration = Duration::from_millis(1);

/// Number of plans and steps per plan status.
async fn counts(harness: &Harness) -> Vec<(&'static str, u64, u64)> {
    let counts = harness.engine.count_plans(&harness.me).await.unwrap();
    let rows = counts
        .iter()
        .map(|count| (count.status.as_str(), count.plans, count.steps));
    rows.collect()
}

async fn counts_follow_every_change(harness: &Harness) {
    assert_eq!(counts(harness).await, []);
    let plan = harness.plan(3).await;
    assert_eq!(counts(harness).await, [("planning", 1, 3)]);
    let step = harness.claim(plan.id).await;
    assert_eq!(counts(harness).await, [("executing", 1, 3)]);
    let spec = || StepSpec::new(harness.engine.new_step_id(), StepType::Custom, "more");
    let add = Modification::AddSteps {
        steps: vec![spec(), spec()],
        insert_after: None,
    };
    harness.modify(plan.id, add).await.unwrap();
    assert_eq!(counts(harness).await, [("executing", 1, 5)]);
    let remove = Modification::RemoveStep {
        step: plan.steps[2],
    };
    harness.modify(plan.id, remove).await.unwrap();
    assert_eq!(counts(harness).await, [("executing", 1, 4)]);
    harness.complete(&step, "done").await;
    let other = harness.plan(1).await;
    assert_eq!(
        counts(harness).await,
        [("executing", 1, 4), ("planning", 1, 1)]
    );
    harness.complete_steps(plan.id, 3).await;
    assert_eq!(
        counts(harness).await,
        [("completed", 1, 4), ("planning", 1, 1)]
    );
    harness
        .engine
        .delete_plan(&harness.me, other.id)
        .await
        .unwrap();
    assert_eq!(counts(harness).await, [("completed", 1, 4)]);
    let mismatches = harness.sql(&format!(
        "SELECT count(*) FROM plans WHERE tenant_id = '{}' AND steps <> pending + in_progress \
         + awaiting_input + completed + skipped + failed",
        harness.me.tenant
    ));
    assert_eq!(mismatches.as_deref(), Ok("0"));
}

/// Names of the plans that contain this text, read in pages.
async fn find_names(harness: &Harness, text: &str, limit: u32) -> Vec<String> {
    let (mut names, mut cursor) = (Vec::new(), None);
    loop {
        let query = PlanQuery {
            limit,
            after: cursor,
            text: Some(text.to_owned()),
            ..PlanQuery::default()
        };
        let page = harness.engine.list_plans(&harness.me, query).await.unwrap();
        names.extend(page.plans.into_iter().map(|plan| plan.sheet.brief.name));
        assert!(names.len() < 100, "pagination does not end");
        let Some(next) = page.next else { return names };
        cursor = Some(next);
    }
}

async fn create_named(harness: &Harness, name: &str) -> PlanId {
    let mut draft = harness.draft(1);
    draft.name = name.to_owned();
    let plan = draft.plan;
    harness.create(draft).await;
    harness.advance(MILLISECOND);
    plan
}

/// A word that occurs in many plans is searched among the newest plans instead of in the index. The
/// result must be the same.
async fn a_frequent_word_finds_the_same_plans_as_a_rare_one(harness: &Harness) {
    for number in 0..4 {
        create_named(harness, &format!("Gull {number}")).await;
        create_named(harness, &format!("Whale {number}")).await;
    }
    let expected = ["Gull 3", "Gull 2", "Gull 1", "Gull 0"];
    assert_eq!(find_names(harness, "gul", 3).await, expected);
    let (tenant, word) = (&harness.me.tenant, "gull");
    let many = match harness.database.backend() {
        Backend::Sqlite => format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
             INSERT INTO indexed_plans SELECT '{tenant}', randomblob(16), '{word}' FROM n"
        ),
        Backend::Postgres => format!(
            "SET onward.tenant = '{tenant}'; INSERT INTO plan_words SELECT '{tenant}', \
             gen_random_uuid(), to_tsvector('simple', '{word}') FROM generate_series(1, 5000)"
        ),
    };
    harness.sql(&many).unwrap();
    for limit in [1, 3, 4, 10] {
        assert_eq!(find_names(harness, "gul", limit).await, expected, "{limit}");
    }
    assert_eq!(find_names(harness, "gull 2", 10).await, ["Gull 2"]);
    assert_eq!(find_names(harness, "gulls", 10).await, [""; 0]);
}

async fn does_not_find_deleted_plans_or_plans_of_other_tenants(harness: &Harness) {
    let deleted = create_named(harness, "Whale").await;
    create_named(harness, "Whales").await;
    assert_eq!(find_names(harness, "whale", 10).await, ["Whales", "Whale"]);
    harness
        .engine
        .delete_plan(&harness.me, deleted)
        .await
        .unwrap();
    assert_eq!(find_names(harness, "whale", 10).await, ["Whales"]);
    let other = harness.create_tenant("another").await;
    let query = PlanQuery {
        limit: 10,
        text: Some("whale".to_owned()),
        ..PlanQuery::default()
    };
    let page = harness.engine.list_plans(&other, query).await.unwrap();
    assert_eq!(page.plans, [], "plans of another tenant are not found");
}

async fn moving_a_step_keeps_the_order_of_the_others(harness: &Harness) {
    let plan = harness.plan(4).await;
    let [a, b, c, d] = plan.steps[..] else {
        panic!("expected four steps")
    };
    let order = async || {
        let page = harness.engine.list_steps(&harness.me, plan.id, None, 0, 10);
        let steps = page.await.unwrap().steps;
        steps.iter().map(|step| step.id).collect::<Vec<_>>()
    };
    let move_to = async |step, order| {
        let moved = harness.engine.move_step(&harness.me, plan.id, step, order);
        moved.await
    };
    move_to(d, 2).await.unwrap();
    assert_eq!(order().await, [a, d, b, c]);
    move_to(a, 99).await.unwrap();
    assert_eq!(order().await, [d, b, c, a]);
    move_to(c, 0).await.unwrap();
    assert_eq!(order().await, [c, d, b, a]);
    let other = harness.plan(1).await;
    assert_eq!(code(move_to(other.steps[0], 1).await), "step_not_found");
    harness
        .engine
        .abandon_plan(&harness.me, plan.id, None)
        .await
        .unwrap();
    assert_eq!(code(move_to(a, 1).await), "plan_not_modifiable");
    assert_eq!(order().await, [c, d, b, a]);
}

fn report(skill: &str, status: SkillStatus) -> ReportSkill {
    ReportSkill {
        skill: skill.to_owned(),
        status,
        session: None,
        plan: None,
        metadata: Map::new(),
        error: None,
    }
}

async fn lists_and_counts_skill_executions(harness: &Harness) {
    assert_eq!(
        harness.engine.count_skills(&harness.me).await.unwrap(),
        SkillStats::default()
    );
    let mut executions = Vec::new();
    for (skill, end, seconds) in [
        ("survey", Some(SkillStatus::Failed), 40),
        ("survey", Some(SkillStatus::Completed), 10),
        ("review", Some(SkillStatus::Completed), 20),
        ("survey", None, 5),
    ] {
        let start = report(skill, SkillStatus::Started);
        let logged = harness
            .engine
            .log_skill(&harness.me, None, start)
            .await
            .unwrap();
        harness.advance(Duration::from_secs(seconds));
        if let Some(end) = end {
            let ended = report(skill, end);
            let id = Some(logged.execution);
            harness
                .engine
                .log_skill(&harness.me, id, ended)
                .await
                .unwrap();
        }
        executions.push(logged.execution);
    }
    let figures = harness.engine.count_skills(&harness.me).await.unwrap();
    assert_eq!(
        (figures.total, figures.completed, figures.failed),
        (4, 2, 1)
    );
    assert_eq!(figures.failed_recently, 1);
    assert_eq!(figures.completion_rate(), Some(67));
    assert_eq!(figures.average, Some(Duration::from_millis(23_333)));
    harness.advance(Duration::from_secs(24 * 60 * 60));
    let figures = harness.engine.count_skills(&harness.me).await.unwrap();
    assert_eq!(figures.failed_recently, 0, "only the last 24 hours count");

    let list = async |status, skill: Option<&str>, limit| {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let query = SkillQuery {
                limit,
                after: cursor,
                status,
                skill: skill.map(str::to_owned),
            };
            let page = harness
                .engine
                .list_skills(&harness.me, query)
                .await
                .unwrap();
            found.extend(page.executions.iter().map(|execution| execution.id));
            assert!(found.len() < 100, "pagination does not end");
            let Some(next) = page.next else { return found };
            cursor = Some(next);
        }
    };
    executions.reverse();
    for limit in [1, 3, 4, 10] {
        assert_eq!(list(None, None, limit).await, executions, "{limit}");
    }
    let completed = Some(SkillStatus::Completed);
    assert_eq!(
        list(completed, None, 1).await,
        [executions[1], executions[2]]
    );
    assert_eq!(list(completed, Some("survey"), 1).await, [executions[2]]);
    assert_eq!(list(None, Some("surv"), 1).await, []);
    let one = harness
        .engine
        .skill_execution(&harness.me, executions[1])
        .await
        .unwrap();
    assert_eq!(one.skill, "review");
    let other = harness.create_tenant("another").await;
    let hidden = harness.engine.skill_execution(&other, executions[1]).await;
    assert!(matches!(hidden, Err(Error::NotFound { .. })), "{hidden:?}");
}

on_both_databases![
    counts_follow_every_change,
    a_frequent_word_finds_the_same_plans_as_a_rare_one,
    does_not_find_deleted_plans_or_plans_of_other_tenants,
    moving_a_step_keeps_the_order_of_the_others,
    lists_and_counts_skill_executions,
];
