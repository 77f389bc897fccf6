//! Skill executions: their lifecycle, their link to a plan, and the events in the plan's audit
//! trail.

use std::time::Duration;

use onward_core::command::ReportSkill;
use onward_core::id::{SessionId, SkillExecutionId};
use onward_core::skill::SkillStatus;
use onward_core::{PlanId, Refusal};
use onward_engine::next_step::NextStep;
use onward_engine::skill::SkillResponse;
use onward_engine::{Caller, Error, ObjectKind};
use serde_json::{Map, Value, json};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, error, invalid_path, refusal};

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
    value.as_object().expect("value is an object").clone()
}

impl Harness {
    /// Starts a skill execution in a session.
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
        logged.expect("skill was started").execution
    }

    async fn log(
        &self,
        execution: impl Into<Option<SkillExecutionId>>,
        report: ReportSkill,
    ) -> Result<SkillResponse, Error> {
        self.engine
            .log_skill(&self.me, execution.into(), report)
            .await
    }

    /// The media type and formatting instructions of a completed plan.
    async fn output_format(&self, plan: PlanId) -> (Option<String>, Option<String>) {
        let next = self.next_step(plan).await;
        let NextStep::Complete(notes) = next else {
            panic!("plan is not complete: {next:?}")
        };
        (notes.media_type, notes.instructions)
    }
}

async fn an_execution_starts_runs_and_completes(harness: &Harness) {
    let started = harness
        .log(None, report(SkillStatus::Started))
        .await
        .unwrap();
    assert_eq!(started.status, SkillStatus::Started);
    assert_eq!((started.plan, started.duration), (None, None));
    for _ in 0..2 {
        harness.advance(Duration::from_millis(700));
        let executing = harness.log(started.execution, report(SkillStatus::Executing));
        let executing = executing.await.unwrap();
        assert_eq!(executing.execution, started.execution);
        assert_eq!(executing.status, SkillStatus::Executing);
        assert_eq!(executing.duration, None);
    }
    harness.advance(Duration::from_millis(34));
    let ended = harness.log(started.execution, report(SkillStatus::Completed));
    let ended = ended.await.unwrap();
    assert_eq!(ended.status, SkillStatus::Completed);
    assert_eq!(ended.duration, Some(Duration::from_millis(1_434)));
    let another = harness
        .log(None, report(SkillStatus::Started))
        .await
        .unwrap();
    assert_ne!(another.execution, started.execution);
}

async fn rejects_invalid_transitions_without_changes(harness: &Harness) {
    let row = |id: SkillExecutionId| {
        let id = harness.id_literal(id);
        let row = format!("SELECT * FROM skill_executions WHERE execution_id = {id}");
        harness.sql(&row).unwrap()
    };
    let open = harness
        .log(None, report(SkillStatus::Started))
        .await
        .unwrap();
    let again = harness
        .log(open.execution, report(SkillStatus::Started))
        .await;
    assert_eq!(code(again), "illegal_transition");
    for end in [SkillStatus::Completed, SkillStatus::Failed] {
        let started = harness
            .log(None, report(SkillStatus::Started))
            .await
            .unwrap();
        harness.log(started.execution, report(end)).await.unwrap();
        let before = row(started.execution);
        harness.advance(Duration::from_millis(1));
        for status in SkillStatus::ALL {
            let rejected = refusal(harness.log(started.execution, report(status)).await);
            let expected = matches!(
                &rejected,
                Refusal::IllegalSkillTransition(illegal) if (illegal.from, illegal.to) == (end, status)
            );
            assert!(expected, "{rejected:?}");
        }
        assert_eq!(row(started.execution), before);
    }
}

async fn rejects_invalid_input_with_its_path(harness: &Harness) {
    let started = harness
        .log(None, report(SkillStatus::Started))
        .await
        .unwrap();
    let with = |change: &dyn Fn(&mut ReportSkill)| {
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
            with(&|report| report.skill = " ".to_owned()),
        ),
        (
            "skillName",
            Some(started.execution),
            with(&|report| report.skill = "x".repeat(201)),
        ),
        (
            "skillName",
            Some(started.execution),
            with(&|report| report.skill = "another".to_owned()),
        ),
        (
            "errorMessage",
            Some(started.execution),
            with(&|report| report.error = Some("no".to_owned())),
        ),
        (
            "metadata",
            Some(started.execution),
            with(&|report| report.metadata = metadata(json!({ "long": "x".repeat(64 * 1024) }))),
        ),
        (
            "metadata",
            Some(started.execution),
            with(&|report| report.metadata = metadata(json!({ "deep": deep.clone() }))),
        ),
        (
            "metadata.outputMediaType",
            Some(started.execution),
            with(&|report| report.metadata = metadata(json!({ "outputMediaType": 7 }))),
        ),
    ];
    for (path, execution, report) in cases {
        assert_eq!(invalid_path(harness.log(execution, report).await), path);
    }
    harness
        .log(started.execution, report(SkillStatus::Completed))
        .await
        .expect("execution is unchanged");
}

async fn rejects_a_missing_execution_or_plan(harness: &Harness) {
    let unknown = SkillExecutionId::from_u128(7);
    let rejected = error(harness.log(unknown, report(SkillStatus::Completed)).await);
    assert_eq!(rejected.code().as_str(), "invalid_input");
    assert!(
        matches!(
            &rejected,
            Error::NotFound { kind: ObjectKind::SkillExecution, name } if *name == unknown.to_string()
        ),
        "{rejected:?}"
    );
    assert!(rejected.hint().contains("executionId"));
    let no_plan = ReportSkill {
        plan: Some(PlanId::from_u128(7)),
        ..report(SkillStatus::Started)
    };
    assert_eq!(code(harness.log(None, no_plan).await), "plan_not_found");
    let tenant = &harness.me.tenant;
    let count = format!("SELECT count(*) FROM skill_executions WHERE tenant_id = '{tenant}'");
    assert_eq!(
        harness.sql(&count).as_deref(),
        Ok("0"),
        "an execution was started"
    );
}

async fn records_start_and_end_in_the_audit_trail_of_the_linked_plan(harness: &Harness) {
    let plan = harness.plan(1).await;
    let id = harness
        .start_skill(&harness.me, "survey", "s", Some(plan.id))
        .await;
    let executing = harness
        .log(id, report(SkillStatus::Executing))
        .await
        .unwrap();
    assert_eq!(executing.plan, Some(plan.id));
    // A skill usually ends after its plan did.
    harness.complete_steps(plan.id, 1).await;
    let failed = ReportSkill {
        error: Some("out of paper".to_owned()),
        ..report(SkillStatus::Failed)
    };
    harness.log(id, failed).await.unwrap();
    let events = harness
        .engine
        .audit_trail(&harness.me, plan.id, 0, 10)
        .await
        .unwrap();
    let names: Vec<&str> = events.iter().map(|entry| entry.name).collect();
    let expected = [
        "plan_modified",
        "skill_started",
        "step_started",
        "plan_status_changed",
        "step_completed",
        "plan_completed",
        "skill_completed",
    ];
    assert_eq!(names, expected);
    assert_eq!(
        events[1].details,
        json!({ "executionId": id.to_string(), "skillName": "survey" }).into()
    );
    assert_eq!(events[1].entry.author.session, Some(SessionId::new("s")));
    assert_eq!(
        events[6].details,
        json!({
            "executionId": id.to_string(),
            "skillName": "survey",
            "errorMessage": "out of paper"
        })
        .into()
    );
}

async fn linking_at_the_end_records_the_start_as_well(harness: &Harness) {
    let plan = harness.plan(1).await;
    let started = harness
        .log(None, report(SkillStatus::Started))
        .await
        .unwrap();
    let linked = ReportSkill {
        plan: Some(plan.id),
        ..report(SkillStatus::Completed)
    };
    let ended = harness.log(started.execution, linked).await.unwrap();
    assert_eq!(ended.plan, Some(plan.id));
    let events = harness
        .engine
        .audit_trail(&harness.me, plan.id, 1, 10)
        .await
        .unwrap();
    let events: Vec<(&str, u64)> = events
        .iter()
        .map(|event| (event.name, event.entry.commit_seq))
        .collect();
    assert_eq!(events, [("skill_started", 2), ("skill_completed", 2)]);
}

async fn rejects_linking_an_execution_to_another_plan(harness: &Harness) {
    let (plan, other) = (harness.plan(1).await, harness.plan(1).await);
    let id = harness
        .start_skill(&harness.me, "survey", "s", Some(plan.id))
        .await;
    let relinked = |plan| ReportSkill {
        plan: Some(plan),
        ..report(SkillStatus::Executing)
    };
    assert_eq!(
        code(harness.log(id, relinked(other.id)).await),
        "invalid_input"
    );
    harness.log(id, relinked(plan.id)).await.unwrap();
    assert_eq!(harness.audit_trail_after(other.id, 1).await, [""; 0]);
    assert_eq!(
        harness.audit_trail_after(plan.id, 1).await,
        ["skill_started"]
    );
}

async fn links_a_new_plan_to_the_last_started_skill_of_its_session(harness: &Harness) {
    let older = harness.start_skill(&harness.me, "older", "s", None).await;
    harness.advance(Duration::from_millis(1));
    let newest = harness.start_skill(&harness.me, "newest", "s", None).await;
    harness.advance(Duration::from_millis(1));
    harness
        .start_skill(&harness.me, "other", "another", None)
        .await;
    let executing = harness.start_skill(&harness.me, "survey", "s", None).await;
    harness
        .log(executing, report(SkillStatus::Executing))
        .await
        .unwrap();
    let create = async |session: Option<&str>| {
        let mut draft = harness.draft(1);
        draft.session = session.map(SessionId::new);
        harness
            .engine
            .create_plan(&harness.me, draft, None)
            .await
            .unwrap()
    };
    assert_eq!(create(None).await.skill, None, "no session, no skill");
    let first = create(Some("s")).await;
    assert_eq!(first.skill, Some(newest));
    let events = harness
        .engine
        .audit_trail(&harness.me, first.created.plan, 0, 9)
        .await;
    let events = events.unwrap();
    let events: Vec<(&str, u64)> = events
        .iter()
        .map(|event| (event.name, event.entry.commit_seq))
        .collect();
    assert_eq!(events, [("plan_modified", 1), ("skill_started", 1)]);
    let second = create(Some("s")).await;
    assert_eq!(second.skill, Some(newest), "linked to an earlier plan");
    let ended = ReportSkill {
        skill: "newest".to_owned(),
        ..report(SkillStatus::Completed)
    };
    let linked = harness.log(newest, ended).await;
    assert_eq!(linked.unwrap().plan, Some(second.created.plan));
    assert_eq!(create(Some("s")).await.skill, Some(older));
    let executing = ReportSkill {
        skill: "older".to_owned(),
        ..report(SkillStatus::Executing)
    };
    harness.log(older, executing).await.unwrap();
    assert_eq!(
        create(Some("s")).await.skill,
        None,
        "an executing skill is not linked"
    );
    harness.claim(first.created.plan).await;
}

async fn the_same_idempotency_key_returns_the_same_skill(harness: &Harness) {
    let key = || Some("key".to_owned());
    let draft = || {
        let mut draft = harness.draft(1);
        draft.session = Some(SessionId::new("s"));
        draft
    };
    let skill = harness.start_skill(&harness.me, "survey", "s", None).await;
    let first = harness
        .engine
        .create_plan(&harness.me, draft(), key())
        .await;
    let first = first.unwrap();
    assert_eq!(first.skill, Some(skill));
    harness.start_skill(&harness.me, "survey", "s", None).await;
    let again = harness
        .engine
        .create_plan(&harness.me, draft(), key())
        .await;
    assert_eq!(again.unwrap(), first);
}

async fn links_a_skill_to_each_of_several_plans_created_concurrently(harness: &Harness) {
    let engines = [harness.engine.clone(), harness.another_engine().await];
    for round in 0..5 {
        let session = format!("session {round}");
        let skill = harness
            .start_skill(&harness.me, "survey", &session, None)
            .await;
        let creating: Vec<_> = (0..16)
            .map(|number: usize| {
                let (engine, me) = (engines[number % 2].clone(), harness.me.clone());
                let mut draft = harness.draft(1);
                draft.session = Some(SessionId::new(session.as_str()));
                tokio::spawn(async move { engine.create_plan(&me, draft, None).await })
            })
            .collect();
        let mut plans = Vec::new();
        for created in creating {
            let plan = created.await.unwrap().unwrap();
            assert_eq!(plan.skill, Some(skill));
            plans.push(plan.created.plan);
        }
        let ended = harness.log(skill, report(SkillStatus::Completed)).await;
        let linked = ended.unwrap().plan.expect("the skill is linked");
        assert!(plans.contains(&linked));
    }
    let [_, other] = engines;
    other.close().await;
}

async fn accepts_one_of_several_concurrent_completions(harness: &Harness) {
    let plan = harness.plan(1).await;
    for _ in 0..5 {
        let id = harness
            .start_skill(&harness.me, "survey", "s", Some(plan.id))
            .await;
        let ending: Vec<_> = (0..8)
            .map(|_| {
                let (engine, me) = (harness.engine.clone(), harness.me.clone());
                let ended = report(SkillStatus::Completed);
                tokio::spawn(async move { engine.log_skill(&me, Some(id), ended).await })
            })
            .collect();
        let mut accepted = 0;
        for ended in ending {
            match ended.await.unwrap() {
                Ok(_) => accepted += 1,
                Err(err) => assert_eq!(err.code().as_str(), "illegal_transition"),
            }
        }
        assert_eq!(accepted, 1);
    }
    let events = harness.audit_trail_after(plan.id, 1).await;
    assert_eq!(events, ["skill_started", "skill_completed"].repeat(5));
}

async fn a_completed_plan_returns_the_output_format_of_its_skills(harness: &Harness) {
    let plan = harness.plan(1).await;
    let id = harness
        .start_skill(&harness.me, "survey", "s", Some(plan.id))
        .await;
    let report_metadata = |value: Value| ReportSkill {
        metadata: metadata(value),
        ..report(SkillStatus::Executing)
    };
    let first = report_metadata(json!({ "outputMediaType": "text/html", "depth": { "of": 3 } }));
    harness.log(id, first).await.unwrap();
    // Later values replace earlier ones per key; null is ignored.
    let more = json!({ "outputFormattingInstructions": "short", "outputMediaType": null });
    harness.log(id, report_metadata(more)).await.unwrap();
    harness.advance(Duration::from_millis(1));
    harness
        .start_skill(&harness.me, "no-format", "s", Some(plan.id))
        .await;
    harness.complete_steps(plan.id, 1).await;
    let format =
        |media_type: &str, notes: &str| (Some(media_type.to_owned()), Some(notes.to_owned()));
    assert_eq!(
        harness.output_format(plan.id).await,
        format("text/html", "short")
    );
    harness.advance(Duration::from_millis(1));
    let later = ReportSkill {
        metadata: metadata(json!({ "outputFormattingInstructions": "long" })),
        plan: Some(plan.id),
        ..report(SkillStatus::Started)
    };
    harness.log(None, later).await.unwrap();
    assert_eq!(
        harness.output_format(plan.id).await,
        format("text/html", "long")
    );
    let plain = harness.plan(1).await;
    harness.complete_steps(plain.id, 1).await;
    assert_eq!(harness.output_format(plain.id).await, (None, None));
}

async fn deleting_a_plan_deletes_its_ended_skills_and_keeps_running_ones(harness: &Harness) {
    let plan = harness.plan(1).await;
    let ended = harness
        .start_skill(&harness.me, "survey", "s", Some(plan.id))
        .await;
    harness
        .log(ended, report(SkillStatus::Completed))
        .await
        .unwrap();
    let open = harness
        .start_skill(&harness.me, "survey", "s", Some(plan.id))
        .await;
    harness
        .engine
        .delete_plan(&harness.me, plan.id)
        .await
        .unwrap();
    let deleted = harness.log(ended, report(SkillStatus::Executing)).await;
    assert_eq!(code(deleted), "invalid_input");
    let ended = harness
        .log(open, report(SkillStatus::Completed))
        .await
        .unwrap();
    assert_eq!(ended.plan, None);
}

async fn replaces_nul_in_texts_of_a_skill(harness: &Harness) {
    let started = ReportSkill {
        skill: "sur\0vey".to_owned(),
        session: Some(SessionId::new("s\0")),
        metadata: metadata(json!({ "k\0": ["v\0"] })),
        ..report(SkillStatus::Started)
    };
    let id = harness.log(None, started).await.unwrap().execution;
    let failed = ReportSkill {
        skill: "sur\u{FFFD}vey".to_owned(),
        error: Some("no\0".to_owned()),
        ..report(SkillStatus::Failed)
    };
    harness.log(id, failed).await.unwrap();
    let row = harness.sql(&format!(
        "SELECT skill_name, session, metadata, error_message FROM skill_executions \
         WHERE execution_id = {}",
        harness.id_literal(id)
    ));
    let expected = "sur\u{FFFD}vey|s\u{FFFD}|{\"k\u{FFFD}\":[\"v\u{FFFD}\"]}|no\u{FFFD}";
    assert_eq!(row.as_deref(), Ok(expected));
}

async fn reports_corrupt_executions(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness
        .start_skill(&harness.me, "survey", "s", Some(plan.id))
        .await;
    harness.complete_steps(plan.id, 1).await;
    for metadata in ["not json", "[]"] {
        harness.corrupt(&format!(
            "UPDATE skill_executions SET metadata = '{metadata}' WHERE tenant_id = '{}'",
            harness.me.tenant
        ));
        let failed = harness
            .engine
            .next_step(&harness.me, plan.id, None, false)
            .await;
        let found = crate::corrupt::corrupt_cell(failed);
        assert_eq!(
            (found.table, found.column),
            ("skill_executions", "metadata")
        );
        let checked = harness.engine.verify(&harness.me).await.unwrap();
        let named = |fault: &onward_engine::verify::Inconsistency| {
            fault.message.contains("skill_executions")
        };
        assert!(
            checked.inconsistencies.iter().any(named),
            "{:?}",
            checked.inconsistencies
        );
    }
}

on_both_databases![
    an_execution_starts_runs_and_completes,
    rejects_invalid_transitions_without_changes,
    rejects_invalid_input_with_its_path,
    rejects_a_missing_execution_or_plan,
    records_start_and_end_in_the_audit_trail_of_the_linked_plan,
    linking_at_the_end_records_the_start_as_well,
    rejects_linking_an_execution_to_another_plan,
    links_a_new_plan_to_the_last_started_skill_of_its_session,
    the_same_idempotency_key_returns_the_same_skill,
    links_a_skill_to_each_of_several_plans_created_concurrently,
    accepts_one_of_several_concurrent_completions,
    a_completed_plan_returns_the_output_format_of_its_skills,
    deleting_a_plan_deletes_its_ended_skills_and_keeps_running_ones,
    replaces_nul_in_texts_of_a_skill,
    reports_corrupt_executions,
];
