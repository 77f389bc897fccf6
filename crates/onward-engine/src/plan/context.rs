//! Context for an agent that starts a step or resumes a plan, within a character budget. Read-only,
//! except that a session resuming a plan is recorded in the plan's audit trail.
//!
//! The budget limits the loaded data, so a plan with 10,000 steps costs no more than its response.
//! It counts the characters of the JSON response, including field names and ids. `budget.rs` tracks
//! it, `step.rs` and `plan.rs` decide how to spend it, `excerpts.rs` loads the texts.

mod budget;
mod excerpts;
mod plan;
mod step;

use onward_core::id::SessionId;
use onward_core::role::Permission;
use onward_core::{PlanId, StepId};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::sanitize;

pub use excerpts::StepWithResult;
pub use plan::PlanContext;
pub use step::{StepContext, StepDetails};

/// Default budget of a step's context, in characters.
pub const STEP_CHARS: usize = 20_000;
/// Default budget of a plan's context, in characters.
pub const PLAN_CHARS: usize = 40_000;
/// Maximum budget, in characters.
pub const MAX_CHARS: usize = 1_000_000;

impl Engine {
    /// Context for working on a step.
    pub async fn step_context(
        &self,
        caller: &Caller,
        step: StepId,
        max_chars: Option<usize>,
    ) -> Result<StepContext, Error> {
        caller.allow(Permission::Read)?;
        let budget_chars = budget_chars(max_chars, STEP_CHARS)?;
        let context = self.store.read(&caller.tenant, move |tx| {
            Box::pin(step::read(tx, step, budget_chars))
        });
        context.await
    }

    /// Context for resuming a plan. If another session worked on the plan last, this session's
    /// resumption is recorded once, provided the caller may work on the plan.
    pub async fn plan_context(
        &self,
        caller: &Caller,
        plan: PlanId,
        session: Option<SessionId>,
        max_chars: Option<usize>,
    ) -> Result<PlanContext, Error> {
        caller.allow(Permission::Read)?;
        let budget_chars = budget_chars(max_chars, PLAN_CHARS)?;
        let session = sanitize::session(session);
        if let Some(session) = &session
            && caller.allow(Permission::Work).is_ok()
        {
            self.record_session_resume(caller, plan, session.clone())
                .await?;
        }
        let now = self.now();
        let context = self.store.read(&caller.tenant, move |tx| {
            Box::pin(plan::read(tx, plan, session.clone(), budget_chars, now))
        });
        context.await
    }
}

fn budget_chars(requested: Option<usize>, default: usize) -> Result<usize, Error> {
    let budget_chars = requested.unwrap_or(default);
    if budget_chars == 0 || budget_chars > MAX_CHARS {
        let message = format!("must be between 1 and {MAX_CHARS}");
        return Err(Error::invalid("maxChars", message));
    }
    Ok(budget_chars)
}
