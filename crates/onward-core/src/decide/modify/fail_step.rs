//! Fails a step. The plan does not fail.

use super::super::check::Check;
use super::facts::Facts;
use crate::event::{Change, Event};
use crate::id::StepId;
use crate::refusal::Refusal;
use crate::step::{FailReason, StepCause};

pub(super) fn decide(
    facts: &Facts,
    id: StepId,
    reason: Option<&str>,
) -> Result<(Change, Option<Event>), Refusal> {
    let mut check = Check::default();
    check.remark("reason", reason);
    check.finish()?;
    let from = facts.step(id)?.status();
    from.after(StepCause::FailManually)?;
    let reason = FailReason::Manual(reason.map(str::to_owned));
    Ok((
        Change::StepFailed { step: id },
        Some(Event::StepFailed {
            step: id,
            from,
            reason,
        }),
    ))
}
