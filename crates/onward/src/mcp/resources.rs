//! What can be read without calling a tool: the plans, a plan as a person would read it, its audit
//! trail, how an agent's session is, and who is asking.
//!
//! A session is named by whoever runs the agent, so its id may hold anything; in a URI it is escaped, as
//! the template wants it, and two spellings of one URI name the same session.

use onward_core::PlanId;
use onward_engine::list::PlanQuery;
use onward_engine::{Caller, Engine, Subject};
use percent_encoding::percent_decode_str;
use rmcp::model::{
    ErrorCode, ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::error;
use crate::markdown;
use crate::wire::call::Health;
use crate::wire::event::Audit;
use crate::wire::plan::Plans;
use crate::wire::profile::Profile;

const PLANS: &str = "onward://plans";
const PROFILE: &str = "onward://user/profile";
const PLAN: &str = "onward://plan/";
const AUDIT: &str = "/audit";
const SESSION: &str = "onward://session/";
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

/// How many plans are listed, and stand in `onward://plans`.
const SHOWN: u32 = 100;
/// How much of a trail is read at once.
const PIECE: u32 = 1_000;

/// What a URI names.
enum Named {
    Plans,
    Profile,
    Plan(PlanId),
    Audit(PlanId),
    Session(String),
}

fn named(uri: &str) -> Option<Named> {
    match uri {
        PLANS => Some(Named::Plans),
        PROFILE => Some(Named::Profile),
        uri => match (uri.strip_prefix(PLAN), uri.strip_prefix(SESSION)) {
            (Some(plan), _) => match plan.strip_suffix(AUDIT) {
                Some(plan) => plan.parse().ok().map(Named::Audit),
                None => plan.parse().ok().map(Named::Plan),
            },
            (None, Some(session)) => {
                let session = percent_decode_str(session).decode_utf8().ok()?;
                (!session.is_empty()).then(|| Named::Session(session.into_owned()))
            }
            (None, None) => None,
        },
    }
}

fn known(uri: &str) -> Result<Named, ErrorData> {
    named(uri).ok_or_else(|| {
        let message = format!("no resource `{}`", shown(uri));
        ErrorData::resource_not_found(message, None)
    })
}

/// As much of a URI as is worth repeating.
fn shown(uri: &str) -> String {
    uri.chars().take(200).collect()
}

/// Where there is no such resource, the error says which one, as the protocol wants it.
pub(super) fn naming(uri: &str) -> impl Fn(ErrorData) -> ErrorData {
    move |mut error| {
        if error.code == ErrorCode::RESOURCE_NOT_FOUND {
            let mut data = error
                .data
                .take()
                .unwrap_or_else(|| Value::Object(Map::new()));
            if let Value::Object(data) = &mut data {
                data.insert("uri".to_owned(), shown(uri).into());
            }
            error.data = Some(data);
        }
        error
    }
}

/// Whether a URI can name something here.
pub(super) fn is_known(uri: &str) -> bool {
    named(uri).is_some()
}

/// Whether a URI tells something else once this has changed.
pub(super) fn is_about(uri: &str, changed: &Subject) -> bool {
    match (named(uri), changed) {
        (Some(Named::Plans), Subject::Plan(_)) => true,
        (Some(Named::Plan(named) | Named::Audit(named)), Subject::Plan(plan)) => named == *plan,
        (Some(Named::Session(named)), Subject::Session(session)) => named == **session,
        (Some(Named::Profile), _)
        | (Some(Named::Plans | Named::Plan(_) | Named::Audit(_)), Subject::Session(_))
        | (Some(Named::Session(_)), Subject::Plan(_))
        | (None, _) => false,
    }
}

/// What there is to read: the plans that are not over, the newest change first.
pub(super) async fn list(
    engine: &Engine,
    caller: &Caller,
) -> Result<ListResourcesResult, ErrorData> {
    let mut all = vec![
        Resource::new(PLANS, "plans")
            .with_title("Active plans")
            .with_mime_type(JSON),
        Resource::new(PROFILE, "profile")
            .with_title("Who you are here")
            .with_mime_type(JSON),
    ];
    let page = engine.list_plans(caller, active()).await.map_err(error)?;
    all.extend(page.plans.iter().map(|listed| {
        let sheet = &listed.sheet;
        Resource::new(format!("{PLAN}{}", sheet.head.id), sheet.brief.name.clone())
            .with_mime_type(MARKDOWN)
    }));
    Ok(ListResourcesResult::with_all_items(all))
}

pub(super) fn templates() -> ListResourceTemplatesResult {
    ListResourceTemplatesResult::with_all_items(vec![
        ResourceTemplate::new(format!("{PLAN}{{planId}}"), "plan")
            .with_title("A plan, for people to read")
            .with_mime_type(MARKDOWN),
        ResourceTemplate::new(format!("{PLAN}{{planId}}{AUDIT}"), "audit")
            .with_title("Everything that happened to a plan")
            .with_mime_type(JSON),
        ResourceTemplate::new(format!("{SESSION}{{sessionId}}"), "session")
            .with_title("How an agent's session is: its turn, its calls, its plans")
            .with_mime_type(JSON),
    ])
}

/// Refuses a URI that names nothing.
pub(super) async fn exists(engine: &Engine, caller: &Caller, uri: &str) -> Result<(), ErrorData> {
    match known(uri)? {
        Named::Plans | Named::Profile => {}
        Named::Plan(plan) | Named::Audit(plan) => {
            engine.sheet(caller, plan).await.map_err(error)?;
        }
        Named::Session(session) => {
            engine
                .session_health(caller, &session)
                .await
                .map_err(error)?;
        }
    }
    Ok(())
}

pub(super) async fn read(
    engine: &Engine,
    caller: &Caller,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let (text, kind) = match known(uri)? {
        Named::Plans => {
            let page = engine.list_plans(caller, active()).await.map_err(error)?;
            (json(&Plans::of(&page))?, JSON)
        }
        Named::Profile => (json(&Profile::of(caller))?, JSON),
        Named::Plan(plan) => {
            let whole = engine.whole_plan(caller, plan).await.map_err(error)?;
            (markdown::plan(&whole), MARKDOWN)
        }
        Named::Audit(plan) => (json(&audit(engine, caller, plan).await?)?, JSON),
        Named::Session(session) => {
            let health = engine.session_health(caller, &session).await;
            (json(&Health::of(&health.map_err(error)?))?, JSON)
        }
    };
    let contents = ResourceContents::text(text, uri).with_mime_type(kind);
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn audit(engine: &Engine, caller: &Caller, plan: PlanId) -> Result<Audit, ErrorData> {
    let mut trail = Vec::new();
    loop {
        let behind = trail.last().map_or(0, seq);
        let piece = engine.trail(caller, plan, behind, PIECE);
        let piece = piece.await.map_err(error)?;
        let last = piece.len() < usize::try_from(PIECE).unwrap_or(usize::MAX);
        trail.extend(piece);
        if last {
            return Ok(Audit::of(plan, trail));
        }
    }
}

fn seq(shown: &onward_engine::trail::Shown) -> u64 {
    shown.entry.seq
}

fn active() -> PlanQuery {
    PlanQuery {
        limit: SHOWN,
        ..PlanQuery::default()
    }
}

fn json(value: &impl Serialize) -> Result<String, ErrorData> {
    serde_json::to_string(value).map_err(|why| ErrorData::internal_error(why.to_string(), None))
}
