//! Search finds the results of steps with their reviews, and a new plan names ended plans with a
//! similar question.

use std::sync::Arc;

use onward_core::command::{CreatePlan, ForkPlan, Modification};
use onward_core::event::Decision;
use onward_core::{PlanId, PlanStatus, StepId};
use onward_engine::Engine;
use onward_engine::Source;
use onward_engine::embed::Embedder;
use onward_engine::engine::Settings;
use onward_engine::next_step::AssignedStep;
use onward_engine::search::{RESULT, SearchRequest};
use onward_engine::step::{ReviewDecision, ReviewRequest};

use crate::embedder::TestEmbedder;
use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{document, error, submission_for};
use crate::research::{chunk_count, finding};

impl Harness {
    /// The results that a search finds: plan, step and title.
    async fn found_results(&self, query: &str) -> Vec<(PlanId, StepId, String)> {
        let request = SearchRequest {
            query: query.to_owned(),
            ..SearchRequest::default()
        };
        let found = self.engine.search(&self.me, request).await.unwrap().results;
        let results = found.into_iter().filter_map(|found| {
            let Source::Result(step) = found.hit.source else {
                return None;
            };
            assert_eq!(found.hit.kind.as_deref(), Some(RESULT));
            assert_eq!(found.plan_name.as_deref(), Some("Tides"));
            Some((found.hit.plan?, step, found.hit.title))
        });
        results.collect()
    }

    async fn review(&self, step: &AssignedStep, summary: &str, decision: Decision, feedback: &str) {
        let request = ReviewRequest {
            step: step.step,
            summary: summary.to_owned(),
            questions: Vec::new(),
            scope: onward_core::step::ReviewScope::Plan,
            options: Default::default(),
            token: None,
            session: None,
        };
        self.engine.request_review(&self.me, request).await.unwrap();
        let decision = ReviewDecision::new(step.step, decision, Some(feedback.to_owned()));
        self.engine.decide_review(&self.me, decision).await.unwrap();
    }
}

fn fork_from(harness: &Harness, from_order: u32) -> ForkPlan {
    ForkPlan {
        plan: harness.engine.new_plan_id(),
        from_order,
        name: None,
        research_question: None,
        design_rationale: None,
        session: None,
        approval: None,
    }
}

async fn finds_a_result_with_its_plan_and_step(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    harness
        .complete(&step, "The zeppelin hypothesis was refuted by Miller.")
        .await;
    let expected = (plan.id, plan.steps[0], "1".to_owned());
    assert_eq!(
        harness.found_results("zeppelin").await,
        std::slice::from_ref(&expected)
    );
    // Repeated, because the first search writes the index.
    assert_eq!(harness.found_results("Miller zeppelin").await, [expected]);
    let request = |kind: &str| SearchRequest {
        query: "zeppelin".to_owned(),
        kind: Some(kind.to_owned()),
        plan: Some(plan.id),
        ..SearchRequest::default()
    };
    harness.store(finding("Zeppelin", "an airship")).await;
    for (kind, number) in [(RESULT, 1), ("finding", 0)] {
        let found = harness.engine.search(&harness.me, request(kind)).await;
        assert_eq!(found.unwrap().results.len(), number, "{kind}");
    }
    let latest = harness.engine.latest_results(&harness.me, 9).await.unwrap();
    assert_eq!((latest[0].plan, latest[0].step), (plan.id, plan.steps[0]));
}

async fn finds_reviews_and_reasons_of_failures(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    harness
        .review(
            &step,
            "Herring or mackerel?",
            Decision::Modify,
            "only sprats",
        )
        .await;
    let step = harness.claim(plan.id).await;
    harness
        .review(&step, "Sprats it is", Decision::Approve, "agreed, in euros")
        .await;
    for query in ["mackerel", "only sprats", "euros"] {
        let found = harness.found_results(query).await;
        assert_eq!(found.len(), 1, "{query}: {found:?}");
        assert_eq!(found[0].1, plan.steps[0], "{query}");
    }
    let failed = Modification::FailStep {
        step: plan.steps[1],
        reason: Some("no access to the aquarium".to_owned()),
    };
    harness.modify(plan.id, failed).await.unwrap();
    let found = harness.found_results("aquarium").await;
    assert_eq!(found[0].1, plan.steps[1]);
}

async fn finds_a_late_result_once_as_an_artifact(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "first").await;
    error(harness.submit(submission_for(&step, "a whale")).await);
    assert_eq!(harness.found_results("whale").await, []);
    assert_eq!(harness.titles("whale").await.len(), 1);
}

async fn does_not_find_a_result_that_was_redone(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "the wrong whale").await;
    assert_eq!(harness.found_results("whale").await.len(), 1);
    let redo = Modification::RedoStep {
        step: plan.steps[0],
        reason: "wrong".to_owned(),
        cascade: false,
        ids: vec![harness.engine.new_step_id()],
    };
    harness.modify(plan.id, redo).await.unwrap();
    assert_eq!(harness.found_results("whale").await, []);
}

async fn finds_results_of_a_fork_once(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "a herring").await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "a mackerel").await;
    let fork = fork_from(harness, 2);
    let id = fork.plan;
    let forked = harness.engine.fork_plan(&harness.me, plan.id, fork, None);
    assert_eq!(forked.await.unwrap().taken_over.len(), 1);
    let plans = |found: Vec<(PlanId, StepId, String)>| -> Vec<PlanId> {
        found.into_iter().map(|(plan, ..)| plan).collect()
    };
    assert_eq!(plans(harness.found_results("herring").await), [plan.id]);
    let deleted = harness.engine.delete_plan(&harness.me, plan.id);
    deleted.await.unwrap();
    assert_eq!(plans(harness.found_results("herring").await), [id]);
    assert_eq!(plans(harness.found_results("mackerel").await), []);
}

async fn deleting_and_importing_a_plan_deletes_and_restores_its_results(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "a herring").await;
    assert_eq!(harness.found_results("herring").await.len(), 1);
    let exported = document(&harness.engine, &harness.me, plan.id).await;
    let engine = &harness.engine;
    engine.delete_plan(&harness.me, plan.id).await.unwrap();
    assert_eq!(harness.found_results("herring").await, []);
    assert_eq!(chunk_count(harness), "0");
    engine.import(&harness.me, &exported).await.unwrap();
    assert_eq!(harness.found_results("herring").await.len(), 1);
}

async fn finds_no_results_of_another_tenant(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "a herring").await;
    let other = harness.create_tenant("other").await;
    let request = SearchRequest {
        query: "herring".to_owned(),
        ..SearchRequest::default()
    };
    let found = harness.engine.search(&other, request).await.unwrap();
    assert_eq!(found.results, []);
    assert_eq!(harness.found_results("herring").await.len(), 1);
}

async fn concurrent_searches_index_a_result_once(harness: &Harness) {
    let plan = harness.plan(3).await;
    for _ in 0..3 {
        let step = harness.claim(plan.id).await;
        harness.complete(&step, "a herring").await;
    }
    let search = || harness.found_results("herring");
    let (one, two, three) = tokio::join!(search(), search(), search());
    assert_eq!((one.len(), two.len(), three.len()), (3, 3, 3));
}

async fn reindexes_and_embeds_results(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "a herring").await;
    let settings = Settings {
        environment: Arc::clone(&harness.environment) as Arc<_>,
        ..Settings::default()
    };
    let engine = Engine::open(&harness.database.address(), settings).await;
    let embedder: Arc<dyn Embedder> = Arc::new(TestEmbedder::new("test"));
    let engine = engine.unwrap().with_embedder(embedder);
    engine.embed_pending().await.unwrap();
    let reindexed = engine.reindex(&harness.me).await.unwrap();
    assert_eq!((reindexed.sources, reindexed.chunks), (1, 1));
    engine.embed_pending().await.unwrap();
    let request = SearchRequest {
        query: "herring".to_owned(),
        ..SearchRequest::default()
    };
    let found = engine.search(&harness.me, request).await.unwrap().results;
    assert_eq!(found[0].hit.source, Source::Result(plan.steps[0]));
    assert_eq!(
        (found[0].keyword_rank, found[0].semantic_rank),
        (Some(1), Some(1))
    );
    engine.close().await;
}

async fn asking(harness: &Harness, name: &str, question: &str) -> onward_engine::create::NewPlan {
    let id = harness.engine.new_plan_id();
    let draft = CreatePlan::new(id, name, question, harness.steps(1));
    let created = harness.engine.create_plan(&harness.me, draft, None).await;
    created.unwrap()
}

async fn a_new_plan_names_ended_plans_with_a_similar_question(harness: &Harness) {
    let pumps = "Which heat pump fits a flat of 1965?";
    let first = asking(harness, "Heat pumps", pumps).await;
    assert_eq!(first.similar, []);
    let again = "Find the best heat pump for an old flat";
    let open = asking(harness, "Heating", again).await;
    assert_eq!(open.similar, [], "the other plan has not ended");
    harness.complete_steps(first.created.plan, 1).await;
    let similar = asking(harness, "Heating", again).await.similar;
    assert_eq!(similar.len(), 1);
    assert_eq!(similar[0].plan, first.created.plan);
    assert_eq!(similar[0].name, "Heat pumps");
    assert_eq!(
        (similar[0].status, similar[0].results),
        (PlanStatus::Completed, 1)
    );
    for other in [
        "Which laptop fits a student of law?",
        "What is the best plan?",
        "?",
    ] {
        assert_eq!(asking(harness, "Other", other).await.similar, [], "{other}");
    }
    let tenant = harness.create_tenant("other").await;
    let id = harness.engine.new_plan_id();
    let draft = CreatePlan::new(id, "Heat pumps", pumps, harness.steps(1));
    let created = harness.engine.create_plan(&tenant, draft, None).await;
    assert_eq!(created.unwrap().similar, []);
}

async fn a_new_plan_names_at_most_three_similar_plans(harness: &Harness) {
    for _ in 0..4 {
        let plan = asking(harness, "Heat pumps", "Which heat pump fits?").await;
        harness.complete_steps(plan.created.plan, 1).await;
    }
    let similar = asking(harness, "Heat pumps", "Which heat pump fits?")
        .await
        .similar;
    assert_eq!(similar.len(), 3);
}

on_both_databases![
    finds_a_result_with_its_plan_and_step,
    finds_reviews_and_reasons_of_failures,
    finds_a_late_result_once_as_an_artifact,
    does_not_find_a_result_that_was_redone,
    finds_results_of_a_fork_once,
    deleting_and_importing_a_plan_deletes_and_restores_its_results,
    finds_no_results_of_another_tenant,
    concurrent_searches_index_a_result_once,
    reindexes_and_embeds_results,
    a_new_plan_names_ended_plans_with_a_similar_question,
    a_new_plan_names_at_most_three_similar_plans,
];
