//! Lists that do not read all there is: plans by status and by words, with how many there are; and
//! executions of skills.

use std::time::Duration;

use onward_core::command::{Modification, ReportSkill, StepSpec};
use onward_core::skill::SkillStatus;
use onward_core::{PlanId, StepType};
use onward_engine::list::PlanQuery;
use onward_engine::skill::{SkillFigures, SkillQuery};
use onward_engine::{Caller, Engine, Error};
use serde_json::Map;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::place::{Kind, Place};
use crate::verbs::code;

const MOMENT: Duration = Duration::from_millis(1);

/// Plans and steps in each status, as they are counted.
async fn counted(desk: &Desk) -> Vec<(&'static str, u64, u64)> {
    let counts = desk.engine.count_plans(&desk.me).await.unwrap();
    let told = counts
        .iter()
        .map(|count| (count.status.as_str(), count.plans, count.steps));
    told.collect()
}

async fn what_is_counted_follows_every_change(desk: &Desk) {
    assert_eq!(counted(desk).await, []);
    let plan = desk.plan(3).await;
    assert_eq!(counted(desk).await, [("planning", 1, 3)]);
    let step = desk.take(plan.id).await;
    assert_eq!(counted(desk).await, [("executing", 1, 3)]);
    let spec = || StepSpec::new(desk.engine.fresh_step(), StepType::Custom, "more");
    let add = Modification::AddSteps {
        steps: vec![spec(), spec()],
        insert_after: None,
    };
    desk.modify(plan.id, add).await.unwrap();
    assert_eq!(counted(desk).await, [("executing", 1, 5)]);
    let remove = Modification::RemoveStep {
        step: plan.steps[2],
    };
    desk.modify(plan.id, remove).await.unwrap();
    assert_eq!(counted(desk).await, [("executing", 1, 4)]);
    desk.hand_in(&step, "done").await;
    let other = desk.plan(1).await;
    assert_eq!(
        counted(desk).await,
        [("executing", 1, 4), ("planning", 1, 1)]
    );
    desk.work_off(plan.id, 3).await;
    assert_eq!(
        counted(desk).await,
        [("completed", 1, 4), ("planning", 1, 1)]
    );
    desk.engine.delete_plan(&desk.me, other.id).await.unwrap();
    assert_eq!(counted(desk).await, [("completed", 1, 4)]);
    let unlike = desk.sql(&format!(
        "SELECT count(*) FROM plans WHERE tenant_id = '{}' AND steps <> pending + in_progress \
         + awaiting_input + completed + skipped + failed",
        desk.me.tenant
    ));
    assert_eq!(unlike.as_deref(), Ok("0"));
}

/// Names of the plans that hold these words.
async fn found(desk: &Desk, text: &str, limit: u32) -> Vec<String> {
    let (mut names, mut behind) = (Vec::new(), None);
    loop {
        let query = PlanQuery {
            limit,
            behind,
            text: Some(text.to_owned()),
            ..PlanQuery::default()
        };
        let page = desk.engine.list_plans(&desk.me, query).await.unwrap();
        names.extend(page.plans.into_iter().map(|plan| plan.sheet.brief.name));
        assert!(names.len() < 100, "the pages come to an end");
        let Some(next) = page.next else { return names };
        behind = Some(next);
    }
}

async fn name(desk: &Desk, name: &str) -> PlanId {
    let mut draft = desk.draft(1);
    draft.name = name.to_owned();
    let plan = draft.plan;
    desk.create(draft).await;
    desk.advance(MOMENT);
    plan
}

/// So many hold the word that it is looked for among the newest: the same is found as by the index.
async fn a_word_that_many_plans_hold_finds_the_same(desk: &Desk) {
    for number in 0..4 {
        name(desk, &format!("Gull {number}")).await;
        name(desk, &format!("Whale {number}")).await;
    }
    let expected = ["Gull 3", "Gull 2", "Gull 1", "Gull 0"];
    assert_eq!(found(desk, "gul", 3).await, expected);
    let (tenant, words) = (&desk.me.tenant, "gull");
    let many = match desk.place.kind() {
        Kind::Sqlite => format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
             INSERT INTO spelled_plans SELECT '{tenant}', randomblob(16), '{words}' FROM n"
        ),
        Kind::Postgres => format!(
            "SET onward.tenant = '{tenant}'; INSERT INTO plan_words SELECT '{tenant}', \
             gen_random_uuid(), to_tsvector('simple', '{words}') FROM generate_series(1, 5000)"
        ),
    };
    desk.sql(&many).unwrap();
    for limit in [1, 3, 4, 10] {
        assert_eq!(found(desk, "gul", limit).await, expected, "{limit}");
    }
    assert_eq!(found(desk, "gull 2", 10).await, ["Gull 2"]);
    assert_eq!(found(desk, "gulls", 10).await, [""; 0]);
}

async fn a_plan_that_is_gone_is_not_found_by_its_words(desk: &Desk) {
    let gone = name(desk, "Whale").await;
    name(desk, "Whales").await;
    assert_eq!(found(desk, "whale", 10).await, ["Whales", "Whale"]);
    desk.engine.delete_plan(&desk.me, gone).await.unwrap();
    assert_eq!(found(desk, "whale", 10).await, ["Whales"]);
    let other = desk.tenant("another").await;
    let query = PlanQuery {
        limit: 10,
        text: Some("whale".to_owned()),
        ..PlanQuery::default()
    };
    let page = desk.engine.list_plans(&other, query).await.unwrap();
    assert_eq!(page.plans, [], "nor by another tenant");
}

/// A plan of the first schema is counted and found.
async fn a_plan_from_before_there_were_lists_is_in_them(desk: &Desk) {
    let place = Place::fresh(desk.place.kind());
    crate::migrations::make_the_first(&place);
    let id = match place.kind() {
        Kind::Sqlite => "X'00000000000040008000000000000007'",
        Kind::Postgres => "'00000000-0000-4000-8000-000000000007'",
    };
    let plan = format!(
        "INSERT INTO plans (tenant_id, plan_id, name, research_question, on_stall, status, \
         pending, in_progress, awaiting_input, completed, skipped, failed, seq, created_at, \
         updated_at, updated_about) VALUES ('local', {id}, 'Early', 'Which Whale?', 'mark', \
         'planning', 2, 0, 0, 0, 0, 0, 1, 1, 1, 0)"
    );
    place.sql(&plan).unwrap();
    let engine = Engine::open(&place.address(), Default::default()).await;
    let (engine, me) = (engine.unwrap(), Caller::local("me"));
    let counts = engine.count_plans(&me).await.unwrap();
    assert_eq!((counts[0].plans, counts[0].steps), (1, 2));
    let query = PlanQuery {
        limit: 10,
        text: Some("whale early".to_owned()),
        ..PlanQuery::default()
    };
    let page = engine.list_plans(&me, query).await.unwrap();
    assert_eq!(page.plans[0].sheet.brief.name, "Early");
    engine.close().await;
}

async fn a_step_is_moved_and_the_others_keep_their_order(desk: &Desk) {
    let plan = desk.plan(4).await;
    let [a, b, c, d] = plan.steps[..] else {
        panic!("four steps")
    };
    let order = async || {
        let page = desk.engine.list_steps(&desk.me, plan.id, None, 0, 10);
        let steps = page.await.unwrap().steps;
        steps.iter().map(|step| step.id).collect::<Vec<_>>()
    };
    let put = async |step, place| desk.engine.move_step(&desk.me, plan.id, step, place).await;
    put(d, 2).await.unwrap();
    assert_eq!(order().await, [a, d, b, c]);
    put(a, 99).await.unwrap();
    assert_eq!(order().await, [d, b, c, a]);
    put(c, 0).await.unwrap();
    assert_eq!(order().await, [c, d, b, a]);
    let stranger = desk.plan(1).await;
    assert_eq!(code(put(stranger.steps[0], 1).await), "step_not_found");
    desk.engine
        .abandon_plan(&desk.me, plan.id, None)
        .await
        .unwrap();
    assert_eq!(code(put(a, 1).await), "plan_not_modifiable");
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

async fn skills_are_listed_and_counted(desk: &Desk) {
    assert_eq!(
        desk.engine.count_skills(&desk.me).await.unwrap(),
        SkillFigures::default()
    );
    let mut made = Vec::new();
    for (skill, end, took) in [
        ("survey", Some(SkillStatus::Failed), 40),
        ("survey", Some(SkillStatus::Completed), 10),
        ("review", Some(SkillStatus::Completed), 20),
        ("survey", None, 5),
    ] {
        let start = report(skill, SkillStatus::Started);
        let logged = desk.engine.log_skill(&desk.me, None, start).await.unwrap();
        desk.advance(Duration::from_secs(took));
        if let Some(end) = end {
            let ended = report(skill, end);
            let id = Some(logged.execution);
            desk.engine.log_skill(&desk.me, id, ended).await.unwrap();
        }
        made.push(logged.execution);
    }
    let figures = desk.engine.count_skills(&desk.me).await.unwrap();
    assert_eq!(
        (figures.total, figures.completed, figures.failed),
        (4, 2, 1)
    );
    assert_eq!(figures.failed_lately, 1);
    assert_eq!(figures.completion_rate(), Some(67));
    assert_eq!(figures.average, Some(Duration::from_millis(23_333)));
    desk.advance(Duration::from_secs(24 * 60 * 60));
    let figures = desk.engine.count_skills(&desk.me).await.unwrap();
    assert_eq!(figures.failed_lately, 0, "that is more than a day ago");

    let list = async |status, skill: Option<&str>, limit| {
        let (mut found, mut behind) = (Vec::new(), None);
        loop {
            let query = SkillQuery {
                limit,
                behind,
                status,
                skill: skill.map(str::to_owned),
            };
            let page = desk.engine.list_skills(&desk.me, query).await.unwrap();
            found.extend(page.executions.iter().map(|one| one.id));
            assert!(found.len() < 100, "the pages come to an end");
            let Some(next) = page.next else { return found };
            behind = Some(next);
        }
    };
    made.reverse();
    for limit in [1, 3, 4, 10] {
        assert_eq!(list(None, None, limit).await, made, "{limit}");
    }
    let completed = Some(SkillStatus::Completed);
    assert_eq!(list(completed, None, 1).await, [made[1], made[2]]);
    assert_eq!(list(completed, Some("survey"), 1).await, [made[2]]);
    assert_eq!(list(None, Some("surv"), 1).await, []);
    let one = desk
        .engine
        .skill_execution(&desk.me, made[1])
        .await
        .unwrap();
    assert_eq!(one.skill, "review");
    let other = desk.tenant("another").await;
    let hidden = desk.engine.skill_execution(&other, made[1]).await;
    assert!(matches!(hidden, Err(Error::NotFound { .. })), "{hidden:?}");
}

on_both_databases![
    what_is_counted_follows_every_change,
    a_word_that_many_plans_hold_finds_the_same,
    a_plan_that_is_gone_is_not_found_by_its_words,
    a_plan_from_before_there_were_lists_is_in_them,
    a_step_is_moved_and_the_others_keep_their_order,
    skills_are_listed_and_counted,
];
