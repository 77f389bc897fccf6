//! Change a plan's list of steps and branches, or one step in it.

use onward_core::PlanId;
use onward_core::command::{Modification, ModifyPlan};
use onward_core::role::Permission;
use onward_core::{PlanHead, StepId};
use onward_store::{StepLine, Which};

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;

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
        let done = self.on_plan(caller, plan, command.into(), moment).await?;
        let lines = self.store.read(&caller.tenant, move |tx| {
            let which = Which::All;
            Box::pin(async move { tx.step_lines(plan, which, 0, u32::MAX >> 1).await })
        });
        let mut steps = lines.await?;
        let total = steps.len();
        if total > usize::try_from(SHOWN).unwrap_or(usize::MAX) {
            steps.retain(|line| touched.contains(&line.id));
        }
        let omitted = u32::try_from(total - steps.len()).unwrap_or(u32::MAX);
        Ok(Modified {
            head: done.head,
            steps,
            omitted,
        })
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
