//! Executions of skills: how they begin and end, which plan they are linked to, and what that plan
//! says of them.

use std::time::Duration;

use onward_core::PlanId;
use onward_core::command::ReportSkill;
use onward_core::id::{SessionId, SkillExecutionId};
use onward_core::skill::SkillStatus;
use onward_engine::next::Next;
use onward_engine::skill::SkillLogged;
use onward_engine::{Caller, Error};
use serde_json::{Map, Value, json};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, error, refusal};

fn report(status: SkillStatus) -> ReportSkill {
    ReportSkill {
        skill: "survey".to_owned(),
        status,
        session: None,
        plan: None,
        metadata: Map::new(),
        error: None,
    }
}

fn metadata(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

impl Desk {
    /// Starts an execution in a session.
    pub(crate) async fn start_skill(
        &self,
        caller: &Caller,
        skill: &str,
        session: &str,
        plan: Option<PlanId>,
    ) -> SkillExecutionId {
        let report = ReportSkill {
            skill: skill.to_owned(),
            session: Some(SessionId::new(session)),
            plan,
            ..report(SkillStatus::Started)
        };
        let logged = self.engine.log_skill(caller, None, report).await;
        logged.expect("a skill can start").execution
    }

    async fn log(
        &self,
        execution: impl Into<Option<SkillExecutionId>>,
        report: ReportSkill,
    ) -> Result<SkillLogged, Error> {
        self.engine
            .log_skill(&self.me, execution.into(), report)
            .await
    }

    async fn says_of_its_output(&self, plan: PlanId) -> (Option<String>, Option<String>) {
        let next = self.ask(plan).await;
        let Next::Complete(notes) = next else {
            panic!("the plan is not complete: {next:?}")
        };
        (notes.media_type, notes.instructions)
    }
}

async fn an_execution_begins_goes_on_and_ends(desk: &Desk) {
    let started = desk.log(None, report(SkillStatus::Started)).await.unwrap();
    assert_eq!(started.status, SkillStatus::Started);
    assert_eq!((started.plan, started.duration), (None, None));
    for _ in 0..2 {
        desk.advance(Duration::from_millis(700));
        let going = desk.log(started.execution, report(SkillStatus::Executing));
        let going = going.await.unwrap();
        assert_eq!(going.execution, started.execution);
        assert_eq!(going.status, SkillStatus::Executing);
        assert_eq!(going.duration, None);
    }
    desk.advance(Duration::from_millis(34));
    let ended = desk.log(started.execution, report(SkillStatus::Completed));
    let ended = ended.await.unwrap();
    assert_eq!(ended.status, SkillStatus::Completed);
    assert_eq!(ended.duration, Some(Duration::from_millis(1_434)));
    let another = desk.log(None, report(SkillStatus::Started)).await.unwrap();
    assert_ne!(another.execution, started.execution);
}

async fn a_move_that_cannot_be_is_refused_and_changes_nothing(desk: &Desk) {
    let row = |id: SkillExecutionId| {
        let id = desk.literal(id);
        let row = format!("SELECT * FROM skill_executions WHERE execution_id = {id}");
        desk.sql(&row).unwrap()
    };
    let open = desk.log(None, report(SkillStatus::Started)).await.unwrap();
    let again = desk.log(open.execution, report(SkillStatus::Started)).await;
    assert_eq!(code(again), "illegal_transition");
    for end in [SkillStatus::Completed, SkillStatus::Failed] {
        let started = desk.log(None, report(SkillStatus::Started)).await.unwrap();
        desk.log(started.execution, report(end)).await.unwrap();
        let before = row(started.execution);
        desk.advance(Duration::from_millis(1));
        for asked in SkillStatus::ALL {
            let refused = error(desk.log(started.execution, report(asked)).await);
            assert_eq!(refused.code().as_str(), "illegal_transition");
            assert_eq!(
                refused.to_string(),
                format!("a skill execution that is `{end}` cannot become `{asked}`")
            );
        }
        assert_eq!(row(started.execution), before);
    }
}

async fn input_that_does_not_fit_is_refused_by_its_path(desk: &Desk) {
    let started = desk.log(None, report(SkillStatus::Started)).await.unwrap();
    let of = |change: &dyn Fn(&mut ReportSkill)| {
        let mut report = report(SkillStatus::Completed);
        change(&mut report);
        report
    };
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let cases: Vec<(&str, Option<SkillExecutionId>, ReportSkill)> = vec![
        ("executionId", None, report(SkillStatus::Completed)),
        ("executionId", None, report(SkillStatus::Executing)),
        (
            "skillName",
            Some(started.execution),
            of(&|it| it.skill = " ".to_owned()),
        ),
        (
            "skillName",
            Some(started.execution),
            of(&|it| it.skill = "x".repeat(201)),
        ),
        (
            "skillName",
            Some(started.execution),
            of(&|it| it.skill = "another".to_owned()),
        ),
        (
            "errorMessage",
            Some(started.execution),
            of(&|it| it.error = Some("no".to_owned())),
        ),
        (
            "metadata",
            Some(started.execution),
            of(&|it| it.metadata = metadata(json!({ "long": "x".repeat(64 * 1024) }))),
        ),
        (
            "metadata",
            Some(started.execution),
            of(&|it| it.metadata = metadata(json!({ "deep": deep.clone() }))),
        ),
        (
            "metadata.outputMediaType",
            Some(started.execution),
            of(&|it| it.metadata = metadata(json!({ "outputMediaType": 7 }))),
        ),
    ];
    for (path, execution, report) in cases {
        let refused = refusal(desk.log(execution, report).await);
        let onward_core::Refusal::InvalidInput(issues) = refused else {
            panic!("refused for another reason: {refused}")
        };
        assert_eq!(issues[0].path, path);
    }
    desk.log(started.execution, report(SkillStatus::Completed))
        .await
        .expect("nothing of it has counted");
}

async fn an_execution_that_never_was_is_not_found(desk: &Desk) {
    let unknown = SkillExecutionId::from_u128(7);
    let refused = error(desk.log(unknown, report(SkillStatus::Completed)).await);
    assert_eq!(refused.code().as_str(), "invalid_input");
    assert_eq!(
        refused.to_string(),
        format!("no skill execution `{unknown}`")
    );
    assert!(refused.hint().contains("log_skill_execution"));
    let nowhere = ReportSkill {
        plan: Some(PlanId::from_u128(7)),
        ..report(SkillStatus::Started)
    };
    assert_eq!(code(desk.log(None, nowhere).await), "plan_not_found");
    let tenant = &desk.me.tenant;
    let count = format!("SELECT count(*) FROM skill_executions WHERE tenant_id = '{tenant}'");
    assert_eq!(desk.sql(&count).as_deref(), Ok("0"), "nothing was started");
}

async fn the_trail_of_a_linked_plan_says_when_it_began_and_ended(desk: &Desk) {
    let plan = desk.plan(1).await;
    let id = desk
        .start_skill(&desk.me, "survey", "s", Some(plan.id))
        .await;
    let going = desk.log(id, report(SkillStatus::Executing)).await.unwrap();
    assert_eq!(going.plan, Some(plan.id));
    // A skill usually ends after its plan did.
    desk.work_off(plan.id, 1).await;
    let failed = ReportSkill {
        error: Some("out of paper".to_owned()),
        ..report(SkillStatus::Failed)
    };
    desk.log(id, failed).await.unwrap();
    let trail = desk.engine.trail(&desk.me, plan.id, 0, 10).await.unwrap();
    let names: Vec<&str> = trail.iter().map(|entry| entry.name).collect();
    let expected = [
        "plan_modified",
        "skill_started",
        "step_started",
        "step_completed",
        "plan_completed",
        "skill_completed",
    ];
    assert_eq!(names, expected);
    assert_eq!(
        trail[1].details,
        json!({ "executionId": id.to_string(), "skillName": "survey" })
    );
    assert_eq!(trail[1].entry.author.session, Some(SessionId::new("s")));
    assert_eq!(
        trail[5].details,
        json!({
            "executionId": id.to_string(),
            "skillName": "survey",
            "errorMessage": "out of paper"
        })
    );
}

async fn a_link_that_comes_late_is_noted_as_a_start(desk: &Desk) {
    let plan = desk.plan(1).await;
    let started = desk.log(None, report(SkillStatus::Started)).await.unwrap();
    let linked = ReportSkill {
        plan: Some(plan.id),
        ..report(SkillStatus::Completed)
    };
    let ended = desk.log(started.execution, linked).await.unwrap();
    assert_eq!(ended.plan, Some(plan.id));
    let trail = desk.engine.trail(&desk.me, plan.id, 1, 10).await.unwrap();
    let noted: Vec<(&str, u64)> = trail
        .iter()
        .map(|shown| (shown.name, shown.entry.commit_seq))
        .collect();
    assert_eq!(noted, [("skill_started", 2), ("skill_completed", 2)]);
}

async fn an_execution_is_linked_to_one_plan_and_stays_there(desk: &Desk) {
    let (plan, other) = (desk.plan(1).await, desk.plan(1).await);
    let id = desk
        .start_skill(&desk.me, "survey", "s", Some(plan.id))
        .await;
    let relinked = |plan| ReportSkill {
        plan: Some(plan),
        ..report(SkillStatus::Executing)
    };
    assert_eq!(
        code(desk.log(id, relinked(other.id)).await),
        "invalid_input"
    );
    desk.log(id, relinked(plan.id)).await.unwrap();
    assert_eq!(desk.trail_behind(other.id, 1).await, [""; 0]);
    assert_eq!(desk.trail_behind(plan.id, 1).await, ["skill_started"]);
}

async fn a_plan_is_linked_to_what_its_session_has_started_last(desk: &Desk) {
    let older = desk.start_skill(&desk.me, "older", "s", None).await;
    desk.advance(Duration::from_millis(1));
    let newest = desk.start_skill(&desk.me, "newest", "s", None).await;
    desk.advance(Duration::from_millis(1));
    desk.start_skill(&desk.me, "another's", "another", None)
        .await;
    let at_work = desk.start_skill(&desk.me, "survey", "s", None).await;
    desk.log(at_work, report(SkillStatus::Executing))
        .await
        .unwrap();
    let made = async |session: Option<&str>| {
        let mut draft = desk.draft(1);
        draft.session = session.map(SessionId::new);
        desk.engine
            .create_plan(&desk.me, draft, None)
            .await
            .unwrap()
    };
    assert_eq!(made(None).await.skill, None, "no session, no skill");
    let first = made(Some("s")).await;
    assert_eq!(first.skill, Some(newest));
    let trail = desk.engine.trail(&desk.me, first.created.plan, 0, 9).await;
    let trail = trail.unwrap();
    let noted: Vec<(&str, u64)> = trail
        .iter()
        .map(|shown| (shown.name, shown.entry.commit_seq))
        .collect();
    assert_eq!(noted, [("plan_modified", 1), ("skill_started", 1)]);
    assert_eq!(
        made(Some("s")).await.skill,
        Some(older),
        "what is linked is linked"
    );
    assert_eq!(
        made(Some("s")).await.skill,
        None,
        "one at work is past its start"
    );
    desk.take(first.created.plan).await;
}

async fn the_same_key_names_the_same_skill(desk: &Desk) {
    let key = || Some("key".to_owned());
    let draft = || {
        let mut draft = desk.draft(1);
        draft.session = Some(SessionId::new("s"));
        draft
    };
    let skill = desk.start_skill(&desk.me, "survey", "s", None).await;
    let first = desk.engine.create_plan(&desk.me, draft(), key()).await;
    let first = first.unwrap();
    assert_eq!(first.skill, Some(skill));
    desk.start_skill(&desk.me, "survey", "s", None).await;
    let again = desk.engine.create_plan(&desk.me, draft(), key()).await;
    assert_eq!(again.unwrap(), first);
}

async fn of_many_plans_of_a_session_made_at_once_one_is_linked(desk: &Desk) {
    let engines = [desk.engine.clone(), desk.another_engine().await];
    for round in 0..5 {
        let session = format!("session {round}");
        let skill = desk.start_skill(&desk.me, "survey", &session, None).await;
        let making: Vec<_> = (0..16)
            .map(|number: usize| {
                let (engine, me) = (engines[number % 2].clone(), desk.me.clone());
                let mut draft = desk.draft(1);
                draft.session = Some(SessionId::new(session.as_str()));
                tokio::spawn(async move { engine.create_plan(&me, draft, None).await })
            })
            .collect();
        let mut linked = Vec::new();
        for made in making {
            linked.extend(made.await.unwrap().unwrap().skill);
        }
        assert_eq!(linked, [skill]);
    }
    let [_, other] = engines;
    other.close().await;
}

async fn of_many_who_end_an_execution_at_once_one_is_heard(desk: &Desk) {
    let plan = desk.plan(1).await;
    for _ in 0..5 {
        let id = desk
            .start_skill(&desk.me, "survey", "s", Some(plan.id))
            .await;
        let ending: Vec<_> = (0..8)
            .map(|_| {
                let (engine, me) = (desk.engine.clone(), desk.me.clone());
                let ended = report(SkillStatus::Completed);
                tokio::spawn(async move { engine.log_skill(&me, Some(id), ended).await })
            })
            .collect();
        let mut heard = 0;
        for ended in ending {
            match ended.await.unwrap() {
                Ok(_) => heard += 1,
                Err(why) => assert_eq!(why.code().as_str(), "illegal_transition"),
            }
        }
        assert_eq!(heard, 1);
    }
    let noted = desk.trail_behind(plan.id, 1).await;
    assert_eq!(noted, ["skill_started", "skill_completed"].repeat(5));
}

async fn what_a_skill_says_of_the_output_reaches_whoever_finishes_the_plan(desk: &Desk) {
    let plan = desk.plan(1).await;
    let id = desk
        .start_skill(&desk.me, "survey", "s", Some(plan.id))
        .await;
    let says = |value: Value| ReportSkill {
        metadata: metadata(value),
        ..report(SkillStatus::Executing)
    };
    let first = says(json!({ "outputMediaType": "text/html", "depth": { "of": 3 } }));
    desk.log(id, first).await.unwrap();
    // Key by key, later words replace earlier ones; null says nothing.
    let more = json!({ "outputFormattingInstructions": "short", "outputMediaType": null });
    desk.log(id, says(more)).await.unwrap();
    desk.advance(Duration::from_millis(1));
    desk.start_skill(&desk.me, "mute", "s", Some(plan.id)).await;
    desk.work_off(plan.id, 1).await;
    let said = |one: &str, other: &str| (Some(one.to_owned()), Some(other.to_owned()));
    assert_eq!(
        desk.says_of_its_output(plan.id).await,
        said("text/html", "short")
    );
    desk.advance(Duration::from_millis(1));
    let later = ReportSkill {
        metadata: metadata(json!({ "outputFormattingInstructions": "long" })),
        plan: Some(plan.id),
        ..report(SkillStatus::Started)
    };
    desk.log(None, later).await.unwrap();
    assert_eq!(
        desk.says_of_its_output(plan.id).await,
        said("text/html", "long")
    );
    let plain = desk.plan(1).await;
    desk.work_off(plain.id, 1).await;
    assert_eq!(desk.says_of_its_output(plain.id).await, (None, None));
}

async fn skills_that_have_ended_go_with_their_plan_and_others_stay(desk: &Desk) {
    let plan = desk.plan(1).await;
    let ended = desk
        .start_skill(&desk.me, "survey", "s", Some(plan.id))
        .await;
    desk.log(ended, report(SkillStatus::Completed))
        .await
        .unwrap();
    let open = desk
        .start_skill(&desk.me, "survey", "s", Some(plan.id))
        .await;
    desk.engine.delete_plan(&desk.me, plan.id).await.unwrap();
    let gone = desk.log(ended, report(SkillStatus::Executing)).await;
    assert_eq!(code(gone), "invalid_input");
    let ended = desk
        .log(open, report(SkillStatus::Completed))
        .await
        .unwrap();
    assert_eq!(ended.plan, None);
}

async fn texts_of_a_skill_hold_no_nul(desk: &Desk) {
    let started = ReportSkill {
        skill: "sur\0vey".to_owned(),
        session: Some(SessionId::new("s\0")),
        metadata: metadata(json!({ "k\0": ["v\0"] })),
        ..report(SkillStatus::Started)
    };
    let id = desk.log(None, started).await.unwrap().execution;
    let failed = ReportSkill {
        skill: "sur\u{FFFD}vey".to_owned(),
        error: Some("no\0".to_owned()),
        ..report(SkillStatus::Failed)
    };
    desk.log(id, failed).await.unwrap();
    let row = desk.sql(&format!(
        "SELECT skill_name, session, metadata, error_message FROM skill_executions \
         WHERE execution_id = {}",
        desk.literal(id)
    ));
    let expected = "sur\u{FFFD}vey|s\u{FFFD}|{\"k\u{FFFD}\":[\"v\u{FFFD}\"]}|no\u{FFFD}";
    assert_eq!(row.as_deref(), Ok(expected));
}

async fn a_damaged_execution_is_found(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.start_skill(&desk.me, "survey", "s", Some(plan.id))
        .await;
    desk.work_off(plan.id, 1).await;
    for metadata in ["no json", "[]"] {
        desk.damage(&format!(
            "UPDATE skill_executions SET metadata = '{metadata}' WHERE tenant_id = '{}'",
            desk.me.tenant
        ));
        let asked = desk.engine.next_step(&desk.me, plan.id, None, false).await;
        let found = crate::corrupt::cell(asked);
        assert_eq!(
            (found.table, found.column),
            ("skill_executions", "metadata")
        );
        let checked = desk.engine.verify(&desk.me).await.unwrap();
        let named = |fault: &onward_engine::verify::Fault| fault.what.contains("skill_executions");
        assert!(checked.faults.iter().any(named), "{:?}", checked.faults);
    }
}

on_both_databases![
    an_execution_begins_goes_on_and_ends,
    a_move_that_cannot_be_is_refused_and_changes_nothing,
    input_that_does_not_fit_is_refused_by_its_path,
    an_execution_that_never_was_is_not_found,
    the_trail_of_a_linked_plan_says_when_it_began_and_ended,
    a_link_that_comes_late_is_noted_as_a_start,
    an_execution_is_linked_to_one_plan_and_stays_there,
    a_plan_is_linked_to_what_its_session_has_started_last,
    the_same_key_names_the_same_skill,
    of_many_plans_of_a_session_made_at_once_one_is_linked,
    of_many_who_end_an_execution_at_once_one_is_heard,
    what_a_skill_says_of_the_output_reaches_whoever_finishes_the_plan,
    skills_that_have_ended_go_with_their_plan_and_others_stay,
    texts_of_a_skill_hold_no_nul,
    a_damaged_execution_is_found,
];
