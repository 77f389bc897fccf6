//! `onward plan list`: the plans, newest change first.

use clap::Args;
use onward_engine::Listed;
use onward_engine::list::PlanQuery;

use super::tone;
use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::{Cell, Table};
use crate::output::{Tone, words};
use crate::wire::plan::Plans;

/// Show the plans, newest change first
#[derive(Args)]
pub(crate) struct List {
    /// Those that are over, too
    #[arg(long)]
    all: bool,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Only those whose name and question hold these words, or words that begin so
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
        behind: None,
        finished: args.all,
        status: None,
        text: args.query.clone(),
    };
    let page = engine.list_plans(&caller, query).await?;
    if cx.output.json {
        cx.output.print_json(&Plans::of(&page))?;
    } else {
        let head = ["PLAN", "STATUS", "DONE", "STEPS", "CHANGED", "NAME"];
        let mut table = Table::new(&head);
        for listed in &page.plans {
            let head = &listed.sheet.head;
            table.row([
                words::short(head.id).into(),
                status(listed),
                Cell::number(format!("{}%", head.counts.progress())),
                Cell::number(head.counts.total()),
                words::ago(now, listed.sheet.updated_at).into(),
                (&listed.sheet.brief.name).into(),
            ]);
        }
        if !table.is_empty() {
            cx.output.print(&table.render(cx.output, ""))?;
        }
    }
    if page.plans.is_empty() {
        cx.output.say(nothing(args));
    } else if page.next.is_some() {
        cx.output.say("there are more: give a higher `--limit`");
    }
    Ok(Exit::Done)
}

/// The status, and whether a step is past its threshold though nobody acted on it yet.
fn status(listed: &Listed) -> Cell {
    let status = listed.sheet.head.status();
    if listed.stalled && status != onward_core::PlanStatus::Stalled {
        return Cell::toned(format!("{status}, silent"), Some(Tone::Bad));
    }
    Cell::toned(status.as_str(), tone(status))
}

fn nothing(args: &List) -> &'static str {
    match (&args.query, args.all) {
        (Some(_), true) => "no plan's name or question holds that text",
        (Some(_), false) => {
            "no open plan's name or question holds that text; `--all` looks at finished ones, too"
        }
        (None, true) => "no plans yet; an agent makes one with `create_research_plan`",
        (None, false) => {
            "no open plans; an agent makes one with `create_research_plan`, and `--all` shows \
             those that are over"
        }
    }
}
