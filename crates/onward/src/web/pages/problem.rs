//! Why something was not shown or done, as a page: what is wrong, and what to do next.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};

use super::frame::Frame;
use crate::output::words;
use crate::web::problem::Problem;

#[derive(Template)]
#[template(path = "problem.html")]
struct Shown {
    frame: Frame,
    title: &'static str,
    detail: String,
    hint: String,
}

/// The problem as a page.
pub(crate) fn show(problem: Problem) -> Response {
    let (status, title, detail, hint) = problem.told();
    let page = Shown {
        frame: Frame::bare(title),
        title,
        detail: words::line(detail),
        hint: words::line(hint),
    };
    match page.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(_) => problem.into_response(),
    }
}
