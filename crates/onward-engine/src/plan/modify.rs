//! Modifies a plan's list of steps and branches, or one of its steps.

use std::collections::BTreeMap;

use onward_core::command::{Modification, ModifyPlan};
use onward_core::decide::modify::Needs;
use onward_core::event::Change;
use onward_core::policy::MAX_REDONE;
use onward_core::role::Permission;
use onward_core::{Command, Event, PlanHead, StepId, StepStatus};
use onward_core::{PlanId, Role};
use onward_store::{Facts, Plans, StepLine, Steps, Tx};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{Applied, CommandContext, CommandOutcome, Target, run};
use crate::sanitize;

/// Maximum number of changed steps in a response.
pub const MAX_LISTED: usize = 50;
/// The reason of the successor that takes the place of a failed step.
const SKIPPED: &str = "skipped by a person";

/// Response to a modification.
#[derive(Debug, Clone, PartialEq)]
pub struct Modified {
    /// The plan after the modification.
    pub head: PlanHead,
    /// The changed steps that still exist, at most [`MAX_LISTED`].
    pub steps: Vec<StepLine>,
    /// The orders of the steps that each of them depends on.
    pub depends_on: BTreeMap<StepId, Vec<u32>>,
    /// Number of changed steps not included.
    pub omitted: usize,
}

impl Engine {
    /// Modifies a plan. With `resume`, also resumes a stalled plan in the same transaction.
    pub async fn modify_plan(
        &self,
        caller: &Caller,
        plan: PlanId,
        mut command: ModifyPlan,
    ) -> Result<Modified, Error> {
        caller.allow(Permission::Work)?;
        if command.resume || is_of_person(&command.modification) {
            caller.allow(Permission::Intervene)?;
        }
        sanitize::modification(&mut command.modification);
        self.add_redo_ids(&mut command.modification);
        if let Modification::SetBudget { by_person, .. } = &mut command.modification {
            *by_person &= caller.role != Role::Agent;
        }
        sanitize::optional_text(&mut command.rationale);
        command.session = sanitize::session(command.session.take());
        let affected = affected(&command.modification);
        let ctx = self.command_context(caller, command.session.as_ref());
        // A failed step has ended: a successor that is skipped takes its place.
        let successor = self.new_step_id();
        let modified = self.store.write(&caller.tenant, move |tx| {
            let (mut command, ctx) = (command.clone(), ctx.clone());
            let mut affected = affected.clone();
            Box::pin(async move {
                let mut commit = None;
                if let Modification::SkipStep { step } = command.modification
                    && has_failed(tx, step).await?
                {
                    let redo = ModifyPlan {
                        modification: Modification::RedoStep {
                            step,
                            reason: SKIPPED.to_owned(),
                            cascade: false,
                            ids: vec![successor],
                        },
                        ..command.clone()
                    };
                    command.modification = Modification::SkipStep { step: successor };
                    affected = vec![successor];
                    let redone = apply(tx, plan, redo, &ctx, None).await?;
                    commit = Some(redone.commit_seq);
                }
                let done = apply(tx, plan, command, &ctx, commit).await?;
                let mut affected = redone(&done.events).unwrap_or(affected);
                let omitted = affected.len().saturating_sub(MAX_LISTED);
                affected.truncate(MAX_LISTED);
                // Read before the commit: an error after it would suggest that nothing was changed.
                let lines = Steps(tx).lines_of(&affected).await?;
                let depends_on = Steps(tx).dependency_orders(plan, &lines).await?;
                Ok::<_, Error>((done, lines, depends_on, omitted))
            })
        });
        let (done, steps, depends_on, omitted) = modified.await?;
        self.sweep_waker.wake_by(done.due);
        Ok(Modified {
            head: done.head,
            steps,
            depends_on,
            omitted,
        })
    }
}

/// Whether only a person makes this change.
fn is_of_person(modification: &Modification) -> bool {
    match modification {
        Modification::SkipStep { .. } => true,
        Modification::UpdateStep { update, .. } => update.on_dependency_failure.is_some(),
        Modification::AddSteps { .. }
        | Modification::RemoveStep { .. }
        | Modification::ReorderSteps { .. }
        | Modification::UpdateInstructions { .. }
        | Modification::RenameStep { .. }
        | Modification::UpdatePlan { .. }
        | Modification::SetBudget { .. }
        | Modification::FailStep { .. }
        | Modification::RequeueStep { .. }
        | Modification::AddBranch { .. }
        | Modification::RedoStep { .. } => false,
    }
}

async fn has_failed(tx: &mut Tx, step: StepId) -> Result<bool, Error> {
    let found = Plans(tx).sheet_of_step(step).await?;
    Ok(found.is_some_and(|(_, step)| step.status() == StepStatus::Failed))
}

async fn apply(
    tx: &mut Tx,
    plan: PlanId,
    command: ModifyPlan,
    ctx: &CommandContext,
    commit: Option<u64>,
) -> Result<Applied, Error> {
    match run(tx, Target::Plan(plan), &command.into(), ctx, commit).await? {
        CommandOutcome::Applied(done) => Ok(done),
        CommandOutcome::Rejected { refusal, .. } => Err(refusal.into()),
        CommandOutcome::NotFound => Err(Error::PlanNotFound(plan.to_string())),
    }
}

impl Engine {
    /// Adds the ids of the successors.
    fn add_redo_ids(&self, modification: &mut Modification) {
        if let Modification::RedoStep { cascade, ids, .. } = modification
            && ids.is_empty()
        {
            let most = if *cascade { MAX_REDONE } else { 1 };
            ids.extend((0..most).map(|_| self.new_step_id()));
        }
    }

    /// Moves a step to another position. The other steps keep their order; a position past the end
    /// means the end. Also resumes a stalled plan.
    pub async fn move_step(
        &self,
        caller: &Caller,
        plan: PlanId,
        step: StepId,
        place: u32,
    ) -> Result<(), Error> {
        caller.allow(Permission::Work)?;
        caller.allow(Permission::Intervene)?;
        let ctx = self.command_context(caller, None);
        let moved = self.store.write(&caller.tenant, move |tx| {
            let ctx = ctx.clone();
            Box::pin(async move {
                // Locks the plan, so that the list does not change until the commit.
                let found = Facts(tx).plan(plan).await?;
                let head = found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let list = Needs {
                    list: true,
                    ..Needs::default()
                };
                let mut steps = Facts(tx).modification(head, &list).await?.list;
                let Some(from) = steps.iter().position(|id| *id == step) else {
                    let step = step.to_string();
                    return Err(Error::StepNotFound { step, kept: None });
                };
                steps.remove(from);
                let to = usize::try_from(place.saturating_sub(1)).unwrap_or(usize::MAX);
                steps.insert(to.min(steps.len()), step);
                let command = Command::from(ModifyPlan {
                    resume: true,
                    ..ModifyPlan::new(Modification::ReorderSteps { steps })
                });
                match run(tx, Target::Plan(plan), &command, &ctx, None).await? {
                    CommandOutcome::Applied(done) => Ok(done.due),
                    CommandOutcome::Rejected { refusal, .. } => Err(refusal.into()),
                    CommandOutcome::NotFound => Err(Error::PlanNotFound(plan.to_string())),
                }
            })
        });
        self.sweep_waker.wake_by(moved.await?);
        Ok(())
    }
}

fn affected(modification: &Modification) -> Vec<StepId> {
    match modification {
        Modification::AddSteps { steps, .. } => steps.iter().map(|step| step.id).collect(),
        Modification::UpdateInstructions { step, .. }
        | Modification::RenameStep { step, .. }
        | Modification::UpdateStep { step, .. }
        | Modification::FailStep { step, .. }
        | Modification::SkipStep { step }
        | Modification::RequeueStep { step }
        | Modification::RemoveStep { step } => vec![*step],
        Modification::ReorderSteps { steps } => steps.clone(),
        // The events contain the successors.
        Modification::RedoStep { .. }
        | Modification::AddBranch { .. }
        | Modification::SetBudget { .. }
        | Modification::UpdatePlan { .. } => Vec::new(),
    }
}

/// The superseded steps and their successors, if steps were redone.
fn redone(events: &[Event]) -> Option<Vec<StepId>> {
    events.iter().find_map(|event| {
        let Event::PlanModified {
            change: Change::StepRedone { successors, .. },
            ..
        } = event
        else {
            return None;
        };
        let pairs = successors.iter();
        let pairs = pairs.map(|successor| (successor.step.supersedes, successor.step.id));
        Some(
            pairs
                .flat_map(|(old, new)| old.into_iter().chain([new]))
                .collect(),
        )
    })
}
