//! Tests of the screen, drawn into a buffer.

use onward_core::id::ReviewId;
use onward_core::plan::{Brief, PlanState};
use onward_core::policy::OnStall;
use onward_core::step::Review;
use onward_core::{Counts, PlanHead, PlanId, PlanStatus, StepId, StepStatus, StepType, Timestamp};
use onward_engine::list::OpenReview;
use onward_engine::{Listed, PlanCount, Session, SessionLine, Sheet, StepLine};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::keys::Key;
use super::screen;
use super::view::{Action, State, View};

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
        sheet: Sheet {
            head: PlanHead {
                id: PlanId::from_u128(number << 96),
                state,
                counts,
                seq: 1,
                stall_threshold: None,
                on_stall: OnStall::Mark,
                last_session: None,
            },
            brief: Brief {
                name: name.to_owned(),
                research_question: String::new(),
                design_rationale: None,
                output_formatting_notes: None,
            },
            created_at: ago(60),
            updated_at: ago(5),
        },
        stalled,
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
        stalls_at: working.then(|| ago(15)),
        stall_threshold: None,
        ended_at: None,
        result_summary: None,
        failure: None,
        updated_at: ago(45),
    }
}

fn view() -> View {
    let marked_at = ago(15);
    View {
        counts: vec![
            PlanCount {
                status: PlanStatus::Executing,
                plans: 1,
                steps: 4,
            },
            PlanCount {
                status: PlanStatus::Stalled,
                plans: 1,
                steps: 4,
            },
        ],
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
                },
            },
            "Houses".to_owned(),
        )],
        sessions: vec![SessionLine {
            session: Session {
                id: "s-1".to_owned(),
                agent: "claude-code".to_owned(),
                directory: Some("/srv/boats".to_owned()),
                started_at: ago(60),
                last_seen_at: ago(3),
                ended_at: None,
                switched_off: false,
                claims: Vec::new(),
            },
            turns: 4,
            held: 1,
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
fn stuck_plans_come_first_and_are_marked() {
    let screen = draw(&view(), &mut State::default(), 90, 20);
    assert_eq!(screen[0], "2 plans, 1 executing, 1 stuck");
    assert_eq!(
        screen[1],
        ">! 000b0a75 stuck           [#######---]  75% (3/4)    5 min ago  Boats"
    );
    assert_eq!(
        screen[2],
        "   000405e5 executing       [#######---]  75% (3/4)    5 min ago  Houses\u{fffd}[31m red"
    );
    let at = |text: &str| screen.iter().position(|line| line == text);
    let review = at("pending reviews").expect("the screen has a section of reviews");
    assert_eq!(
        screen[review + 1],
        "  000405e5 step 2    2 min ago  Houses: Two remain."
    );
    let sessions = at("sessions").expect("the screen has a section of sessions");
    assert!(review < sessions);
    assert_eq!(
        screen[sessions + 1],
        "  claude-code  3 min ago  4 turns, 1 stuck /srv/boats"
    );
    assert_eq!(screen[19], "↑↓ select · Enter steps · q quit");
}

#[test]
fn a_small_terminal_still_shows_the_plans() {
    let screen = draw(&view(), &mut State::default(), 30, 5);
    assert_eq!(screen[1], ">! stuck            75% Boats");
    assert_eq!(screen[2], "   executing        75% House…");
    assert_eq!(screen[4], "↑↓ select · Enter steps · q q…");
    for (wide, high) in [(1, 1), (2, 2), (5, 3), (300, 100), (80, 1)] {
        let screen = draw(&view(), &mut State::default(), wide, high);
        assert_eq!(screen.len(), usize::from(high));
    }
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
    assert_eq!(screen[2], "Boats: stuck, 75%");
    assert_eq!(screen[3], "    1 completed       Find offers");
    assert_eq!(
        screen[4],
        "!   2 stuck           no update for 45 min  Compare them"
    );
    assert_eq!(screen[9], "↑↓ scroll · Esc back · q quit");
    assert_eq!(state.press(Key::Down, &view), Action::None);
    assert_eq!(state.press(Key::Back, &view), Action::LoadSteps);
    assert_eq!(state.opened, None);
    assert_eq!(state.press(Key::Quit, &view), Action::Quit);
}

#[test]
fn an_empty_list_names_the_command_that_connects_an_agent() {
    let mut empty = view();
    empty.plans.clear();
    empty.counts.clear();
    let mut state = State::default();
    let screen = draw(&empty, &mut state, 80, 10);
    assert_eq!(screen[0], "0 plans");
    assert_eq!(screen[1], screen::NO_OPEN_PLANS);
    assert_eq!(state.press(Key::Enter, &empty), Action::None);
    assert_eq!(state.press(Key::Down, &empty), Action::None);
}
