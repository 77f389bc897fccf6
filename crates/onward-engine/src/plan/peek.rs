//! The step that a request for the next step would assign, without assigning it.

use onward_core::decide::start_next::is_assignable;
use onward_core::role::Permission;
use onward_core::{PlanId, Step};
use onward_store::{Plans, Steps};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::plan::next_step::{NextStep, PlanView, no_step};

/// The step that a request for the next step would assign.
#[derive(Debug, Clone, PartialEq)]
pub enum Peek {
    /// A step is ready.
    Step(Box<Step>),
    /// No step is ready, and why.
    None(NextStep),
}

impl Engine {
    /// The next step, without assigning it.
    pub async fn peek(&self, caller: &Caller, plan: PlanId) -> Result<Peek, Error> {
        caller.allow(Permission::Read)?;
        let now = self.now();
        let peek = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let sheet = Plans(tx).sheet(plan).await?;
                let sheet = sheet.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let head = sheet.head;
                let step = Steps(tx).first_ready(plan, None).await?;
                Ok::<Peek, Error>(match step.filter(|step| is_assignable(&head, step, now)) {
                    Some(step) => Peek::Step(Box::new(step)),
                    None => Peek::None(no_step(tx, PlanView::Stored(&head), None, now).await?),
                })
            })
        });
        peek.await
    }
}
