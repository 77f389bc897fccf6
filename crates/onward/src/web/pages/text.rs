//! `/artifacts/{id}` and `/outputs/{id}`: one stored text. Markdown is rendered; `?as=written`
//! displays the source.

use askama::Template;
use axum::extract::Path;
use onward_core::PlanId;
use onward_engine::Error;

use super::format::{RelativeTime, multiline, one_line};
use super::layout::{Layout, Section, render};
use super::markdown_html::MarkdownHtml;
use super::{PageResult, Visit};
use crate::output::format;

const MAX_CHARS: usize = 200_000;

#[derive(Template)]
#[template(path = "text.html")]
struct Text {
    layout: Layout,
    title: String,
    kind: String,
    id: String,
    at: RelativeTime,
    plan: Option<(String, String)>,
    source: Option<String>,
    version: Option<u32>,
    media_type: Option<String>,
    body: Body,
}

/// The displayed text.
enum Body {
    Rendered(MarkdownHtml),
    Source { text: String, is_markdown: bool },
}

impl Body {
    fn new(visit: &Visit, content: &str, is_markdown: bool) -> Self {
        if is_markdown && visit.fields.get("as") != Some("written") {
            Body::Rendered(MarkdownHtml::render(content, MAX_CHARS))
        } else {
            Body::Source {
                text: multiline(content, MAX_CHARS),
                is_markdown,
            }
        }
    }
}

/// Whether a media type is Markdown.
fn is_markdown(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("text/markdown") || essence.eq_ignore_ascii_case("text/x-markdown")
}

pub(super) async fn artifact(visit: Visit, Path(id): Path<String>) -> PageResult {
    let engine = &visit.site.engine;
    let not_found = || Error::NotFound {
        kind: "artifact",
        name: one_line(&id, 100),
    };
    let artifact = id.parse().map_err(|_| not_found())?;
    let found = engine.artifact(&visit.caller, artifact).await?;
    render(&Text {
        layout: visit.layout(&found.title, Section::Search).await?,
        title: format::sanitize_line(&found.title),
        kind: one_line(&found.kind.replace('_', " "), 40),
        id: found.id.to_string(),
        at: RelativeTime::new(found.created_at, engine.now()),
        plan: plan_link(&visit, found.plan).await,
        source: found.source_url.as_deref().map(format::sanitize_line),
        version: None,
        media_type: None,
        body: Body::new(&visit, &found.content, true),
    })
}

pub(super) async fn output(visit: Visit, Path(id): Path<String>) -> PageResult {
    let engine = &visit.site.engine;
    let not_found = || Error::NotFound {
        kind: "output",
        name: one_line(&id, 100),
    };
    let output = id.parse().map_err(|_| not_found())?;
    let found = engine.output(&visit.caller, output).await?;
    render(&Text {
        layout: visit.layout(&found.title, Section::Search).await?,
        title: format::sanitize_line(&found.title),
        kind: "output".to_owned(),
        id: found.id.to_string(),
        at: RelativeTime::new(found.created_at, engine.now()),
        plan: plan_link(&visit, Some(found.plan)).await,
        source: None,
        version: Some(found.version),
        media_type: Some(one_line(&found.media_type, 100)),
        body: Body::new(&visit, &found.content, is_markdown(&found.media_type)),
    })
}

/// Id and name of the plan, if it still exists.
async fn plan_link(visit: &Visit, plan: Option<PlanId>) -> Option<(String, String)> {
    let plan = plan?;
    let sheet = visit.site.engine.sheet(&visit.caller, plan).await.ok()?;
    Some((plan.to_string(), format::sanitize_line(&sheet.brief.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_markdown_media_types() {
        for markdown in [
            "text/markdown",
            "Text/Markdown; charset=utf-8",
            "text/x-markdown",
        ] {
            assert!(is_markdown(markdown), "{markdown}");
        }
        for other in ["", "text/plain", "application/json", "text/markdownish"] {
            assert!(!is_markdown(other), "{other}");
        }
    }
}
