//! What people do to a plan: let it go on, give it up, hand a step out again, fail it, say anew what it
//! is about. Each is a form, and leads back to where one came from.

use axum::extract::Path;
use onward_core::StepId;
use onward_core::command::Modification;

use super::plan::named;
use super::{Failed, Page, Posted, Visit, done, to};

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
        // Browsers send line breaks in another way than agents write them.
        instructions: posted
            .fields
            .get("instructions")
            .unwrap_or_default()
            .replace("\r\n", "\n"),
    };
    modify(path, posted, change, "instructed").await
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
