//! Why something was not shown or done, as a page: what is wrong, and what to do next.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};

use super::frame::Frame;
use super::guard;
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
        detail: sentence(detail),
        hint: sentence(hint),
    };
    match page.render() {
        Ok(text) => {
            // It may be shown where no page was found, and so none is guarded.
            let mut response = (status, Html(text)).into_response();
            guard(response.headers_mut());
            response
        }
        Err(_) => problem.into_response(),
    }
}

/// What every surface says in a clause, as a sentence. A name that it begins with stays as it is.
pub(super) fn sentence(clause: &str) -> String {
    let clause = words::line(clause);
    let is_name = clause.starts_with('`');
    let clause = clause.replace('`', "");
    let mut chars = clause.chars();
    let sentence: String = match (is_name, chars.next()) {
        (false, Some(first)) => first.to_uppercase().chain(chars).collect(),
        (true, _) | (_, None) => clause,
    };
    match sentence.ends_with(['.', '?', '!', '…']) || sentence.is_empty() {
        true => sentence,
        false => format!("{sentence}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_in_sentences() {
        assert_eq!(sentence("no plan `x`"), "No plan x.");
        assert_eq!(sentence("überhaupt?"), "Überhaupt?");
        assert_eq!(sentence("`planId` is empty"), "planId is empty.");
        assert_eq!(sentence(""), "");
    }
}
