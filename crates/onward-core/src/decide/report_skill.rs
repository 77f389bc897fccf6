//! A report about a skill's execution: it began, it is at work, it ended.
//!
//! The answer is the execution as it is from then on, and what the trail of its plan notes about it,
//! where it is linked to one. A link that comes later than the start is noted as a start, so a trail
//! never holds an end without one. Whether there is such a plan is not known here.

use serde_json::{Map, Value};

use super::check::Check;
use crate::command::{ReportSkill, SkillPhase};
use crate::id::{PlanId, SkillExecutionId};
use crate::policy::{MAX_METADATA_BYTES, MAX_SKILL_NAME};
use crate::refusal::Refusal;
use crate::skill::{OUTPUT_FORMATTING, OUTPUT_MEDIA_TYPE, SkillExecution, SkillState, SkillStatus};
use crate::time::Timestamp;

/// What a report leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Reported {
    /// The execution, with the report.
    pub execution: SkillExecution,
    /// What its plan's trail notes, in this order. Nothing where it is linked to none.
    pub phases: Vec<SkillPhase>,
}

/// The first report: it starts an execution under a fresh id.
pub fn start(
    id: SkillExecutionId,
    report: &ReportSkill,
    now: Timestamp,
) -> Result<Reported, Refusal> {
    let mut check = checked(report);
    match report.status {
        SkillStatus::Started => {}
        SkillStatus::Executing | SkillStatus::Completed | SkillStatus::Failed => {
            let message = format!(
                "is missing: without it an execution is `started`, and not `{}`",
                report.status
            );
            check.issue("executionId", message);
        }
    }
    check.metadata(&report.metadata);
    check.done()?;
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
    Ok(Reported {
        execution,
        phases: phases.into_iter().collect(),
    })
}

/// A later report about an execution.
pub fn go_on(
    known: &SkillExecution,
    report: &ReportSkill,
    now: Timestamp,
) -> Result<Reported, Refusal> {
    let mut check = checked(report);
    if report.skill != known.skill {
        let message = format!("is not the skill of this execution, `{}`", known.skill);
        check.issue("skillName", message);
    }
    if let (Some(plan), Some(linked)) = (report.plan, known.plan)
        && plan != linked
    {
        let message = format!("is not the plan that this execution is linked to, `{linked}`");
        check.issue("planId", message);
    }
    let mut metadata = known.metadata.clone();
    metadata.extend(without_nulls(&report.metadata));
    check.metadata(&metadata);
    check.done()?;
    let mut phases = Vec::new();
    let plan = known.plan.or(report.plan);
    if known.plan != plan {
        phases.push(SkillPhase::Started);
    }
    let state = match known.status().after(report.status)? {
        // No table leads back here.
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
    Ok(Reported { execution, phases })
}

/// A plan comes into being in the session of an execution that has started: they are linked.
pub fn link(known: &SkillExecution, plan: PlanId, now: Timestamp) -> Reported {
    Reported {
        execution: SkillExecution {
            plan: Some(plan),
            updated_at: now,
            ..known.clone()
        },
        phases: vec![SkillPhase::Started],
    }
}

fn checked(report: &ReportSkill) -> Check {
    let mut check = Check::default();
    check.text("skillName", &report.skill, MAX_SKILL_NAME);
    check.remark("errorMessage", report.error.as_deref());
    if report.error.is_some() && report.status != SkillStatus::Failed {
        check.issue("errorMessage", "belongs to the status `failed` alone");
    }
    check
}

/// Null is the same as leaving it out.
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
                self.issue(format!("metadata.{key}"), "must be a text");
            }
        }
        let all = Value::Object(metadata.clone());
        self.size("metadata", &all, MAX_METADATA_BYTES);
    }
}
