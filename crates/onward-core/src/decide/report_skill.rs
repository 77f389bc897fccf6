//! Reports about a skill execution: started, executing, ended.
//!
//! Returns the updated execution and the phases to record in the audit trail of its linked plan. A
//! link that is added after the start records a start, so an audit trail never contains an end
//! without one. The caller checks that the plan exists.

use serde_json::{Map, Value};

use super::check::Check;
use crate::command::{ReportSkill, SkillPhase};
use crate::id::{PlanId, SkillExecutionId};
use crate::json::Json;
use crate::policy::{MAX_METADATA_BYTES, MAX_SKILL_NAME};
use crate::refusal::Refusal;
use crate::skill::{OUTPUT_FORMATTING, OUTPUT_MEDIA_TYPE, SkillExecution, SkillState, SkillStatus};
use crate::time::Timestamp;

/// The outcome of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillReportOutcome {
    /// The updated execution.
    pub execution: SkillExecution,
    /// The phases to record in the plan's audit trail, in this order. Empty without a linked plan.
    pub phases: Vec<SkillPhase>,
}

/// The first report: starts an execution with a new id.
pub fn start(
    id: SkillExecutionId,
    report: &ReportSkill,
    now: Timestamp,
) -> Result<SkillReportOutcome, Refusal> {
    let mut check = check_report(report);
    match report.status {
        SkillStatus::Started => {}
        SkillStatus::Executing | SkillStatus::Completed | SkillStatus::Failed => {
            let message = format!("required to report the status `{}`", report.status);
            check.issue("executionId", message);
        }
    }
    check.metadata(&report.metadata);
    check.finish()?;
    let execution = SkillExecution {
        id,
        skill: report.skill.clone(),
        session: report.session.clone(),
        plan: report.plan,
        metadata: without_nulls(&report.metadata),
        state: SkillState::Started,
        started_at: now,
        updated_at: now,
    };
    let phases = report.plan.map(|_| SkillPhase::Started);
    Ok(SkillReportOutcome {
        execution,
        phases: phases.into_iter().collect(),
    })
}

/// A later report about an execution.
pub fn update(
    known: &SkillExecution,
    report: &ReportSkill,
    now: Timestamp,
) -> Result<SkillReportOutcome, Refusal> {
    let mut check = check_report(report);
    if report.skill != known.skill {
        let message = format!("does not match the execution's skill `{}`", known.skill);
        check.issue("skillName", message);
    }
    if let (Some(plan), Some(linked)) = (report.plan, known.plan)
        && plan != linked
    {
        let message = format!("does not match the linked plan `{linked}`");
        check.issue("planId", message);
    }
    let mut metadata = known.metadata.clone();
    metadata.extend(without_nulls(&report.metadata));
    check.metadata(&metadata);
    check.finish()?;
    let mut phases = Vec::new();
    let plan = known.plan.or(report.plan);
    if known.plan != plan {
        phases.push(SkillPhase::Started);
    }
    let state = match known.status().after(report.status)? {
        // Unreachable: no transition leads to `started`.
        SkillStatus::Started => SkillState::Started,
        SkillStatus::Executing => SkillState::Executing,
        SkillStatus::Completed => {
            phases.push(SkillPhase::Completed);
            SkillState::Completed { ended_at: now }
        }
        SkillStatus::Failed => {
            let error = report.error.clone();
            phases.push(SkillPhase::Failed {
                error: error.clone(),
            });
            SkillState::Failed {
                ended_at: now,
                error,
            }
        }
    };
    if plan.is_none() {
        phases.clear();
    }
    let execution = SkillExecution {
        session: known.session.clone().or_else(|| report.session.clone()),
        plan,
        metadata,
        state,
        updated_at: now,
        ..known.clone()
    };
    Ok(SkillReportOutcome { execution, phases })
}

/// Links a new plan to the running execution of its session.
pub fn link(known: &SkillExecution, plan: PlanId, now: Timestamp) -> SkillReportOutcome {
    SkillReportOutcome {
        execution: SkillExecution {
            plan: Some(plan),
            updated_at: now,
            ..known.clone()
        },
        phases: vec![SkillPhase::Started],
    }
}

fn check_report(report: &ReportSkill) -> Check {
    let mut check = Check::default();
    check.text("skillName", &report.skill, MAX_SKILL_NAME);
    check.remark("errorMessage", report.error.as_deref());
    if report.error.is_some() && report.status != SkillStatus::Failed {
        check.issue("errorMessage", "allowed only with the status `failed`");
    }
    check
}

/// Null values count as absent.
fn without_nulls(metadata: &Map<String, Value>) -> Map<String, Value> {
    let kept = metadata.iter().filter(|(_, value)| !value.is_null());
    kept.map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

impl Check {
    fn metadata(&mut self, metadata: &Map<String, Value>) {
        for key in [OUTPUT_MEDIA_TYPE, OUTPUT_FORMATTING] {
            let value = metadata.get(key);
            if value.is_some_and(|value| !value.is_string() && !value.is_null()) {
                self.issue(format!("metadata.{key}"), "must be a string");
            }
        }
        let all = Json::from(Value::Object(metadata.clone()));
        self.size("metadata", &all, MAX_METADATA_BYTES);
    }
}
