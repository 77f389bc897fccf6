//! `onward plan log`: what happened to a plan, oldest first.
//!
//! A step is named by the place that it has today; one that was taken out of the plan, by its id.

use std::collections::HashMap;

use clap::Args;
use onward_core::{PlanId, StepId};
use onward_engine::trail::Shown;
use onward_engine::{Caller, Engine};

use super::gist;
use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::{Cell, Table};
use crate::output::words;
use crate::wire::event::Audit;

/// How much is read at once.
const PIECE: u32 = 1_000;

/// Show what happened to a plan, oldest first
#[derive(Args)]
pub(crate) struct Log {
    /// The plan: its id, or the beginning of it
    #[arg(value_name = "PLAN")]
    id: String,
}

pub(super) async fn run(args: &Log, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let plan = engine.find_plan(&caller, &args.id).await?;
    let trail = trail(&engine, &caller, plan).await?;
    if cx.output.json {
        cx.output.print_json(&Audit::of(plan, trail))?;
        return Ok(Exit::Done);
    }
    let places = places(&engine, &caller, plan).await?;
    let mut table = Table::new(&["SEQ", "AT", "EVENT", "STEP", "BY", "WHAT"]);
    for Shown { entry, name, .. } in &trail {
        let step = match entry.event.step() {
            Some(step) => match places.get(&step) {
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
            words::instant(entry.at).into(),
            (*name).into(),
            step,
            by.into(),
            gist::of(&entry.event, entry.at).into(),
        ]);
    }
    cx.output.print(&table.render(cx.output, ""))?;
    Ok(Exit::Done)
}

async fn trail(engine: &Engine, caller: &Caller, plan: PlanId) -> Result<Vec<Shown>> {
    let mut trail: Vec<Shown> = Vec::new();
    loop {
        let behind = trail.last().map_or(0, |last| last.entry.seq);
        let piece = engine.trail(caller, plan, behind, PIECE).await?;
        if piece.is_empty() {
            return Ok(trail);
        }
        trail.extend(piece);
    }
}

/// Where each step stands today.
async fn places(engine: &Engine, caller: &Caller, plan: PlanId) -> Result<HashMap<StepId, u32>> {
    let mut places = HashMap::new();
    let mut behind = Some(0);
    while let Some(from) = behind {
        let page = engine.list_steps(caller, plan, None, from, PIECE).await?;
        places.extend(page.steps.iter().map(|line| (line.id, line.order)));
        behind = page.next;
    }
    Ok(places)
}
