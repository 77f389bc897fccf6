//! Consistency check: replays each plan's audit trail and compares the result with the stored rows.

use std::collections::BTreeSet;

use onward_core::role::Permission;
use onward_core::skill::SkillExecution;
use onward_core::{Event, Plan, PlanId, StepStatus, Timestamp};
use onward_store::{
    Artifacts, AuditTrail, Entry, Extractions, Integrity, Outputs, Plans, RequestLog,
    SchemaDeviation, Sessions, Skills, Tasks, Tenants, Tokens, ToolCalls, Tx, UserFeedback,
    WholePlan, ended_commits,
};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::plan::skill::audit_mismatch;

/// Number of plans per query.
const BATCH_SIZE: u32 = 256;
/// Maximum number of log entries and skill executions that are read.
const MAX_LINES: u32 = 100_000;

/// An inconsistency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inconsistency {
    /// The affected plan, if any.
    pub plan: Option<PlanId>,
    /// The description.
    pub message: String,
}

/// Result of a consistency check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Number of plans checked.
    pub plans: u64,
    /// Number of events in their audit trails.
    pub events: u64,
    /// Number of search chunks.
    pub chunks: u64,
    /// Errors in the search index, which `reindex` repairs.
    pub index_errors: Vec<String>,
    /// Inconsistencies.
    pub inconsistencies: Vec<Inconsistency>,
}

impl Engine {
    /// Differences between the schema of the database and the one that the migrations create. For
    /// the server's operator.
    pub async fn schema_deviations(&self) -> Result<Vec<SchemaDeviation>, Error> {
        Ok(self.store.schema_deviations().await?)
    }

    /// Checks the database file and all plans of the tenant.
    pub async fn verify(&self, caller: &Caller) -> Result<VerifyReport, Error> {
        caller.allow(Permission::Read)?;
        let mut report = VerifyReport::default();
        let file = self.store.read(&caller.tenant, |tx| {
            Box::pin(async { Integrity(tx).file_faults().await })
        });
        let corruption = file.await?.into_iter();
        let inconsistency = |message| Inconsistency {
            plan: None,
            message,
        };
        report.inconsistencies.extend(corruption.map(inconsistency));
        if let Some(message) = self.verify_other_data(caller).await? {
            report.inconsistencies.push(inconsistency(message));
        }
        let orphaned = self.orphaned_extractions(caller).await?.into_iter();
        report.inconsistencies.extend(orphaned.map(inconsistency));
        let index = self.store.read(&caller.tenant, |tx| {
            Box::pin(async { Integrity(tx).index_faults().await })
        });
        let (chunks, index) = index.await?;
        report.chunks = chunks;
        let index = index.into_iter();
        report.index_errors = index
            .map(|(error, count)| format!("{count} {error}"))
            .collect();
        let mut after = None;
        loop {
            let page = self.store.read(&caller.tenant, move |tx| {
                Box::pin(async move { Plans(tx).plans_page(after, BATCH_SIZE).await })
            });
            let page = page.await?;
            let Some(last) = page.last() else {
                return Ok(report);
            };
            after = Some(*last);
            for plan in page {
                let (events, found) = self.verify_plan(caller, plan).await?;
                report.plans += 1;
                report.events += events;
                let plan = Some(plan);
                let found = found
                    .into_iter()
                    .map(|message| Inconsistency { plan, message });
                report.inconsistencies.extend(found);
            }
        }
    }

    /// Reads the tenant's data other than plans. Returns the first cell that cannot be read.
    async fn verify_other_data(&self, caller: &Caller) -> Result<Option<String>, Error> {
        let read = self.store.read(&caller.tenant, |tx| {
            Box::pin(async {
                Tenants(tx).own_tenant().await?;
                Tokens(tx).tokens().await?;
                Tenants(tx).log_lines(MAX_LINES).await?;
                RequestLog(tx)
                    .calls(Timestamp::MIN..=Timestamp::MAX, MAX_LINES)
                    .await?;
                let mut after = None;
                while let Some(last) = Artifacts(tx).artifacts_page(after, BATCH_SIZE).await? {
                    after = Some(last);
                }
                let mut after = None;
                while let Some(last) = Skills(tx).skills_page(after, BATCH_SIZE).await? {
                    after = Some(last);
                }
                let mut after = None;
                while let Some(last) = UserFeedback(tx).feedback_page(after, BATCH_SIZE).await? {
                    after = Some(last);
                }
                let mut after = None;
                while let Some(last) = Tasks(tx).tasks_page(after, BATCH_SIZE).await? {
                    after = Some(last);
                }
                for line in Sessions(tx).sessions(MAX_LINES).await? {
                    let session = &line.session.id;
                    ToolCalls(tx).calls_of_session(session, MAX_LINES).await?;
                    for turn in Sessions(tx).turns(session, MAX_LINES).await? {
                        Sessions(tx).turn_steps(session, &turn, MAX_LINES).await?;
                    }
                }
                let mut after = None;
                while let Some(last) = Outputs(tx).outputs_page(after, BATCH_SIZE).await? {
                    after = Some(last);
                }
                Ok::<(), onward_store::Error>(())
            })
        });
        corrupt_cell(read.await)
    }

    /// Reads all extractions. Returns those whose artifact is missing, or the first cell that
    /// cannot be read.
    async fn orphaned_extractions(&self, caller: &Caller) -> Result<Vec<String>, Error> {
        let read = self.store.read(&caller.tenant, |tx| {
            Box::pin(async {
                let (mut after, mut all) = (None, Vec::new());
                while let Some((last, orphaned)) =
                    Extractions(tx).extractions_page(after, BATCH_SIZE).await?
                {
                    after = Some(last);
                    all.extend(
                        orphaned
                            .iter()
                            .map(|id| format!("extraction `{id}` refers to a missing artifact")),
                    );
                }
                Ok::<_, onward_store::Error>(all)
            })
        });
        match read.await {
            Ok(orphaned) => Ok(orphaned),
            Err(onward_store::Error::Corrupt { cell, .. }) => Ok(vec![cell.to_string()]),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks one plan. Returns the number of events in its audit trail and the inconsistencies. A
    /// deleted plan has none.
    pub async fn verify_plan(
        &self,
        caller: &Caller,
        plan: PlanId,
    ) -> Result<(u64, Vec<String>), Error> {
        caller.allow(Permission::Read)?;
        let read = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { load_plan(tx, plan).await })
        });
        match read.await {
            Ok(Some((rows, skills, entries))) => {
                let events = u64::try_from(entries.len()).unwrap_or(u64::MAX);
                let mut found = differences(&rows, &entries);
                found.extend(skills.iter().filter_map(|skill| {
                    let reason = audit_mismatch(skill, &entries)?;
                    Some(format!("skill execution `{}` {reason}", skill.id))
                }));
                Ok((events, found))
            }
            Ok(None) => Ok((0, Vec::new())),
            // A corrupt cell is a finding, not an error.
            Err(onward_store::Error::Corrupt { cell, .. }) => Ok((0, vec![cell.to_string()])),
            Err(error) => Err(error.into()),
        }
    }
}

/// Turns a corrupt cell into a finding; other errors remain errors.
fn corrupt_cell(read: Result<(), onward_store::Error>) -> Result<Option<String>, Error> {
    match read {
        Ok(()) => Ok(None),
        Err(onward_store::Error::Corrupt { cell, .. }) => Ok(Some(cell.to_string())),
        Err(error) => Err(error.into()),
    }
}

type LoadedPlan = (WholePlan, Vec<SkillExecution>, Vec<Entry>);

async fn load_plan(tx: &mut Tx, plan: PlanId) -> Result<Option<LoadedPlan>, onward_store::Error> {
    let Some(rows) = Plans(tx).whole_plan(plan).await? else {
        return Ok(None);
    };
    let skills = Skills(tx).skills_of(plan, MAX_LINES).await?;
    Ok(Some((
        rows,
        skills,
        AuditTrail(tx).whole_trail(plan).await?,
    )))
}

/// Differences between the rows and the audit trail.
fn differences(rows: &WholePlan, entries: &[Entry]) -> Vec<String> {
    let mut found = Vec::new();
    for (entry, seq) in entries.iter().zip(1u64..) {
        if entry.seq != seq {
            found.push(format!(
                "the audit trail has event {} in place of event {seq}",
                entry.seq
            ));
            return found;
        }
    }
    let plan = match Plan::replay(entries.iter().map(|entry| (&entry.event, entry.at))) {
        Ok(plan) => plan,
        Err(error) => return vec![format!("the audit trail does not replay: {error}")],
    };
    let mut check = |name: &str, matches: bool| {
        if !matches {
            found.push(format!("{name} differs from the audit trail"));
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
    for entry in entries {
        if let Event::SessionResumed { session } = &entry.event {
            resumed.insert(session.as_str());
        }
    }
    let stored: BTreeSet<&str> = rows.resumed.iter().map(String::as_str).collect();
    check("the list of resumed sessions", resumed == stored);
    check_derived(rows, &plan, entries, &mut check);
    found
}

fn check_derived(
    rows: &WholePlan,
    plan: &Plan,
    entries: &[Entry],
    check: &mut impl FnMut(&str, bool),
) {
    let ended = ended_commits(entries);
    check(
        "the number of derived rows",
        rows.derived.len() == rows.steps.len(),
    );
    for (derived, step) in rows.derived.iter().zip(plan.steps()) {
        let open_dependencies = step.spec.depends_on.iter().filter(|needed| {
            plan.step(**needed)
                .is_some_and(|needed| !step.spec.is_met_by(needed.status()))
        });
        let open = u32::try_from(open_dependencies.count()).unwrap_or(u32::MAX);
        // The count is not maintained for steps that are no longer pending.
        let counts = derived.open_dependencies == open || step.status() != StepStatus::Pending;
        check(
            &format!("the open dependency count of step `{}`", step.id()),
            counts,
        );
        let due = derived.stalls_at == step.stalls_at(plan.head().stall_threshold);
        check(&format!("the stall deadline of step `{}`", step.id()), due);
        let same = derived.ended_commit == ended.get(&step.id()).copied();
        check(&format!("the final commit of step `{}`", step.id()), same);
        let routing = &plan.head().routing;
        let is_ready = step.status() == StepStatus::Pending && open == 0;
        // A plan that assigns no steps leaves the queue at the latest with the next request.
        if is_ready && plan.head().assigns_steps() {
            let position = Some((u32::from(routing.priority), plan.created_at()));
            let is_queued = derived.project_key == routing.project_key
                && (routing.project_key.is_none() || derived.queue_position == position);
            check(&format!("the queue of step `{}`", step.id()), is_queued);
        }
    }
}
