//! Tests of the screen, drawn into a buffer.

use onward_core::attention::{Attention, Word};
use onward_core::id::ReviewId;
use onward_core::plan::{Brief, Origin, PlanState};
use onward_core::policy::OnStall;
use onward_core::step::Review;
use onward_core::{Counts, PlanHead, PlanId, StepId, StepStatus, StepType, Timestamp};
use onward_engine::list::OpenReview;
use onward_engine::{AttentionCount, Listed, Owner, Session, SessionLine, Sheet, StepLine};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::keys::Key;
use super::screen;
use super::view::{Action, Input, State, View};

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

fn ago(minutes: i64) -> Timestamp {
    Timestamp::from_millis(NOW.as_millis() - minutes * 60_000)
}

fn listed(number: u128, name: &str, state: PlanState, stalled: bool) -> Listed {
    let counts = Counts {
        pending: 1,
        completed: 3,
        ..Counts::default()
    };
    Listed {
        exhausted: None,
        archived: false,
        sheet: Sheet {
            head: PlanHead {
                id: PlanId::from_u128(number << 96),
                origin: Origin::default(),
                state,
                counts,
                seq: 1,
                stall_threshold: None,
                on_stall: OnStall::Mark,
                on_dependency_failure: Default::default(),
                last_session: None,
                routing: onward_core::routing::Routing::default(),
                budget: None,
            },
            brief: Brief {
                name: name.to_owned(),
                research_question: String::new(),
                design_rationale: None,
                output_formatting_notes: None,
                forked_from: None,
            },
            created_at: ago(60),
            updated_at: ago(5),
            acted_at: ago(5),
            worked_at: ago(5),
            owner: Owner::default(),
            tokens: None,
        },
        stalled,
        attention: Attention {
            word: if stalled { Word::Stuck } else { Word::Working },
            since: ago(5),
        },
    }
}

fn step(order: u32, status: StepStatus, title: &str) -> StepLine {
    let working = status == StepStatus::InProgress;
    StepLine {
        id: StepId::from_u128(order.into()),
        order,
        step_type: StepType::Search,
        title: Some(title.to_owned()),
        status,
        attempt: 1,
        session: None,
        started_at: working.then(|| ago(45)),
        last_progress_at: None,
        monitored: false,
        orphaned_at: None,
        stalls_at: working.then(|| ago(15)),
        stall_threshold: None,
        ended_at: None,
        result_summary: None,
        failure: None,
        updated_at: ago(45),
        note: None,
        supersedes: None,
        superseded_by: None,
    }
}

fn view() -> View {
    let marked_at = ago(15);
    View {
        words: [(Word::Stuck, 1), (Word::NeedsYou, 0), (Word::Working, 1)]
            .map(|(word, plans)| AttentionCount { word, plans })
            .to_vec(),
        plans: vec![
            listed(0xb0a75, "Boats", PlanState::Stalled { marked_at }, true),
            listed(
                0x40_5e5,
                "Houses\u{1b}[31m\nred",
                PlanState::Executing,
                false,
            ),
        ],
        reviews: vec![(
            OpenReview {
                id: ReviewId::from_u128(1),
                plan: PlanId::from_u128(0x40_5e5 << 96),
                step: StepId::from_u128(7),
                order: 2,
                title: None,
                review: Review {
                    id: ReviewId::from_u128(1),
                    summary: "Two remain.".to_owned(),
                    questions: Vec::new(),
                    requested_at: ago(2),
                    scope: onward_core::step::ReviewScope::Plan,
                    options: Default::default(),
                    by: None,
                    session: None,
                    result: None,
                },
            },
            "Houses".to_owned(),
        )],
        sessions: vec![SessionLine {
            subagents: Vec::new(),
            session: Session {
                id: "s-1".to_owned(),
                agent: "claude-code".to_owned(),
                directory: Some("/srv/boats".to_owned()),
                actor: None,
                prompt: None,
                started_at: ago(60),
                last_seen_at: ago(3),
                ended_at: None,
                switched_off: false,
                claims: Vec::new(),
                primed: None,
                owner: None,
            },
            turns: 4,
            held: 1,
            responses: 20,
            last_turn: None,
            calls: Vec::new(),
            plan: None,
        }],
        steps: vec![
            step(1, StepStatus::Completed, "Find offers"),
            step(2, StepStatus::InProgress, "Compare them"),
        ],
        now: NOW,
    }
}

fn draw(view: &View, state: &mut State, wide: u16, high: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(wide, high)).unwrap();
    terminal
        .draw(|frame| screen::draw(frame, view, state, false))
        .unwrap();
    let buffer = terminal.backend().buffer().clone();
    let rows = buffer.content().chunks(usize::from(wide));
    rows.map(|row| {
        let text: String = row.iter().map(|cell| cell.symbol()).collect();
        text.trim_end().to_owned()
    })
    .collect()
}

#[test]
fn plans_show_their_word_and_its_duration() {
    let screen = draw(&view(), &mut State::default(), 90, 20);
    assert_eq!(screen[0], "1 stuck   1 working");
    assert_eq!(
        screen[1],
        ">▲ 000b0a75 stuck 5 min                3/4 Boats"
    );
    assert_eq!(
        screen[2],
        " ▶ 000405e5 working 5 min              3/4 Houses\u{fffd}[31m red"
    );
    let at = |text: &str| screen.iter().position(|line| line == text);
    let review = at("pending reviews").expect("the screen has a section of reviews");
    assert_eq!(
        screen[review + 1],
        "  000405e5/2    2 min      Houses: Two remain."
    );
    let sessions = at("sessions").expect("the screen has a section of sessions");
    assert!(review < sessions);
    assert_eq!(
        screen[sessions + 1],
        "  idle 3 min             claude-code  /srv/boats"
    );
    assert!(screen[19].contains("r release"), "{}", screen[19]);
}

#[test]
fn a_small_terminal_still_shows_the_plans() {
    let screen = draw(&view(), &mut State::default(), 30, 5);
    assert_eq!(screen[1], ">▲ stuck       Boats");
    assert_eq!(screen[2], " ▶ working     Houses\u{fffd}[31m red");
    for (wide, high) in [(1, 1), (2, 2), (5, 3), (300, 100), (80, 1)] {
        let screen = draw(&view(), &mut State::default(), wide, high);
        assert_eq!(screen.len(), usize::from(high));
    }
}

#[test]
fn the_keys_fit_80_columns() {
    let screen = draw(&view(), &mut State::default(), 80, 10);
    assert!(screen[9].ends_with("q quit"), "{}", screen[9]);
}

#[test]
fn r_releases_only_a_stuck_plan() {
    let view = view();
    let mut state = State::default();
    let (boats, houses) = (view.plans[0].sheet.head.id, view.plans[1].sheet.head.id);
    assert_eq!(state.press(Key::Char('r'), &view), Action::Release(boats));
    state.press(Key::Down, &view);
    assert_eq!(state.selected, Some(houses));
    assert_eq!(state.press(Key::Char('r'), &view), Action::None);
    assert!(state.message.is_some());
    state.press(Key::Up, &view);
    assert!(state.message.is_none());
}

#[test]
fn an_approval_needs_a_confirmation() {
    let view = view();
    let mut state = State::default();
    assert_eq!(state.press(Key::Char('a'), &view), Action::None);
    assert_eq!(state.input, Input::Command, "the first plan has no review");
    state.press(Key::Down, &view);
    let houses = view.plans[1].sheet.head.id;
    for (answer, action) in [
        (Key::Char('n'), Action::None),
        (Key::Enter, Action::None),
        (Key::Char('y'), Action::Approve(houses)),
    ] {
        assert_eq!(state.press(Key::Char('a'), &view), Action::None);
        assert_eq!(state.input, Input::Confirmation(houses));
        assert_eq!(state.press(Key::None, &view), Action::None);
        assert_eq!(state.press(answer, &view), action);
        assert_eq!(state.input, Input::Command);
    }
}

#[test]
fn the_filter_hides_plans_until_it_is_cleared() {
    let view = view();
    let mut state = State::default();
    state.press(Key::Char('/'), &view);
    for char in "houq".chars() {
        assert_eq!(state.press(Key::Char(char), &view), Action::None);
    }
    assert!(state.visible(&view).is_empty());
    state.press(Key::Delete, &view);
    state.press(Key::Enter, &view);
    let screen = draw(&view, &mut state, 90, 10);
    assert!(screen[1].contains("Houses"), "{}", screen[1]);
    assert_eq!(screen[2], "");
    assert_eq!(state.press(Key::Enter, &view), Action::LoadSteps);
    assert_eq!(state.opened, Some(view.plans[1].sheet.head.id));
    state.press(Key::Back, &view);
    state.press(Key::Back, &view);
    assert_eq!(state.visible(&view).len(), 2);
    assert_eq!(state.press(Key::Char('q'), &view), Action::Quit);
}

#[test]
fn the_selected_plan_stays_selected_and_visible() {
    let mut view = view();
    for number in 0..50u32 {
        let name = format!("Plan {number}");
        let number = u128::from(number) + 1;
        view.plans
            .push(listed(number, &name, PlanState::Planning, false));
    }
    let mut state = State::default();
    assert_eq!(state.press(Key::Last, &view), Action::None);
    let screen = draw(&view, &mut state, 80, 8);
    let selected: Vec<_> = screen.iter().filter(|line| line.starts_with('>')).collect();
    assert!(
        matches!(selected[..], [line] if line.ends_with("Plan 49")),
        "{screen:?}"
    );
    // The order of the list changes.
    view.plans.remove(0);
    assert_eq!(state.index(&view), view.plans.len() - 1);
    state.press(Key::Up, &view);
    assert_eq!(state.index(&view), view.plans.len() - 2);
    state.press(Key::First, &view);
    state.press(Key::Up, &view);
    assert_eq!(state.index(&view), 0);
}

#[test]
fn enter_opens_the_steps_of_a_plan_and_escape_closes_them() {
    let view = view();
    let mut state = State::default();
    assert_eq!(state.press(Key::Back, &view), Action::None);
    assert_eq!(state.press(Key::Enter, &view), Action::LoadSteps);
    let screen = draw(&view, &mut state, 90, 10);
    assert_eq!(screen[2], "Boats: stuck 5 min, 3 of 4 done");
    assert_eq!(screen[3], "✓    1 completed       Find offers");
    assert_eq!(
        screen[4],
        "▲    2 stuck           no update for 45 min  Compare them"
    );
    assert!(screen[9].contains("Esc back"), "{}", screen[9]);
    assert_eq!(state.press(Key::Down, &view), Action::None);
    assert_eq!(state.press(Key::Back, &view), Action::LoadSteps);
    assert_eq!(state.opened, None);
    assert_eq!(state.press(Key::Quit, &view), Action::Quit);
}

#[test]
fn an_empty_list_names_the_command_that_connects_an_agent() {
    let mut empty = view();
    empty.plans.clear();
    empty.words.clear();
    let mut state = State::default();
    let screen = draw(&empty, &mut state, 80, 10);
    assert_eq!(screen[0], "0 plans");
    assert_eq!(screen[1], screen::NO_OPEN_PLANS);
    assert_eq!(state.press(Key::Enter, &empty), Action::None);
    assert_eq!(state.press(Key::Down, &empty), Action::None);
}
