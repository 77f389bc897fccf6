//! Change a plan's list of steps and branches, or one step in it.

use std::sync::Arc;

use onward_core::PlanId;
use onward_core::command::{Modification, ModifyPlan};
use onward_core::role::Permission;
use onward_core::{Command, PlanHead, StepId};
use onward_store::{Lookup, StepLine, Which};

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{Outcome, Target, run};

/// Over this many steps an answer holds only those that were touched.
const SHOWN: u32 = 500;

/// What a modification led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Modified {
    /// The plan, afterwards.
    pub head: PlanHead,
    /// Its steps, or, of a long plan, those that were touched.
    pub steps: Vec<StepLine>,
    /// How many steps were left out.
    pub omitted: u32,
}

impl Engine {
    /// Modifies a plan. A person who acts on a stalled plan resumes it in the same breath.
    pub async fn modify_plan(
        &self,
        caller: &Caller,
        plan: PlanId,
        mut modification: Modification,
        mut rationale: Option<String>,
        resume: bool,
    ) -> Result<Modified, Error> {
        caller.allow(Permission::Work)?;
        if resume {
            caller.allow(Permission::Intervene)?;
        }
        clean::modification(&mut modification);
        clean::maybe(&mut rationale);
        let touched = touched(&modification);
        let command = ModifyPlan {
            modification,
            rationale,
            resume,
        };
        let moment = self.moment(caller, None);
        let command = Arc::new(Command::from(command));
        let answer = self.store.write(&caller.tenant, move |tx| {
            let (command, moment) = (Arc::clone(&command), moment.clone());
            let touched = touched.clone();
            Box::pin(async move {
                let done = match run(tx, Target::Plan(plan), &command, &moment, None).await? {
                    Outcome::Done(done) => done,
                    Outcome::Refused { refusal, .. } => return Err(refusal.into()),
                    Outcome::NotFound => return Err(Error::PlanNotFound(plan.to_string())),
                };
                // Before the commit: an error after it would say that nothing was done.
                let lines = match done.head.counts.total() > SHOWN {
                    true => tx.lines_of(&touched).await?,
                    false => tx.step_lines(plan, Which::All, 0, SHOWN).await?,
                };
                Ok((done, lines))
            })
        });
        let (done, steps) = answer.await?;
        self.alarm.ring(done.due);
        let shown = u32::try_from(steps.len()).unwrap_or(u32::MAX);
        let omitted = done.head.counts.total().saturating_sub(shown);
        Ok(Modified {
            head: done.head,
            steps,
            omitted,
        })
    }
}

impl Engine {
    /// Moves a step to another place among the others, which keep their order; past the end is the end.
    /// A stalled plan is resumed in the same breath.
    pub async fn move_step(
        &self,
        caller: &Caller,
        plan: PlanId,
        step: StepId,
        place: u32,
    ) -> Result<(), Error> {
        caller.allow(Permission::Work)?;
        caller.allow(Permission::Intervene)?;
        let moment = self.moment(caller, None);
        let moved = self.store.write(&caller.tenant, move |tx| {
            let moment = moment.clone();
            Box::pin(async move {
                // Held from here on, so that the list is still this one when it is changed.
                let found = tx.plan(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let list = Lookup {
                    list: true,
                    ..Lookup::default()
                };
                let mut steps = tx.look_up(plan, &list).await?.list;
                let Some(from) = steps.iter().position(|id| *id == step) else {
                    let step = step.to_string();
                    return Err(Error::StepNotFound { step, kept: None });
                };
                steps.remove(from);
                let to = usize::try_from(place.saturating_sub(1)).unwrap_or(usize::MAX);
                steps.insert(to.min(steps.len()), step);
                let command = Command::from(ModifyPlan {
                    modification: Modification::ReorderSteps { steps },
                    rationale: None,
                    resume: true,
                });
                match run(tx, Target::Plan(plan), &command, &moment, None).await? {
                    Outcome::Done(done) => Ok(done.due),
                    Outcome::Refused { refusal, .. } => Err(refusal.into()),
                    Outcome::NotFound => Err(Error::PlanNotFound(plan.to_string())),
                }
            })
        });
        self.alarm.ring(moved.await?);
        Ok(())
    }
}

fn touched(modification: &Modification) -> Vec<StepId> {
    match modification {
        Modification::AddSteps { steps, .. } => steps.iter().map(|step| step.id).collect(),
        Modification::UpdateInstructions { step, .. }
        | Modification::FailStep { step, .. }
        | Modification::RequeueStep { step }
        | Modification::RemoveStep { step } => vec![*step],
        Modification::ReorderSteps { .. } | Modification::AddBranch { .. } => Vec::new(),
    }
}
