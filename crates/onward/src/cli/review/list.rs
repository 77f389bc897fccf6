//! `onward review list`: pending reviews, oldest first.

use std::fmt::Write;

use clap::Args;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::format;
use crate::wire::review::Review;

const MAX_REVIEWS: u32 = 500;

/// List pending reviews, oldest first
#[derive(Args)]
pub(crate) struct List {}

#[derive(Serialize)]
struct Reviews {
    reviews: Vec<Review>,
}

pub(super) async fn run(cx: &Context) -> Result {
    let Database {
        engine,
        caller,
        now,
    } = Database::open(cx).await?;
    let open = engine.open_reviews(&caller, MAX_REVIEWS).await?;
    let mut reviews = Vec::new();
    let mut text = String::new();
    for review in &open {
        let name = engine.sheet(&caller, review.plan).await?.brief.name;
        if !text.is_empty() {
            text.push('\n');
        }
        let title = review
            .title
            .as_deref()
            .map_or(String::new(), |title| format!(", {title}"));
        let requested = format::ago(now, review.review.requested_at);
        let plan = format::short_id(review.plan);
        let head = format!(
            "{plan}  {name}: step {}{title}, requested {requested}",
            review.order
        );
        let _ = writeln!(text, "{}", format::sanitize_line(&head));
        let _ = writeln!(text, "  step {}", format::short_id(review.step));
        text.push_str(&format::indented(&review.review.summary, "  "));
        for question in &review.review.questions {
            text.push_str(&format::indented(&format!("? {question}"), "  "));
        }
        reviews.push(Review::list_entry(review, &name));
    }
    if cx.output.json {
        cx.output.print_json(&Reviews { reviews })?;
        return Ok(Exit::Done);
    }
    cx.output.print(&text)?;
    match open.first() {
        Some(first) => cx.output.note(&format!(
            "\ndecide with `onward review decide {} approve|reject|modify|skip [--feedback TEXT]`",
            format::short_id(first.plan)
        )),
        None => cx.output.note("no pending reviews"),
    }
    Ok(Exit::Done)
}
