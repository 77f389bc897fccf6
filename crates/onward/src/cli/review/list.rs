//! `onward review list`: pending reviews, one per line, oldest first.

use clap::Args;
use onward_core::step::ReviewScope;
use onward_engine::list::OpenReview;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::{Cell, Table};
use crate::output::{Tone, format};
use crate::wire::review::Review;

const MAX_REVIEWS: u32 = 500;

/// List pending reviews, oldest first
#[derive(Args)]
pub(crate) struct List {
    /// Only reviews that are assigned to this member
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
}

#[derive(Serialize)]
struct Reviews {
    reviews: Vec<Review>,
}

pub(super) async fn run(args: &List, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database {
        engine,
        caller,
        now,
    } = &database;
    let mut open = engine.open_reviews(caller, MAX_REVIEWS).await?;
    if let Some(assignee) = &args.assignee {
        open.retain(|open| open.is_assigned_to(assignee));
    }
    let mut reviews = Vec::new();
    let mut table =
        Table::new(&["REVIEW", "WAITING", "PLAN", "STEP", "QUESTIONS"]).with_flexible(&[2, 3]);
    let mut first = None;
    for review in &open {
        let name = engine.sheet(caller, review.plan).await?.brief.name;
        let plan = database.short_plan(review.plan).await?;
        let mut waiting = format::age(now.since(review.review.requested_at));
        if let Some(deadline) = review.review.options.deadline {
            let due = cx.output.zone().time(deadline.at, *now);
            waiting.push_str(&format!(", due {due}"));
        }
        let title = review.title.as_deref();
        let title = title.map_or(String::new(), |title| format!(", {title}"));
        table.row([
            format!("{plan}/{}", review.order).into(),
            Cell::toned(waiting, Some(Tone::Attention)),
            (&name).into(),
            format!("{}{title}", review.order).into(),
            questions(review).into(),
        ]);
        first.get_or_insert(format!("{plan}/{}", review.order));
        reviews.push(Review::list_entry(review, &name));
    }
    if cx.output.json {
        cx.output.print_json(&Reviews { reviews })?;
        return Ok(Exit::Done);
    }
    match first {
        Some(plan) => {
            cx.output.print(&table.render(cx.output, ""))?;
            cx.output
                .note(&format!("read and decide: onward review show {plan}"));
        }
        None => cx.output.note("no pending reviews"),
    }
    Ok(Exit::Done)
}

/// The number of questions of a review.
pub(super) fn questions(review: &OpenReview) -> String {
    match u64::try_from(review.review.asked().count()).unwrap_or(u64::MAX) {
        0 if review.review.scope == ReviewScope::Start => "plan".to_owned(),
        0 if review.review.result.is_some() => "result".to_owned(),
        0 => "approval".to_owned(),
        number => format::count(number, "question", "questions"),
    }
}
