//! Lists, a page at a time: plans, steps, open reviews; and the way from the beginning of an id to
//! the id.

use onward_core::branch::Branch;
use onward_core::id::{OutputId, ReviewId};
use onward_core::role::Permission;
use onward_core::step::{Review, StepState};
use onward_core::{PlanId, PlanStatus, Step, StepId, StepStatus};
use onward_store::{
    Excerpt, Listed, Output, OutputExcerpt, PlanCount, PlanCursor, Plans, Sheet, StepLine, Tx,
    Which,
};
use uuid::Uuid;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// A page of plans is read in pieces of this size where names are searched.
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
    /// Only those whose name or question holds this text, in any case.
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
    let wanted = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let needle = query.text.as_ref().map(|text| text.to_lowercase());
    let which = match (query.status, query.finished) {
        (Some(status), _) if status.is_terminal() => Plans::Finished,
        (Some(_), _) | (None, false) => Plans::Active,
        (None, true) => Plans::All,
    };
    let piece = match needle.is_some() || query.status.is_some() {
        true => PIECE,
        false => query.limit.saturating_add(1),
    };
    let mut behind = query.behind;
    let mut plans: Vec<Listed> = Vec::new();
    loop {
        let read = tx.list_plans(behind, which, now, piece).await?;
        let ended = read.len() < usize::try_from(piece).unwrap_or(usize::MAX);
        behind = read.last().map(cursor).or(behind);
        plans.extend(read.into_iter().filter(|listed| {
            let status = listed.sheet.head.status();
            query.status.is_none_or(|wanted| status == wanted)
                && needle.as_ref().is_none_or(|needle| {
                    let brief = &listed.sheet.brief;
                    brief.name.to_lowercase().contains(needle)
                        || brief.research_question.to_lowercase().contains(needle)
                })
        }));
        if ended || plans.len() > wanted {
            break;
        }
    }
    let more = plans.len() > wanted;
    plans.truncate(wanted);
    let next = plans.last().map(cursor).filter(|_| more);
    Ok(PlanPage { plans, next })
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
