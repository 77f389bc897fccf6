//! Executions of skills: which moves there are, and what the trail of a linked plan notes of them.

use std::time::Duration;

use onward_core::command::{ReportSkill, SkillPhase};
use onward_core::decide::report_skill::{Reported, go_on, link, start};
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

fn started(plan: Option<PlanId>) -> Reported {
    let first = ReportSkill {
        plan,
        ..report(SkillStatus::Started)
    };
    start(SkillExecutionId::from_u128(1), &first, START).expect("it starts")
}

/// An execution in a status.
fn standing(status: SkillStatus) -> SkillExecution {
    let started = started(None).execution;
    match status {
        SkillStatus::Started => started,
        SkillStatus::Executing | SkillStatus::Completed | SkillStatus::Failed => {
            let there = go_on(&started, &report(status), LATER);
            there.expect("it gets there").execution
        }
    }
}

/// Which issues there are, by their paths.
fn issues(refused: Result<Reported, Refusal>) -> Vec<String> {
    match refused {
        Err(Refusal::InvalidInput(issues)) => issues.into_iter().map(|it| it.path).collect(),
        other => panic!("its input does not fit, but: {other:?}"),
    }
}

#[test]
fn an_execution_moves_forward_until_it_has_ended() {
    use SkillStatus as S;
    let legal = |from, to| match (from, to) {
        (S::Started, S::Executing | S::Completed | S::Failed) => true,
        (S::Executing, S::Executing | S::Completed | S::Failed) => true,
        (S::Started | S::Executing, S::Started) => false,
        (S::Completed | S::Failed, _) => false,
    };
    for from in SkillStatus::ALL {
        for to in SkillStatus::ALL {
            let moved = go_on(&standing(from), &report(to), LATER);
            match &moved {
                Ok(moved) => assert_eq!(moved.execution.status(), to),
                Err(refusal) => assert_eq!(refusal.code(), Code::IllegalTransition),
            }
            assert_eq!(moved.is_ok(), legal(from, to), "{from} to {to}");
        }
        assert_eq!(from.is_terminal(), standing(from).ended_at().is_some());
        assert_eq!(from.as_str().parse(), Ok(from));
    }
}

#[test]
fn its_duration_is_from_its_start_to_its_end() {
    assert_eq!(standing(SkillStatus::Executing).duration(), None);
    for end in [SkillStatus::Completed, SkillStatus::Failed] {
        let took = standing(end).duration();
        assert_eq!(took, Some(Duration::from_millis(3_500)));
    }
}

#[test]
fn only_a_start_needs_no_execution() {
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
fn a_linked_plan_notes_its_start_and_its_end() {
    let plan = PlanId::from_u128(9);
    assert_eq!(started(None).phases, []);
    let linked = started(Some(plan));
    assert_eq!(linked.phases, [SkillPhase::Started]);
    let going = go_on(&linked.execution, &report(SkillStatus::Executing), LATER);
    assert_eq!(going.unwrap().phases, []);
    let ended = go_on(&linked.execution, &report(SkillStatus::Completed), LATER);
    assert_eq!(ended.unwrap().phases, [SkillPhase::Completed]);
    let failed = ReportSkill {
        error: Some("why".to_owned()),
        ..report(SkillStatus::Failed)
    };
    let error = failed.error.clone();
    let failed = go_on(&linked.execution, &failed, LATER).unwrap();
    assert_eq!(failed.phases, [SkillPhase::Failed { error }]);

    let unlinked = started(None).execution;
    let ended = go_on(&unlinked, &report(SkillStatus::Completed), LATER);
    assert_eq!(ended.unwrap().phases, [], "nobody is told");
    let made = link(&unlinked, plan, LATER);
    assert_eq!(made.phases, [SkillPhase::Started]);
    assert_eq!(made.execution.plan, Some(plan));
    assert_eq!(made.execution.status(), SkillStatus::Started);
    let late = ReportSkill {
        plan: Some(plan),
        ..report(SkillStatus::Completed)
    };
    let late = go_on(&unlinked, &late, LATER).unwrap();
    assert_eq!(late.phases, [SkillPhase::Started, SkillPhase::Completed]);
}

#[test]
fn what_does_not_fit_is_named_by_its_path() {
    let of = |change: fn(&mut ReportSkill)| {
        let mut report = report(SkillStatus::Completed);
        change(&mut report);
        issues(go_on(
            &started(Some(PlanId::from_u128(9))).execution,
            &report,
            LATER,
        ))
    };
    assert_eq!(of(|it| it.skill.clear()), ["skillName", "skillName"]);
    assert_eq!(of(|it| it.skill = "another".to_owned()), ["skillName"]);
    assert_eq!(of(|it| it.plan = Some(PlanId::from_u128(8))), ["planId"]);
    assert_eq!(of(|it| it.error = Some("no".to_owned())), ["errorMessage"]);
    let long = |count: usize| {
        let mut first = report(SkillStatus::Started);
        first.skill = "é".repeat(count);
        start(SkillExecutionId::from_u128(1), &first, START)
    };
    assert!(long(MAX_SKILL_NAME).is_ok());
    assert_eq!(issues(long(MAX_SKILL_NAME + 1)), ["skillName"]);
}

fn with_metadata(known: &SkillExecution, metadata: &Value) -> Result<Reported, Refusal> {
    let more = ReportSkill {
        metadata: metadata.as_object().expect("an object").clone(),
        ..report(SkillStatus::Executing)
    };
    go_on(known, &more, LATER)
}

#[test]
fn later_words_replace_earlier_ones_key_by_key() {
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
fn metadata_has_a_bound_also_where_it_grows() {
    // `{"a":"…"}` is eight bytes beside the text.
    let filled = |count: usize| json!({ "a": "x".repeat(count) });
    let known = started(None).execution;
    let full = with_metadata(&known, &filled(MAX_METADATA_BYTES - 8)).unwrap();
    let over = with_metadata(&known, &filled(MAX_METADATA_BYTES - 7));
    assert_eq!(issues(over), ["metadata"]);
    let grown = with_metadata(&full.execution, &json!({ "b": 1 }));
    assert_eq!(issues(grown), ["metadata"]);
    let wrong = with_metadata(&known, &json!({ "outputFormattingInstructions": ["x"] }));
    assert_eq!(issues(wrong), ["metadata.outputFormattingInstructions"]);
}
