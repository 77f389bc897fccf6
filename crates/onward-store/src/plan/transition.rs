//! A transition as data: a change of a plan, and the statements that write it, all or none.
//!
//! This module performs no IO. The caller has computed the new rows. The statement that updates the
//! plan's row requires the version that the decision is based on, and the primary key of the audit
//! trail admits each sequence number once, so of two commits based on the same version of a plan
//! the second one fails.

use onward_core::branch::{Branch, Effect};
use onward_core::event::{Change, Created, Successor};
use onward_core::next_check::Due;
use onward_core::search::index_text;
use onward_core::step::NewStep;
use onward_core::transition::QueueChange;
use onward_core::{Event, PlanHead, PlanId, Step, StepId, Timestamp};

use crate::commit::Commit;
use crate::query::Query;
use crate::row::event::Entry;
use crate::row::plan::{Sheet, StoredVersion, TimeBucket, VersionTag};
use crate::row::{branch, event, labels_text, plan, step};
use crate::statement::Statement;
use crate::value::params;

/// Branch ordinals reserved per event, so that branches added later are evaluated later.
pub(crate) const BRANCHES_PER_EVENT: u64 = 100_000;

/// Updates the row of the plan, and checks its version. `known` is the row before the change, `tag`
/// the tag after it. If an update writes to every index whose columns it sets, columns that an index
/// depends on are set only if they change.
pub(crate) fn plan_row(
    commit: &Commit<'_>,
    known: Option<&StoredVersion>,
    tag: VersionTag,
    updates_every_index: bool,
) -> Vec<Statement> {
    let id = commit.head.id;
    // A plan that was not read has no known version, so the check fails.
    let version = params![tag.0, commit.before, known.map(|known| known.tag.0)];
    if !commit.changes_plan() {
        let mut params = params![id.as_uuid(), commit.head.seq];
        params.extend(version);
        return vec![Statement::new(Query::PlanNote, params).checking_version()];
    }
    let bucket = commit.acted_at().map(TimeBucket::new);
    let mut statements = Vec::new();
    if updates_every_index
        && let Some(bucket) =
            bucket.filter(|bucket| known.is_none_or(|known| known.bucket != *bucket))
    {
        let params = params![id.as_uuid(), bucket.0];
        statements.push(Statement::new(Query::PlanTouch, params).expecting(1));
    }
    let unchanged = known.is_some_and(|known| known.has_state_of(commit.head));
    let (query, mut params) = if updates_every_index && unchanged {
        (Query::PlanUpdate, plan::counting(commit.head))
    } else {
        (Query::PlanMove, plan::changing(commit.head))
    };
    params.extend(params![commit.at, commit.acted_at(), commit.worked_at()]);
    params.extend(version);
    statements.push(Statement::new(query, params).checking_version());
    statements
}

/// Updates the rows of the steps.
pub(crate) fn step_rows(commit: &Commit<'_>) -> impl Iterator<Item = Statement> {
    commit.steps.iter().map(|after| {
        let (query, row): (_, fn(&Step, _, _) -> _) = if after.advanced {
            (Query::StepAdvance, step::advancing)
        } else {
            (Query::StepUpdate, step::changing)
        };
        let params = row(&after.step, after.stalls_at, commit.commit_seq);
        Statement::new(query, params).expecting(1)
    })
}

/// Adds the entries of the audit trail.
pub(crate) fn audit_entries(commit: &Commit<'_>) -> impl Iterator<Item = Statement> {
    let seqs = commit.before.saturating_add(1)..;
    seqs.zip(commit.events).map(|(seq, event)| {
        let entry = Entry {
            seq,
            commit_seq: commit.commit_seq,
            at: commit.at,
            author: commit.author.clone(),
            event: event.clone(),
        };
        audit_entry(commit.head.id, &entry)
    })
}

/// Adds an entry of the audit trail.
pub(crate) fn audit_entry(plan: PlanId, entry: &Entry) -> Statement {
    Statement::new(Query::EventInsert, event::inserted(plan, entry))
}

/// Sets when the sweep must check a plan. No sweep changes due times after `quiet` while this is
/// being written.
pub(crate) fn due_time(plan: PlanId, due: Due, quiet: Option<Timestamp>) -> Option<Statement> {
    let id = plan.as_uuid();
    Some(match due {
        Due::Unchanged => return None,
        Due::By(at) => {
            let quiet = quiet.unwrap_or(Timestamp::MAX);
            Statement::new(Query::DueSooner, params![id, at, quiet])
        }
        Due::At(at) => Statement::new(Query::DueSet, params![id, at]),
        Due::Never => Statement::new(Query::DueClear, params![id]),
    })
}

/// Statements that most transitions do not need: new definitions, dependencies of ended steps, and
/// changes to the lists of steps, branches and sessions.
pub(crate) fn list_changes(commit: &Commit<'_>) -> Vec<Statement> {
    let redefined = commit.steps.iter().filter(|after| after.redefined);
    let mut statements: Vec<Statement> = redefined.map(|after| definition(&after.step)).collect();
    let seqs = commit.before.saturating_add(1)..;
    for (seq, event) in seqs.zip(commit.events) {
        if let Some(step) = event.ended_step() {
            let has_failed = matches!(event, Event::StepFailed { .. });
            statements.extend(release_dependents(commit, step, has_failed));
        }
        statements.extend(step_note(event, commit.at));
        statements.extend(list_change(commit, seq, event));
    }
    if commit.budget_changed {
        let params = params![commit.head.id.as_uuid(), plan::budget_text(commit.head)];
        statements.push(Statement::new(Query::PlanBudget, params).expecting(1));
    }
    statements.extend(queue_change(commit.head, commit.queue));
    statements
}

/// Changes the queue of the plan's project.
pub(crate) fn queue_change(head: &PlanHead, change: QueueChange) -> Option<Statement> {
    match change {
        QueueChange::Unchanged => None,
        QueueChange::Enqueue => Some(enqueue(head)),
        QueueChange::Dequeue => Some(dequeue(head.id)),
    }
}

/// Adds the steps of a plan to the queue of its project.
fn enqueue(head: &PlanHead) -> Statement {
    let routing = &head.routing;
    let key = routing.project_key.as_deref();
    let params = params![head.id.as_uuid(), key, u32::from(routing.priority)];
    Statement::new(Query::QueueAdd, params)
}

/// Removes the steps of a plan from the queue of its project, because the plan assigns no steps
/// now.
pub(crate) fn dequeue(plan: PlanId) -> Statement {
    Statement::new(Query::QueueRemove, params![plan.as_uuid()])
}

/// Stores the note and the percentage of a progress report.
fn step_note(event: &Event, at: Timestamp) -> Option<Statement> {
    let Event::StepProgressed {
        step,
        note,
        percent,
        ..
    } = event
    else {
        return None;
    };
    if note.is_none() && percent.is_none() {
        return None;
    }
    let params = params![step.as_uuid(), note.as_deref(), *percent, at];
    Some(Statement::new(Query::StepNote, params).expecting(1))
}

/// Decrements the number of open dependencies of the steps for which the end of `ended` meets one.
fn release_dependents(commit: &Commit<'_>, ended: StepId, has_failed: bool) -> Option<Statement> {
    // Usually no step depends on it, and a statement that affects no row costs as much as a write.
    let needed = commit.independent != Some(ended);
    needed.then(|| {
        Statement::new(
            Query::DependentsRelease,
            params![ended.as_uuid(), has_failed],
        )
    })
}

fn list_change(commit: &Commit<'_>, seq: u64, event: &Event) -> Vec<Statement> {
    let (plan, at) = (commit.head.id, commit.at);
    match event {
        Event::PlanModified { change, .. } => match change {
            Change::StepsAdded { after, steps } => add_steps(plan, *after, steps, at),
            Change::StepRemoved { step } => remove_step(plan, *step),
            Change::StepsReordered { steps } => reorder(plan, steps),
            Change::StepUpdated { step } => set_dependencies(plan, step),
            Change::PlanUpdated { routing } => {
                let labels = labels_text(&routing.labels);
                let key = routing.project_key.as_deref();
                let params = params![plan.as_uuid(), key, labels, u32::from(routing.priority)];
                vec![Statement::new(Query::PlanRoute, params).expecting(1)]
            }
            Change::StepRedone { successors, .. } => redo(commit, successors),
            Change::BranchAdded { branch } => {
                add_branch(plan, branch, seq.saturating_mul(BRANCHES_PER_EVENT))
            }
            Change::Created(_)
            | Change::BudgetSet { .. }
            | Change::InstructionsUpdated { .. }
            | Change::StepRenamed { .. }
            | Change::StepFailed { .. }
            | Change::StepSkipped { .. }
            | Change::StepRequeued { .. } => Vec::new(),
        },
        Event::BranchTaken {
            step,
            effect: Effect::Added { steps },
            ..
        } => {
            let after = commit.steps.iter().find(|after| after.step.id() == *step);
            // The step after which the branch was taken was completed in this commit.
            let order = after.map_or(0, |after| after.step.order);
            add_steps(plan, order, steps, at)
        }
        Event::SessionResumed { session } => {
            let params = params![plan.as_uuid(), session.as_str()];
            vec![Statement::new(Query::ResumedSessionInsert, params)]
        }
        Event::BranchTaken { .. }
        | Event::StepStarted { .. }
        | Event::StepCompleted { .. }
        | Event::StepFailed { .. }
        | Event::StepSkipped { .. }
        | Event::StepRequeued { .. }
        | Event::StepProgressed { .. }
        | Event::FeedbackDelivered { .. }
        | Event::StepOrphaned { .. }
        | Event::UserReviewed { .. }
        | Event::SkillStarted { .. }
        | Event::SkillCompleted { .. }
        | Event::BudgetExhausted { .. }
        | Event::PlanStalled { .. }
        | Event::PlanResumed { .. }
        | Event::PlanCompleted
        | Event::PlanFailed { .. }
        | Event::PlanStatusChanged { .. }
        | Event::LateResultKept { .. } => Vec::new(),
    }
}

fn definition(step: &Step) -> Statement {
    Statement::new(Query::StepDefinition, step::definition(step)).expecting(1)
}

/// Replaces the dependencies of a pending step.
fn set_dependencies(plan: PlanId, spec: &NewStep) -> Vec<Statement> {
    let by_step = |query| Statement::new(query, params![spec.id.as_uuid()]);
    let mut statements = vec![by_step(Query::DependenciesDeleteOfStep)];
    statements.extend(dependencies(plan, spec));
    statements.push(by_step(Query::StepCountDependencies).expecting(1));
    statements
}

fn dependencies(plan: PlanId, spec: &NewStep) -> impl Iterator<Item = Statement> {
    spec.depends_on.iter().map(move |needed| {
        let params = params![needed.as_uuid(), spec.id.as_uuid(), plan.as_uuid()];
        Statement::new(Query::DependencyInsert, params)
    })
}

fn add_steps(plan: PlanId, after: u32, specs: &[NewStep], at: Timestamp) -> Vec<Statement> {
    let mut statements = vec![
        Statement::new(
            Query::StepsShiftUp,
            params![plan.as_uuid(), after, specs.len()],
        ),
        Statement::new(Query::StepsRestoreSign, params![plan.as_uuid()]),
    ];
    for (order, spec) in (after.saturating_add(1)..).zip(specs) {
        statements.extend(new_step(plan, spec, order, at, 0));
    }
    statements.extend(count_dependencies(specs));
    statements
}

/// Inserts a step with this number of open dependencies.
pub(crate) fn new_step(
    plan: PlanId,
    spec: &NewStep,
    order: u32,
    at: Timestamp,
    open: usize,
) -> Vec<Statement> {
    let params = step::inserted(plan, spec, order, at, open);
    let mut statements = vec![Statement::new(Query::StepInsert, params)];
    statements.extend(dependencies(plan, spec));
    statements
}

fn remove_step(plan: PlanId, id: StepId) -> Vec<Statement> {
    let by_step = |query| Statement::new(query, params![id.as_uuid()]);
    vec![
        by_step(Query::BranchNeedsDeleteAfter),
        by_step(Query::BranchesDeleteAfter),
        by_step(Query::DependenciesDeleteOfStep),
        // Later steps move up by one. This statement reads the order of the step, so it comes before
        // the deletion.
        Statement::new(Query::StepsShiftDown, params![plan.as_uuid(), id.as_uuid()]),
        by_step(Query::StepDelete).expecting(1),
        Statement::new(Query::StepsRestoreSign, params![plan.as_uuid()]),
    ]
}

fn reorder(plan: PlanId, ids: &[StepId]) -> Vec<Statement> {
    let moves = (1u32..).zip(ids).map(|(order, id)| {
        Statement::new(Query::StepMove, params![id.as_uuid(), order]).expecting(1)
    });
    let settle = Statement::new(Query::StepsRestoreSign, params![plan.as_uuid()]);
    moves.chain([settle]).collect()
}

/// Supersedes steps. References to a superseded step then refer to its successor.
fn redo(commit: &Commit<'_>, successors: &[Successor]) -> Vec<Statement> {
    let (plan, at) = (commit.head.id, commit.at);
    let mut statements = Vec::new();
    let pairs: Vec<(StepId, StepId)> = (successors.iter())
        .filter_map(|successor| Some((successor.step.supersedes?, successor.step.id)))
        .collect();
    for (old, new) in &pairs {
        statements.push(supersede(*old, *new));
    }
    for (old, new) in &pairs {
        let params = params![old.as_uuid(), old.to_string(), new.to_string(), at];
        statements.push(Statement::new(Query::DependentsFollow, params));
        let params = params![old.as_uuid(), new.as_uuid()];
        statements.push(Statement::new(Query::DependenciesFollow, params));
    }
    for successor in successors {
        for branch in &successor.branches {
            let params = params![branch.as_uuid(), successor.step.id.as_uuid()];
            statements.push(Statement::new(Query::BranchMove, params).expecting(1));
        }
    }
    for redirected in commit.branches {
        let params = branch::redirected(redirected);
        statements.push(Statement::new(Query::BranchRedirect, params).expecting(1));
    }
    for (old, new) in &pairs {
        let params = params![plan.as_uuid(), old.as_uuid(), new.as_uuid()];
        statements.push(Statement::new(Query::BranchNeedsFollow, params));
    }
    // A step moves by the number of superseded steps before it.
    let orders: Vec<u32> = successors.iter().map(|successor| successor.order).collect();
    for (shift, after) in (1u32..).zip(&orders) {
        let next = usize::try_from(shift)
            .ok()
            .and_then(|next| orders.get(next));
        statements.push(match next {
            Some(next) => {
                let params = params![plan.as_uuid(), *after, *next, shift];
                Statement::new(Query::StepsShiftBetween, params)
            }
            None => Statement::new(Query::StepsShiftUp, params![plan.as_uuid(), *after, shift]),
        });
    }
    statements.push(Statement::new(
        Query::StepsRestoreSign,
        params![plan.as_uuid()],
    ));
    for (shift, successor) in (1u32..).zip(successors) {
        let order = successor.order.saturating_add(shift);
        statements.extend(new_step(plan, &successor.step, order, at, 0));
    }
    let steps = successors.iter().map(|successor| &successor.step);
    statements.extend(count_dependencies(steps));
    let params = params![plan.as_uuid(), commit.head.counts.superseded];
    statements.push(Statement::new(Query::PlanSupersede, params).expecting(1));
    statements
}

/// Marks a step as superseded.
pub(crate) fn supersede(old: StepId, new: StepId) -> Statement {
    let params = params![old.as_uuid(), new.as_uuid()];
    Statement::new(Query::StepSupersede, params).expecting(1)
}

/// Counts the open dependencies of new steps.
fn count_dependencies<'s>(
    steps: impl IntoIterator<Item = &'s NewStep>,
) -> impl Iterator<Item = Statement> {
    let dependent = (steps.into_iter()).filter(|spec| !spec.depends_on.is_empty());
    dependent.map(|spec| {
        Statement::new(Query::StepCountDependencies, params![spec.id.as_uuid()]).expecting(1)
    })
}

/// Inserts a branch.
pub(crate) fn add_branch(plan: PlanId, made: &Branch, ordinal: u64) -> Vec<Statement> {
    let mut statements = vec![Statement::new(
        Query::BranchInsert,
        branch::inserted(plan, made, ordinal),
    )];
    statements.extend(made.references().into_iter().map(|needed| {
        let params = params![needed.as_uuid(), made.id.as_uuid(), plan.as_uuid()];
        Statement::new(Query::BranchNeedInsert, params)
    }));
    statements
}

/// Inserts the row of a plan, with its words for lists.
pub(crate) fn new_plan(sheet: &Sheet, tag: VersionTag) -> [Statement; 2] {
    let mut row = plan::changing(&sheet.head);
    row.extend(plan::fixed(sheet, tag));
    let (id, brief) = (sheet.head.id, &sheet.brief);
    let words = format!(
        "{} {}",
        index_text(&brief.name),
        index_text(&brief.research_question)
    );
    [
        Statement::new(Query::PlanInsert, row),
        Statement::new(Query::PlanWordsInsert, params![id.as_uuid(), words]),
    ]
}

/// Inserts the steps and branches of a new plan.
pub(crate) fn new_lists(created: &Created, plan: PlanId, at: Timestamp) -> Vec<Statement> {
    let mut statements = Vec::new();
    for (order, spec) in (1u32..).zip(&created.steps) {
        // All dependencies of a new plan's steps are new, and therefore open.
        statements.extend(new_step(plan, spec, order, at, spec.depends_on.len()));
    }
    for (place, branch) in (0u64..).zip(&created.branches) {
        statements.extend(add_branch(plan, branch, BRANCHES_PER_EVENT + place));
    }
    statements
}
