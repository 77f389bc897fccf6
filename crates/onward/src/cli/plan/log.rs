//! `onward plan log`: the audit trail of a plan, oldest event first.
//!
//! Steps are identified by their current position, removed steps by their id.

use std::collections::HashMap;

use clap::Args;
use onward_core::{PlanId, StepId};
use onward_engine::audit::AuditEntry;
use onward_engine::{Caller, Engine};

use super::event_summary;
use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::format;
use crate::output::table::{Cell, Table};
use crate::wire::event::Audit;

/// Rows per query.
const PAGE_SIZE: u32 = 1_000;

/// Show the audit trail of a plan, oldest event first
#[derive(Args)]
pub(crate) struct Log {
    /// Plan id, or a unique prefix of it
    #[arg(value_name = "PLAN")]
    id: String,
}

pub(super) async fn run(args: &Log, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let plan = engine.find_plan(&caller, &args.id).await?;
    let events = read_events(&engine, &caller, plan).await?;
    if cx.output.json {
        cx.output.print_json(&Audit::new(plan, events))?;
        return Ok(Exit::Done);
    }
    let positions = read_positions(&engine, &caller, plan).await?;
    let mut table = Table::new(&["SEQ", "AT", "EVENT", "STEP", "BY", "DETAILS"]);
    for AuditEntry { entry, name, .. } in &events {
        let step = match entry.event.step() {
            Some(step) => match positions.get(&step) {
                Some(order) => Cell::number(order),
                None => step.to_string().into(),
            },
            None => "".into(),
        };
        let by = match &entry.author.session {
            Some(session) => format!("{} in {session}", entry.author.name),
            None => entry.author.name.clone(),
        };
        table.row([
            Cell::number(entry.seq),
            format::timestamp(entry.at).into(),
            (*name).into(),
            step,
            by.into(),
            event_summary::summarize(&entry.event, entry.at).into(),
        ]);
    }
    cx.output.print(&table.render(cx.output, ""))?;
    Ok(Exit::Done)
}

async fn read_events(engine: &Engine, caller: &Caller, plan: PlanId) -> Result<Vec<AuditEntry>> {
    let mut events: Vec<AuditEntry> = Vec::new();
    loop {
        let after = events.last().map_or(0, |last| last.entry.seq);
        let page = engine.audit_trail(caller, plan, after, PAGE_SIZE).await?;
        if page.is_empty() {
            return Ok(events);
        }
        events.extend(page);
    }
}

/// The current position of each step.
async fn read_positions(
    engine: &Engine,
    caller: &Caller,
    plan: PlanId,
) -> Result<HashMap<StepId, u32>> {
    let mut positions = HashMap::new();
    let mut after = Some(0);
    while let Some(position) = after {
        let page = engine
            .list_steps(caller, plan, None, position, PAGE_SIZE)
            .await?;
        positions.extend(page.steps.iter().map(|line| (line.id, line.order)));
        after = page.next;
    }
    Ok(positions)
}
