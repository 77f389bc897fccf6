//! Research artifacts with their metadata, and versioned plan outputs.

use std::time::Duration;

use onward_core::id::{ArtifactId, ClaimToken};
use onward_core::policy::{MAX_ARTIFACT_TITLE, MAX_CONTENT_BYTES, MAX_METADATA_BYTES, MAX_URL};
use onward_core::search::chunks;
use onward_core::{PlanId, Role};
use onward_engine::context::MAX_CHARS;
use onward_engine::feedback::NewFeedback;
use onward_engine::research::{NewArtifact, NewOutput, StoredOutput};
use onward_engine::search::SearchRequest;
use onward_engine::{Artifact, Caller, Error, ObjectKind, TextId};
use serde_json::{Map, Value, json};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, document, error, invalid_path, submission_for};

pub(crate) fn finding(title: &str, content: &str) -> NewArtifact {
    NewArtifact {
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

pub(crate) fn deliverable(plan: PlanId, title: &str, content: &str) -> NewOutput {
    NewOutput {
        plan,
        title: title.to_owned(),
        content: content.to_owned(),
        media_type: None,
    }
}

impl Harness {
    pub(crate) async fn store(&self, finding: NewArtifact) -> ArtifactId {
        let stored = self.engine.store_research(&self.me, finding).await;
        stored.unwrap().id
    }

    pub(crate) async fn deliver(&self, plan: PlanId, title: &str, content: &str) -> StoredOutput {
        let output = deliverable(plan, title, content);
        self.engine.store_output(&self.me, output).await.unwrap()
    }

    /// Titles of the search results, best match first.
    pub(crate) async fn titles(&self, query: &str) -> Vec<String> {
        let query = query.to_owned();
        let request = SearchRequest {
            query,
            ..SearchRequest::default()
        };
        let found = self.engine.search(&self.me, request).await.unwrap().results;
        found.into_iter().map(|found| found.hit.title).collect()
    }
}

/// The number of chunks of the test's tenant.
pub(crate) fn chunk_count(harness: &Harness) -> String {
    let tenant = &harness.me.tenant;
    let count = format!("SELECT count(*) FROM chunks WHERE tenant_id = '{tenant}'");
    harness.sql(&count).unwrap()
}

async fn artifacts(harness: &Harness, plan: PlanId) -> Vec<Artifact> {
    let whole = harness.engine.full_plan(&harness.me, plan).await;
    whole.unwrap().artifacts
}

async fn stores_an_artifact_with_all_its_fields(harness: &Harness) {
    let plan = harness.plan(1).await;
    let stored = harness.engine.store_research(
        &harness.me,
        NewArtifact {
            kind: Some("quote".to_owned()),
            plan: Some(plan.id),
            source_url: Some("https://example.org/tides".to_owned()),
            metadata: Map::from_iter([("page".to_owned(), json!("7\0"))]),
            ..finding("Ti\0des", "Two a day.\0")
        },
    );
    let stored = stored.await.unwrap();
    assert_eq!((stored.title.as_str(), stored.chunks), ("Ti\u{FFFD}des", 1));
    let artifacts = artifacts(harness, plan.id).await;
    assert_eq!(
        artifacts,
        [Artifact {
            id: stored.id,
            plan: Some(plan.id),
            step: None,
            kind: "quote".to_owned(),
            title: "Ti\u{FFFD}des".to_owned(),
            content: "Two a day.\u{FFFD}".to_owned(),
            source_url: Some("https://example.org/tides".to_owned()),
            metadata: json!({ "page": "7\u{FFFD}" }),
            created_at: harness.now(),
        }]
    );
    let events = harness.audit_trail(plan.id).await;
    assert_eq!(events, ["plan_modified created"], "the plan is unchanged");
    let plain = harness.store(finding("Plain", "text")).await;
    let row = harness.sql(&format!(
        "SELECT artifact_type, plan_id, source_url, metadata FROM artifacts \
         WHERE artifact_id = {} AND tenant_id = '{}'",
        harness.id_literal(plain),
        harness.me.tenant
    ));
    assert_eq!(row.unwrap(), "note|||{}");
}

async fn an_artifact_for_a_claimed_step_counts_as_progress(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    harness.advance(Duration::from_secs(60));
    let for_step = |token: &ClaimToken| NewArtifact {
        step: Some(step.step),
        token: Some(token.clone()),
        ..finding("Found", "something")
    };
    harness.store(for_step(&step.token)).await;
    let stored = artifacts(harness, plan.id).await;
    assert_eq!(
        (stored[0].plan, stored[0].step),
        (Some(plan.id), Some(step.step))
    );
    let progress_count = |events: Vec<String>| {
        let progress = events.iter().filter(|name| name.contains("progress"));
        progress.count()
    };
    assert_eq!(progress_count(harness.audit_trail(plan.id).await), 1);
    // With a stale claim the artifact is still stored, but does not count as progress.
    harness.advance(Duration::from_secs(60));
    harness.store(for_step(&ClaimToken::new("stale"))).await;
    harness.complete(&step, "done").await;
    harness.store(for_step(&step.token)).await;
    assert_eq!(artifacts(harness, plan.id).await.len(), 3);
    assert_eq!(progress_count(harness.audit_trail(plan.id).await), 1);
}

async fn rejects_invalid_artifacts_and_outputs_with_their_path(harness: &Harness) {
    let (plan, other) = (harness.plan(1).await, harness.plan(1).await);
    let big = json!("x".repeat(MAX_METADATA_BYTES));
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let with = |data: &Value| NewArtifact {
        metadata: Map::from_iter([("a".to_owned(), data.clone())]),
        ..finding("t", "c")
    };
    for (invalid, path) in [
        (finding(" ", "c"), "title"),
        (finding(&"é".repeat(MAX_ARTIFACT_TITLE + 1), "c"), "title"),
        (finding("t", ""), "content"),
        (finding("t", &"x".repeat(MAX_CONTENT_BYTES + 1)), "content"),
        (with(&big), "metadata"),
        (with(&deep), "metadata"),
        (
            NewArtifact {
                kind: Some("rumour".to_owned()),
                ..finding("t", "c")
            },
            "artifactType",
        ),
        (
            NewArtifact {
                source_url: Some("u".repeat(MAX_URL + 1)),
                ..finding("t", "c")
            },
            "sourceUrl",
        ),
        (
            NewArtifact {
                plan: Some(other.id),
                step: Some(plan.steps[0]),
                ..finding("t", "c")
            },
            "stepId",
        ),
    ] {
        let rejected = harness.engine.store_research(&harness.me, invalid).await;
        assert_eq!(invalid_path(rejected), path);
    }
    for (title, content, path) in [("", "c", "title"), ("t", "", "content")] {
        let output = deliverable(plan.id, title, content);
        let rejected = harness.engine.store_output(&harness.me, output).await;
        assert_eq!(invalid_path(rejected), path);
    }
    let no_plan = deliverable(PlanId::from_u128(7), "t", "c");
    let rejected = harness.engine.store_output(&harness.me, no_plan).await;
    assert_eq!(code(rejected), "plan_not_found");
    assert_eq!(chunk_count(harness), "0");
}

async fn splits_content_of_the_maximum_size_into_chunks(harness: &Harness) {
    let content = "Ebb and flow. ".repeat(MAX_CONTENT_BYTES / 14);
    let stored = harness
        .engine
        .store_research(&harness.me, finding("Long", &content));
    let stored = stored.await.unwrap();
    assert_eq!(stored.chunks, chunks(&content).len());
    assert_eq!(chunk_count(harness), stored.chunks.to_string());
    assert_eq!(harness.titles("flow").await, ["Long"]);
}

async fn reads_a_text_in_pages_of_characters(harness: &Harness) {
    let plan = harness.plan(1).await;
    // One, two, three and four bytes per character, and characters that SQL could treat specially.
    let text = "aé€🌊\n'\"\\%".repeat(100);
    let artifact = harness
        .engine
        .store_research(&harness.me, finding("Tides", &text));
    let artifact = TextId::Artifact(artifact.await.unwrap().id);
    let output = harness
        .engine
        .store_output(&harness.me, deliverable(plan.id, "Tides", &text));
    let output = TextId::Output(output.await.unwrap().id);
    for id in [artifact, output] {
        for limit in [1, 7, 899, 900, 901, u32::MAX] {
            let mut read = String::new();
            while read.chars().count() < 900 {
                let offset = u32::try_from(read.chars().count()).unwrap();
                let page = harness
                    .engine
                    .read_text(&harness.me, id, offset, limit)
                    .await;
                let page = page.unwrap();
                assert_eq!((page.title.as_str(), page.total_chars), ("Tides", 900));
                let chars = page.content.chars().count();
                let left = usize::try_from(900 - offset).unwrap();
                assert_eq!(chars, left.min(usize::try_from(limit).unwrap()));
                read.push_str(&page.content);
                if limit == 1 {
                    break;
                }
            }
            assert!(text.starts_with(&read));
        }
        for offset in [900, 901, u32::MAX] {
            let page = harness.engine.read_text(&harness.me, id, offset, 9).await;
            assert_eq!(page.unwrap().content, "", "{offset}");
        }
    }
}

async fn reads_the_text_of_a_rejected_result(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "first").await;
    let rejected = harness.submit(submission_for(&step, "the late work")).await;
    let kept = error(rejected).kept().expect("the work was kept");
    let viewer = Caller {
        role: Role::Viewer,
        ..harness.me.clone()
    };
    let page = harness
        .engine
        .read_text(&viewer, TextId::Artifact(kept), 0, 9_999);
    assert!(page.await.unwrap().content.contains("the late work"));
}

async fn versions_outputs_by_title(harness: &Harness) {
    let (plan, other) = (harness.plan(1).await, harness.plan(1).await);
    for (id, title, version) in [
        (plan.id, "Answer", 1),
        (plan.id, "Answer", 2),
        (plan.id, "Appendix", 1),
        (other.id, "Answer", 1),
        (plan.id, "Answer", 3),
    ] {
        let delivered = harness.deliver(id, title, "the same text").await;
        assert_eq!((delivered.plan, delivered.version), (id, version));
    }
    harness.complete_steps(plan.id, 1).await;
    let late = harness.deliver(plan.id, "Answer", "after the end").await;
    assert_eq!(late.version, 4, "outputs of a completed plan are accepted");
}

async fn concurrent_outputs_get_consecutive_versions(harness: &Harness) {
    let plan = harness.plan(1).await.id;
    let another = harness.another_engine().await;
    let store = async |engine: &onward_engine::Engine| {
        let output = deliverable(plan, "Answer", "text");
        let delivered = engine.store_output(&harness.me, output).await;
        delivered.unwrap().version
    };
    let (a, b, c, d) = tokio::join!(
        store(&harness.engine),
        store(&another),
        store(&harness.engine),
        store(&another)
    );
    let mut versions = [a, b, c, d];
    versions.sort_unstable();
    assert_eq!(versions, [1, 2, 3, 4]);
    another.close().await;
}

async fn deleting_a_plan_deletes_its_outputs_and_keeps_its_artifacts(harness: &Harness) {
    let (plan, other) = (harness.plan(1).await, harness.plan(1).await);
    for id in [plan.id, other.id] {
        harness.deliver(id, "Answer", "ebb and flow").await;
        let found = NewArtifact {
            plan: Some(id),
            ..finding("Found", "ebb and flow")
        };
        harness.store(found).await;
    }
    harness
        .engine
        .delete_plan(&harness.me, plan.id)
        .await
        .unwrap();
    assert_eq!(harness.titles("ebb").await.len(), 3);
    assert_eq!(chunk_count(harness), "3");
    let tenant = &harness.me.tenant;
    let remaining = |table: &str| {
        let rows = format!(
            "SELECT plan_id IS NULL, count(*) FROM {table} WHERE tenant_id = '{tenant}' \
             GROUP BY 1 ORDER BY 2"
        );
        harness.sql(&rows).unwrap().lines().count()
    };
    assert_eq!((remaining("outputs"), remaining("artifacts")), (1, 2));
}

async fn finds_late_results(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "first").await;
    error(
        harness
            .submit(submission_for(&step, "a whale of a result"))
            .await,
    );
    let titles = harness.titles("whale").await;
    assert_eq!(titles.len(), 1);
    assert!(titles[0].contains(&step.step.to_string()), "{titles:?}");
}

async fn exports_and_imports_outputs_with_their_plan(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness
        .deliver(plan.id, "Answer", "a draft about herring")
        .await;
    harness.advance(Duration::from_secs(1));
    let last = harness.deliver(plan.id, "Answer", "the Moon, twice").await;
    let feedback = NewFeedback {
        plan: plan.id,
        rating: Some(5),
        comment: None,
        output: Some(last.id.to_string()),
    };
    harness
        .engine
        .submit_feedback(&harness.me, feedback)
        .await
        .unwrap();
    let before = document(&harness.engine, &harness.me, plan.id).await;
    assert_eq!(before["outputs"][1]["version"], 2);
    assert_eq!(before["feedback"][0]["outputId"], last.id.to_string());
    harness
        .engine
        .delete_plan(&harness.me, plan.id)
        .await
        .unwrap();
    assert_eq!(harness.titles("moon").await, [""; 0]);
    harness.engine.import(&harness.me, &before).await.unwrap();
    assert_eq!(
        document(&harness.engine, &harness.me, plan.id).await,
        before
    );
    assert_eq!(harness.titles("moon").await, ["Answer"]);
    assert_eq!(
        harness.titles("herring").await,
        [""; 0],
        "old versions are not found"
    );
    assert_eq!(harness.deliver(plan.id, "Answer", "more").await.version, 3);
}

async fn rejects_a_document_with_invalid_outputs(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness.deliver(plan.id, "Answer", "text").await;
    let valid = document(&harness.engine, &harness.me, plan.id).await;
    let other = harness.create_tenant("other").await;
    let output = |change: (&str, Value)| {
        let mut document = valid.clone();
        document["outputs"][0][change.0] = change.1;
        document
    };
    let mut duplicate = valid.clone();
    let first = valid["outputs"][0].clone();
    duplicate["outputs"].as_array_mut().unwrap().push(first);
    let mut dangling = valid.clone();
    dangling["feedback"] = json!([{
        "feedbackId": harness.engine.new_plan_id().to_string(),
        "rating": 1, "comment": null, "actor": "me",
        "createdAt": harness.now().to_string(),
        "outputId": harness.engine.new_plan_id().to_string(),
    }]);
    for (document, path) in [
        (output(("version", json!(0))), "outputs[0].version"),
        (output(("outputId", json!("x"))), "outputs[0].outputId"),
        (output(("content", json!(null))), "outputs[0].content"),
        (duplicate, "outputs[1]"),
        (dangling, "feedback[0].outputId"),
    ] {
        let rejected = invalid_path(harness.engine.import(&other, &document).await);
        assert!(rejected.starts_with(path), "{path}: {rejected}");
    }
    let mut without_outputs = valid.clone();
    without_outputs.as_object_mut().unwrap().remove("outputs");
    harness
        .engine
        .import(&other, &without_outputs)
        .await
        .unwrap();
}

async fn contexts_include_the_latest_version_of_each_output(harness: &Harness) {
    let plan = harness.plan(1).await;
    let long = "ebb ".repeat(500);
    for (title, content) in [
        ("Answer", "draft"),
        ("Appendix", "tables"),
        ("Answer", &long),
    ] {
        harness.deliver(plan.id, title, content).await;
        harness.advance(Duration::from_secs(1));
    }
    let plan_context = harness
        .engine
        .plan_context(&harness.me, plan.id, None, Some(MAX_CHARS));
    let outputs = plan_context.await.unwrap().outputs;
    let versions: Vec<_> = outputs
        .iter()
        .map(|output| (output.title.as_str(), output.version, output.is_truncated))
        .collect();
    assert_eq!(versions, [("Answer", 2, true), ("Appendix", 1, false)]);
    assert_eq!(outputs[1].excerpt, "tables");
    let step_context = harness
        .engine
        .step_context(&harness.me, plan.steps[0], Some(MAX_CHARS));
    assert_eq!(step_context.await.unwrap().outputs, outputs);
    let small = harness
        .engine
        .plan_context(&harness.me, plan.id, None, Some(1_300));
    let small = small.await.unwrap();
    assert!(small.truncated && small.outputs.len() < 2, "{small:?}");
}

async fn rejects_feedback_for_an_output_of_another_plan(harness: &Harness) {
    let (plan, other) = (harness.plan(1).await, harness.plan(1).await);
    let other_output = harness.deliver(other.id, "Answer", "text").await.id;
    let own = harness.deliver(plan.id, "Answer", "text").await.id;
    let feedback = |output: String| NewFeedback {
        plan: plan.id,
        rating: Some(3),
        comment: None,
        output: Some(output),
    };
    let submitted = harness
        .engine
        .submit_feedback(&harness.me, feedback(own.to_string()));
    submitted.await.unwrap();
    for output in [other_output.to_string(), "unknown".to_owned()] {
        let rejected = harness
            .engine
            .submit_feedback(&harness.me, feedback(output.clone()));
        let rejected = error(rejected.await);
        assert!(
            matches!(
                &rejected,
                Error::NotFound { kind: ObjectKind::Output, name } if *name == output
            ),
            "{rejected:?}"
        );
        assert!(rejected.hint().contains("get_research_context"));
    }
    let whole = harness
        .engine
        .full_plan(&harness.me, plan.id)
        .await
        .unwrap();
    let outputs: Vec<_> = whole
        .feedback
        .iter()
        .map(|feedback| feedback.output)
        .collect();
    assert_eq!(outputs, [Some(own)]);
}

async fn verify_finds_corrupt_outputs(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness.deliver(plan.id, "Answer", "text").await;
    harness.corrupt(&format!(
        "UPDATE outputs SET actor = X'FF' WHERE tenant_id = '{}'",
        harness.me.tenant
    ));
    let checked = harness.engine.verify(&harness.me).await.unwrap();
    assert!(
        checked.inconsistencies[0].message.contains("`outputs`"),
        "{checked:?}"
    );
}

on_both_databases![
    stores_an_artifact_with_all_its_fields,
    an_artifact_for_a_claimed_step_counts_as_progress,
    rejects_invalid_artifacts_and_outputs_with_their_path,
    splits_content_of_the_maximum_size_into_chunks,
    reads_a_text_in_pages_of_characters,
    reads_the_text_of_a_rejected_result,
    versions_outputs_by_title,
    concurrent_outputs_get_consecutive_versions,
    deleting_a_plan_deletes_its_outputs_and_keeps_its_artifacts,
    finds_late_results,
    exports_and_imports_outputs_with_their_plan,
    rejects_a_document_with_invalid_outputs,
    contexts_include_the_latest_version_of_each_output,
    rejects_feedback_for_an_output_of_another_plan,
];

/// PostgreSQL rejects invalid text on write.
mod sqlite_types {
    use super::verify_finds_corrupt_outputs;
    crate::on_sqlite![verify_finds_corrupt_outputs];
}
