//! The end of a turn while the session holds claimed steps: the agent is reminded once of each claim.
//!
//! Steps of captured plans are not included, because the agent did not claim them itself.

use onward_core::decide::With;
use onward_core::plan::Origin;
use onward_core::role::Permission;
use onward_core::{PlanId, StepId, StepStatus};
use onward_store::{Cached, Facts, Plans, Sessions, Steps, Tx};

use super::turns::load_whole_session;
use crate::agent::observed::HookSource;
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::CommandContext;

/// Maximum number of claims in a reminder.
const MAX_CLAIMS: u32 = 10;

/// A step that a session holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldClaim {
    /// The plan.
    pub plan: PlanId,
    /// The step.
    pub step: StepId,
    /// Position in the plan.
    pub order: u32,
    /// Display title.
    pub title: Option<String>,
    /// Attempt number.
    pub attempt: u32,
}

impl Engine {
    /// The agent stops. Returns the steps that its session still holds, if it was not reminded of
    /// all of them before.
    pub async fn remind_of_claims(
        &self,
        caller: &Caller,
        source: HookSource,
    ) -> Result<Vec<HeldClaim>, Error> {
        caller.allow(Permission::Record)?;
        if source.is_subagent() {
            return Ok(Vec::new());
        }
        let source = source.sanitized()?;
        let ctx = self.session_context(caller, &source.session);
        let reminded = self.store.write(&caller.tenant, move |tx| {
            let (source, ctx) = (source.clone(), ctx.clone());
            Box::pin(async move { remind(tx, &source, &ctx).await })
        });
        reminded.await
    }
}

async fn remind(
    tx: &mut Tx,
    source: &HookSource,
    ctx: &CommandContext,
) -> Result<Vec<HeldClaim>, Error> {
    let id = source.session.as_str();
    let (_, session) = load_whole_session(tx, source, ctx).await?;
    if session.switched_off {
        return Ok(Vec::new());
    }
    let held = Steps(tx).held_by(id, MAX_CLAIMS).await?;
    let mut steps: Vec<(StepId, Option<&_>)> = held.iter().map(|line| (line.id, None)).collect();
    for claim in &session.claims {
        if steps.iter().all(|(step, _)| *step != claim.step) {
            steps.push((claim.step, Some(&claim.token)));
        }
    }
    let mut claims = Vec::new();
    for (id, token) in steps {
        let Some(facts) = Cached(Facts(tx)).step(id, With::Head).await? else {
            continue;
        };
        let (plan, step) = (facts.head.id, facts.step);
        let is_held = step.status() == StepStatus::InProgress
            && token.is_none_or(|token| step.claim().is_some_and(|claim| claim.token == *token));
        let sheet = Plans(tx).sheet(plan).await?;
        if !is_held || sheet.is_none_or(|sheet| sheet.head.origin == Origin::Agent) {
            continue;
        }
        claims.push(HeldClaim {
            plan,
            step: id,
            order: step.order,
            attempt: step.attempt(),
            title: step.spec.title,
        });
    }
    let known = Sessions(tx).reminded(id).await?.unwrap_or_default();
    let key = |claim: &HeldClaim| format!("{}:{}", claim.step, claim.attempt);
    if claims.iter().all(|claim| known.contains(&key(claim))) {
        return Ok(Vec::new());
    }
    let keys: Vec<String> = claims.iter().map(key).collect();
    Sessions(tx).keep_reminded(id, &keys.join(" "));
    Ok(claims)
}
