//! The state of a project for an agent that starts, resumes or has compacted its context: the steps
//! that its session holds, the open plan, its current and its last completed step, and pending
//! reviews. The interface writes the text.

use std::time::Duration;

use onward_core::plan::Origin;
use onward_core::role::Permission;
use onward_core::{PlanId, Step, StepId, StepStatus, Timestamp};
use onward_store::{Plans, Primed, SeenClaim, Sessions, Sheet, StepLine, Steps, Tx, Which};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::sanitize;

/// Maximum number of a project's open plans that are counted.
const MAX_PLANS: u32 = 20;
/// Maximum number of steps of a session in the summary.
const MAX_OWN: u32 = 3;
/// Two reports of one event within this time are the same event: the hooks of the user and of the
/// project, or of a plugin, are run for it.
const REPEAT_WINDOW: Duration = Duration::from_secs(10);
/// Marks a compaction whose event cannot carry a text. The next prompt carries it.
pub(super) const DUE: &str = "due";

/// The open plans of a project.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProjectState {
    /// The open plan that was most recently worked on.
    pub plan: Option<OpenPlan>,
    /// Number of other open plans.
    pub more_plans: u32,
    /// Number of open plans that await a review, including `plan`.
    pub reviews: u32,
    /// The steps that the session itself holds. Its context may have been compacted.
    pub own: Vec<OwnStep>,
}

/// A step that a session holds, with its texts.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnStep {
    /// The plan.
    pub plan: PlanId,
    /// The step.
    pub step: Step,
}

/// An open plan, with its current and its last completed step.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenPlan {
    /// The plan.
    pub sheet: Sheet,
    /// The first step in progress or awaiting a review.
    pub current: Option<StepLine>,
    /// Whether that step has exceeded its stall threshold.
    pub is_stalled: bool,
    /// The step that was completed last.
    pub last_completed: Option<StepLine>,
}

impl Engine {
    /// The open plans of a project.
    pub async fn project_state(
        &self,
        caller: &Caller,
        project: &str,
    ) -> Result<ProjectState, Error> {
        caller.allow(Permission::Read)?;
        let (mut project, now) = (project.to_owned(), self.now());
        let archived_before = self.archived_before();
        sanitize::text(&mut project);
        let state = self.store.read(&caller.tenant, move |tx| {
            let project = project.clone();
            Box::pin(async move { load(tx, &project, now, archived_before).await })
        });
        state.await
    }
}

/// Loads the open plans of a project, without archived ones.
pub(super) async fn load(
    tx: &mut Tx,
    project: &str,
    now: Timestamp,
    archived_before: Timestamp,
) -> Result<ProjectState, Error> {
    let plans = Sessions(tx)
        .plans_of_directory(project, archived_before, MAX_PLANS)
        .await?;
    let is_in_review = |(_, reviews): &&(_, u32)| *reviews > 0;
    let count = |plans: usize| u32::try_from(plans).unwrap_or(u32::MAX);
    let mut state = ProjectState {
        plan: None,
        more_plans: count(plans.len().saturating_sub(1)),
        reviews: count(plans.iter().filter(is_in_review).count()),
        own: Vec::new(),
    };
    let Some((plan, _)) = plans.first().copied() else {
        return Ok(state);
    };
    let Some(sheet) = Plans(tx).sheet(plan).await? else {
        return Ok(state);
    };
    let mut open = Vec::new();
    for status in [StepStatus::InProgress, StepStatus::AwaitingInput] {
        open.extend(Steps(tx).step_lines(plan, Which::In(status), 0, 1).await?);
    }
    let current = open.into_iter().min_by_key(|line| line.order);
    let can_stall = sheet.head.origin.reports_inactivity();
    state.plan = Some(OpenPlan {
        sheet,
        is_stalled: can_stall && current.as_ref().is_some_and(|line| line.is_stalled(now)),
        current,
        last_completed: Steps(tx).last_completed(plan).await?,
    });
    Ok(state)
}

/// The steps of plans that a session holds. Steps of captured plans are not included: the agent did
/// not claim them.
pub(super) async fn own_steps(
    tx: &mut Tx,
    session: &str,
    claims: &[SeenClaim],
) -> Result<Vec<OwnStep>, Error> {
    let held = Steps(tx).held_by(session, MAX_OWN).await?;
    let mut ids: Vec<StepId> = held.iter().map(|line| line.id).collect();
    ids.extend(claims.iter().map(|claim| claim.step).filter(|step| {
        let is_held = held.iter().any(|line| line.id == *step);
        !is_held
    }));
    let mut own = Vec::new();
    for id in ids {
        let Some((sheet, step)) = Plans(tx).sheet_of_step(id).await? else {
            continue;
        };
        let is_own = step.work().is_some_and(|work| {
            let claim = &work.claim;
            let is_seen = |seen: &SeenClaim| seen.step == id && seen.token == claim.token;
            let is_holder = claim
                .session
                .as_ref()
                .is_some_and(|holder| holder.as_str() == session);
            is_holder || claims.iter().any(is_seen)
        });
        if is_own && sheet.head.origin != Origin::Agent {
            let plan = sheet.head.id;
            own.push(OwnStep { plan, step });
        }
    }
    Ok(own)
}

/// Whether this event was already reported.
pub(super) fn is_repeat(primed: Option<&Primed>, event: &str, now: Timestamp) -> bool {
    primed.is_some_and(|primed| primed.event == event && now.since(primed.at) < REPEAT_WINDOW)
}
