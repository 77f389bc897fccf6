//! Paginated lists of plans, steps and open reviews, single objects, and lookup by id prefix.

use std::collections::BTreeMap;
use std::time::Duration;

use onward_core::attention::{Attention, Word, attention, is_archived};
use onward_core::branch::Branch;
use onward_core::budget::Exhausted;
use onward_core::id::{OutputId, ReviewId};
use onward_core::role::Permission;
use onward_core::search::Query;
use onward_core::step::Review;
use onward_core::{PlanId, PlanStatus, Step, StepId, StepStatus, Timestamp};
use onward_store::{
    Contexts, Excerpt, Output, OutputExcerpt, Outputs, Owner, PlanCount, PlanCursor, PlanLists,
    Plans, Sheet, StepLine, StepReport, Steps, Tx, Which,
};
use uuid::Uuid;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::{Error, MATCHES, ObjectKind, match_entry};
pub use crate::plan::attention::Archived;

/// Text that at least this many plans match is searched by scanning the newest plans instead of the
/// full-text index.
const SCAN_THRESHOLD: u32 = 5_000;
/// The scan reads batches, each twice as large as the previous one, up to this size.
const MAX_BATCH: u32 = 500;

/// A query for plans.
#[derive(Debug, Clone, Default)]
pub struct PlanQuery {
    /// Maximum number of plans.
    pub limit: u32,
    /// Cursor: the last plan of the previous page.
    pub after: Option<PlanCursor>,
    /// Include finished plans.
    pub finished: bool,
    /// Only plans in this status; overrides `finished`.
    pub status: Option<PlanStatus>,
    /// Only plans whose name and question contain all words of this text, each as a whole word or a
    /// word prefix.
    pub text: Option<String>,
    /// Only plans of this project.
    pub project_key: Option<String>,
    /// Only plans with this label.
    pub label: Option<String>,
    /// Only plans of this person.
    pub owner: Option<String>,
    /// Only plans with an action at or after this time.
    pub since: Option<Timestamp>,
    /// Archived plans.
    pub archived: Archived,
    /// Only unfinished lists, or only other plans.
    pub unfinished_lists: Option<bool>,
}

impl PlanQuery {
    /// Whether the plan has the requested label, owner, time and kind.
    fn matches(&self, listed: &Listed) -> bool {
        let sheet = &listed.sheet;
        let is_list = listed.attention.word == Word::UnfinishedList;
        let labels = &sheet.head.routing.labels;
        let owner = sheet.owner.person.as_str();
        self.label
            .as_ref()
            .is_none_or(|label| labels.contains(label))
            && self.owner.as_ref().is_none_or(|person| owner == person)
            && self.since.is_none_or(|since| sheet.acted_at >= since)
            && self.unfinished_lists.is_none_or(|lists| lists == is_list)
            && (self.archived != Archived::Only || listed.archived)
    }

    fn is_filtered(&self) -> bool {
        self.label.is_some()
            || self.owner.is_some()
            || self.since.is_some()
            || self.unfinished_lists.is_some()
            || self.archived == Archived::Only
    }
}

/// A plan in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The plan.
    pub sheet: Sheet,
    /// Whether one of its steps is past its stall threshold, or its budget stops it.
    pub stalled: bool,
    /// What the plan needs.
    pub attention: Attention,
    /// The exhausted limit of its budget.
    pub exhausted: Option<Exhausted>,
    /// Whether default lists omit it.
    pub archived: bool,
}

impl Listed {
    /// Whether nothing but a higher budget lets the plan continue.
    pub fn is_stopped_by_budget(&self) -> bool {
        let has_no_work = self.sheet.head.counts.in_progress == 0;
        self.exhausted.is_some() && has_no_work && self.attention.word == Word::Stuck
    }
}

/// A page of plans.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanPage {
    /// The most recent action first.
    pub plans: Vec<Listed>,
    /// Cursor for the next page, if there is one.
    pub next: Option<PlanCursor>,
}

impl PlanPage {
    /// The cursor of a page that begins after the plan at this index.
    pub fn cursor_after(&self, place: usize) -> Option<PlanCursor> {
        self.plans.get(place).map(cursor)
    }
}

/// A page of steps.
#[derive(Debug, Clone, PartialEq)]
pub struct StepPage {
    /// In their order.
    pub steps: Vec<StepLine>,
    /// The orders of the steps that each of them depends on.
    pub depends_on: BTreeMap<StepId, Vec<u32>>,
    /// Order after which the next page begins, if there is one.
    pub next: Option<u32>,
}

/// A pending review.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenReview {
    /// The review.
    pub id: ReviewId,
    /// The plan.
    pub plan: PlanId,
    /// The step under review.
    pub step: StepId,
    /// The step's position.
    pub order: u32,
    /// The step's title.
    pub title: Option<String>,
    /// The review request.
    pub review: Review,
}

impl OpenReview {
    /// Whether this member should decide the review.
    pub fn is_assigned_to(&self, member: &str) -> bool {
        let assignee = self.review.options.assignee.as_deref();
        assignee.map(Owner::person_of) == Some(Owner::person_of(member))
    }

    /// The pending review of a step.
    pub fn from_step(plan: PlanId, step: Step) -> Option<Self> {
        let review = step.open_review()?.clone();
        Some(Self {
            id: review.id,
            plan,
            step: step.id(),
            order: step.order,
            title: step.spec.title,
            review,
        })
    }
}

impl Engine {
    /// Plans, the most recent action first.
    pub async fn list_plans(&self, caller: &Caller, query: PlanQuery) -> Result<PlanPage, Error> {
        caller.allow(Permission::Read)?;
        let limits = Limits {
            now: self.now(),
            no_agent_after: self.no_agent_after,
            archived_before: self.archived_before(),
        };
        let page = self.store.read(&caller.tenant, move |tx| {
            let query = query.clone();
            Box::pin(async move { plans(tx, query, limits).await })
        });
        Ok(page.await?)
    }

    /// Number of plans per status.
    pub async fn count_plans(&self, caller: &Caller) -> Result<Vec<PlanCount>, Error> {
        caller.allow(Permission::Read)?;
        let counts = self.store.read(&caller.tenant, |tx| {
            Box::pin(async { PlanLists(tx).count_plans().await })
        });
        Ok(counts.await?)
    }

    /// Steps of a plan after an order.
    pub async fn list_steps(
        &self,
        caller: &Caller,
        plan: PlanId,
        status: Option<StepStatus>,
        after: u32,
        limit: u32,
    ) -> Result<StepPage, Error> {
        caller.allow(Permission::Read)?;
        let which = status.map_or(Which::All, Which::In);
        let page = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = Plans(tx).sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let limit_plus_one = limit.saturating_add(1);
                let mut steps = Steps(tx)
                    .step_lines(plan, which, after, limit_plus_one)
                    .await?;
                let full = steps.len() > usize::try_from(limit).unwrap_or(usize::MAX);
                steps.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
                let next = steps.last().map(|last| last.order).filter(|_| full);
                let depends_on = Steps(tx).dependency_orders(plan, &steps).await?;
                Ok::<StepPage, Error>(StepPage {
                    steps,
                    depends_on,
                    next,
                })
            })
        });
        page.await
    }

    /// The execution reports of the steps between two orders; only those of at most `bytes` bytes
    /// with their content.
    pub async fn step_reports(
        &self,
        caller: &Caller,
        plan: PlanId,
        orders: (u32, u32),
        bytes: u32,
    ) -> Result<Vec<StepReport>, Error> {
        caller.allow(Permission::Read)?;
        let reports = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Contexts(tx).reports(plan, orders, bytes).await })
        });
        Ok(reports.await?)
    }

    /// Pending reviews, oldest first.
    pub async fn open_reviews(
        &self,
        caller: &Caller,
        limit: u32,
    ) -> Result<Vec<OpenReview>, Error> {
        caller.allow(Permission::Read)?;
        let steps = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Steps(tx).open_reviews(limit).await })
        });
        let steps = steps.await?.into_iter();
        let reviews = steps.filter_map(|(plan, step)| OpenReview::from_step(plan, step));
        Ok(reviews.collect())
    }

    /// The step under a pending review.
    pub async fn step_of_review(&self, caller: &Caller, review: ReviewId) -> Result<StepId, Error> {
        caller.allow(Permission::Read)?;
        let step = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Steps(tx).of_review(review).await })
        });
        step.await?.ok_or_else(|| Error::NotFound {
            kind: ObjectKind::Review,
            name: review.to_string(),
        })
    }

    /// A plan without its steps.
    pub async fn sheet(&self, caller: &Caller, plan: PlanId) -> Result<Sheet, Error> {
        caller.allow(Permission::Read)?;
        let sheet = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Plans(tx).sheet(plan).await })
        });
        let sheet = sheet.await?;
        sheet.ok_or_else(|| Error::PlanNotFound(plan.to_string()))
    }

    /// A plan's branches in evaluation order, and the steps they refer to.
    pub async fn branches(
        &self,
        caller: &Caller,
        plan: PlanId,
    ) -> Result<(Vec<Branch>, Vec<StepLine>), Error> {
        caller.allow(Permission::Read)?;
        let branches = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = Plans(tx).sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let branches = Plans(tx).branches_of(plan).await?;
                let mut referenced: Vec<StepId> = Vec::new();
                for branch in &branches {
                    referenced.push(branch.after);
                    referenced.extend(branch.references());
                }
                referenced.sort();
                referenced.dedup();
                let lines = Steps(tx).lines_of(&referenced).await?;
                Ok::<_, Error>((branches, lines))
            })
        });
        branches.await
    }

    /// Excerpts of a plan's artifacts, newest first.
    pub async fn artifacts(
        &self,
        caller: &Caller,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<Excerpt>, Error> {
        caller.allow(Permission::Read)?;
        let artifacts = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = Plans(tx).sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<_, Error>(Contexts(tx).excerpts(plan, None, limit).await?)
            })
        });
        artifacts.await
    }

    /// Excerpts of a plan's outputs, the latest version of each, newest first.
    pub async fn outputs(
        &self,
        caller: &Caller,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<OutputExcerpt>, Error> {
        caller.allow(Permission::Read)?;
        let outputs = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = Plans(tx).sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<_, Error>(Outputs(tx).output_excerpts(plan, limit).await?)
            })
        });
        outputs.await
    }

    /// One version of a plan output, complete.
    pub async fn output(&self, caller: &Caller, id: OutputId) -> Result<Output, Error> {
        caller.allow(Permission::Read)?;
        let output = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Outputs(tx).output(id).await })
        });
        output.await?.ok_or_else(|| Error::NotFound {
            kind: ObjectKind::Output,
            name: id.to_string(),
        })
    }

    /// A step and its plan.
    pub async fn step(&self, caller: &Caller, step: StepId) -> Result<(Sheet, Step), Error> {
        caller.allow(Permission::Read)?;
        let found = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Plans(tx).sheet_of_step(step).await })
        });
        let missing = || Error::StepNotFound {
            step: step.to_string(),
            kept: None,
        };
        found.await?.ok_or_else(missing)
    }

    /// Finds a plan by id or id prefix.
    pub async fn find_plan(&self, caller: &Caller, id: &str) -> Result<PlanId, Error> {
        caller.allow(Permission::Read)?;
        let Some((from, to)) = bounds(id) else {
            return Err(Error::PlanNotFound(id.to_owned()));
        };
        let found = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let plans = Plans(tx).plans_between(from, to, MATCHES).await?;
                let mut names = Vec::new();
                if let [_, _, ..] = plans[..] {
                    for plan in &plans {
                        let sheet = Plans(tx).sheet(*plan).await?;
                        let name = sheet.map(|sheet| sheet.brief.name);
                        names.push(match_entry(plan, name.as_deref()));
                    }
                }
                Ok::<_, onward_store::Error>((plans, names))
            })
        });
        match found.await? {
            (plans, _) if plans.is_empty() => Err(Error::PlanNotFound(id.to_owned())),
            (plans, matches) => match plans[..] {
                [plan] => Ok(plan),
                _ => Err(Error::Ambiguous {
                    text: id.to_owned(),
                    kind: "plans",
                    matches,
                }),
            },
        }
    }

    /// Finds a step by id or id prefix.
    pub async fn find_step(&self, caller: &Caller, id: &str) -> Result<StepId, Error> {
        caller.allow(Permission::Read)?;
        let missing = || Error::StepNotFound {
            step: id.to_owned(),
            kept: None,
        };
        let Some((from, to)) = bounds(id) else {
            return Err(missing());
        };
        let found = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let steps = Plans(tx).steps_between(from, to, MATCHES).await?;
                let mut names = Vec::new();
                if let [_, _, ..] = steps[..] {
                    for line in Steps(tx).lines_of(&steps).await? {
                        let name = line.title.unwrap_or_else(|| format!("step {}", line.order));
                        names.push(match_entry(line.id, Some(&name)));
                    }
                }
                Ok::<_, onward_store::Error>((steps, names))
            })
        });
        match found.await? {
            (steps, _) if steps.is_empty() => Err(missing()),
            (steps, matches) => match steps[..] {
                [step] => Ok(step),
                _ => Err(Error::Ambiguous {
                    text: id.to_owned(),
                    kind: "steps",
                    matches,
                }),
            },
        }
    }
}

/// The instants and durations that decide what a plan needs.
#[derive(Clone, Copy)]
struct Limits {
    now: Timestamp,
    no_agent_after: Duration,
    archived_before: Timestamp,
}

impl Limits {
    fn listed(self, found: onward_store::Listed) -> Listed {
        let onward_store::Listed { sheet, facts } = found;
        let attention = attention(&sheet.head, &facts, self.now, self.no_agent_after);
        Listed {
            attention,
            exhausted: sheet.head.exhausted(self.now),
            stalled: attention.word == Word::Stuck,
            archived: is_archived(&sheet.head, sheet.acted_at, self.archived_before),
            sheet,
        }
    }

    fn all(self, found: Vec<onward_store::Listed>) -> Vec<Listed> {
        found.into_iter().map(|found| self.listed(found)).collect()
    }
}

async fn plans(
    tx: &mut Tx,
    query: PlanQuery,
    limits: Limits,
) -> Result<PlanPage, onward_store::Error> {
    let is_wanted = |status: &PlanStatus| match query.status {
        Some(requested) => *status == requested,
        None => query.finished || !status.is_terminal(),
    };
    let statuses: Vec<PlanStatus> = PlanStatus::ALL.into_iter().filter(is_wanted).collect();
    let limit_plus_one = query.limit.saturating_add(1);
    let text = query.text.as_deref().map(str::trim);
    let text_query = text.filter(|text| !text.is_empty()).map(Query::parse);
    let mut plans = match &text_query {
        Some(text_query) if text_query.words().is_empty() => Vec::new(),
        Some(text_query)
            if !query.is_filtered()
                && query.project_key.is_none()
                && PlanLists(tx)
                    .count_plans_with(text_query.words(), SCAN_THRESHOLD)
                    .await?
                    < u64::from(SCAN_THRESHOLD) =>
        {
            let words = text_query.words();
            let found = PlanLists(tx)
                .plans_with(words, &statuses, query.after, limits.now, limit_plus_one)
                .await?;
            limits.all(found)
        }
        Some(_) | None => scan_recent(tx, text_query.as_ref(), &statuses, &query, limits).await?,
    };
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let is_full = plans.len() > limit;
    plans.truncate(limit);
    let next = plans.last().map(cursor).filter(|_| is_full);
    Ok(PlanPage { plans, next })
}

/// Scans the plans, most recently changed first, until enough match. Fast for text that many plans
/// contain. Without a text and a filter, the first batch is the page.
async fn scan_recent(
    tx: &mut Tx,
    text_query: Option<&Query>,
    statuses: &[PlanStatus],
    query: &PlanQuery,
    limits: Limits,
) -> Result<Vec<Listed>, onward_store::Error> {
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let times = match query.archived {
        Archived::Without if text_query.is_none() => (limits.now, limits.archived_before),
        Archived::Without | Archived::With | Archived::Only => (limits.now, Timestamp::MIN),
    };
    let mut after = query.after;
    let mut batch = query.limit.saturating_add(1);
    let mut plans: Vec<Listed> = Vec::new();
    loop {
        let read = if query.archived == Archived::Only {
            let newest = PlanCursor {
                acted_at: limits.archived_before,
                plan: PlanId::new(Uuid::nil()),
            };
            let after = after.unwrap_or(newest);
            PlanLists(tx)
                .captured_plans(after, limits.now, batch)
                .await?
        } else {
            let project = query.project_key.as_deref();
            PlanLists(tx)
                .list_plans(statuses, project, after, times, batch)
                .await?
        };
        let is_older = |found: &onward_store::Listed| {
            query
                .since
                .is_some_and(|since| found.sheet.acted_at < since)
        };
        let ended = read.len() < usize::try_from(batch).unwrap_or(usize::MAX)
            || read.last().is_some_and(is_older);
        batch = batch.saturating_mul(2).min(MAX_BATCH.max(batch));
        after = read.last().map(|found| cursor_of(&found.sheet)).or(after);
        plans.extend(limits.all(read).into_iter().filter(|listed| {
            let brief = &listed.sheet.brief;
            let texts = [&*brief.name, &brief.research_question];
            let has_words = text_query.is_none_or(|query| query.matches(&texts));
            has_words && query.matches(listed)
        }));
        if ended || plans.len() > limit {
            return Ok(plans);
        }
    }
}

fn cursor(listed: &Listed) -> PlanCursor {
    cursor_of(&listed.sheet)
}

fn cursor_of(sheet: &Sheet) -> PlanCursor {
    PlanCursor {
        acted_at: sheet.acted_at,
        plan: sheet.head.id,
    }
}

/// The first and last id with this prefix. `None` if it is not the prefix of a UUID.
fn bounds(prefix: &str) -> Option<(Uuid, Uuid)> {
    let digits: String = prefix.chars().filter(|char| *char != '-').collect();
    if digits.is_empty() || digits.len() > 32 {
        return None;
    }
    let pad = |digit: char| {
        let all: String = digits
            .chars()
            .chain(std::iter::repeat(digit))
            .take(32)
            .collect();
        Uuid::try_parse(&all).ok()
    };
    Some((pad('0')?, pad('f')?))
}
