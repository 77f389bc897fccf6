//! `/artifacts/{id}` and `/outputs/{id}`: one text that was stored, as it is, with where it belongs.

use askama::Template;
use axum::extract::Path;
use onward_core::PlanId;
use onward_engine::Error;

use super::frame::{Frame, Section, render};
use super::show::{When, gist, text};
use super::{Page, Visit};
use crate::output::words;

/// How much of a text is shown: no browser likes more on one page.
const LONGEST: usize = 200_000;

#[derive(Template)]
#[template(path = "text.html")]
struct Text {
    frame: Frame,
    title: String,
    kind: String,
    id: String,
    at: When,
    plan: Option<(String, String)>,
    source: Option<String>,
    version: Option<u32>,
    media_type: Option<String>,
    text: String,
}

pub(super) async fn artifact(visit: Visit, Path(id): Path<String>) -> Page {
    let engine = &visit.site.engine;
    let unknown = || Error::NotFound {
        what: "artifact",
        name: gist(&id, 100),
    };
    let named = id.parse().map_err(|_| unknown())?;
    let found = engine.artifact(&visit.caller, named).await?;
    render(&Text {
        frame: visit.frame(&found.title, Section::Search).await?,
        title: words::line(&found.title),
        kind: gist(&found.kind.replace('_', " "), 40),
        id: found.id.to_string(),
        at: When::new(found.created_at, engine.now()),
        plan: belongs(&visit, found.plan).await,
        source: found.source_url.as_deref().map(words::line),
        version: None,
        media_type: None,
        text: text(&found.content, LONGEST),
    })
}

pub(super) async fn output(visit: Visit, Path(id): Path<String>) -> Page {
    let engine = &visit.site.engine;
    let unknown = || Error::NotFound {
        what: "output",
        name: gist(&id, 100),
    };
    let named = id.parse().map_err(|_| unknown())?;
    let found = engine.output(&visit.caller, named).await?;
    render(&Text {
        frame: visit.frame(&found.title, Section::Search).await?,
        title: words::line(&found.title),
        kind: "output".to_owned(),
        id: found.id.to_string(),
        at: When::new(found.created_at, engine.now()),
        plan: belongs(&visit, Some(found.plan)).await,
        source: None,
        version: Some(found.version),
        media_type: Some(gist(&found.media_type, 100)),
        text: text(&found.content, LONGEST),
    })
}

/// The plan's address and name, if it is still there.
async fn belongs(visit: &Visit, plan: Option<PlanId>) -> Option<(String, String)> {
    let plan = plan?;
    let sheet = visit.site.engine.sheet(&visit.caller, plan).await.ok()?;
    Some((plan.to_string(), words::line(&sheet.brief.name)))
}
