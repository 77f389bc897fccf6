//! Artifacts, outputs and results that a context contains, loaded within its budget.

use onward_core::step::Evidence;
use onward_core::{Json, PlanId, StepId};
use onward_store::{Contexts, Excerpt, OutputExcerpt, Outputs, StepBrief, Tx};

use super::budget::{Budget, cost, json_cost};
use crate::error::Error;

/// Cost of a list entry apart from its texts: ids, numbers and field names.
pub(super) const ENTRY_COST: usize = 170;
/// Maximum number of artifacts, and of outputs.
const MAX_EXCERPTS: u32 = 50;
/// Number of steps per query.
pub(super) const PAGE_SIZE: u32 = 32;

/// A step with as much of its result as the budget allows.
#[derive(Debug, Clone, PartialEq)]
pub struct StepWithResult {
    /// The step.
    pub step: StepBrief,
    /// Summary of the result.
    pub summary: Option<String>,
    /// Structured data of the result: complete or absent.
    pub data: Option<Json>,
    /// Evidence that the result meets the step's criteria: complete or absent.
    pub evidence: Vec<Evidence>,
}

/// Excerpts of artifacts, within the budget.
pub(super) async fn artifacts(
    tx: &mut Tx,
    plan: PlanId,
    step: Option<StepId>,
    budget: &mut Budget,
) -> Result<Vec<Excerpt>, Error> {
    let mut found = Contexts(tx)
        .excerpts(plan, step, MAX_EXCERPTS.saturating_add(1))
        .await?
        .into_iter();
    let mut listed = Vec::new();
    for mut artifact in found.by_ref().take(count(MAX_EXCERPTS)) {
        let fixed_cost = ENTRY_COST.saturating_add(cost(&artifact.title));
        if !budget.entry(fixed_cost, &mut artifact.excerpt) {
            return Ok(listed);
        }
        if artifact.is_truncated {
            budget.mark_truncated();
        }
        listed.push(artifact);
    }
    if found.next().is_some() {
        budget.mark_truncated();
    }
    Ok(listed)
}

/// Excerpts of outputs, within the budget.
pub(super) async fn outputs(
    tx: &mut Tx,
    plan: PlanId,
    budget: &mut Budget,
) -> Result<Vec<OutputExcerpt>, Error> {
    let most = MAX_EXCERPTS.saturating_add(1);
    let mut found = Outputs(tx).output_excerpts(plan, most).await?.into_iter();
    let mut listed = Vec::new();
    for mut output in found.by_ref().take(count(MAX_EXCERPTS)) {
        let texts = cost(&output.title).saturating_add(cost(&output.media_type));
        if !budget.entry(ENTRY_COST.saturating_add(texts), &mut output.excerpt) {
            return Ok(listed);
        }
        if output.is_truncated {
            budget.mark_truncated();
        }
        listed.push(output);
    }
    if found.next().is_some() {
        budget.mark_truncated();
    }
    Ok(listed)
}

/// The leading steps whose summaries may fit, at a fixed cost per step. A lower bound: a character
/// has at most four bytes.
pub(super) fn may_fit<'t>(
    briefs: impl Iterator<Item = &'t StepBrief>,
    fixed_cost: usize,
    mut left: usize,
) -> Vec<StepId> {
    let fit = briefs.take_while(|brief| {
        let fits = left > fixed_cost;
        let bytes = usize::try_from(brief.summary_bytes.unwrap_or(0)).unwrap_or(usize::MAX);
        left = left.saturating_sub(fixed_cost).saturating_sub(bytes / 4);
        fits
    });
    fit.map(|brief| brief.id).collect()
}

/// Loads structured results within the budget, in the order of the steps.
pub(super) async fn add_data<'t>(
    tx: &mut Tx,
    steps: impl Iterator<Item = &'t mut StepWithResult>,
    budget: &mut Budget,
) -> Result<(), Error> {
    let with_data = steps.filter(|entry| entry.step.data_bytes.is_some());
    let mut selected = Vec::new();
    let mut left = budget.left();
    for entry in with_data {
        // A text has at least as many bytes as characters.
        let bytes = entry.step.data_bytes.unwrap_or(0);
        match left.checked_sub(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            Some(rest) => {
                left = rest;
                selected.push(entry);
            }
            None => budget.mark_truncated(),
        }
    }
    for page in selected.chunks_mut(count(PAGE_SIZE)) {
        let ids: Vec<StepId> = page.iter().map(|entry| entry.step.id).collect();
        for (entry, data) in page.iter_mut().zip(Contexts(tx).data(&ids).await?) {
            entry.data = data.filter(|data| budget.spend(json_cost(data)));
        }
    }
    Ok(())
}

/// Loads evidence within the budget, in the order of the steps.
pub(super) async fn add_evidence<'t>(
    tx: &mut Tx,
    steps: impl Iterator<Item = &'t mut StepWithResult>,
    budget: &mut Budget,
) -> Result<(), Error> {
    for entry in steps.filter(|entry| entry.step.evidence_bytes.is_some()) {
        let bytes = entry.step.evidence_bytes.unwrap_or(0);
        // A text has at least as many bytes as characters.
        if !budget.spend(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            continue;
        }
        let evidence = Contexts(tx).evidence(&[entry.step.id]).await?;
        entry.evidence = evidence.into_iter().next().unwrap_or_default();
    }
    Ok(())
}

pub(super) fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
