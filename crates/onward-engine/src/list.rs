//! Lists, a page at a time: plans, steps, open reviews; and the way from the beginning of an id to
//! the id.

use onward_core::branch::Branch;
use onward_core::id::{OutputId, ReviewId};
use onward_core::role::Permission;
use onward_core::search::Query;
use onward_core::step::{Review, StepState};
use onward_core::{PlanId, PlanStatus, Step, StepId, StepStatus};
use onward_store::{
    Excerpt, Listed, Output, OutputExcerpt, PlanCount, PlanCursor, Sheet, StepLine, Tx, Which,
};
use uuid::Uuid;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// What so many plans hold is looked for among the newest, and not in the index of words.
const MANY: u32 = 5_000;
/// They are read in pieces, each twice as large as the one before, up to this.
const PIECE: u32 = 500;

/// Which plans.
#[derive(Debug, Clone, Default)]
pub struct PlanQuery {
    /// How many at most.
    pub limit: u32,
    /// Where the page before ended.
    pub behind: Option<PlanCursor>,
    /// Those that are over, too.
    pub finished: bool,
    /// Only those in this status, which says by itself whether they are over.
    pub status: Option<PlanStatus>,
    /// Only those whose name and question hold all words of this text, each as the beginning
    /// of a word or all of it.
    pub text: Option<String>,
}

/// A page of plans.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanPage {
    /// From the newest change on.
    pub plans: Vec<Listed>,
    /// Where the next page begins, if there is one.
    pub next: Option<PlanCursor>,
}

/// A page of steps.
#[derive(Debug, Clone, PartialEq)]
pub struct StepPage {
    /// In their order.
    pub steps: Vec<StepLine>,
    /// Behind which order the next page begins, if there is one.
    pub next: Option<u32>,
}

/// A question that a person has not answered yet.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenReview {
    /// Which review.
    pub id: ReviewId,
    /// Of which plan.
    pub plan: PlanId,
    /// About which step.
    pub step: StepId,
    /// Its place.
    pub order: u32,
    /// Its short name.
    pub title: Option<String>,
    /// What is asked.
    pub review: Review,
}

impl Engine {
    /// Plans, from the newest change on.
    pub async fn list_plans(&self, caller: &Caller, query: PlanQuery) -> Result<PlanPage, Error> {
        caller.allow(Permission::Read)?;
        let now = self.now();
        let page = self.store.read(&caller.tenant, move |tx| {
            let query = query.clone();
            Box::pin(async move { plans(tx, query, now).await })
        });
        Ok(page.await?)
    }

    /// How many plans are in each status.
    pub async fn count_plans(&self, caller: &Caller) -> Result<Vec<PlanCount>, Error> {
        caller.allow(Permission::Read)?;
        let counts = self.store.read(&caller.tenant, |tx| {
            Box::pin(async { tx.count_plans().await })
        });
        Ok(counts.await?)
    }

    /// Steps of a plan behind an order.
    pub async fn list_steps(
        &self,
        caller: &Caller,
        plan: PlanId,
        status: Option<StepStatus>,
        behind: u32,
        limit: u32,
    ) -> Result<StepPage, Error> {
        caller.allow(Permission::Read)?;
        let which = status.map_or(Which::All, Which::In);
        let page = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = tx.sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let more = limit.saturating_add(1);
                let mut steps = tx.step_lines(plan, which, behind, more).await?;
                let full = steps.len() > usize::try_from(limit).unwrap_or(usize::MAX);
                steps.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
                let next = steps.last().map(|last| last.order).filter(|_| full);
                Ok::<StepPage, Error>(StepPage { steps, next })
            })
        });
        page.await
    }

    /// Questions that wait for a person, the longest waiting first.
    pub async fn open_reviews(
        &self,
        caller: &Caller,
        limit: u32,
    ) -> Result<Vec<OpenReview>, Error> {
        caller.allow(Permission::Read)?;
        let steps = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.open_reviews(limit).await })
        });
        let reviews = steps.await?.into_iter().filter_map(|(plan, step)| {
            let (id, order) = (step.id(), step.order);
            match step.state {
                StepState::AwaitingInput { review, .. } => Some(OpenReview {
                    id: review.id,
                    plan,
                    step: id,
                    order,
                    title: step.spec.title,
                    review,
                }),
                StepState::Pending { .. }
                | StepState::InProgress(_)
                | StepState::Completed { .. }
                | StepState::Skipped { .. }
                | StepState::Failed { .. } => None,
            }
        });
        Ok(reviews.collect())
    }

    /// A plan without its steps.
    pub async fn sheet(&self, caller: &Caller, plan: PlanId) -> Result<Sheet, Error> {
        caller.allow(Permission::Read)?;
        let sheet = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.sheet(plan).await })
        });
        let sheet = sheet.await?;
        sheet.ok_or_else(|| Error::PlanNotFound(plan.to_string()))
    }

    /// A plan's branches, in the order in which they are tried, and the steps that they name.
    pub async fn branches(
        &self,
        caller: &Caller,
        plan: PlanId,
    ) -> Result<(Vec<Branch>, Vec<StepLine>), Error> {
        caller.allow(Permission::Read)?;
        let branches = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = tx.sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let branches = tx.branches_of(plan).await?;
                let mut named: Vec<StepId> = Vec::new();
                for branch in &branches {
                    named.push(branch.after);
                    named.extend(branch.references());
                }
                named.sort();
                named.dedup();
                let lines = tx.lines_of(&named).await?;
                Ok::<_, Error>((branches, lines))
            })
        });
        branches.await
    }

    /// The beginnings of what was found or made for a plan, newest first.
    pub async fn artifacts(
        &self,
        caller: &Caller,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<Excerpt>, Error> {
        caller.allow(Permission::Read)?;
        let artifacts = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = tx.sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<_, Error>(tx.excerpts(plan, None, limit).await?)
            })
        });
        artifacts.await
    }

    /// The beginnings of what a plan delivers, the last version of each, newest first.
    pub async fn outputs(
        &self,
        caller: &Caller,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<OutputExcerpt>, Error> {
        caller.allow(Permission::Read)?;
        let outputs = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = tx.sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<_, Error>(tx.output_excerpts(plan, limit).await?)
            })
        });
        outputs.await
    }

    /// One version of what a plan delivers, all of it.
    pub async fn output(&self, caller: &Caller, id: OutputId) -> Result<Output, Error> {
        caller.allow(Permission::Read)?;
        let output = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.output(id).await })
        });
        output.await?.ok_or_else(|| Error::NotFound {
            what: "output",
            name: id.to_string(),
        })
    }

    /// A step, and its plan.
    pub async fn step(&self, caller: &Caller, step: StepId) -> Result<(Sheet, Step), Error> {
        caller.allow(Permission::Read)?;
        let found = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.sheet_of_step(step).await })
        });
        let missing = || Error::StepNotFound {
            step: step.to_string(),
            kept: None,
        };
        found.await?.ok_or_else(missing)
    }

    /// The plan whose id is this, or begins with it.
    pub async fn find_plan(&self, caller: &Caller, id: &str) -> Result<PlanId, Error> {
        caller.allow(Permission::Read)?;
        let Some((from, to)) = bounds(id) else {
            return Err(Error::PlanNotFound(id.to_owned()));
        };
        let found = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { tx.plans_between(from, to).await })
        });
        match found.await?.as_slice() {
            [plan] => Ok(*plan),
            [] => Err(Error::PlanNotFound(id.to_owned())),
            _ => Err(Error::Ambiguous(id.to_owned())),
        }
    }

    /// The step whose id is this, or begins with it.
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
            Box::pin(async move { tx.steps_between(from, to).await })
        });
        match found.await?.as_slice() {
            [step] => Ok(*step),
            [] => Err(missing()),
            _ => Err(Error::Ambiguous(id.to_owned())),
        }
    }
}

async fn plans(
    tx: &mut Tx,
    query: PlanQuery,
    now: onward_core::Timestamp,
) -> Result<PlanPage, onward_store::Error> {
    let is_wanted = |status: &PlanStatus| match query.status {
        Some(wanted) => *status == wanted,
        None => query.finished || !status.is_terminal(),
    };
    let statuses: Vec<PlanStatus> = PlanStatus::ALL.into_iter().filter(is_wanted).collect();
    let more = query.limit.saturating_add(1);
    let text = query.text.as_deref().map(str::trim);
    let asked = text.filter(|text| !text.is_empty()).map(Query::of);
    let mut plans = match &asked {
        None => tx.list_plans(&statuses, query.behind, now, more).await?,
        Some(asked) if asked.words().is_empty() => Vec::new(),
        Some(asked) => match tx.count_plans_with(asked.words(), MANY).await? < u64::from(MANY) {
            true => {
                let words = asked.words();
                tx.plans_with(words, &statuses, query.behind, now, more)
                    .await?
            }
            false => walk(tx, asked, &statuses, &query, now).await?,
        },
    };
    let wanted = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let is_full = plans.len() > wanted;
    plans.truncate(wanted);
    let next = plans.last().map(cursor).filter(|_| is_full);
    Ok(PlanPage { plans, next })
}

/// Looks through the plans from the newest change on, until there are enough that fit: what many plans
/// hold is soon met.
async fn walk(
    tx: &mut Tx,
    asked: &Query,
    statuses: &[PlanStatus],
    query: &PlanQuery,
    now: onward_core::Timestamp,
) -> Result<Vec<Listed>, onward_store::Error> {
    let wanted = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let mut behind = query.behind;
    let mut piece = query.limit.saturating_add(1);
    let mut plans: Vec<Listed> = Vec::new();
    loop {
        let read = tx.list_plans(statuses, behind, now, piece).await?;
        let ended = read.len() < usize::try_from(piece).unwrap_or(usize::MAX);
        piece = piece.saturating_mul(2).min(PIECE.max(piece));
        behind = read.last().map(cursor).or(behind);
        plans.extend(read.into_iter().filter(|listed| {
            let brief = &listed.sheet.brief;
            asked.fits(&[&brief.name, &brief.research_question])
        }));
        if ended || plans.len() > wanted {
            return Ok(plans);
        }
    }
}

fn cursor(listed: &Listed) -> PlanCursor {
    PlanCursor {
        updated_at: listed.sheet.updated_at,
        plan: listed.sheet.head.id,
    }
}

/// The first and the last id that begin with this text; none where no id does.
fn bounds(beginning: &str) -> Option<(Uuid, Uuid)> {
    let digits: String = beginning.chars().filter(|char| *char != '-').collect();
    if digits.is_empty() || digits.len() > 32 {
        return None;
    }
    let fill = |digit: char| {
        let all: String = digits
            .chars()
            .chain(std::iter::repeat(digit))
            .take(32)
            .collect();
        Uuid::try_parse(&all).ok()
    };
    Some((fill('0')?, fill('f')?))
}
