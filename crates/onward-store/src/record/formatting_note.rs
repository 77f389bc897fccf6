//! Formatting notes for the output of a plan: from its author, its steps and its skills.

use onward_core::skill::SkillExecution;
use onward_core::step::StepState;
use onward_core::{Plan, PlanId, Step, StepId};

use super::output::Outputs;
use crate::error::Error;
use crate::query::Query;
use crate::row::{plan, skill};
use crate::statement::Statement;
use crate::value::{Row, first, params};

/// Formatting notes for the output of a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutputNotes {
    /// From the author of the plan.
    pub plan: Option<String>,
    /// From its steps, in order.
    pub steps: Vec<StepNotes>,
    /// Skill executions of the plan, latest first; each may contain notes.
    pub skills: Vec<SkillExecution>,
}

/// A step, its order, and its notes.
pub type StepNotes = (StepId, u32, String);

impl OutputNotes {
    /// The notes of a plan without skill executions.
    pub(crate) fn from_plan(plan: &Plan) -> Self {
        Self {
            plan: plan.brief().output_formatting_notes.clone(),
            steps: plan.steps().iter().filter_map(notes_of_step).collect(),
            skills: Vec::new(),
        }
    }
}

fn notes_of_step(step: &Step) -> Option<StepNotes> {
    if step.superseded_by.is_some() {
        return None;
    }
    let StepState::Completed { result, .. } = &step.state else {
        return None;
    };
    let notes = result.formatting_notes.clone()?;
    Some((step.id(), step.order, notes))
}

impl Outputs<'_> {
    /// Formatting notes for the output of a plan, with at most `skills` skill executions.
    pub(crate) async fn output_notes(
        &mut self,
        id: PlanId,
        skills: u32,
    ) -> Result<OutputNotes, Error> {
        let queries = vec![
            Statement::new(Query::PlanSheet, params![id.as_uuid()]),
            Statement::new(Query::StepNotes, params![id.as_uuid()]),
            Statement::new(Query::SkillsOfPlan, params![id.as_uuid(), skills]),
        ];
        let mut answers = self.0.query(queries).await?.into_iter();
        let sheet = first(answers.next(), plan::sheet)?;
        let steps: Result<Vec<StepNotes>, Error> = answers
            .next()
            .unwrap_or_default()
            .into_iter()
            .map(step_notes)
            .collect();
        let skills: Result<Vec<SkillExecution>, Error> = answers
            .next()
            .unwrap_or_default()
            .into_iter()
            .map(skill::skill)
            .collect();
        Ok(OutputNotes {
            plan: sheet.and_then(|sheet| sheet.brief.output_formatting_notes),
            steps: steps?,
            skills: skills?,
        })
    }
}

fn step_notes(row: Row) -> Result<StepNotes, Error> {
    let mut cells = row.cells("steps");
    Ok((
        StepId::new(cells.id("step_id")?),
        cells.u32("step_order")?,
        cells.string("result_notes")?,
    ))
}
