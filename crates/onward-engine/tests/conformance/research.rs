//! What was found or made is kept, with what is known of it; what plans deliver is kept in versions.

use std::time::Duration;

use onward_core::PlanId;
use onward_core::id::{ArtifactId, ClaimToken};
use onward_core::policy::{MAX_ARTIFACT_TITLE, MAX_CONTENT_BYTES, MAX_METADATA_BYTES, MAX_URL};
use onward_core::search::chunks;
use onward_engine::Artifact;
use onward_engine::feedback::Opinion;
use onward_engine::research::{Deliverable, Delivered, Finding};
use onward_engine::search::Wanted;
use serde_json::{Map, Value, json};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, document, error, refusal, result};

pub(crate) fn finding(title: &str, content: &str) -> Finding {
    Finding {
        title: title.to_owned(),
        content: content.to_owned(),
        kind: None,
        plan: None,
        step: None,
        source_url: None,
        metadata: Map::new(),
        token: None,
        session: None,
    }
}

pub(crate) fn deliverable(plan: PlanId, title: &str, content: &str) -> Deliverable {
    Deliverable {
        plan,
        title: title.to_owned(),
        content: content.to_owned(),
        media_type: None,
    }
}

impl Desk {
    pub(crate) async fn store(&self, finding: Finding) -> ArtifactId {
        let stored = self.engine.store_research(&self.me, finding).await;
        stored.unwrap().id
    }

    pub(crate) async fn deliver(&self, plan: PlanId, title: &str, content: &str) -> Delivered {
        let output = deliverable(plan, title, content);
        self.engine.store_output(&self.me, output).await.unwrap()
    }

    /// The titles of what is found, the best first.
    pub(crate) async fn titles(&self, query: &str) -> Vec<String> {
        let query = query.to_owned();
        let wanted = Wanted {
            query,
            ..Wanted::default()
        };
        let found = self.engine.search(&self.me, wanted).await.unwrap().found;
        found.into_iter().map(|found| found.hit.title).collect()
    }
}

/// How many chunks the test's own tenant has.
fn chunk_count(desk: &Desk) -> String {
    let tenant = &desk.me.tenant;
    let count = format!("SELECT count(*) FROM chunks WHERE tenant_id = '{tenant}'");
    desk.sql(&count).unwrap()
}

async fn artifacts(desk: &Desk, plan: PlanId) -> Vec<Artifact> {
    let whole = desk.engine.whole_plan(&desk.me, plan).await;
    whole.unwrap().artifacts
}

async fn what_was_found_is_kept_with_all_that_is_known_of_it(desk: &Desk) {
    let plan = desk.plan(1).await;
    let stored = desk.engine.store_research(
        &desk.me,
        Finding {
            kind: Some("quote".to_owned()),
            plan: Some(plan.id),
            source_url: Some("https://example.org/tides".to_owned()),
            metadata: Map::from_iter([("page".to_owned(), json!("7\0"))]),
            ..finding("Ti\0des", "Two a day.\0")
        },
    );
    let stored = stored.await.unwrap();
    assert_eq!((stored.title.as_str(), stored.chunks), ("Ti\u{FFFD}des", 1));
    let kept = artifacts(desk, plan.id).await;
    assert_eq!(
        kept,
        [Artifact {
            id: stored.id,
            plan: Some(plan.id),
            step: None,
            kind: "quote".to_owned(),
            title: "Ti\u{FFFD}des".to_owned(),
            content: "Two a day.\u{FFFD}".to_owned(),
            source_url: Some("https://example.org/tides".to_owned()),
            metadata: json!({ "page": "7\u{FFFD}" }),
            created_at: desk.now(),
        }]
    );
    let trail = desk.trail(plan.id).await;
    assert_eq!(trail, ["plan_modified created"], "the plan is as it was");
    let plain = desk.store(finding("Plain", "words")).await;
    let row = desk.sql(&format!(
        "SELECT artifact_type, plan_id, source_url, metadata FROM artifacts \
         WHERE artifact_id = {} AND tenant_id = '{}'",
        desk.literal(plain),
        desk.me.tenant
    ));
    assert_eq!(row.unwrap(), "note|||{}");
}

async fn what_is_found_for_a_step_belongs_to_its_plan_and_shows_that_somebody_works(desk: &Desk) {
    let plan = desk.plan(2).await;
    let step = desk.take(plan.id).await;
    desk.advance(Duration::from_secs(60));
    let for_step = |token: &ClaimToken| Finding {
        step: Some(step.step),
        token: Some(token.clone()),
        ..finding("Found", "something")
    };
    desk.store(for_step(&step.token)).await;
    let kept = artifacts(desk, plan.id).await;
    assert_eq!(
        (kept[0].plan, kept[0].step),
        (Some(plan.id), Some(step.step))
    );
    let progressed = |trail: Vec<String>| {
        let signs = trail.iter().filter(|name| name.contains("progress"));
        signs.count()
    };
    assert_eq!(progressed(desk.trail(plan.id).await), 1);
    // Whoever has no claim any more may still bring what they found; it is no sign of life.
    desk.advance(Duration::from_secs(60));
    desk.store(for_step(&ClaimToken::new("stale"))).await;
    desk.hand_in(&step, "done").await;
    desk.store(for_step(&step.token)).await;
    assert_eq!(artifacts(desk, plan.id).await.len(), 3);
    assert_eq!(progressed(desk.trail(plan.id).await), 1);
}

async fn what_does_not_fit_is_refused_by_its_path_and_not_kept(desk: &Desk) {
    let (plan, other) = (desk.plan(1).await, desk.plan(1).await);
    let big = json!("x".repeat(MAX_METADATA_BYTES));
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let with = |data: &Value| Finding {
        metadata: Map::from_iter([("a".to_owned(), data.clone())]),
        ..finding("t", "c")
    };
    for (misfit, path) in [
        (finding(" ", "c"), "title"),
        (finding(&"é".repeat(MAX_ARTIFACT_TITLE + 1), "c"), "title"),
        (finding("t", ""), "content"),
        (finding("t", &"x".repeat(MAX_CONTENT_BYTES + 1)), "content"),
        (with(&big), "metadata"),
        (with(&deep), "metadata"),
        (
            Finding {
                kind: Some("rumour".to_owned()),
                ..finding("t", "c")
            },
            "artifactType",
        ),
        (
            Finding {
                source_url: Some("u".repeat(MAX_URL + 1)),
                ..finding("t", "c")
            },
            "sourceUrl",
        ),
        (
            Finding {
                plan: Some(other.id),
                step: Some(plan.steps[0]),
                ..finding("t", "c")
            },
            "stepId",
        ),
    ] {
        let refused = refusal(desk.engine.store_research(&desk.me, misfit).await);
        let onward_core::Refusal::InvalidInput(issues) = refused else {
            panic!("refused for another reason: {refused}")
        };
        assert_eq!(issues[0].path, path);
    }
    for (title, content, path) in [("", "c", "title"), ("t", "", "content")] {
        let output = deliverable(plan.id, title, content);
        let refused = error(desk.engine.store_output(&desk.me, output).await);
        assert!(refused.to_string().contains(path), "{refused}");
    }
    let nowhere = deliverable(PlanId::from_u128(7), "t", "c");
    let refused = desk.engine.store_output(&desk.me, nowhere).await;
    assert_eq!(code(refused), "plan_not_found");
    assert_eq!(chunk_count(desk), "0");
}

async fn the_largest_content_is_kept_in_chunks(desk: &Desk) {
    let content = "Ebb and flow. ".repeat(MAX_CONTENT_BYTES / 14);
    let stored = desk
        .engine
        .store_research(&desk.me, finding("Long", &content));
    let stored = stored.await.unwrap();
    assert_eq!(stored.chunks, chunks(&content).len());
    assert_eq!(chunk_count(desk), stored.chunks.to_string());
    assert_eq!(desk.titles("flow").await, ["Long"]);
}

async fn an_output_has_versions_by_its_title(desk: &Desk) {
    let (plan, other) = (desk.plan(1).await, desk.plan(1).await);
    for (id, title, version) in [
        (plan.id, "Answer", 1),
        (plan.id, "Answer", 2),
        (plan.id, "Appendix", 1),
        (other.id, "Answer", 1),
        (plan.id, "Answer", 3),
    ] {
        let delivered = desk.deliver(id, title, "the same words").await;
        assert_eq!((delivered.plan, delivered.version), (id, version));
    }
    desk.work_off(plan.id, 1).await;
    let late = desk.deliver(plan.id, "Answer", "after the end").await;
    assert_eq!(late.version, 4, "a plan that is over delivers, too");
}

async fn versions_that_are_stored_at_once_are_counted_one_by_one(desk: &Desk) {
    let plan = desk.plan(1).await.id;
    let another = desk.another_engine().await;
    let store = async |engine: &onward_engine::Engine| {
        let output = deliverable(plan, "Answer", "words");
        let delivered = engine.store_output(&desk.me, output).await;
        delivered.unwrap().version
    };
    let (a, b, c, d) = tokio::join!(
        store(&desk.engine),
        store(&another),
        store(&desk.engine),
        store(&another)
    );
    let mut versions = [a, b, c, d];
    versions.sort_unstable();
    assert_eq!(versions, [1, 2, 3, 4]);
    another.close().await;
}

async fn a_plan_that_is_deleted_takes_its_outputs_and_leaves_its_artifacts(desk: &Desk) {
    let (plan, other) = (desk.plan(1).await, desk.plan(1).await);
    for id in [plan.id, other.id] {
        desk.deliver(id, "Answer", "ebb and flow").await;
        let found = Finding {
            plan: Some(id),
            ..finding("Found", "ebb and flow")
        };
        desk.store(found).await;
    }
    desk.engine.delete_plan(&desk.me, plan.id).await.unwrap();
    assert_eq!(desk.titles("ebb").await.len(), 3);
    assert_eq!(chunk_count(desk), "3");
    let tenant = &desk.me.tenant;
    let left = |table: &str| {
        let rows = format!(
            "SELECT plan_id IS NULL, count(*) FROM {table} WHERE tenant_id = '{tenant}' \
             GROUP BY 1 ORDER BY 2"
        );
        desk.sql(&rows).unwrap().lines().count()
    };
    assert_eq!((left("outputs"), left("artifacts")), (1, 2));
}

async fn a_result_that_came_late_is_found(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    desk.hand_in(&step, "first").await;
    error(desk.submit(result(&step, "a whale of a result")).await);
    let title = format!("Late result for step {}", step.step);
    assert_eq!(desk.titles("whale").await, [title]);
}

async fn outputs_move_with_their_plan_and_are_found_there(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.deliver(plan.id, "Answer", "a draft about herring")
        .await;
    desk.advance(Duration::from_secs(1));
    let last = desk.deliver(plan.id, "Answer", "the Moon, twice").await;
    let said = Opinion {
        plan: plan.id,
        rating: Some(5),
        comment: None,
        output: Some(last.id.to_string()),
    };
    desk.engine.submit_feedback(&desk.me, said).await.unwrap();
    let before = document(&desk.engine, &desk.me, plan.id).await;
    assert_eq!(before["outputs"][1]["version"], 2);
    assert_eq!(before["feedback"][0]["outputId"], last.id.to_string());
    desk.engine.delete_plan(&desk.me, plan.id).await.unwrap();
    assert_eq!(desk.titles("moon").await, [""; 0]);
    desk.engine.import(&desk.me, &before).await.unwrap();
    assert_eq!(document(&desk.engine, &desk.me, plan.id).await, before);
    assert_eq!(desk.titles("moon").await, ["Answer"]);
    assert_eq!(desk.titles("herring").await, [""; 0], "a version before");
    assert_eq!(desk.deliver(plan.id, "Answer", "more").await.version, 3);
}

async fn a_document_whose_outputs_do_not_fit_is_refused(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.deliver(plan.id, "Answer", "words").await;
    let whole = document(&desk.engine, &desk.me, plan.id).await;
    let other = desk.tenant("other").await;
    let output = |change: (&str, Value)| {
        let mut document = whole.clone();
        document["outputs"][0][change.0] = change.1;
        document
    };
    let mut twice = whole.clone();
    let first = whole["outputs"][0].clone();
    twice["outputs"].as_array_mut().unwrap().push(first);
    let mut about_none = whole.clone();
    about_none["feedback"] = json!([{
        "feedbackId": desk.engine.fresh_plan().to_string(),
        "rating": 1, "comment": null, "actor": "me",
        "createdAt": desk.now().to_string(),
        "outputId": desk.engine.fresh_plan().to_string(),
    }]);
    for (document, path) in [
        (output(("version", json!(0))), "outputs[0].version"),
        (output(("outputId", json!("x"))), "outputs[0].outputId"),
        (output(("content", json!(null))), "outputs[0].content"),
        (twice, "outputs[1]"),
        (about_none, "feedback[0].outputId"),
    ] {
        let refused = error(desk.engine.import(&other, &document).await);
        assert!(refused.to_string().contains(path), "{path}: {refused}");
    }
    let mut early = whole.clone();
    early.as_object_mut().unwrap().remove("outputs");
    desk.engine.import(&other, &early).await.unwrap();
}

async fn contexts_show_the_last_version_of_each_output(desk: &Desk) {
    let plan = desk.plan(1).await;
    let long = "ebb ".repeat(500);
    for (title, content) in [
        ("Answer", "draft"),
        ("Appendix", "tables"),
        ("Answer", &long),
    ] {
        desk.deliver(plan.id, title, content).await;
        desk.advance(Duration::from_secs(1));
    }
    let of_plan = desk.engine.plan_context(&desk.me, plan.id, None, None);
    let of_plan = of_plan.await.unwrap().outputs;
    let shown: Vec<_> = of_plan
        .iter()
        .map(|it| (it.title.as_str(), it.version, it.goes_on))
        .collect();
    assert_eq!(shown, [("Answer", 2, true), ("Appendix", 1, false)]);
    assert_eq!(of_plan[1].excerpt, "tables");
    let of_step = desk.engine.step_context(&desk.me, plan.steps[0], None);
    assert_eq!(of_step.await.unwrap().outputs, of_plan);
    let small = desk
        .engine
        .plan_context(&desk.me, plan.id, None, Some(1_300));
    let small = small.await.unwrap();
    assert!(small.truncated && small.outputs.len() < 2, "{small:?}");
}

async fn feedback_is_about_an_output_of_its_plan_or_none(desk: &Desk) {
    let (plan, other) = (desk.plan(1).await, desk.plan(1).await);
    let theirs = desk.deliver(other.id, "Answer", "words").await.id;
    let own = desk.deliver(plan.id, "Answer", "words").await.id;
    let about = |output: String| Opinion {
        plan: plan.id,
        rating: Some(3),
        comment: None,
        output: Some(output),
    };
    let said = desk
        .engine
        .submit_feedback(&desk.me, about(own.to_string()));
    said.await.unwrap();
    for output in [theirs.to_string(), "nonsense".to_owned()] {
        let refused = desk.engine.submit_feedback(&desk.me, about(output.clone()));
        let refused = error(refused.await);
        assert_eq!(refused.to_string(), format!("no output `{output}`"));
        assert!(refused.hint().contains("get_research_context"));
    }
    let whole = desk.engine.whole_plan(&desk.me, plan.id).await.unwrap();
    let about: Vec<_> = whole.feedback.iter().map(|said| said.output).collect();
    assert_eq!(about, [Some(own)]);
}

async fn damaged_outputs_are_found(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.deliver(plan.id, "Answer", "words").await;
    desk.damage(&format!(
        "UPDATE outputs SET actor = X'FF' WHERE tenant_id = '{}'",
        desk.me.tenant
    ));
    let checked = desk.engine.verify(&desk.me).await.unwrap();
    assert!(checked.faults[0].what.contains("`outputs`"), "{checked:?}");
}

on_both_databases![
    what_was_found_is_kept_with_all_that_is_known_of_it,
    what_is_found_for_a_step_belongs_to_its_plan_and_shows_that_somebody_works,
    what_does_not_fit_is_refused_by_its_path_and_not_kept,
    the_largest_content_is_kept_in_chunks,
    an_output_has_versions_by_its_title,
    versions_that_are_stored_at_once_are_counted_one_by_one,
    a_plan_that_is_deleted_takes_its_outputs_and_leaves_its_artifacts,
    a_result_that_came_late_is_found,
    outputs_move_with_their_plan_and_are_found_there,
    a_document_whose_outputs_do_not_fit_is_refused,
    contexts_show_the_last_version_of_each_output,
    feedback_is_about_an_output_of_its_plan_or_none,
];

/// PostgreSQL takes nothing there that cannot be read.
mod loose_types {
    use super::damaged_outputs_are_found;
    crate::on_sqlite![damaged_outputs_are_found];
}
