//! A plan for whoever takes it up: where the work stands, what came out of the steps around that
//! place, who left what in progress, and what to call next.

use onward_core::id::SessionId;
use onward_core::plan::PlanState;
use onward_core::step::{Review, StepState};
use onward_core::{PlanId, StepId, StepStatus, Timestamp};
use onward_store::{Briefs, Recent, Sheet, StepBrief, StepLine, Tx, Which, codec};

use super::budget::{Budget, cost, cost_of_data};
use super::{ENTRY, PAGE, PlanContext, StepTold, add_data, artifacts, count, may_fit, outputs};
use crate::error::Error;
use crate::next::Working;

/// What the answer costs beside its texts and lists.
const FRAME: usize = 900;
/// What a step costs beside its texts.
const LINE: usize = 220;
/// How many steps in progress are looked at.
const WORKING: u32 = 50;
/// How many entries of the trail are shown.
const RECENT: u32 = 20;

/// Where the work stands.
struct Standing {
    /// Steps that somebody has, lowest order first.
    working: Vec<StepLine>,
    /// The step that `get_next_step` would hand out.
    ready: Option<u32>,
    /// The step whose review is open.
    review: Option<(StepId, u32, Review)>,
}

pub(super) async fn read(
    tx: &mut Tx,
    plan: PlanId,
    session: Option<SessionId>,
    room: usize,
    now: Timestamp,
) -> Result<PlanContext, Error> {
    let sheet = tx.sheet(plan).await?;
    let mut sheet = sheet.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
    let standing = standing(tx, &sheet).await?;
    let mut budget = Budget::of(room.saturating_sub(FRAME));
    brief(&mut sheet, &mut budget);

    let is_own = |line: &StepLine| session.is_some() && line.session == session;
    let next = next(&sheet, &standing, is_own, now);
    let interrupted = interrupted(&sheet, &standing, is_own, now, &mut budget);
    let place = standing.place(sheet.head.counts.total());
    let review = standing.review.map(|(step, _, mut review)| {
        shorten(&mut review, &mut budget);
        (step, review)
    });
    let mut share = budget.share(10);
    let recent = recent(tx, plan, &mut share).await?;
    budget.give_back(share);
    let mut share = budget.share(8);
    let artifacts = artifacts(tx, plan, None, &mut share).await?;
    budget.give_back(share);
    let mut share = budget.share(8);
    let outputs = outputs(tx, plan, &mut share).await?;
    budget.give_back(share);

    let mut steps = steps_around(tx, plan, place, &mut budget).await?;
    let total = count(sheet.head.counts.total());
    let omitted = total.saturating_sub(steps.len());
    if omitted > 0 {
        budget.cut();
    }
    add_summaries(tx, &mut steps, &mut budget).await?;
    add_data(tx, steps.iter_mut(), &mut budget).await?;
    steps.sort_by_key(|told| told.step.order);
    Ok(PlanContext {
        sheet,
        steps,
        steps_omitted: u32::try_from(omitted).unwrap_or(u32::MAX),
        artifacts,
        outputs,
        review,
        interrupted,
        recent,
        truncated: budget.is_cut(),
        next,
    })
}

async fn standing(tx: &mut Tx, sheet: &Sheet) -> Result<Standing, Error> {
    let head = &sheet.head;
    let in_progress = Which::In(StepStatus::InProgress);
    let mut standing = Standing {
        working: Vec::new(),
        ready: None,
        review: None,
    };
    if head.status().is_terminal() {
        return Ok(standing);
    }
    standing.working = tx.step_lines(head.id, in_progress, 0, WORKING).await?;
    if let PlanState::AwaitingReview { step, .. } = &head.state {
        let facts = tx.sheet_of_step(*step).await?;
        standing.review = facts.and_then(|(_, step)| {
            let (id, order) = (step.id(), step.order);
            let StepState::AwaitingInput { review, .. } = step.state else {
                return None;
            };
            Some((id, order, review))
        });
    }
    standing.ready = tx.first_ready(head.id).await?.map(|step| step.order);
    Ok(standing)
}

impl Standing {
    /// The order at which the work stands: the first step that can be taken on, or the last that
    /// somebody has, or the end. A step that was left behind is named apart, and holds nobody up.
    fn place(&self, total: u32) -> u32 {
        let working = self.working.last().map(|line| line.order);
        let review = self.review.as_ref().map(|(_, order, _)| *order);
        let held = [working, review].into_iter().flatten().max();
        self.ready.or(held).unwrap_or(total.saturating_add(1))
    }
}

/// What its author said, each part within bounds that leave room for the rest.
fn brief(sheet: &mut Sheet, budget: &mut Budget) {
    let brief = &mut sheet.brief;
    budget.text(&mut brief.name, usize::MAX);
    budget.text(&mut brief.research_question, budget.left() / 2);
    let notes = [
        &mut brief.design_rationale,
        &mut brief.output_formatting_notes,
    ];
    for text in notes.into_iter().flatten() {
        budget.text(text, budget.left() / 4);
    }
}

fn interrupted(
    sheet: &Sheet,
    standing: &Standing,
    is_own: impl Fn(&StepLine) -> bool,
    now: Timestamp,
    budget: &mut Budget,
) -> Vec<Working> {
    if standing.working.len() < count(sheet.head.counts.in_progress)
        && !sheet.head.status().is_terminal()
    {
        budget.cut();
    }
    let mut share = budget.share(5);
    let left = standing.working.iter().filter(|line| !is_own(line));
    let left = left.map(|line| Working::of(line, now));
    let named = left.take_while(|working| {
        let session = working.session.as_ref().map_or(0, |it| cost(it.as_str()));
        share.take(ENTRY.saturating_add(session))
    });
    let named = named.collect();
    budget.give_back(share);
    named
}

/// A review's texts, within a half of what is left.
fn shorten(review: &mut Review, budget: &mut Budget) {
    let mut share = budget.share(2);
    share.take(ENTRY);
    share.text(&mut review.summary, usize::MAX);
    let asked = review.questions.len();
    review
        .questions
        .retain_mut(|question| share.entry(3, question));
    if review.questions.len() < asked {
        share.cut();
    }
    budget.give_back(share);
}

/// What happened last, oldest first. It is a beginning only, so what has no room is not missed.
async fn recent(tx: &mut Tx, plan: PlanId, budget: &mut Budget) -> Result<Vec<Recent>, Error> {
    let mut shown = Vec::new();
    let mut room = Budget::of(budget.left());
    for mut entry in tx.recent(plan, RECENT).await? {
        entry.details = entry.details.map(|details| codec::shown(&details));
        let details = entry.details.as_ref().map_or(0, cost_of_data);
        let session = entry.session.as_ref().map_or(0, |it| cost(it.as_str()));
        let costs = ENTRY + cost(&entry.actor) + session + details;
        if !room.take(costs) {
            break;
        }
        shown.push(entry);
    }
    budget.take(budget.left().saturating_sub(room.left()));
    shown.reverse();
    Ok(shown)
}

/// Lines of the steps around the place where the work stands, the nearest first: half of what is
/// left, of which what lies ahead gets a third, unless there is nothing behind.
async fn steps_around(
    tx: &mut Tx,
    plan: PlanId,
    place: u32,
    budget: &mut Budget,
) -> Result<Vec<StepTold>, Error> {
    let mut share = budget.share(2);
    let mut first = share.share(3);
    let (mut ahead, mut from) = (Vec::new(), place);
    let all = lines_ahead(tx, plan, &mut from, &mut ahead, &mut first).await?;
    share.give_back(first);
    let mut behind: Vec<StepBrief> = Vec::new();
    let mut below = place;
    'behind: loop {
        let page = tx.briefs(Briefs::Below(plan, below), PAGE).await?;
        let Some(last) = page.last() else { break };
        below = last.order;
        for brief in page {
            if !share.take(cost_of_line(&brief)) {
                break 'behind;
            }
            behind.push(brief);
        }
    }
    if !all {
        lines_ahead(tx, plan, &mut from, &mut ahead, &mut share).await?;
    }
    budget.give_back(share);
    // What lies behind has results, so its words come first.
    let lines = behind.into_iter().chain(ahead);
    Ok(lines.map(told).collect())
}

/// Lines from an order on, as many as there is room for; whether these were all.
async fn lines_ahead(
    tx: &mut Tx,
    plan: PlanId,
    from: &mut u32,
    lines: &mut Vec<StepBrief>,
    budget: &mut Budget,
) -> Result<bool, Error> {
    loop {
        let page = tx.briefs(Briefs::From(plan, *from), PAGE).await?;
        if page.is_empty() {
            return Ok(true);
        }
        for brief in page {
            let costs = cost_of_line(&brief);
            // Whether that is all is not known yet, so nothing counts as cut here.
            if budget.left() < costs {
                return Ok(false);
            }
            budget.take(costs);
            *from = brief.order.saturating_add(1);
            lines.push(brief);
        }
    }
}

fn told(step: StepBrief) -> StepTold {
    StepTold {
        step,
        summary: None,
        data: None,
    }
}

fn cost_of_line(brief: &StepBrief) -> usize {
    let title = brief.title.as_ref().map_or(0, |title| cost(title));
    let failure = brief.failure.as_ref().map(ToString::to_string);
    LINE + title + failure.map_or(0, |words| cost(&words))
}

/// What came out of the steps, in words, as far as there is room.
async fn add_summaries(
    tx: &mut Tx,
    steps: &mut [StepTold],
    budget: &mut Budget,
) -> Result<(), Error> {
    let with_result = |told: &&mut StepTold| told.step.summary_bytes.is_some();
    let mut wanted: Vec<&mut StepTold> = steps.iter_mut().filter(with_result).collect();
    for piece in wanted.chunks_mut(count(PAGE)) {
        let ids = may_fit(piece.iter().map(|told| &told.step), 0, budget.left());
        let all_fit = ids.len() == piece.len();
        for (told, summary) in piece.iter_mut().zip(tx.summaries(&ids).await?) {
            let mut summary = summary.unwrap_or_default();
            if !budget.entry(0, &mut summary) {
                return Ok(());
            }
            told.summary = Some(summary);
        }
        if !all_fit {
            budget.cut();
            return Ok(());
        }
    }
    Ok(())
}

/// What to call next, in words that name the tool.
fn next(
    sheet: &Sheet,
    standing: &Standing,
    is_own: impl Fn(&StepLine) -> bool,
    now: Timestamp,
) -> String {
    match &sheet.head.state {
        PlanState::Completed { .. } => {
            return "the plan is complete: `get_next_step` tells how its output should look"
                .to_owned();
        }
        PlanState::Failed { .. } => {
            return "the plan has failed: `create_research_plan` makes one for what is left to do"
                .to_owned();
        }
        PlanState::AwaitingReview { .. } => {
            let step = standing.review.as_ref().map_or(0, |(_, order, _)| *order);
            return format!(
                "step {step} waits for a person: `submit_user_decision` passes on what they decide"
            );
        }
        PlanState::Planning | PlanState::Executing | PlanState::Stalled { .. } => {}
    }
    if let Some(own) = standing.working.iter().find(|line| is_own(line)) {
        let order = own.order;
        return format!(
            "this session has step {order}: `submit_step_result` hands its result in, \
             `report_step_progress` shows that somebody works on it"
        );
    }
    let is_stalled = |line: &&StepLine| line.stalls_at.is_some_and(|at| now > at);
    let stalled = standing.working.iter().find(is_stalled);
    match (standing.ready, stalled.map(|line| line.order)) {
        (Some(ready), None) => format!("`get_next_step` hands out step {ready}"),
        (Some(ready), Some(stalled)) => format!(
            "`get_next_step` hands out step {ready}; with `includeStalled` it takes over step \
             {stalled} first, which has stalled"
        ),
        (None, Some(stalled)) => format!(
            "`get_next_step` with `includeStalled` takes over step {stalled}, which has stalled"
        ),
        (None, None) => {
            "others work on what is left: `get_plan_status` shows how far they are".to_owned()
        }
    }
}
