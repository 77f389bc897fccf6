//! What people do to a plan: let it go on, give it up, add a step, move one, hand one out again, fail it,
//! say anew what it is about. Each is a form, and leads back to where one came from.

use axum::extract::Path;
use onward_core::command::{Modification, StepSpec};
use onward_core::{Code, StepId, StepType};

use super::plan::named;
use super::{Failed, Fields, Page, Posted, Visit, done, to};
use crate::web::problem::Problem;

pub(super) async fn resume(Path(id): Path<String>, posted: Posted) -> Page {
    let visit = posted.visit;
    let plan = named(&visit, &id).await?;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    done(async move { engine.resume_plan(&caller, plan).await }).await?;
    Ok(to(&format!("/plans/{plan}?done=resumed")))
}

pub(super) async fn abandon(Path(id): Path<String>, posted: Posted) -> Page {
    let visit = posted.visit;
    let plan = named(&visit, &id).await?;
    let reason = posted.fields.get("reason").map(str::to_owned);
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    done(async move { engine.abandon_plan(&caller, plan, reason).await }).await?;
    Ok(to(&format!("/plans/{plan}?done=abandoned")))
}

pub(super) async fn requeue(Path(path): Path<(String, String)>, posted: Posted) -> Page {
    let change = |step, _: &Posted| Modification::RequeueStep { step };
    modify(path, posted, change, "requeued").await
}

pub(super) async fn fail(Path(path): Path<(String, String)>, posted: Posted) -> Page {
    let change = |step, posted: &Posted| Modification::FailStep {
        step,
        reason: posted.fields.get("reason").map(str::to_owned),
    };
    modify(path, posted, change, "failed").await
}

pub(super) async fn instruct(Path(path): Path<(String, String)>, posted: Posted) -> Page {
    let change = |step, posted: &Posted| Modification::UpdateInstructions {
        step,
        instructions: instructions(&posted.fields),
    };
    modify(path, posted, change, "instructed").await
}

/// Browsers send line breaks in another way than agents write them.
fn instructions(fields: &Fields) -> String {
    let text = fields.get("instructions").unwrap_or_default();
    text.replace("\r\n", "\n")
}

/// Adds a step behind the one with the order that is named, or at the end.
pub(super) async fn add(Path(id): Path<String>, posted: Posted) -> Page {
    let Posted { visit, fields } = posted;
    let plan = named(&visit, &id).await?;
    let word = fields.get("type").unwrap_or_default();
    let kind: StepType = word.parse().map_err(|_| {
        let message = format!("`{word}` is no kind of step");
        wrong(message, "go back, and choose one of the list")
    })?;
    let after = fields.get("after");
    let after = after.map(|place| place.parse().map_err(|_| no_place(place)));
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    let mut step = StepSpec::new(engine.fresh_step(), kind, instructions(&fields));
    step.title = fields.get("title").map(str::to_owned);
    let change = Modification::AddSteps {
        steps: vec![step],
        insert_after: after.transpose()?,
    };
    let added = done(async move { engine.modify_plan(&caller, plan, change, None, true).await });
    added.await.map_err(|failed| {
        let is_place = failed.0.code() == Code::InvalidStepReference;
        match fields.get("after").filter(|_| is_place) {
            Some(place) => no_place(place).into(),
            None => failed,
        }
    })?;
    Ok(to(&format!("/plans/{plan}?done=added")))
}

/// Moves a step to another place among the others.
pub(super) async fn move_to(Path((plan, step)): Path<(String, String)>, posted: Posted) -> Page {
    let Posted { visit, fields } = posted;
    let plan = named(&visit, &plan).await?;
    let step = step_of(&visit, &step).await?;
    let place = fields.get("place").unwrap_or_default();
    let place: u32 = place.parse().map_err(|_| {
        let message = format!("`{place}` is no place in the plan");
        wrong(message, "go back, and name a number from 1 on")
    })?;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    done(async move { engine.move_step(&caller, plan, step, place).await }).await?;
    Ok(to(&match fields.get("back") {
        Some("step") => format!("/plans/{plan}/steps/{step}?done=moved"),
        // Whoever arranges steps goes on with that, at the same place.
        Some(_) | None => format!(
            "/plans/{plan}?arrange=1&behind={}#step-{step}",
            fields.parsed("behind").unwrap_or(0u32)
        ),
    }))
}

fn no_place(place: &str) -> Problem {
    let message = format!("there is no step {place} in the plan");
    wrong(
        message,
        "go back, and name the number of a step; 0 is the front",
    )
}

fn wrong(message: String, hint: &'static str) -> Problem {
    Problem::new(Code::InvalidInput, message, hint)
}

/// Does it; a plan that was marked goes on with it.
async fn modify(
    (plan, step): (String, String),
    posted: Posted,
    change: impl FnOnce(StepId, &Posted) -> Modification,
    word: &str,
) -> Page {
    let plan = named(&posted.visit, &plan).await?;
    let step = step_of(&posted.visit, &step).await?;
    let change = change(step, &posted);
    let visit = posted.visit;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    done(async move { engine.modify_plan(&caller, plan, change, None, true).await }).await?;
    let back = match posted.fields.get("back") {
        Some("step") => format!("/plans/{plan}/steps/{step}"),
        Some(_) | None => format!("/plans/{plan}"),
    };
    Ok(to(&format!("{back}?done={word}")))
}

/// The step that an address names.
pub(super) async fn step_of(visit: &Visit, id: &str) -> Result<StepId, Failed> {
    Ok(visit.site.engine.find_step(&visit.caller, id).await?)
}
