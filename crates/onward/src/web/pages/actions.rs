//! Form handlers that change a plan: resume, cancel, add a step, and move, release, fail or edit
//! one. Each redirects back to the page with the form.

use axum::extract::Path;
use onward_core::command::{Modification, ModifyPlan, StepSpec};
use onward_core::{Code, StepId, StepType};

use super::plan::find_plan;
use super::{Fields, FormPost, PageError, PageResult, Visit, redirect, run_to_completion};
use crate::web::problem::Problem;

pub(super) async fn resume(Path(id): Path<String>, post: FormPost) -> PageResult {
    let visit = post.visit;
    let plan = find_plan(&visit, &id).await?;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.resume_plan(&caller, plan).await }).await?;
    Ok(redirect(&format!("/plans/{plan}?done=resumed")))
}

pub(super) async fn abandon(Path(id): Path<String>, post: FormPost) -> PageResult {
    let visit = post.visit;
    let plan = find_plan(&visit, &id).await?;
    let reason = post.fields.get("reason").map(str::to_owned);
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.abandon_plan(&caller, plan, reason).await }).await?;
    Ok(redirect(&format!("/plans/{plan}?done=abandoned")))
}

pub(super) async fn requeue(Path(path): Path<(String, String)>, post: FormPost) -> PageResult {
    let change = |step, _: &FormPost| Modification::RequeueStep { step };
    modify(path, post, change, "requeued").await
}

pub(super) async fn fail(Path(path): Path<(String, String)>, post: FormPost) -> PageResult {
    let change = |step, post: &FormPost| Modification::FailStep {
        step,
        reason: post.fields.get("reason").map(str::to_owned),
    };
    modify(path, post, change, "failed").await
}

pub(super) async fn edit_instructions(
    Path(path): Path<(String, String)>,
    post: FormPost,
) -> PageResult {
    let change = |step, post: &FormPost| Modification::UpdateInstructions {
        step,
        instructions: instructions(&post.fields),
    };
    modify(path, post, change, "instructed").await
}

/// The instructions field. Browsers send CRLF line breaks.
fn instructions(fields: &Fields) -> String {
    let text = fields.get("instructions").unwrap_or_default();
    text.replace("\r\n", "\n")
}

/// Adds a step after the given step number, or at the end.
pub(super) async fn add(Path(id): Path<String>, post: FormPost) -> PageResult {
    let FormPost { visit, fields } = post;
    let plan = find_plan(&visit, &id).await?;
    let name = fields.get("type").unwrap_or_default();
    let kind: StepType = name.parse().map_err(|_| {
        let message = format!("invalid step type `{name}`");
        invalid_input(message, "go back and select a type from the list")
    })?;
    let after = fields.get("after");
    let after = after.map(|number| number.parse().map_err(|_| no_such_step(number)));
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    let mut step = StepSpec::new(engine.new_step_id(), kind, instructions(&fields));
    step.title = fields.get("title").map(str::to_owned);
    let change = Modification::AddSteps {
        steps: vec![step],
        insert_after: after.transpose()?,
    };
    let added =
        run_to_completion(async move { engine.modify_plan(&caller, plan, by_user(change)).await });
    added.await.map_err(|error| {
        let is_reference = error.0.code() == Code::InvalidStepReference;
        match fields.get("after").filter(|_| is_reference) {
            Some(number) => no_such_step(number).into(),
            None => error,
        }
    })?;
    Ok(redirect(&format!("/plans/{plan}?done=added")))
}

/// Moves a step to another position.
pub(super) async fn move_to(
    Path((plan, step)): Path<(String, String)>,
    post: FormPost,
) -> PageResult {
    let FormPost { visit, fields } = post;
    let plan = find_plan(&visit, &plan).await?;
    let step = find_step(&visit, &step).await?;
    let position = fields.get("position").unwrap_or_default();
    let position: u32 = position.parse().map_err(|_| {
        let message = format!("invalid position `{position}`");
        invalid_input(message, "go back and enter a number from 1")
    })?;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.move_step(&caller, plan, step, position).await }).await?;
    Ok(redirect(&match fields.get("back") {
        Some("step") => format!("/plans/{plan}/steps/{step}?done=moved"),
        // Stay in reorder mode, on the same page of the list.
        Some(_) | None => format!(
            "/plans/{plan}?reorder=1&after={}#step-{step}",
            fields.parsed("after").unwrap_or(0u32)
        ),
    }))
}

fn no_such_step(number: &str) -> Problem {
    let message = format!("the plan has no step {number}");
    invalid_input(
        message,
        "go back and enter the number of a step, or 0 for the beginning",
    )
}

fn invalid_input(message: String, hint: &'static str) -> Problem {
    Problem::new(Code::InvalidInput, message, hint)
}

/// A user's change also resumes a stalled plan.
fn by_user(change: Modification) -> ModifyPlan {
    ModifyPlan {
        resume: true,
        ..ModifyPlan::new(change)
    }
}

/// Modifies a step. This also clears the stalled status of the plan.
async fn modify(
    (plan, step): (String, String),
    post: FormPost,
    change: impl FnOnce(StepId, &FormPost) -> Modification,
    outcome: &str,
) -> PageResult {
    let plan = find_plan(&post.visit, &plan).await?;
    let step = find_step(&post.visit, &step).await?;
    let change = change(step, &post);
    let visit = post.visit;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.modify_plan(&caller, plan, by_user(change)).await })
        .await?;
    let back = match post.fields.get("back") {
        Some("step") => format!("/plans/{plan}/steps/{step}"),
        Some(_) | None => format!("/plans/{plan}"),
    };
    Ok(redirect(&format!("{back}?done={outcome}")))
}

/// The step with the id in the URL.
pub(super) async fn find_step(visit: &Visit, id: &str) -> Result<StepId, PageError> {
    Ok(visit.site.engine.find_step(&visit.caller, id).await?)
}
