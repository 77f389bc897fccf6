//! Error page: title, detail and hint of a problem.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};

use super::add_security_headers;
use super::format::sentence;
use super::layout::Layout;
use crate::request_id::RequestId;
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
    /// As in the server log.
    request_id: Option<String>,
}

/// Renders a problem as a page.
pub(crate) fn show(problem: Problem) -> Response {
    let (status, title, detail, hint) = problem.page_text();
    let page = ProblemPage {
        layout: Layout::anonymous(title),
        code: problem.code().as_str(),
        title,
        detail: sentence(detail),
        hint: sentence(&hint),
        request_id: RequestId::current().map(|id| id.to_string()),
    };
    match page.render() {
        Ok(text) => {
            // Error responses of the fallback route do not pass the dashboard's middleware.
            let mut response = (status, Html(text)).into_response();
            add_security_headers(response.headers_mut());
            response.extensions_mut().insert(problem.code());
            response
        }
        Err(_) => problem.into_response(),
    }
}
