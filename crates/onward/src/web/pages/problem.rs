//! Error page: title, detail and hint of a problem.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};

use super::add_security_headers;
use super::layout::Layout;
use crate::output::format;
use crate::web::problem::Problem;

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    layout: Layout,
    /// Error code, for tests and scripts.
    code: &'static str,
    title: &'static str,
    detail: String,
    hint: String,
}

/// Renders a problem as a page.
pub(crate) fn show(problem: Problem) -> Response {
    let (status, title, detail, hint) = problem.page_text();
    let page = ProblemPage {
        layout: Layout::anonymous(title),
        code: problem.code().as_str(),
        title,
        detail: sentence(detail),
        hint: sentence(hint),
    };
    match page.render() {
        Ok(text) => {
            // Error responses of the fallback route do not pass the dashboard's middleware.
            let mut response = (status, Html(text)).into_response();
            add_security_headers(response.headers_mut());
            response
        }
        Err(_) => problem.into_response(),
    }
}

/// Turns a message into a sentence without backticks. A leading name keeps its case.
pub(super) fn sentence(message: &str) -> String {
    let message = format::sanitize_line(message);
    let starts_with_name = message.starts_with('`');
    let message = message.replace('`', "");
    let mut chars = message.chars();
    let sentence: String = match (starts_with_name, chars.next()) {
        (false, Some(first)) => first.to_uppercase().chain(chars).collect(),
        (true, _) | (_, None) => message,
    };
    if sentence.ends_with(['.', '?', '!', '…']) || sentence.is_empty() {
        sentence
    } else {
        format!("{sentence}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_become_sentences() {
        assert_eq!(sentence("no plan `x`"), "No plan x.");
        assert_eq!(sentence("überhaupt?"), "Überhaupt?");
        assert_eq!(sentence("`planId` is empty"), "planId is empty.");
        assert_eq!(sentence(""), "");
    }
}
