//! `onward plan list`: plans, most recently updated first.

use clap::Args;
use onward_core::PlanStatus;
use onward_engine::Listed;
use onward_engine::list::PlanQuery;

use super::tone;
use crate::cli::database::Database;
use crate::cli::{Context, NO_PLANS};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::status::{STUCK, plan_label};
use crate::output::table::{Cell, Table};
use crate::output::{Tone, format};
use crate::wire::plan::Plans;

/// List plans, most recently updated first
#[derive(Args)]
pub(crate) struct List {
    /// Include completed and failed plans
    #[arg(long)]
    all: bool,
    /// Maximum number of plans
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Only plans whose name or question contains all these words or word prefixes
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
}

pub(super) async fn run(args: &List, cx: &Context) -> Result {
    let Database {
        engine,
        caller,
        now,
    } = Database::open(cx).await?;
    let query = PlanQuery {
        limit: args.limit,
        after: None,
        finished: args.all,
        status: None,
        text: args.query.clone(),
    };
    let page = engine.list_plans(&caller, query).await?;
    if cx.output.json {
        cx.output.print_json(&Plans::new(&page))?;
    } else {
        let head = ["PLAN", "STATUS", "DONE", "STEPS", "UPDATED", "NAME"];
        let mut table = Table::new(&head);
        for listed in &page.plans {
            let head = &listed.sheet.head;
            table.row([
                format::short_id(head.id).into(),
                status(listed),
                Cell::number(format!("{}%", head.counts.progress())),
                Cell::number(head.counts.total()),
                format::ago(now, listed.sheet.updated_at).into(),
                (&listed.sheet.brief.name).into(),
            ]);
        }
        if !table.is_empty() {
            cx.output.print(&table.render(cx.output, ""))?;
        }
    }
    if page.plans.is_empty() {
        cx.output.note(empty_message(args));
    } else if page.next.is_some() {
        cx.output.note("more plans exist; raise `--limit`");
    }
    Ok(Exit::Done)
}

/// The status. A plan is stuck if it is marked as stalled, or if a step is past its limit and the
/// sweep has not marked the plan yet.
fn status(listed: &Listed) -> Cell {
    let status = listed.sheet.head.status();
    match (listed.stalled, status) {
        (true, PlanStatus::AwaitingReview) => {
            let text = format!("{}, {STUCK}", plan_label(status));
            Cell::toned(text, Some(Tone::Bad))
        }
        (true, _) => Cell::toned(STUCK, Some(Tone::Bad)),
        (false, _) => Cell::toned(plan_label(status), tone(status)),
    }
}

fn empty_message(args: &List) -> &'static str {
    match (&args.query, args.all) {
        (Some(_), true) => "no plans match",
        (Some(_), false) => "no open plans match; add `--all` to search completed and failed plans",
        (None, true) => NO_PLANS,
        (None, false) => "no open plans; add `--all` to list completed and failed plans",
    }
}
