//! What somebody who takes up a step, or a whole plan, needs to know, in no more characters than they
//! can take. It reads; only that a session takes a plan up is noted, in the plan's trail.
//!
//! How much room there is decides what is read: what would be cut off is not loaded, so a plan of
//! 10,000 steps costs what its answer costs. The room is that of the answer as JSON, names of fields
//! and ids included; `budget.rs` spends it, `of_step.rs` and `of_plan.rs` say on what.

mod budget;
mod of_plan;
mod of_step;

use onward_core::id::SessionId;
use onward_core::role::Permission;
use onward_core::step::Review;
use onward_core::{PlanId, StepId, StepStatus, StepType};
use onward_store::{Excerpt, OutputExcerpt, Recent, Sheet, StepBrief, Tx};
use serde_json::Value;

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::next::Working;
use budget::{Budget, cost, cost_of_data};

/// Characters that a step's context has, where nobody said otherwise.
pub const STEP_CHARS: usize = 20_000;
/// Characters that a plan's context has, where nobody said otherwise.
pub const PLAN_CHARS: usize = 40_000;
/// The most characters that can be asked for.
pub const MAX_CHARS: usize = 1_000_000;

/// What an entry of a list costs beside its texts: its ids, its numbers, the names of its fields.
const ENTRY: usize = 170;
/// How many artifacts, or outputs, are named at most.
const ARTIFACTS: u32 = 50;
/// How many steps are looked up at once.
const PAGE: u32 = 32;

/// What an agent needs to know to work on a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepContext {
    /// The step.
    pub step: StepAtHand,
    /// Its plan.
    pub plan: PlanId,
    /// The plan's name.
    pub name: String,
    /// The plan's question.
    pub research_question: String,
    /// What came out of steps before: of those that it waited for, then of the others in front of
    /// it, each time the nearest first.
    pub results: Vec<StepTold>,
    /// What was found or made: for this step, then for the plan, each time the newest first.
    pub artifacts: Vec<Excerpt>,
    /// What the plan has delivered so far, the newest first.
    pub outputs: Vec<OutputExcerpt>,
    /// What people said: about this step, then about the plan, each time the newest first.
    pub feedback: Vec<String>,
    /// Whether something was cut or left out.
    pub truncated: bool,
}

/// A step that is to be worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepAtHand {
    /// Which step.
    pub id: StepId,
    /// Its place.
    pub order: u32,
    /// What kind of work.
    pub step_type: StepType,
    /// A short name for people.
    pub title: Option<String>,
    /// Where it stands.
    pub status: StepStatus,
    /// The attempt that it is in.
    pub attempt: u32,
    /// What to do.
    pub instructions: String,
    /// The steps that it waits for, or waited for.
    pub depends_on: Vec<StepId>,
}

/// A step, with as much of its result as there is room for.
#[derive(Debug, Clone, PartialEq)]
pub struct StepTold {
    /// The step.
    pub step: StepBrief,
    /// What came out, in words.
    pub summary: Option<String>,
    /// What came out, as data: all of it or nothing.
    pub data: Option<Value>,
}

/// What a session needs to know to take a plan up.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanContext {
    /// The plan.
    pub sheet: Sheet,
    /// Its steps in their order. Where not all have room, those next to where the work stands.
    pub steps: Vec<StepTold>,
    /// How many steps had no room.
    pub steps_omitted: u32,
    /// What was found or made, the newest first.
    pub artifacts: Vec<Excerpt>,
    /// What the plan has delivered so far, the newest first.
    pub outputs: Vec<OutputExcerpt>,
    /// What a person is asked, and about which step.
    pub review: Option<(StepId, Review)>,
    /// The steps that others left in progress.
    pub interrupted: Vec<Working>,
    /// What happened last, oldest first.
    pub recent: Vec<Recent>,
    /// Whether something was cut or left out.
    pub truncated: bool,
    /// What to call next.
    pub next: String,
}

impl Engine {
    /// What an agent needs to know to work on a step.
    pub async fn step_context(
        &self,
        caller: &Caller,
        step: StepId,
        max_chars: Option<usize>,
    ) -> Result<StepContext, Error> {
        caller.allow(Permission::Read)?;
        let room = room(max_chars, STEP_CHARS)?;
        let context = self.store.read(&caller.tenant, move |tx| {
            Box::pin(of_step::read(tx, step, room))
        });
        context.await
    }

    /// What a session needs to know to take a plan up. That it does is noted once, where another one
    /// worked on the plan last; who may only read takes nothing up.
    pub async fn plan_context(
        &self,
        caller: &Caller,
        plan: PlanId,
        session: Option<SessionId>,
        max_chars: Option<usize>,
    ) -> Result<PlanContext, Error> {
        caller.allow(Permission::Read)?;
        let room = room(max_chars, PLAN_CHARS)?;
        let session = clean::session(session);
        if let Some(session) = &session
            && caller.allow(Permission::Work).is_ok()
        {
            self.take_up(caller, plan, session.clone()).await?;
        }
        let now = self.now();
        let context = self.store.read(&caller.tenant, move |tx| {
            Box::pin(of_plan::read(tx, plan, session.clone(), room, now))
        });
        context.await
    }
}

fn room(asked: Option<usize>, usual: usize) -> Result<usize, Error> {
    let room = asked.unwrap_or(usual);
    if room == 0 || room > MAX_CHARS {
        let message = format!("must be 1 to {MAX_CHARS}");
        return Err(Error::invalid("maxChars", message));
    }
    Ok(room)
}

/// Beginnings of artifacts, as many as there is room for.
async fn artifacts(
    tx: &mut Tx,
    plan: PlanId,
    step: Option<StepId>,
    budget: &mut Budget,
) -> Result<Vec<Excerpt>, Error> {
    let mut found = tx
        .excerpts(plan, step, ARTIFACTS.saturating_add(1))
        .await?
        .into_iter();
    let mut named = Vec::new();
    for mut artifact in found.by_ref().take(count(ARTIFACTS)) {
        let beside = ENTRY.saturating_add(cost(&artifact.title));
        if !budget.entry(beside, &mut artifact.excerpt) {
            return Ok(named);
        }
        named.push(artifact);
    }
    if found.next().is_some() {
        budget.cut();
    }
    Ok(named)
}

/// Beginnings of outputs, as many as there is room for.
async fn outputs(
    tx: &mut Tx,
    plan: PlanId,
    budget: &mut Budget,
) -> Result<Vec<OutputExcerpt>, Error> {
    let most = ARTIFACTS.saturating_add(1);
    let mut found = tx.output_excerpts(plan, most).await?.into_iter();
    let mut named = Vec::new();
    for mut output in found.by_ref().take(count(ARTIFACTS)) {
        let texts = cost(&output.title).saturating_add(cost(&output.media_type));
        if !budget.entry(ENTRY.saturating_add(texts), &mut output.excerpt) {
            return Ok(named);
        }
        named.push(output);
    }
    if found.next().is_some() {
        budget.cut();
    }
    Ok(named)
}

/// The first of these steps, as far as there may be room for their summaries, each with what it
/// costs beside. No character has more than four bytes.
fn may_fit<'t>(
    briefs: impl Iterator<Item = &'t StepBrief>,
    beside: usize,
    mut left: usize,
) -> Vec<StepId> {
    let fit = briefs.take_while(|brief| {
        let fits = left > beside;
        let bytes = usize::try_from(brief.summary_bytes.unwrap_or(0)).unwrap_or(usize::MAX);
        left = left.saturating_sub(beside).saturating_sub(bytes / 4);
        fits
    });
    fit.map(|brief| brief.id).collect()
}

/// Reads the structured results for which there is room, of the first steps first.
async fn add_data<'t>(
    tx: &mut Tx,
    steps: impl Iterator<Item = &'t mut StepTold>,
    budget: &mut Budget,
) -> Result<(), Error> {
    let with_data = steps.filter(|told| told.step.data_bytes.is_some());
    let mut wanted = Vec::new();
    let mut left = budget.left();
    for told in with_data {
        // No text has fewer bytes than characters.
        let bytes = told.step.data_bytes.unwrap_or(0);
        match left.checked_sub(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            Some(rest) => {
                left = rest;
                wanted.push(told);
            }
            None => budget.cut(),
        }
    }
    for piece in wanted.chunks_mut(count(PAGE)) {
        let ids: Vec<StepId> = piece.iter().map(|told| told.step.id).collect();
        for (told, data) in piece.iter_mut().zip(tx.data(&ids).await?) {
            told.data = data.filter(|data| budget.take(cost_of_data(data)));
        }
    }
    Ok(())
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
