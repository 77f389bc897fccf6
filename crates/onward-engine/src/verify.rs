//! Does the trail of a plan replay to its rows? The promise that nothing was lost or half done,
//! checked from what is stored and from nothing else.

use std::collections::BTreeSet;

use onward_core::policy::stall_threshold;
use onward_core::role::Permission;
use onward_core::skill::SkillExecution;
use onward_core::{Event, Plan, PlanId, StepStatus};
use onward_store::{Entry, Tx, WholePlan, ended_commits};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::stalls_at;
use crate::skill::unlike_trail;

/// How many plans are looked up at once.
const PIECE: u32 = 256;
/// How many lines of a log, or executions of a plan, are read.
const LINES: u32 = 100_000;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// About which plan, where it is about one.
    pub plan: Option<PlanId>,
    /// What.
    pub what: String,
}

/// What a check of a database found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// How many plans were checked.
    pub plans: u64,
    /// How many entries their trails have.
    pub events: u64,
    /// How many chunks the texts that are searched have.
    pub chunks: u64,
    /// What of their index is not as it should be: all of it can be made anew.
    pub index: Vec<String>,
    /// What is not as it should be.
    pub faults: Vec<Fault>,
}

impl Engine {
    /// Checks the file, and every plan of the tenant.
    pub async fn verify(&self, caller: &Caller) -> Result<Checked, Error> {
        caller.allow(Permission::Read)?;
        let mut checked = Checked::default();
        let file = self.store.read(&caller.tenant, |tx| {
            Box::pin(async { tx.file_faults().await })
        });
        let damage = file.await?.into_iter();
        let fault = |what| Fault { plan: None, what };
        checked.faults.extend(damage.map(fault));
        if let Some(what) = self.verify_beside(caller).await? {
            checked.faults.push(fault(what));
        }
        let lost = self.lost_extractions(caller).await?.into_iter();
        checked.faults.extend(lost.map(fault));
        let index = self.store.read(&caller.tenant, |tx| {
            Box::pin(async { tx.index_faults().await })
        });
        let (chunks, index) = index.await?;
        checked.chunks = chunks;
        let index = index.into_iter();
        checked.index = index.map(|(what, many)| format!("{many} {what}")).collect();
        let mut behind = None;
        loop {
            let page = self.store.read(&caller.tenant, move |tx| {
                Box::pin(async move { tx.plans_page(behind, PIECE).await })
            });
            let page = page.await?;
            let Some(last) = page.last() else {
                return Ok(checked);
            };
            behind = Some(*last);
            for plan in page {
                let (events, faults) = self.verify_plan(caller, plan).await?;
                checked.plans += 1;
                checked.events += events;
                let plan = Some(plan);
                let faults = faults.into_iter().map(|what| Fault { plan, what });
                checked.faults.extend(faults);
            }
        }
    }

    /// Reads what a tenant has beside its plans; the first cell that cannot be read.
    async fn verify_beside(&self, caller: &Caller) -> Result<Option<String>, Error> {
        let read = self.store.read(&caller.tenant, |tx| {
            Box::pin(async {
                tx.own_tenant().await?;
                tx.tokens().await?;
                tx.log_lines(LINES).await?;
                tx.calls(LINES).await?;
                let mut behind = None;
                while let Some(last) = tx.artifacts_page(behind, PIECE).await? {
                    behind = Some(last);
                }
                let mut behind = None;
                while let Some(last) = tx.skills_page(behind, PIECE).await? {
                    behind = Some(last);
                }
                let mut behind = None;
                while let Some(last) = tx.feedback_page(behind, PIECE).await? {
                    behind = Some(last);
                }
                for line in tx.sessions(LINES).await? {
                    let session = &line.session.id;
                    tx.calls_of_session(session, LINES).await?;
                    for turn in tx.turns(session, LINES).await? {
                        tx.turn_steps(session, &turn, LINES).await?;
                    }
                }
                let mut behind = None;
                while let Some(last) = tx.outputs_page(behind, PIECE).await? {
                    behind = Some(last);
                }
                Ok::<(), onward_store::Error>(())
            })
        });
        cell(read.await)
    }

    /// Reads all extractions; those out of artifacts that are not there, or the first cell that cannot be
    /// read.
    async fn lost_extractions(&self, caller: &Caller) -> Result<Vec<String>, Error> {
        let read = self.store.read(&caller.tenant, |tx| {
            Box::pin(async {
                let (mut behind, mut all) = (None, Vec::new());
                while let Some((last, lost)) = tx.extractions_page(behind, PIECE).await? {
                    behind = Some(last);
                    all.extend(lost.iter().map(|id| {
                        format!("extraction `{id}` is out of an artifact that is not there")
                    }));
                }
                Ok::<_, onward_store::Error>(all)
            })
        });
        match read.await {
            Ok(lost) => Ok(lost),
            Err(onward_store::Error::Corrupt(cell)) => Ok(vec![cell.to_string()]),
            Err(why) => Err(why.into()),
        }
    }

    /// Checks one plan: how many entries its trail has, and what does not fit. A plan that is gone
    /// has nothing that does not fit.
    pub async fn verify_plan(
        &self,
        caller: &Caller,
        plan: PlanId,
    ) -> Result<(u64, Vec<String>), Error> {
        caller.allow(Permission::Read)?;
        let read = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { whole(tx, plan).await })
        });
        match read.await {
            Ok(Some((rows, skills, trail))) => {
                let events = u64::try_from(trail.len()).unwrap_or(u64::MAX);
                let mut found = differences(&rows, &trail);
                found.extend(skills.iter().filter_map(|skill| {
                    let why = unlike_trail(skill, &trail)?;
                    Some(format!("skill execution `{}` {why}", skill.id))
                }));
                Ok((events, found))
            }
            Ok(None) => Ok((0, Vec::new())),
            // A cell that cannot be read is what a check is for.
            Err(onward_store::Error::Corrupt(cell)) => Ok((0, vec![cell.to_string()])),
            Err(why) => Err(why.into()),
        }
    }
}

/// A cell that cannot be read is what a check is for; any other error is one.
fn cell(read: Result<(), onward_store::Error>) -> Result<Option<String>, Error> {
    match read {
        Ok(()) => Ok(None),
        Err(onward_store::Error::Corrupt(cell)) => Ok(Some(cell.to_string())),
        Err(why) => Err(why.into()),
    }
}

type Whole = (WholePlan, Vec<SkillExecution>, Vec<Entry>);

async fn whole(tx: &mut Tx, plan: PlanId) -> Result<Option<Whole>, onward_store::Error> {
    let Some(rows) = tx.whole_plan(plan).await? else {
        return Ok(None);
    };
    let skills = tx.skills_of(plan, LINES).await?;
    Ok(Some((rows, skills, tx.whole_trail(plan).await?)))
}

/// Where the rows say something else than the trail.
fn differences(rows: &WholePlan, trail: &[Entry]) -> Vec<String> {
    let mut found = Vec::new();
    for (entry, seq) in trail.iter().zip(1u64..) {
        if entry.seq != seq {
            found.push(format!(
                "the trail has entry {} where {seq} should be",
                entry.seq
            ));
            return found;
        }
    }
    let plan = match Plan::replay(trail.iter().map(|entry| (&entry.event, entry.at))) {
        Ok(plan) => plan,
        Err(why) => return vec![format!("the trail does not replay: {why}")],
    };
    let mut check = |what: &str, fits: bool| {
        if !fits {
            found.push(format!("{what} differs from what the trail says"));
        }
    };
    let sheet = &rows.sheet;
    check("the head", sheet.head == *plan.head());
    check("the brief", sheet.brief == *plan.brief());
    check("`created_at`", sheet.created_at == plan.created_at());
    check("`updated_at`", sheet.updated_at == plan.updated_at());
    check(
        "the number of steps",
        rows.steps.len() == plan.steps().len(),
    );
    for (row, step) in rows.steps.iter().zip(plan.steps()) {
        check(&format!("step `{}`", row.id()), row == step);
        let branches = rows
            .branches
            .iter()
            .filter(|branch| branch.after == row.id());
        let same = branches.eq(plan.branches_after(step.id()));
        check(&format!("the branches of step `{}`", row.id()), same);
    }
    let mut resumed = BTreeSet::new();
    for entry in trail {
        if let Event::SessionResumed { session } = &entry.event {
            resumed.insert(session.as_str());
        }
    }
    let known: BTreeSet<&str> = rows.resumed.iter().map(String::as_str).collect();
    check("who resumed it", resumed == known);
    check_derived(rows, &plan, trail, &mut check);
    found
}

fn check_derived(
    rows: &WholePlan,
    plan: &Plan,
    trail: &[Entry],
    check: &mut impl FnMut(&str, bool),
) {
    let ended = ended_commits(trail);
    check("what is derived", rows.derived.len() == rows.steps.len());
    for (derived, step) in rows.derived.iter().zip(plan.steps()) {
        let waits = step.spec.depends_on.iter().filter(|needed| {
            plan.step(**needed)
                .is_some_and(|needed| !needed.status().is_terminal())
        });
        let open = u32::try_from(waits.count()).unwrap_or(u32::MAX);
        // A step that was handed out without having waited, or is over, waits for nobody.
        let counts = derived.open_dependencies == open || step.status() != StepStatus::Pending;
        check(&format!("what step `{}` waits for", step.id()), counts);
        let threshold =
            stall_threshold(None, step.spec.stall_threshold, plan.head().stall_threshold);
        let due = derived.stalls_at == stalls_at(step, threshold);
        check(&format!("when step `{}` stalls", step.id()), due);
        let same = derived.ended_commit == ended.get(&step.id()).copied();
        check(
            &format!("the commit in which step `{}` ended", step.id()),
            same,
        );
    }
}
