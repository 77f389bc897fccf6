//! Skill executions: transitions, validation, and the events of a linked plan.

use std::time::Duration;

use onward_core::command::{ReportSkill, SkillPhase};
use onward_core::decide::report_skill::{SkillReportOutcome, link, start, update};
use onward_core::id::SkillExecutionId;
use onward_core::policy::{MAX_METADATA_BYTES, MAX_SKILL_NAME};
use onward_core::skill::{SkillExecution, SkillStatus};
use onward_core::{Code, PlanId, Refusal, Timestamp};
use serde_json::{Map, Value, json};

const START: Timestamp = Timestamp::from_millis(1_000);
const LATER: Timestamp = Timestamp::from_millis(4_500);

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

fn started(plan: Option<PlanId>) -> SkillReportOutcome {
    let first = ReportSkill {
        plan,
        ..report(SkillStatus::Started)
    };
    start(SkillExecutionId::from_u128(1), &first, START).expect("execution starts")
}

/// An execution with this status.
fn execution(status: SkillStatus) -> SkillExecution {
    let started = started(None).execution;
    match status {
        SkillStatus::Started => started,
        SkillStatus::Executing | SkillStatus::Completed | SkillStatus::Failed => {
            let updated = update(&started, &report(status), LATER);
            updated.expect("legal transition").execution
        }
    }
}

/// The paths of the invalid fields.
fn issues(outcome: Result<SkillReportOutcome, Refusal>) -> Vec<String> {
    match outcome {
        Err(Refusal::InvalidInput(issues)) => issues.into_iter().map(|issue| issue.path).collect(),
        other => panic!("expected invalid input: {other:?}"),
    }
}

#[test]
fn allows_only_forward_transitions_until_the_end() {
    use SkillStatus as S;
    let legal = |from, to| match (from, to) {
        (S::Started, S::Executing | S::Completed | S::Failed) => true,
        (S::Executing, S::Executing | S::Completed | S::Failed) => true,
        (S::Started | S::Executing, S::Started) => false,
        (S::Completed | S::Failed, _) => false,
    };
    for from in SkillStatus::ALL {
        for to in SkillStatus::ALL {
            let updated = update(&execution(from), &report(to), LATER);
            match &updated {
                Ok(updated) => assert_eq!(updated.execution.status(), to),
                Err(refusal) => assert_eq!(refusal.code(), Code::IllegalTransition),
            }
            assert_eq!(updated.is_ok(), legal(from, to), "{from} to {to}");
        }
        assert_eq!(from.is_terminal(), execution(from).ended_at().is_some());
        assert_eq!(from.as_str().parse(), Ok(from));
    }
}

#[test]
fn the_duration_is_the_time_from_start_to_end() {
    assert_eq!(execution(SkillStatus::Executing).duration(), None);
    for end in [SkillStatus::Completed, SkillStatus::Failed] {
        let took = execution(end).duration();
        assert_eq!(took, Some(Duration::from_millis(3_500)));
    }
}

#[test]
fn every_report_except_a_start_requires_an_execution_id() {
    for status in SkillStatus::ALL {
        let first = start(SkillExecutionId::from_u128(1), &report(status), START);
        match status {
            SkillStatus::Started => assert!(first.is_ok()),
            SkillStatus::Executing | SkillStatus::Completed | SkillStatus::Failed => {
                assert_eq!(issues(first), ["executionId"]);
            }
        }
    }
}

#[test]
fn a_linked_plan_records_start_and_end() {
    let plan = PlanId::from_u128(9);
    assert_eq!(started(None).phases, []);
    let linked = started(Some(plan));
    assert_eq!(linked.phases, [SkillPhase::Started]);
    let executing = update(&linked.execution, &report(SkillStatus::Executing), LATER);
    assert_eq!(executing.unwrap().phases, []);
    let ended = update(&linked.execution, &report(SkillStatus::Completed), LATER);
    assert_eq!(ended.unwrap().phases, [SkillPhase::Completed]);
    let failed = ReportSkill {
        error: Some("test error".to_owned()),
        ..report(SkillStatus::Failed)
    };
    let error = failed.error.clone();
    let failed = update(&linked.execution, &failed, LATER).unwrap();
    assert_eq!(failed.phases, [SkillPhase::Failed { error }]);

    let unlinked = started(None).execution;
    let ended = update(&unlinked, &report(SkillStatus::Completed), LATER);
    assert_eq!(ended.unwrap().phases, [], "no plan to record it");
    let made = link(&unlinked, plan, LATER);
    assert_eq!(made.phases, [SkillPhase::Started]);
    assert_eq!(made.execution.plan, Some(plan));
    assert_eq!(made.execution.status(), SkillStatus::Started);
    let late = ReportSkill {
        plan: Some(plan),
        ..report(SkillStatus::Completed)
    };
    let late = update(&unlinked, &late, LATER).unwrap();
    assert_eq!(late.phases, [SkillPhase::Started, SkillPhase::Completed]);
}

#[test]
fn reports_invalid_fields_by_path() {
    let paths = |change: fn(&mut ReportSkill)| {
        let mut report = report(SkillStatus::Completed);
        change(&mut report);
        issues(update(
            &started(Some(PlanId::from_u128(9))).execution,
            &report,
            LATER,
        ))
    };
    assert_eq!(
        paths(|report| report.skill.clear()),
        ["skillName", "skillName"]
    );
    assert_eq!(
        paths(|report| report.skill = "another".to_owned()),
        ["skillName"]
    );
    assert_eq!(
        paths(|report| report.plan = Some(PlanId::from_u128(8))),
        ["planId"]
    );
    assert_eq!(
        paths(|report| report.error = Some("test error".to_owned())),
        ["errorMessage"]
    );
    let long = |count: usize| {
        let mut first = report(SkillStatus::Started);
        first.skill = "é".repeat(count);
        start(SkillExecutionId::from_u128(1), &first, START)
    };
    assert!(long(MAX_SKILL_NAME).is_ok());
    assert_eq!(issues(long(MAX_SKILL_NAME + 1)), ["skillName"]);
}

fn with_metadata(
    existing: &SkillExecution,
    metadata: &Value,
) -> Result<SkillReportOutcome, Refusal> {
    let more = ReportSkill {
        metadata: metadata.as_object().expect("metadata is an object").clone(),
        ..report(SkillStatus::Executing)
    };
    update(existing, &more, LATER)
}

#[test]
fn later_metadata_overwrites_earlier_values_key_by_key() {
    let first = json!({ "outputMediaType": "text/html", "a": 1, "b": { "c": 2 } });
    let first = with_metadata(&started(None).execution, &first).unwrap();
    assert_eq!(first.execution.output_media_type(), Some("text/html"));
    assert_eq!(first.execution.output_formatting(), None);
    let second = json!({ "outputMediaType": null, "b": 3, "outputFormattingInstructions": "x" });
    let second = with_metadata(&first.execution, &second).unwrap().execution;
    let expected = json!({
        "outputMediaType": "text/html", "a": 1, "b": 3, "outputFormattingInstructions": "x"
    });
    assert_eq!(Value::Object(second.metadata.clone()), expected);
    assert_eq!(second.output_formatting(), Some("x"));
}

#[test]
fn metadata_is_limited_in_total() {
    // `{"a":"…"}` is eight bytes plus the text.
    let filled = |count: usize| json!({ "a": "x".repeat(count) });
    let existing = started(None).execution;
    let full = with_metadata(&existing, &filled(MAX_METADATA_BYTES - 8)).unwrap();
    let over = with_metadata(&existing, &filled(MAX_METADATA_BYTES - 7));
    assert_eq!(issues(over), ["metadata"]);
    let grown = with_metadata(&full.execution, &json!({ "b": 1 }));
    assert_eq!(issues(grown), ["metadata"]);
    let wrong = with_metadata(&existing, &json!({ "outputFormattingInstructions": ["x"] }));
    assert_eq!(issues(wrong), ["metadata.outputFormattingInstructions"]);
}
