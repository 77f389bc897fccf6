//! What a plan needs, in one word, and since when.

use std::time::Duration;

use onward_core::attention::{
    Attention, Facts, Word, archived_before, attention, is_archived, no_agent_at,
};
use onward_core::plan::{PlanFailure, PlanHead, PlanState};
use onward_core::{Counts, Timestamp};

use crate::harness::{Harness, captured_plan};

const LIMIT: Duration = Duration::from_millis(100);

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A plan created at 1 whose agent was last active at 5.
fn facts() -> Facts {
    Facts {
        stuck_since: None,
        orphaned_at: None,
        asked_at: None,
        has_ready_step: true,
        created_at: at(1),
        worked_at: at(5),
    }
}

fn word(state: PlanState, counts: Counts, facts: &Facts, now: i64) -> (Word, i64) {
    let mut head = Harness::with_steps(1).plan.head().clone();
    (head.state, head.counts) = (state, counts);
    let Attention { word, since } = attention(&head, facts, at(now), LIMIT);
    (word, since.as_millis())
}

#[test]
fn each_state_of_a_plan_has_one_word() {
    let pending = Counts {
        pending: 2,
        ..Counts::default()
    };
    let working = Counts {
        in_progress: 1,
        ..pending
    };
    let asking = Counts {
        awaiting_input: 1,
        ..pending
    };
    let stuck = Facts {
        stuck_since: Some(at(2)),
        ..facts()
    };
    let asked = Facts {
        asked_at: Some(at(4)),
        ..facts()
    };
    let orphaned = Facts {
        orphaned_at: Some(at(7)),
        ..facts()
    };
    let not_ready = Facts {
        has_ready_step: false,
        ..facts()
    };
    let executing = || PlanState::Executing;
    let marked = || PlanState::Stalled { marked_at: at(6) };
    assert_eq!(word(executing(), working, &stuck, 9), (Word::Stuck, 2));
    assert_eq!(word(marked(), working, &stuck, 9), (Word::Stuck, 2));
    assert_eq!(word(executing(), asking, &asked, 9), (Word::NeedsYou, 4));
    assert_eq!(word(executing(), asking, &stuck, 9), (Word::Stuck, 2));
    assert_eq!(
        word(executing(), working, &facts(), 900),
        (Word::Working, 5)
    );
    assert_eq!(word(marked(), working, &facts(), 900), (Word::Working, 5));
    assert_eq!(word(executing(), working, &orphaned, 9), (Word::NoAgent, 7));
    assert_eq!(
        word(executing(), pending, &not_ready, 9),
        (Word::Blocked, 5)
    );
}

#[test]
fn a_plan_has_no_agent_after_the_limit_not_at_it() {
    let pending = Counts {
        pending: 2,
        ..Counts::default()
    };
    let planning = |now| word(PlanState::Planning, pending, &facts(), now);
    assert_eq!(planning(105), (Word::NotStarted, 1));
    assert_eq!(planning(106), (Word::NoAgent, 5));
    let executing = |now| word(PlanState::Executing, pending, &facts(), now);
    assert_eq!(executing(105), (Word::Working, 5));
    assert_eq!(executing(106), (Word::NoAgent, 5));
}

#[test]
fn an_ended_plan_with_a_failed_step_is_not_simply_done() {
    let ended = |failed, state| {
        let counts = Counts {
            completed: 3,
            failed,
            ..Counts::default()
        };
        word(state, counts, &facts(), 900)
    };
    let completed = PlanState::Completed { ended_at: at(8) };
    assert_eq!(ended(0, completed.clone()), (Word::Done, 8));
    assert_eq!(ended(1, completed), (Word::DoneWithFailures, 8));
    let failed = |reason| PlanState::Failed {
        reason,
        ended_at: at(8),
    };
    let abandoned = failed(PlanFailure::Abandoned(None));
    assert_eq!(ended(0, abandoned), (Word::Cancelled, 8));
    let rejected = failed(PlanFailure::Rejected(None));
    assert_eq!(ended(0, rejected), (Word::Failed, 8));
}

#[test]
fn only_an_idle_open_plan_can_lose_its_agent() {
    let mut plan = Harness::with_steps(2);
    let idle_until = |plan: &Harness| no_agent_at(plan.plan.head(), at(5), LIMIT);
    assert_eq!(idle_until(&plan), Some(at(105)));
    let (_, claim) = plan.claim_next().unwrap();
    assert_eq!(idle_until(&plan), None);
    let submit = plan.submit(1, Some(&claim.token));
    plan.run(&submit);
    assert_eq!(idle_until(&plan), Some(at(105)));
    assert_eq!(idle_until(&plan.abandoned()), None);
}

fn captured() -> Harness {
    Harness::new(captured_plan(2))
}

#[test]
fn a_captured_plan_without_an_agent_is_an_unfinished_list() {
    let word = |state, counts, facts: &Facts, now| {
        let head = PlanHead {
            state,
            counts,
            ..captured().plan.head().clone()
        };
        let Attention { word, since } = attention(&head, facts, at(now), LIMIT);
        (word, since.as_millis())
    };
    let pending = Counts {
        pending: 2,
        ..Counts::default()
    };
    let working = Counts {
        in_progress: 1,
        ..pending
    };
    let asking = Counts {
        awaiting_input: 1,
        ..pending
    };
    let with = |change: fn(&mut Facts)| {
        let mut facts = facts();
        change(&mut facts);
        facts
    };
    let inactive = with(|facts| facts.stuck_since = Some(at(2)));
    let orphaned = with(|facts| facts.orphaned_at = Some(at(3)));
    let not_ready = with(|facts| facts.has_ready_step = false);
    let asked = with(|facts| facts.asked_at = Some(at(4)));
    let executing = || PlanState::Executing;
    let list = Word::UnfinishedList;
    assert_eq!(word(executing(), working, &inactive, 9), (list, 2));
    assert_eq!(word(executing(), working, &orphaned, 9), (list, 3));
    assert_eq!(word(executing(), pending, &not_ready, 9), (list, 5));
    assert_eq!(word(executing(), pending, &facts(), 5), (list, 5));
    assert_eq!(word(PlanState::Planning, pending, &facts(), 106), (list, 5));
    // An agent works on it, or asks a person.
    assert_eq!(word(executing(), working, &facts(), 9), (Word::Working, 5));
    assert_eq!(
        word(PlanState::Planning, pending, &facts(), 105),
        (Word::NotStarted, 1)
    );
    assert_eq!(word(executing(), asking, &asked, 9), (Word::NeedsYou, 4));
    let completed = PlanState::Completed { ended_at: at(8) };
    assert_eq!(
        word(completed, Counts::default(), &facts(), 9),
        (Word::Done, 8)
    );
    assert!(!list.needs_person() && !list.is_ended());
}

#[test]
fn a_captured_plan_does_not_lose_its_agent() {
    assert_eq!(no_agent_at(captured().plan.head(), at(5), LIMIT), None);
}

#[test]
fn an_open_captured_plan_is_archived_after_the_limit_not_at_it() {
    let before = archived_before(at(1_000), LIMIT);
    let is_archived = |plan: &Harness, acted| is_archived(plan.plan.head(), at(acted), before);
    assert!(is_archived(&captured(), 899));
    assert!(!is_archived(&captured(), 900));
    assert!(!is_archived(&captured().abandoned(), 899));
    assert!(!is_archived(&Harness::with_steps(2), 899));
    assert_eq!(archived_before(at(5), Duration::MAX), Timestamp::MIN);
}
