//! Pagination: no gaps and no duplicates, even while rows change between pages.

use std::time::Duration;

use onward_core::command::Modification;
use onward_core::{PlanId, PlanStatus, StepStatus};
use onward_engine::audit::ALL_TIMES;
use onward_engine::error::MAX_MATCHES;
use onward_engine::list::{PlanPage, PlanQuery};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, submission_for};

const MILLISECOND: Duration = Duration::from_millis(1);

async fn page(harness: &Harness, query: PlanQuery) -> PlanPage {
    harness
        .engine
        .list_plans(&harness.me, query)
        .await
        .expect("plans were listed")
}

fn ids(page: &PlanPage) -> Vec<PlanId> {
    page.plans.iter().map(|plan| plan.sheet.head.id).collect()
}

fn query(limit: u32) -> PlanQuery {
    PlanQuery {
        limit,
        ..PlanQuery::default()
    }
}

/// All plans that match a query, read in pages.
async fn all(harness: &Harness, query: PlanQuery) -> Vec<PlanId> {
    let (mut found, mut cursor) = (Vec::new(), query.after);
    loop {
        let page = page(
            harness,
            PlanQuery {
                after: cursor,
                ..query.clone()
            },
        )
        .await;
        assert!(page.plans.len() <= usize::try_from(query.limit).unwrap());
        found.extend(ids(&page));
        assert!(found.len() < 100, "pagination does not end");
        let Some(next) = page.next else { return found };
        cursor = Some(next);
    }
}

async fn limits_pages_of_the_audit_trail_by_bytes(harness: &Harness) {
    let plan = harness.plan(6).await.id;
    for _ in 0..6 {
        let step = harness.claim(plan).await;
        let summary = "s".repeat(10_000);
        harness
            .submit(submission_for(&step, &summary))
            .await
            .unwrap();
    }
    let whole = harness.engine.audit_trail(&harness.me, plan, 0, 1_000);
    let whole = whole.await.unwrap();
    let whole: Vec<u64> = whole.iter().map(|event| event.entry.seq).collect();
    assert!(whole.len() > 12, "{whole:?}");
    let mut read = Vec::new();
    loop {
        let after = read.last().copied().unwrap_or(0);
        let page = harness
            .engine
            .audit_page(&harness.me, plan, ALL_TIMES, after, 1_000, 15_000);
        let page = page.await.unwrap();
        if page.is_empty() {
            break;
        }
        let bytes = page.iter().map(|event| event.details.to_string().len());
        assert!(bytes.sum::<usize>() < 26_000);
        read.extend(page.iter().map(|event| event.entry.seq));
    }
    assert_eq!(read, whole);
    for name in [None, Some("step_completed".to_owned())] {
        let (mut backwards, mut from) = (Vec::new(), None);
        loop {
            let page = harness.engine.audit_trail_backwards(
                &harness.me,
                plan,
                from,
                name.clone(),
                1_000,
                15_000,
            );
            let (page, next) = page.await.unwrap();
            assert!(page.len() < 12, "{}", page.len());
            backwards.extend(page.iter().map(|event| event.entry.seq));
            let Some(next) = next else { break };
            from = Some(next);
        }
        backwards.reverse();
        match name {
            None => assert_eq!(backwards, whole),
            Some(_) => assert_eq!(backwards.len(), 6),
        }
    }
}

async fn lists_plans_by_last_change_newest_first(harness: &Harness) {
    let mut created = Vec::new();
    for _ in 0..3 {
        created.push(harness.plan(2).await.id);
        harness.advance(MILLISECOND);
    }
    assert_eq!(
        all(harness, query(10)).await,
        [created[2], created[1], created[0]]
    );
    harness.complete_steps(created[0], 1).await;
    assert_eq!(
        all(harness, query(10)).await,
        [created[0], created[2], created[1]]
    );
}

async fn pages_have_no_gaps_and_no_duplicates(harness: &Harness) {
    let mut created = Vec::new();
    for number in 0..11 {
        created.push(harness.plan(1).await.id);
        // Some plans have the same timestamp.
        if number % 3 == 0 {
            harness.advance(MILLISECOND);
        }
    }
    created.sort();
    for limit in [1, 2, 3, 5, 11, 12] {
        let mut found = all(harness, query(limit)).await;
        found.sort();
        assert_eq!(found, created, "{limit}");
    }
}

async fn plans_created_between_pages_shift_no_page(harness: &Harness) {
    let mut created = Vec::new();
    for _ in 0..6 {
        created.push(harness.plan(1).await.id);
        harness.advance(MILLISECOND);
    }
    created.reverse();
    let one = page(harness, query(2)).await;
    harness.plan(1).await;
    let two = page(
        harness,
        PlanQuery {
            after: one.next,
            ..query(2)
        },
    )
    .await;
    harness.plan(1).await;
    let three = page(
        harness,
        PlanQuery {
            after: two.next,
            ..query(2)
        },
    )
    .await;
    let found = [ids(&one), ids(&two), ids(&three)].concat();
    assert_eq!(found, created);
    assert_eq!(three.next, None);
}

async fn lists_terminal_plans_on_request_and_filters_by_status(harness: &Harness) {
    let (open, done, failed) = (
        harness.plan(1).await,
        harness.plan(1).await,
        harness.plan(1).await,
    );
    harness.advance(MILLISECOND);
    harness.complete_steps(done.id, 1).await;
    harness.advance(MILLISECOND);
    harness
        .engine
        .abandon_plan(&harness.me, failed.id, None)
        .await
        .unwrap();
    assert_eq!(all(harness, query(10)).await, [open.id]);
    for limit in [1, 2, 10] {
        let query = PlanQuery {
            finished: true,
            ..query(limit)
        };
        assert_eq!(
            all(harness, query).await,
            [failed.id, done.id, open.id],
            "{limit}"
        );
    }
    let counts = harness.engine.count_plans(&harness.me).await.unwrap();
    let counts: Vec<(&str, u64, u64)> = counts
        .iter()
        .map(|count| (count.status.as_str(), count.plans, count.steps))
        .collect();
    assert_eq!(
        counts,
        [("completed", 1, 1), ("failed", 1, 1), ("planning", 1, 1)]
    );
    for (status, expected) in [
        (PlanStatus::Completed, vec![done.id]),
        (PlanStatus::Failed, vec![failed.id]),
        (PlanStatus::Planning, vec![open.id]),
        (PlanStatus::Stalled, vec![]),
    ] {
        let query = PlanQuery {
            status: Some(status),
            ..query(10)
        };
        assert_eq!(all(harness, query).await, expected, "{status}");
    }
}

async fn finds_plans_by_words_of_their_name_and_question(harness: &Harness) {
    for (name, question) in [("Ebbe", "Why?"), ("Flut", "Why ÉBB?"), ("Sturm", "How?")] {
        let mut draft = harness.draft(1);
        draft.name = name.to_owned();
        draft.research_question = question.to_owned();
        harness.create(draft).await;
        harness.advance(MILLISECOND);
    }
    for (text, expected) in [
        ("ebbe", vec!["Ebbe"]),
        ("Ébb", vec!["Flut", "Ebbe"]),
        ("why flut", vec!["Flut"]),
        ("why", vec!["Flut", "Ebbe"]),
        ("w", vec!["Flut", "Ebbe"]),
        ("hy", vec![]),
        ("100%_", vec![]),
        ("\"%*", vec![]),
        ("ebbe' OR", vec![]),
        ("", vec!["Sturm", "Flut", "Ebbe"]),
    ] {
        let query = PlanQuery {
            text: Some(text.to_owned()),
            ..query(10)
        };
        let page = page(harness, query).await;
        let names = page.plans.iter().map(|plan| plan.sheet.brief.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), expected, "{text}");
    }
}

async fn search_pages_have_no_gaps_and_no_duplicates(harness: &Harness) {
    let mut expected = Vec::new();
    for number in 0..9 {
        let mut draft = harness.draft(1);
        if number % 2 == 0 {
            draft.name = format!("wanted {number}");
            expected.push(draft.plan);
        }
        harness.create(draft).await;
        harness.advance(MILLISECOND);
    }
    expected.reverse();
    let query = PlanQuery {
        text: Some("WANTED".to_owned()),
        ..query(2)
    };
    assert_eq!(all(harness, query).await, expected);
}

async fn lists_steps_in_pages_filtered_by_status(harness: &Harness) {
    let plan = harness.plan(7).await;
    harness.complete_steps(plan.id, 2).await;
    let list = async |status, after, limit| {
        let page = harness
            .engine
            .list_steps(&harness.me, plan.id, status, after, limit)
            .await;
        let page = page.unwrap();
        let orders: Vec<u32> = page.steps.iter().map(|step| step.order).collect();
        (orders, page.next)
    };
    assert_eq!(list(None, 0, 3).await, (vec![1, 2, 3], Some(3)));
    assert_eq!(list(None, 3, 3).await, (vec![4, 5, 6], Some(6)));
    assert_eq!(list(None, 6, 3).await, (vec![7], None));
    assert_eq!(list(None, 4, 3).await, (vec![5, 6, 7], None));
    assert_eq!(
        list(Some(StepStatus::Pending), 0, 2).await,
        (vec![3, 4], Some(4))
    );
    assert_eq!(
        list(Some(StepStatus::Completed), 0, 2).await,
        (vec![1, 2], None)
    );
    assert_eq!(list(Some(StepStatus::Failed), 0, 2).await, (vec![], None));
}

async fn reads_the_audit_trail_in_pages(harness: &Harness) {
    let plan = harness.plan(3).await;
    let read = async |after, limit| {
        let events = harness
            .engine
            .audit_trail(&harness.me, plan.id, after, limit)
            .await
            .unwrap();
        events
            .iter()
            .map(|entry| entry.entry.seq)
            .collect::<Vec<_>>()
    };
    harness.complete_steps(plan.id, 1).await;
    assert_eq!(read(0, 2).await, [1, 2]);
    harness.complete_steps(plan.id, 1).await;
    assert_eq!(read(2, 2).await, [3, 4]);
    assert_eq!(read(5, 2).await, [6]);
    assert_eq!(read(6, 2).await, [0u64; 0]);
}

async fn the_audit_trail_contains_no_claim_tokens(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    harness
        .modify(plan.id, Modification::RequeueStep { step: step.step })
        .await
        .unwrap();
    harness.complete_steps(plan.id, 1).await;
    let events = harness
        .engine
        .audit_trail(&harness.me, plan.id, 0, 100)
        .await
        .unwrap();
    let details: String = events
        .iter()
        .map(|entry| entry.details.to_string())
        .collect();
    assert!(!details.contains(step.token.as_str()), "{details}");
}

async fn finds_a_plan_and_a_step_by_an_id_prefix(harness: &Harness) {
    let plan = harness.plan(2).await;
    let id = plan.id.to_string();
    for prefix in [&id[..4], &id[..8], &id[..11], &id, &id.to_uppercase()] {
        let found = harness.engine.find_plan(&harness.me, prefix).await;
        assert_eq!(found.expect(prefix), plan.id);
    }
    for unknown in ["", "xyz", "0000000000000000000000000000000000"] {
        let missing = harness.engine.find_plan(&harness.me, unknown).await;
        assert_eq!(code(missing), "plan_not_found", "{unknown}");
    }
    let step = plan.steps[1].to_string();
    let found = harness.engine.find_step(&harness.me, &step).await.unwrap();
    assert_eq!(found, plan.steps[1]);
    let long = harness.plan(300).await;
    // 300 consecutive numbers cannot differ in the first twelve of 24 bits.
    let prefix = &long.steps[150].to_string()[..3];
    let ambiguous = harness.engine.find_step(&harness.me, prefix).await;
    let Err(onward_engine::Error::Ambiguous { matches, .. }) = ambiguous else {
        panic!("{ambiguous:?}");
    };
    assert_eq!(matches.len(), MAX_MATCHES + 1);
    assert!(matches.iter().all(|entry| entry.starts_with(prefix)));
}

async fn six_characters_distinguish_the_steps_of_a_plan(harness: &Harness) {
    let plan = harness.plan(300).await;
    for step in &plan.steps {
        let id = step.to_string();
        for prefix in [&id[..6], &id[..8]] {
            let found = harness.engine.find_step(&harness.me, prefix).await;
            assert_eq!(found.expect(prefix), *step);
        }
    }
}

on_both_databases![
    limits_pages_of_the_audit_trail_by_bytes,
    six_characters_distinguish_the_steps_of_a_plan,
    lists_plans_by_last_change_newest_first,
    pages_have_no_gaps_and_no_duplicates,
    plans_created_between_pages_shift_no_page,
    lists_terminal_plans_on_request_and_filters_by_status,
    finds_plans_by_words_of_their_name_and_question,
    search_pages_have_no_gaps_and_no_duplicates,
    lists_steps_in_pages_filtered_by_status,
    reads_the_audit_trail_in_pages,
    the_audit_trail_contains_no_claim_tokens,
    finds_a_plan_and_a_step_by_an_id_prefix,
];
