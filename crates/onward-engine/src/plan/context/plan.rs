//! Context for resuming a plan: the current position, the results of the steps around it, steps in
//! progress, and the recommended tool call.

use onward_core::id::SessionId;
use onward_core::plan::PlanState;
use onward_core::step::{Review, ReviewField};
use onward_core::{PlanId, Step, StepId, StepStatus, Timestamp};
use onward_store::{
    Briefs, Contexts, Excerpt, OutputExcerpt, Plans, Sheet, StepBrief, StepLine, Steps, Tx, Which,
};

use super::budget::{Budget, cost, json_cost};
use super::excerpts::{
    ENTRY_COST, PAGE_SIZE, StepWithResult, add_data, add_evidence, artifacts, count, may_fit,
    outputs,
};
use super::focus::{
    self, FeedbackEntry, FocusedStep, InterruptedStep, OwnStep, ProgressNote, SignificantEvent,
    feedback, interrupted, next_steps, own_steps, recent,
};
use crate::error::Error;
use crate::plan::next_step::StepInProgress;

/// Cost of the response apart from its texts and lists.
const BASE_COST: usize = 1_100;
/// Cost of a step apart from its texts.
const STEP_COST: usize = 220;
/// Cost of a value to choose in a typed question, apart from its texts.
const OPTION_COST: usize = 25;
/// Maximum number of steps in progress.
const MAX_IN_PROGRESS: u32 = 50;

/// Context for resuming a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanContext {
    /// The plan.
    pub sheet: Sheet,
    /// Steps in order; if the budget does not allow all, those nearest to the current position.
    pub steps: Vec<StepWithResult>,
    /// Number of steps omitted.
    pub steps_omitted: u32,
    /// Artifacts, newest first.
    pub artifacts: Vec<Excerpt>,
    /// Outputs so far, newest first.
    pub outputs: Vec<OutputExcerpt>,
    /// The step under review and the review request.
    pub review: Option<(StepId, Review)>,
    /// Steps in progress of other sessions.
    pub interrupted: Vec<InterruptedStep>,
    /// Steps that the session holds.
    pub own: Vec<OwnStep>,
    /// The texts of the next pending steps.
    pub next_steps: Vec<FocusedStep>,
    /// Progress notes, oldest first.
    pub notes: Vec<ProgressNote>,
    /// Feedback of users, newest first.
    pub feedback: Vec<FeedbackEntry>,
    /// The latest significant events, oldest first.
    pub recent: Vec<SignificantEvent>,
    /// Whether anything was truncated or omitted.
    pub truncated: bool,
    /// The recommended next tool call.
    pub next: String,
}

/// The current position in the plan.
struct Position {
    /// Steps in progress, lowest order first.
    in_progress: Vec<StepLine>,
    /// The step that `get_next_step` would assign.
    ready: Option<u32>,
    /// The step under review.
    review: Option<(StepId, u32, Review)>,
}

pub(super) async fn read(
    tx: &mut Tx,
    plan: PlanId,
    session: Option<&SessionId>,
    holder: Option<&SessionId>,
    max_chars: usize,
    now: Timestamp,
) -> Result<PlanContext, Error> {
    let sheet = Plans(tx).sheet(plan).await?;
    let mut sheet = sheet.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
    let position = position(tx, &sheet).await?;
    let mut budget = Budget::new(max_chars.saturating_sub(BASE_COST));
    truncate_brief(&mut sheet, &mut budget);

    let is_own = |line: &StepLine| session.is_some() && line.session.as_ref() == session;
    let next = next_call(&sheet, &position, is_own, now);
    let own = if position.in_progress.is_empty() {
        Vec::new()
    } else {
        own_steps(tx, plan, holder, &mut budget).await?
    };
    let others = others(&sheet, &position, session, now, &mut budget);
    let interrupted = interrupted(tx, plan, others, &mut budget).await?;
    let from = position.ready.unwrap_or(1);
    let next_steps = next_steps(tx, &sheet, from, &mut budget).await?;
    let order = position.order(sheet.head.counts.last_order());
    let review = position.review.map(|(step, _, mut review)| {
        truncate_review(&mut review, &mut budget);
        (step, review)
    });
    let mut share = budget.share(6);
    let feedback = feedback(tx, plan, &mut share).await?;
    budget.return_share(share);
    let mut share = budget.share(6);
    let (notes, recent) = recent(tx, &sheet, &mut share).await?;
    budget.return_share(share);
    let mut share = budget.share(8);
    let artifacts = artifacts(tx, plan, None, &mut share).await?;
    budget.return_share(share);
    let mut share = budget.share(8);
    let outputs = outputs(tx, plan, &mut share).await?;
    budget.return_share(share);

    let mut steps = steps_around(tx, plan, order, &mut budget).await?;
    let total = count(sheet.head.counts.total());
    let omitted = total.saturating_sub(steps.len());
    if omitted > 0 {
        budget.mark_truncated();
    }
    add_summaries(tx, &mut steps, &mut budget).await?;
    add_evidence(tx, steps.iter_mut(), &mut budget).await?;
    add_data(tx, steps.iter_mut(), &mut budget).await?;
    steps.sort_by_key(|entry| entry.step.order);
    Ok(PlanContext {
        sheet,
        steps,
        steps_omitted: u32::try_from(omitted).unwrap_or(u32::MAX),
        artifacts,
        outputs,
        review,
        interrupted,
        own,
        next_steps,
        notes,
        feedback,
        recent,
        truncated: budget.is_truncated(),
        next,
    })
}

async fn position(tx: &mut Tx, sheet: &Sheet) -> Result<Position, Error> {
    let head = &sheet.head;
    let in_progress = Which::In(StepStatus::InProgress);
    let mut position = Position {
        in_progress: Vec::new(),
        ready: None,
        review: None,
    };
    if head.status().is_terminal() {
        return Ok(position);
    }
    position.in_progress = Steps(tx)
        .step_lines(head.id, in_progress, 0, MAX_IN_PROGRESS)
        .await?;
    if head.counts.awaiting_input > 0 {
        let steps = Steps(tx).under_review(head.id, MAX_IN_PROGRESS).await?;
        // A review that stops the plan comes first.
        let stops = |step: &&Step| match &head.state {
            PlanState::AwaitingReview { reviews } => {
                reviews.iter().any(|pending| pending.step == step.id())
            }
            PlanState::Planning
            | PlanState::Executing
            | PlanState::Stalled { .. }
            | PlanState::Completed { .. }
            | PlanState::Failed { .. } => false,
        };
        let step = steps.iter().find(stops).or(steps.first());
        position.review =
            step.and_then(|step| Some((step.id(), step.order, step.open_review()?.clone())));
    }
    position.ready = Steps(tx)
        .first_ready(head.id, None)
        .await?
        .map(|step| step.order);
    Ok(position)
}

impl Position {
    /// The order of the current position: the first step that can be assigned, or the last step in
    /// progress or under review, or the end. Earlier steps in progress are listed separately.
    fn order(&self, total: u32) -> u32 {
        let in_progress = self.in_progress.last().map(|line| line.order);
        let review = self.review.as_ref().map(|(_, order, _)| *order);
        let active = [in_progress, review].into_iter().flatten().max();
        self.ready.or(active).unwrap_or(total.saturating_add(1))
    }
}

/// Truncates the plan's texts so that space for the rest remains.
fn truncate_brief(sheet: &mut Sheet, budget: &mut Budget) {
    let brief = &mut sheet.brief;
    budget.text(&mut brief.name, usize::MAX);
    budget.text(&mut brief.research_question, budget.left() / 4);
    let notes = [
        &mut brief.design_rationale,
        &mut brief.output_formatting_notes,
    ];
    for text in notes.into_iter().flatten() {
        budget.text(text, budget.left() / 12);
    }
}

fn others(
    sheet: &Sheet,
    position: &Position,
    session: Option<&SessionId>,
    now: Timestamp,
    budget: &mut Budget,
) -> Vec<StepInProgress> {
    if position.in_progress.len() < count(sheet.head.counts.in_progress)
        && !sheet.head.status().is_terminal()
    {
        budget.mark_truncated();
    }
    let mut share = budget.share(5);
    let others = focus::others(&position.in_progress, session, now);
    let listed = others.take_while(|step| {
        let session = step.session.as_ref().map_or(0, |id| cost(id.as_str()));
        share.spend(ENTRY_COST.saturating_add(session))
    });
    let listed = listed.collect();
    budget.return_share(share);
    listed
}

/// Truncates a review's texts to half of the remaining budget.
fn truncate_review(review: &mut Review, budget: &mut Budget) {
    let mut share = budget.share(2);
    share.spend(ENTRY_COST);
    share.text(&mut review.summary, usize::MAX);
    let total = review.asked().count();
    review
        .questions
        .retain_mut(|question| share.entry(3, question));
    let fields = &mut review.options.fields;
    fields.retain(|field| share.spend(field_cost(field)));
    if review.asked().count() < total {
        share.mark_truncated();
    }
    // The result is as long as any other; the review page and `part: review` show it.
    review.result = None;
    budget.return_share(share);
}

/// Cost of a typed question in JSON.
fn field_cost(field: &ReviewField) -> usize {
    let title = |title: &Option<String>| title.as_deref().map_or(0, cost);
    let options = field.options.iter();
    let options = options.map(|option| OPTION_COST + cost(&option.value) + title(&option.title));
    let default = field.default.as_ref().map_or(0, json_cost);
    ENTRY_COST + cost(&field.name) + title(&field.title) + default + options.sum::<usize>()
}

/// Steps around the current position, nearest first. They get half of the remaining budget. The
/// steps ahead get a third of it, plus the part that the earlier steps do not use.
async fn steps_around(
    tx: &mut Tx,
    plan: PlanId,
    order: u32,
    budget: &mut Budget,
) -> Result<Vec<StepWithResult>, Error> {
    let mut share = budget.share(2);
    let mut first = share.share(3);
    let (mut ahead, mut from) = (Vec::new(), order);
    let complete = add_steps_ahead(tx, plan, &mut from, &mut ahead, &mut first).await?;
    share.return_share(first);
    let mut earlier: Vec<StepBrief> = Vec::new();
    let mut below = order;
    'earlier: loop {
        let page = Contexts(tx)
            .briefs(Briefs::Below(plan, below), PAGE_SIZE)
            .await?;
        let Some(last) = page.last() else { break };
        below = last.order;
        for brief in page {
            if !share.spend(step_cost(&brief)) {
                break 'earlier;
            }
            earlier.push(brief);
        }
    }
    if !complete {
        add_steps_ahead(tx, plan, &mut from, &mut ahead, &mut share).await?;
    }
    budget.return_share(share);
    // Earlier steps have results, so their summaries are loaded first.
    let lines = earlier.into_iter().chain(ahead);
    Ok(lines.map(without_result).collect())
}

/// Adds steps from an order on, within the budget. Returns true if no steps remain.
async fn add_steps_ahead(
    tx: &mut Tx,
    plan: PlanId,
    from: &mut u32,
    lines: &mut Vec<StepBrief>,
    budget: &mut Budget,
) -> Result<bool, Error> {
    loop {
        let page = Contexts(tx)
            .briefs(Briefs::From(plan, *from), PAGE_SIZE)
            .await?;
        if page.is_empty() {
            return Ok(true);
        }
        for brief in page {
            let costs = step_cost(&brief);
            // Not truncated yet: the caller may continue with more budget.
            if budget.left() < costs {
                return Ok(false);
            }
            budget.spend(costs);
            *from = brief.order.saturating_add(1);
            lines.push(brief);
        }
    }
}

fn without_result(step: StepBrief) -> StepWithResult {
    StepWithResult {
        step,
        summary: None,
        data: None,
        evidence: Vec::new(),
    }
}

fn step_cost(brief: &StepBrief) -> usize {
    let title = brief.title.as_ref().map_or(0, |title| cost(title));
    let failure = brief.failure.as_ref().map(ToString::to_string);
    STEP_COST + title + failure.map_or(0, |words| cost(&words))
}

/// Adds the summaries of the results, within the budget.
async fn add_summaries(
    tx: &mut Tx,
    steps: &mut [StepWithResult],
    budget: &mut Budget,
) -> Result<(), Error> {
    let with_result = |entry: &&mut StepWithResult| entry.step.summary_bytes.is_some();
    let mut selected: Vec<&mut StepWithResult> = steps.iter_mut().filter(with_result).collect();
    for page in selected.chunks_mut(count(PAGE_SIZE)) {
        let ids = may_fit(page.iter().map(|entry| &entry.step), 0, budget.left());
        let all_fit = ids.len() == page.len();
        for (entry, summary) in page.iter_mut().zip(Contexts(tx).summaries(&ids).await?) {
            let mut summary = summary.unwrap_or_default();
            if !budget.entry(0, &mut summary) {
                return Ok(());
            }
            entry.summary = Some(summary);
        }
        if !all_fit {
            budget.mark_truncated();
            return Ok(());
        }
    }
    Ok(())
}

/// The recommended tool call.
fn next_call(
    sheet: &Sheet,
    position: &Position,
    is_own: impl Fn(&StepLine) -> bool,
    now: Timestamp,
) -> String {
    match &sheet.head.state {
        PlanState::Completed { .. } => {
            return "the plan is complete: store its output with `store_research_output`; \
                    `get_next_step` returns the formatting notes"
                .to_owned();
        }
        PlanState::Failed { .. } => {
            return "the plan has failed: create a plan for the remaining work with \
                    `create_research_plan`"
                .to_owned();
        }
        PlanState::AwaitingReview { .. } => {
            let step = position.review.as_ref().map_or(0, |(_, order, _)| *order);
            return format!(
                "step {step} is awaiting review: record the decision with `submit_user_decision`"
            );
        }
        PlanState::Planning | PlanState::Executing | PlanState::Stalled { .. } => {}
    }
    if let Some(own) = position.in_progress.iter().find(|line| is_own(line)) {
        let order = own.order;
        return format!(
            "this session holds step {order}: submit its result with `submit_step_result`, or \
             report progress with `report_step_progress`; `get_next_step` returns it again if no \
             other step is ready"
        );
    }
    let is_orphaned = |line: &&StepLine| line.orphaned_at.is_some();
    if position.ready.is_none()
        && let Some(orphaned) = position.in_progress.iter().find(is_orphaned)
    {
        let order = orphaned.order;
        return format!("call `get_next_step` to take over step {order}: its session has ended");
    }
    let is_stalled = |line: &&StepLine| line.is_stalled(now) || is_orphaned(line);
    let stalled = position.in_progress.iter().find(is_stalled);
    match (position.ready, stalled.map(|line| line.order)) {
        (Some(ready), None) => format!("call `get_next_step` to claim step {ready}"),
        (Some(ready), Some(stalled)) => format!(
            "call `get_next_step` to claim step {ready}, or with `includeStalled` to take over step \
             {stalled} first"
        ),
        (None, Some(stalled)) => format!(
            "call `get_next_step` with `includeStalled` to take over the stalled step {stalled}"
        ),
        (None, None) if position.in_progress.is_empty() && position.review.is_some() => {
            let step = position.review.as_ref().map_or(0, |(_, order, _)| *order);
            format!(
                "step {step} is awaiting review: record the decision with `submit_user_decision`"
            )
        }
        (None, None) if position.in_progress.is_empty() => {
            "the remaining steps wait for a step that failed: redo it with `modify_plan` and \
             `redo_step`, or ask the user to skip it"
                .to_owned()
        }
        (None, None) => {
            "other sessions work on the remaining steps: call `get_next_step` with `waitMs: 60000`"
                .to_owned()
        }
    }
}
