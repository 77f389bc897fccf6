//! A step, and what came before it. What it waited for is read first, with words and data, so it is
//! never cut before the rest.

use std::collections::BTreeSet;

use onward_core::event::ReviewAction;
use onward_core::{Event, PlanId, Step, StepId};
use onward_store::{Briefs, Sheet, Tx};

use super::budget::{Budget, cost};
use super::{
    ENTRY, PAGE, StepAtHand, StepContext, StepTold, add_data, artifacts, may_fit, outputs,
};
use crate::error::Error;

/// What the answer costs beside its texts and lists.
const FRAME: usize = 400;
/// What an id in a list costs.
const ID: usize = 39;
/// How many reviews of the step, and how many words about the plan, are looked at.
const HEARD: u32 = 10;

pub(super) async fn read(tx: &mut Tx, id: StepId, room: usize) -> Result<StepContext, Error> {
    let Some((sheet, step)) = tx.sheet_of_step(id).await? else {
        return Err(Error::StepNotFound {
            step: id.to_string(),
            kept: None,
        });
    };
    let plan = sheet.head.id;
    let mut budget = Budget::of(room.saturating_sub(FRAME));
    let needed: BTreeSet<StepId> = step.spec.depends_on.iter().copied().collect();
    let told = was_told(&step);
    let order = step.order;
    let (step, name, research_question) = at_hand(sheet, step, &mut budget);

    let needs = |below| Briefs::CompletedNeeded(id, below);
    let mut results = results(tx, needs, u32::MAX, &BTreeSet::new(), &mut budget).await?;
    add_data(tx, results.iter_mut(), &mut budget).await?;

    let mut share = budget.share(4);
    let feedback = feedback(tx, plan, id, told, &mut share).await?;
    budget.give_back(share);
    let mut share = budget.share(4);
    let artifacts = artifacts(tx, plan, Some(id), &mut share).await?;
    budget.give_back(share);
    let mut share = budget.share(8);
    let outputs = outputs(tx, plan, &mut share).await?;
    budget.give_back(share);

    let before = |below| Briefs::CompletedBelow(plan, below);
    let mut others = self::results(tx, before, order, &needed, &mut budget).await?;
    add_data(tx, others.iter_mut(), &mut budget).await?;
    results.extend(others);
    Ok(StepContext {
        step,
        plan,
        name,
        research_question,
        results,
        artifacts,
        outputs,
        feedback,
        truncated: budget.is_cut(),
    })
}

/// The step and its plan's name and question, which are cut only where they alone are too much.
fn at_hand(sheet: Sheet, step: Step, budget: &mut Budget) -> (StepAtHand, String, String) {
    let (mut name, mut question) = (sheet.brief.name, sheet.brief.research_question);
    let (status, attempt) = (step.status(), step.attempt());
    let (id, order, mut spec) = (step.id(), step.order, step.spec);
    budget.text(&mut name, usize::MAX);
    if let Some(title) = &mut spec.title {
        budget.text(title, usize::MAX);
    }
    let kept = cost(&question).min(budget.left() / 4);
    budget.text(&mut spec.instructions, budget.left().saturating_sub(kept));
    budget.text(&mut question, usize::MAX);
    let fits = budget.left() / 10 / ID;
    if spec.depends_on.len() > fits {
        spec.depends_on.truncate(fits);
        budget.cut();
    }
    budget.take(spec.depends_on.len() * ID);
    let step = StepAtHand {
        id,
        order,
        step_type: spec.step_type,
        title: spec.title,
        status,
        attempt,
        instructions: spec.instructions,
        depends_on: spec.depends_on,
    };
    (step, name, question)
}

/// Results of completed steps, from the given order down, as many as there is room for.
async fn results(
    tx: &mut Tx,
    which: impl Fn(u32) -> Briefs,
    mut below: u32,
    but: &BTreeSet<StepId>,
    budget: &mut Budget,
) -> Result<Vec<StepTold>, Error> {
    let mut found = Vec::new();
    loop {
        let page = tx.briefs(which(below), PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(found);
        };
        below = last.order;
        let page: Vec<_> = page
            .into_iter()
            .filter(|it| !but.contains(&it.id))
            .collect();
        let ids = may_fit(page.iter(), ENTRY, budget.left());
        let all_fit = ids.len() == page.len();
        if !all_fit {
            budget.cut();
        }
        for (step, summary) in page.into_iter().zip(tx.summaries(&ids).await?) {
            let mut summary = summary.unwrap_or_default();
            if !budget.entry(ENTRY, &mut summary) {
                return Ok(found);
            }
            found.push(StepTold {
                step,
                summary: Some(summary),
                data: None,
            });
        }
        if !all_fit {
            return Ok(found);
        }
    }
}

/// Whether a person may have said something about the step. One that is still worked on carries
/// their words in its instructions, so that for most steps nobody has to look through the trail.
fn was_told(step: &Step) -> bool {
    step.status().is_terminal() || step.carries_feedback()
}

/// What people said about the step, then about the plan.
async fn feedback(
    tx: &mut Tx,
    plan: PlanId,
    step: StepId,
    told: bool,
    budget: &mut Budget,
) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    if told {
        for entry in tx.reviews_of(plan, step, HEARD).await? {
            if let Event::UserReviewed {
                action: ReviewAction::Decided { feedback, .. },
                ..
            } = entry.event
            {
                all.extend(feedback);
            }
        }
    }
    let about_plan = tx.feedback_of(plan, HEARD).await?;
    all.extend(about_plan.into_iter().filter_map(|said| said.comment));
    let mut heard = Vec::new();
    for mut words in all {
        if !budget.entry(3, &mut words) {
            break;
        }
        heard.push(words);
    }
    Ok(heard)
}
