//! `onward plan list`: plans with their state, most recent activity first. Unfinished lists of agents
//! are a separate section, so that they do not hide the other plans.

use clap::Args;
use onward_core::policy::UnknownVariant;
use onward_core::{PlanStatus, Timestamp};
use onward_engine::list::{Archived, PlanPage, PlanQuery};

use crate::cli::database::Database;
use crate::cli::step::{drop_command, resume_command};
use crate::cli::{Context, NO_PLANS};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::status::word_mark;
use crate::output::table::{Cell, Table};
use crate::output::{Tone, format};
use crate::wire::plan::PlansAndLists;

/// List plans, most recent activity first
#[derive(Args)]
pub(crate) struct List {
    /// Include finished plans and archived lists
    #[arg(long)]
    all: bool,
    /// Maximum number of plans
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Only plans whose name or question contains all these words or word prefixes
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
    /// Only plans of this project
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// Only plans with this label
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Only plans in this status
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Option<PlanStatus>,
    /// Only plans of this person
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Only plans with an action since this time, such as `2026-07-28T09:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,
}

fn status(text: &str) -> std::result::Result<PlanStatus, String> {
    text.parse()
        .map_err(|error: UnknownVariant| error.to_string())
}

/// Parses the time of an option.
pub(super) fn time(text: &str) -> std::result::Result<Timestamp, String> {
    text.parse()
        .map_err(|_| "must be an RFC 3339 time".to_owned())
}

pub(super) async fn run(args: &List, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database {
        engine,
        caller,
        now,
    } = &database;
    let query = |unfinished_lists| PlanQuery {
        limit: args.limit,
        after: None,
        finished: args.all,
        status: args.status,
        text: args.query.clone(),
        project_key: args.project.clone(),
        label: args.label.clone(),
        owner: args.owner.clone(),
        since: args.since,
        archived: Archived::when(args.all),
        unfinished_lists: Some(unfinished_lists),
    };
    let page = engine.list_plans(caller, query(false)).await?;
    let lists = engine.list_plans(caller, query(true)).await?;
    if cx.output.json {
        cx.output.print_json(&PlansAndLists::new(&page, &lists))?;
    } else {
        let mut text = String::new();
        if !page.plans.is_empty() {
            text = table(&page, *now).render(cx.output, "");
        }
        if let Some(first) = lists.plans.first() {
            let gap = if text.is_empty() { "" } else { "\n" };
            let title = cx.output.paint(Some(Tone::Heading), "UNFINISHED LISTS");
            text.push_str(&format!("{gap}{title}\n"));
            text.push_str(&table(&lists, *now).render(cx.output, ""));
            let id = database.short_plan(first.sheet.head.id).await?;
            let (resume, drop) = (resume_command(&id), drop_command(&id));
            let actions = format!("continue: {resume} · drop: {drop}");
            let actions = cx.output.paint(Some(Tone::Faint), &actions);
            text.push_str(&format!("{actions}\n"));
        }
        if !text.is_empty() {
            cx.output.print(&text)?;
        }
    }
    if page.plans.is_empty() && lists.plans.is_empty() {
        let has_plans = !engine.count_plans(caller).await?.is_empty();
        cx.output.note(empty_message(args, has_plans));
    } else if page.next.is_some() || lists.next.is_some() {
        cx.output
            .note(&more(args, [&page, &lists], &database).await?);
    }
    Ok(Exit::Done)
}

fn table(page: &PlanPage, now: Timestamp) -> Table {
    let mut table = Table::new(&["PLAN", "STATE", "SINCE", "STEPS", "WHO", "NAME"]);
    for listed in &page.plans {
        let (head, word) = (&listed.sheet.head, listed.attention.word);
        let (symbol, tone) = word_mark(word);
        let state = if listed.archived {
            "archived"
        } else {
            word.label()
        };
        let counts = &head.counts;
        let done = counts.completed.saturating_add(counts.skipped);
        table.row([
            format::short_id(head.id).into(),
            Cell::toned(format!("{symbol} {state}"), Some(tone)),
            format::age(now.since(listed.attention.since)).into(),
            Cell::number(format!("{done}/{}", counts.total())),
            format::person(&listed.sheet.owner.person).into(),
            (&listed.sheet.brief.name).into(),
        ]);
    }
    table
}

/// How many plans the list omits. The number of matches of a query is not known.
async fn more(args: &List, pages: [&PlanPage; 2], database: &Database) -> Result<String> {
    let shown: usize = pages.iter().map(|page| page.plans.len()).sum();
    let limit = args.limit.saturating_mul(5).max(100);
    let counts = database.engine.count_attention(&database.caller).await?;
    let counts = counts
        .iter()
        .filter(|counted| args.all || !counted.word.is_ended());
    let mut total: u64 = counts.map(|counted| counted.plans).sum();
    if args.all {
        total += database.engine.count_archived(&database.caller).await?;
    }
    Ok(match args.query {
        None => format!("showing {shown} of {total} (use `--limit {limit}` for more)"),
        Some(_) => format!("showing the first {shown} (use `--limit {limit}` for more)"),
    })
}

fn empty_message(args: &List, has_plans: bool) -> &'static str {
    match (&args.query, args.all) {
        _ if !has_plans => NO_PLANS,
        (Some(_), true) => "no plans match",
        (Some(_), false) => "no open plans match; add `--all` to search finished plans",
        (None, true) => NO_PLANS,
        (None, false) => "no open plans; add `--all` to list finished plans",
    }
}
