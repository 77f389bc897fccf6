//! Context of an assigned step: its branches, the decisions of reviewers, and the steps that its
//! session holds.

use onward_core::apply::{BranchOutline, HeldStep, StepDecision, Surroundings};
use onward_core::branch::{Action, Branch};
use onward_core::event::Decided;
use onward_core::id::SessionId;
use onward_core::{Event, PlanId, Step, StepId};

use super::facts::Facts;
use crate::error::Error;
use crate::query::Query;
use crate::row::{branch, event, step_line};
use crate::statement::Statement;
use crate::value::{first, params};

impl Facts<'_> {
    /// The surroundings of a step.
    pub async fn surroundings(&mut self, plan: PlanId, step: &Step) -> Result<Surroundings, Error> {
        let known = self.0.versions.get(plan);
        if known.is_some_and(|known| !known.has_context) {
            return Ok(Surroundings::default());
        }
        let id = step.id();
        let questions = vec![
            Statement::new(Query::BranchesAfterStep, params![id.as_uuid()]),
            Statement::new(
                Query::EventsOfEarlierReviews,
                params![plan.as_uuid(), step.order, id.as_uuid()],
            ),
        ];
        let mut answers = self.0.query(questions).await?.into_iter();
        let branches = answers.next().unwrap_or_default().into_iter();
        let branches: Result<Vec<Branch>, Error> = branches.map(branch::branch).collect();
        let branches = self.outlines(plan, branches?).await?;
        let mut decisions = Vec::new();
        for row in answers.next().unwrap_or_default() {
            let (entry, order) = event::entry_with_order(row)?;
            if let Event::UserReviewed {
                step,
                review,
                action,
            } = entry.event
            {
                let decided = Decided::from_action(review, &action);
                decisions.extend(decided.zip(order).map(|(decided, order)| StepDecision {
                    step,
                    order,
                    decided,
                }));
            }
        }
        let surroundings = Surroundings {
            branches,
            ..Surroundings::default()
        };
        Ok(surroundings.with_decisions(id, decisions))
    }

    /// The branches with the orders of their targets.
    pub async fn outlines(
        &mut self,
        plan: PlanId,
        branches: Vec<Branch>,
    ) -> Result<Vec<BranchOutline>, Error> {
        let targets: Vec<Option<StepId>> = branches.iter().map(target).collect();
        let questions = targets.iter().flatten();
        let questions = questions.map(|target| {
            Statement::new(Query::StepPlace, params![plan.as_uuid(), target.as_uuid()])
        });
        let questions: Vec<Statement> = questions.collect();
        let mut answers = if questions.is_empty() {
            Vec::new().into_iter()
        } else {
            self.0.query(questions).await?.into_iter()
        };
        let mut outlines = Vec::new();
        for (branch, target) in branches.into_iter().zip(targets) {
            let place = match target {
                Some(_) => first(answers.next(), super::facts::place)?,
                None => None,
            };
            outlines.push(BranchOutline {
                branch,
                target: place.map(|place| place.order),
            });
        }
        Ok(outlines)
    }

    /// The steps in progress that a session holds, lowest order first.
    pub(crate) async fn held(
        &mut self,
        plan: PlanId,
        session: &SessionId,
        limit: u32,
    ) -> Result<Vec<HeldStep>, Error> {
        let params = params![plan.as_uuid(), session.as_str(), limit];
        let rows = self.0.rows(Query::StepLinesHeld, params).await?;
        let held = rows.into_iter().map(|row| {
            let line = step_line::line(row)?;
            Ok(HeldStep {
                step: line.id,
                order: line.order,
                title: line.title,
                since: line.started_at.unwrap_or(line.updated_at),
            })
        });
        held.collect()
    }
}

fn target(branch: &Branch) -> Option<StepId> {
    match &branch.action {
        Action::SkipTo { target } => Some(*target),
        Action::Continue | Action::AddSteps { .. } | Action::Fail { .. } => None,
    }
}
