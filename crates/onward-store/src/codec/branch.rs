//! Branches: condition and action, verdicts, and effect.
//!
//! A condition is stored as written, and parsed again by the parser that accepted it. If the parser
//! no longer accepts it, the record is undecodable: a branch that silently evaluated to false would
//! change the course of a plan.

use onward_core::branch::{Action, Branch, BranchVerdict, Effect, NoEffect};
use onward_core::condition::Condition;

use super::read::{Fields, every};
use super::write::Details;
use super::{Undecodable, step};

/// Names of all actions.
pub(super) const ACTIONS: [&str; 4] = ["continue", "skip_to", "add_steps", "fail"];

every!(NO_EFFECTS: NoEffect = TargetMissing, TargetNotPending, TargetNotAfter, PlanFull);

pub(super) fn branch(branch: &Branch) -> Details {
    Details::default()
        .with_text("branchId", branch.id)
        .with_text("afterStepId", branch.after)
        .with("conditionExpression", branch.condition.source())
        .with("ifTrueAction", branch.action.as_str())
        .with("actionParams", params(&branch.action))
}

pub(super) fn read_branch(fields: &Fields<'_>) -> Result<Branch, Undecodable> {
    let word = fields.get("ifTrueAction")?;
    let action = action(word, &fields.object("actionParams")?)?
        .ok_or_else(|| fields.none_of("ifTrueAction", word, &ACTIONS))?;
    Ok(Branch {
        id: fields.get("branchId")?,
        after: fields.get("afterStepId")?,
        condition: Condition::parse(fields.get("conditionExpression")?)
            .map_err(|why| fields.refused("conditionExpression", why))?,
        action,
    })
}

/// Parameters of an action.
pub(super) fn params(action: &Action) -> Details {
    let params = Details::default();
    match action {
        Action::Continue => params,
        Action::SkipTo { target } => params.with_text("targetStepId", target),
        Action::AddSteps { steps } => params.with_objects("steps", steps, step::new_step),
        Action::Fail { reason } => params.with_some("reason", reason.as_deref()),
    }
}

/// The action with this name; `None` if there is none.
pub(super) fn action(word: &str, params: &Fields<'_>) -> Result<Option<Action>, Undecodable> {
    Ok(Some(match word {
        "continue" => Action::Continue,
        "skip_to" => Action::SkipTo {
            target: params.get("targetStepId")?,
        },
        "add_steps" => Action::AddSteps {
            steps: params.objects("steps", step::read_new_step)?,
        },
        "fail" => Action::Fail {
            reason: params.get_some("reason")?,
        },
        _ => return Ok(None),
    }))
}

pub(super) fn verdict(verdict: &BranchVerdict) -> Details {
    Details::default()
        .with_text("branchId", verdict.branch)
        .with("conditionExpression", verdict.condition.as_str())
        .with("matched", verdict.matched)
        .with_some("error", verdict.error.as_deref())
}

pub(super) fn read_verdict(fields: &Fields<'_>) -> Result<BranchVerdict, Undecodable> {
    Ok(BranchVerdict {
        branch: fields.get("branchId")?,
        condition: fields.get("conditionExpression")?,
        matched: fields.get("matched")?,
        error: fields.get_some("error")?,
    })
}

/// Effect of a branch; its `action` is already in the details.
pub(super) fn effect(details: Details, effect: &Effect) -> Details {
    match effect {
        Effect::Continued => details,
        Effect::Skipped { target, steps } => details
            .with_text("targetStepId", target)
            .with_texts("skippedStepIds", steps),
        Effect::Added { steps } => details.with_objects("steps", steps, step::new_step),
        Effect::FailedPlan { reason } => details.with_some("reason", reason.as_deref()),
        Effect::Nothing { reason } => details
            .with("noEffect", no_effect(*reason))
            .with_text("reason", reason),
    }
}

pub(super) fn read_effect(fields: &Fields<'_>) -> Result<Effect, Undecodable> {
    let action = fields.get("action")?;
    if fields.get_some::<&str>("noEffect")?.is_some() {
        let reason = fields.word("noEffect", NO_EFFECTS, no_effect)?;
        let effect = Effect::Nothing { reason };
        return if effect.action() == action {
            Ok(effect)
        } else {
            Err(fields.none_of("action", action, &[effect.action()]))
        };
    }
    match action {
        "continue" => Ok(Effect::Continued),
        "skip_to" => Ok(Effect::Skipped {
            target: fields.get("targetStepId")?,
            steps: fields.list("skippedStepIds")?,
        }),
        "add_steps" => Ok(Effect::Added {
            steps: fields.objects("steps", step::read_new_step)?,
        }),
        "fail" => Ok(Effect::FailedPlan {
            reason: fields.get_some("reason")?,
        }),
        other => Err(fields.none_of("action", other, &ACTIONS)),
    }
}

const fn no_effect(why: NoEffect) -> &'static str {
    match why {
        NoEffect::TargetMissing => "target_gone",
        NoEffect::TargetNotPending => "target_not_pending",
        NoEffect::TargetNotAfter => "target_not_after",
        NoEffect::PlanFull => "plan_full",
    }
}
