//! `/plans/{id}/steps/{id}`: one step with its state, texts and actions.

use askama::Template;
use axum::extract::Path;
use onward_engine::Error;

use super::actions::find_step;
use super::layout::{Layout, Section, render};
use super::plan::{Inspector, find_plan, message};
use super::{PageResult, Visit};

#[derive(Template)]
#[template(path = "step.html")]
struct StepPage {
    layout: Layout,
    outcome: Option<String>,
    step: Inspector,
}

pub(super) async fn show(visit: Visit, Path((plan, step)): Path<(String, String)>) -> PageResult {
    let engine = &visit.site.engine;
    let plan = find_plan(&visit, &plan).await?;
    let id = find_step(&visit, &step).await?;
    let Some(step) = Inspector::load(&visit, plan, id).await? else {
        let step = id.to_string();
        return Err(Error::StepNotFound { step, kept: None }.into());
    };
    let outcome = match visit.fields.get("done") {
        Some(_) => {
            let status = engine.status(&visit.caller, plan, None).await?;
            message(&visit.fields, &status, engine.now())
        }
        None => None,
    };
    render(&StepPage {
        layout: visit.layout(&step.title(), Section::Plans).await?,
        outcome,
        step,
    })
}
