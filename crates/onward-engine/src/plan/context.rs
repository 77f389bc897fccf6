//! Context for an agent that starts a step or resumes a plan, within a character budget. Read-only,
//! except that a session resuming a plan is recorded in the plan's audit trail.
//!
//! The budget limits the loaded data, so a plan with 10,000 steps costs no more than its response.
//! It counts the characters of the JSON response, including field names and ids. `budget.rs` tracks
//! it, `step.rs` and `plan.rs` decide how to spend it, `excerpts.rs` loads the texts.

mod budget;
mod excerpts;
mod focus;
mod page;
mod plan;
mod step;

use onward_core::id::SessionId;
use onward_core::role::Permission;
use onward_core::{PlanId, StepId};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::sanitize;

pub use budget::{cost, truncate};
pub use excerpts::StepWithResult;
pub use focus::{
    FeedbackEntry, FocusedStep, InterruptedStep, OwnStep, ProgressNote, SignificantEvent,
};
pub use page::{Part, TextPage};
pub use plan::PlanContext;
pub use step::{StepContext, StepDetails};

/// Default size of a response, in characters.
pub const DEFAULT_CHARS: usize = 7_900;
/// Maximum size of a response, in characters.
pub const MAX_CHARS: usize = 40_000;

impl Engine {
    /// Context for working on a step.
    pub async fn step_context(
        &self,
        caller: &Caller,
        step: StepId,
        max_chars: Option<usize>,
    ) -> Result<StepContext, Error> {
        caller.allow(Permission::Read)?;
        let budget_chars = budget_chars(max_chars)?;
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
        let budget_chars = budget_chars(max_chars)?;
        let session = sanitize::session(session);
        // A claim token allows work, so tokens are returned only to a caller with that permission.
        let holder = session
            .clone()
            .filter(|_| caller.allow(Permission::Work).is_ok());
        if let Some(session) = &holder {
            self.record_session_resume(caller, plan, session.clone())
                .await?;
        }
        let now = self.now();
        let context = self.store.read(&caller.tenant, move |tx| {
            let (session, holder) = (session.clone(), holder.clone());
            Box::pin(async move {
                plan::read(
                    tx,
                    plan,
                    session.as_ref(),
                    holder.as_ref(),
                    budget_chars,
                    now,
                )
                .await
            })
        });
        context.await
    }

    /// A page of one of a step's texts.
    pub async fn step_text(
        &self,
        caller: &Caller,
        plan: PlanId,
        step: StepId,
        part: Part,
        offset: usize,
        max_chars: Option<usize>,
    ) -> Result<TextPage, Error> {
        caller.allow(Permission::Read)?;
        let budget_chars = budget_chars(max_chars)?;
        let page = self.store.read(&caller.tenant, move |tx| {
            Box::pin(page::read(tx, plan, step, part, offset, budget_chars))
        });
        page.await
    }
}

fn budget_chars(requested: Option<usize>) -> Result<usize, Error> {
    let budget_chars = requested.unwrap_or(DEFAULT_CHARS);
    if budget_chars == 0 || budget_chars > MAX_CHARS {
        let message = format!("must be between 1 and {MAX_CHARS}");
        return Err(Error::invalid("maxChars", message));
    }
    Ok(budget_chars)
}
