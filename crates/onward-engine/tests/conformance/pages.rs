//! Lists, a page at a time: no gap and nothing twice, also while others change what is listed.

use std::time::Duration;

use onward_core::command::Modification;
use onward_core::{PlanId, PlanStatus, StepStatus};
use onward_engine::list::{PlanPage, PlanQuery};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::code;

const MOMENT: Duration = Duration::from_millis(1);

async fn page(desk: &Desk, query: PlanQuery) -> PlanPage {
    desk.engine
        .list_plans(&desk.me, query)
        .await
        .expect("plans can be listed")
}

fn ids(page: &PlanPage) -> Vec<PlanId> {
    page.plans.iter().map(|plan| plan.sheet.head.id).collect()
}

fn first(limit: u32) -> PlanQuery {
    PlanQuery {
        limit,
        ..PlanQuery::default()
    }
}

/// All plans, in pages of this size.
async fn all(desk: &Desk, query: PlanQuery) -> Vec<PlanId> {
    let (mut found, mut behind) = (Vec::new(), query.behind);
    loop {
        let page = page(
            desk,
            PlanQuery {
                behind,
                ..query.clone()
            },
        )
        .await;
        assert!(page.plans.len() <= usize::try_from(query.limit).unwrap());
        found.extend(ids(&page));
        assert!(found.len() < 100, "the pages come to an end");
        let Some(next) = page.next else { return found };
        behind = Some(next);
    }
}

async fn plans_are_listed_from_the_newest_change_on(desk: &Desk) {
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(desk.plan(2).await.id);
        desk.advance(MOMENT);
    }
    assert_eq!(all(desk, first(10)).await, [made[2], made[1], made[0]]);
    desk.work_off(made[0], 1).await;
    assert_eq!(all(desk, first(10)).await, [made[0], made[2], made[1]]);
}

async fn pages_have_no_gap_and_no_double(desk: &Desk) {
    let mut made = Vec::new();
    for number in 0..11 {
        made.push(desk.plan(1).await.id);
        // Some of them change at the same instant.
        if number % 3 == 0 {
            desk.advance(MOMENT);
        }
    }
    made.sort();
    for limit in [1, 2, 3, 5, 11, 12] {
        let mut found = all(desk, first(limit)).await;
        found.sort();
        assert_eq!(found, made, "{limit}");
    }
}

async fn plans_that_come_meanwhile_shift_no_page(desk: &Desk) {
    let mut made = Vec::new();
    for _ in 0..6 {
        made.push(desk.plan(1).await.id);
        desk.advance(MOMENT);
    }
    made.reverse();
    let one = page(desk, first(2)).await;
    desk.plan(1).await;
    let two = page(
        desk,
        PlanQuery {
            behind: one.next,
            ..first(2)
        },
    )
    .await;
    desk.plan(1).await;
    let three = page(
        desk,
        PlanQuery {
            behind: two.next,
            ..first(2)
        },
    )
    .await;
    let found = [ids(&one), ids(&two), ids(&three)].concat();
    assert_eq!(found, made);
    assert_eq!(three.next, None);
}

async fn plans_that_are_over_are_listed_on_request(desk: &Desk) {
    let (open, done, gone) = (desk.plan(1).await, desk.plan(1).await, desk.plan(1).await);
    desk.advance(MOMENT);
    desk.work_off(done.id, 1).await;
    desk.advance(MOMENT);
    desk.engine
        .abandon_plan(&desk.me, gone.id, None)
        .await
        .unwrap();
    assert_eq!(all(desk, first(10)).await, [open.id]);
    for limit in [1, 2, 10] {
        let query = PlanQuery {
            finished: true,
            ..first(limit)
        };
        assert_eq!(
            all(desk, query).await,
            [gone.id, done.id, open.id],
            "{limit}"
        );
    }
    let counts = desk.engine.count_plans(&desk.me).await.unwrap();
    let words: Vec<(&str, u64, u64)> = counts
        .iter()
        .map(|counted| (counted.status.as_str(), counted.plans, counted.steps))
        .collect();
    assert_eq!(
        words,
        [("completed", 1, 1), ("failed", 1, 1), ("planning", 1, 1)]
    );
    for (status, expected) in [
        (PlanStatus::Completed, vec![done.id]),
        (PlanStatus::Failed, vec![gone.id]),
        (PlanStatus::Planning, vec![open.id]),
        (PlanStatus::Stalled, vec![]),
    ] {
        let query = PlanQuery {
            status: Some(status),
            ..first(10)
        };
        assert_eq!(all(desk, query).await, expected, "{status}");
    }
}

async fn plans_are_found_by_the_words_of_their_name_and_question(desk: &Desk) {
    for (name, question) in [("Ebbe", "Why?"), ("Flut", "Why ÉBB?"), ("Sturm", "How?")] {
        let mut draft = desk.draft(1);
        draft.name = name.to_owned();
        draft.research_question = question.to_owned();
        desk.create(draft).await;
        desk.advance(MOMENT);
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
            ..first(10)
        };
        let page = page(desk, query).await;
        let names = page.plans.iter().map(|plan| plan.sheet.brief.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), expected, "{text}");
    }
}

async fn a_search_in_pages_has_no_gap_and_no_double(desk: &Desk) {
    let mut expected = Vec::new();
    for number in 0..9 {
        let mut draft = desk.draft(1);
        if number % 2 == 0 {
            draft.name = format!("wanted {number}");
            expected.push(draft.plan);
        }
        desk.create(draft).await;
        desk.advance(MOMENT);
    }
    expected.reverse();
    let query = PlanQuery {
        text: Some("WANTED".to_owned()),
        ..first(2)
    };
    assert_eq!(all(desk, query).await, expected);
}

async fn steps_are_listed_in_pages_by_status(desk: &Desk) {
    let plan = desk.plan(7).await;
    desk.work_off(plan.id, 2).await;
    let list = async |status, behind, limit| {
        let page = desk
            .engine
            .list_steps(&desk.me, plan.id, status, behind, limit)
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

async fn a_trail_is_read_in_pages(desk: &Desk) {
    let plan = desk.plan(3).await;
    let read = async |behind, limit| {
        let trail = desk
            .engine
            .trail(&desk.me, plan.id, behind, limit)
            .await
            .unwrap();
        trail
            .iter()
            .map(|entry| entry.entry.seq)
            .collect::<Vec<_>>()
    };
    desk.work_off(plan.id, 1).await;
    assert_eq!(read(0, 2).await, [1, 2]);
    desk.work_off(plan.id, 1).await;
    assert_eq!(read(2, 2).await, [3, 4]);
    assert_eq!(read(4, 2).await, [5]);
    assert_eq!(read(5, 2).await, [0u64; 0]);
}

async fn a_shown_trail_holds_no_claim_tokens(desk: &Desk) {
    let plan = desk.plan(2).await;
    let step = desk.take(plan.id).await;
    desk.modify(plan.id, Modification::RequeueStep { step: step.step })
        .await
        .unwrap();
    desk.work_off(plan.id, 1).await;
    let trail = desk.engine.trail(&desk.me, plan.id, 0, 100).await.unwrap();
    let shown: String = trail
        .iter()
        .map(|entry| entry.details.to_string())
        .collect();
    assert!(!shown.contains(step.token.as_str()), "{shown}");
}

async fn a_plan_and_a_step_are_found_by_the_beginning_of_their_id(desk: &Desk) {
    let plan = desk.plan(2).await;
    let whole = plan.id.to_string();
    for beginning in [
        &whole[..4],
        &whole[..8],
        &whole[..11],
        &whole,
        &whole.to_uppercase(),
    ] {
        let found = desk.engine.find_plan(&desk.me, beginning).await;
        assert_eq!(found.expect(beginning), plan.id);
    }
    for wrong in ["", "xyz", "0000000000000000000000000000000000"] {
        let missing = desk.engine.find_plan(&desk.me, wrong).await;
        assert_eq!(code(missing), "plan_not_found", "{wrong}");
    }
    let step = plan.steps[1].to_string();
    let found = desk.engine.find_step(&desk.me, &step).await.unwrap();
    assert_eq!(found, plan.steps[1]);
    // Both were made in the same millisecond.
    let ambiguous = desk.engine.find_step(&desk.me, &step[..13]).await;
    assert!(
        matches!(ambiguous, Err(onward_engine::Error::Ambiguous(_))),
        "{ambiguous:?}"
    );
}

on_both_databases![
    plans_are_listed_from_the_newest_change_on,
    pages_have_no_gap_and_no_double,
    plans_that_come_meanwhile_shift_no_page,
    plans_that_are_over_are_listed_on_request,
    plans_are_found_by_the_words_of_their_name_and_question,
    a_search_in_pages_has_no_gap_and_no_double,
    steps_are_listed_in_pages_by_status,
    a_trail_is_read_in_pages,
    a_shown_trail_holds_no_claim_tokens,
    a_plan_and_a_step_are_found_by_the_beginning_of_their_id,
];
