//! What somebody presses, from a thread of its own: reading the terminal waits.

use std::thread;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

/// A key that means something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Enter,
    Back,
    Quit,
    /// Nothing that means anything, or another size of the terminal: it is drawn anew.
    None,
}

/// The keys, as they come.
pub(super) struct Keys(mpsc::UnboundedReceiver<Key>);

impl Keys {
    /// Listens from now on. The thread ends with the terminal or with the process.
    pub(super) fn listen() -> Self {
        let (sender, keys) = mpsc::unbounded_channel();
        thread::spawn(move || {
            while let Ok(event) = event::read() {
                if sender.send(meaning(&event)).is_err() {
                    return;
                }
            }
        });
        Self(keys)
    }

    /// The next one; the end, where the terminal is gone.
    pub(super) async fn next(&mut self) -> Key {
        self.0.recv().await.unwrap_or(Key::Quit)
    }
}

fn meaning(event: &Event) -> Key {
    let Event::Key(key) = event else {
        return Key::None;
    };
    if key.kind == KeyEventKind::Release {
        return Key::None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match (key.code, control) {
        (KeyCode::Char('c' | 'd'), true) | (KeyCode::Char('q'), false) => Key::Quit,
        (KeyCode::Up, _) | (KeyCode::Char('k'), false) => Key::Up,
        (KeyCode::Down, _) | (KeyCode::Char('j'), false) => Key::Down,
        (KeyCode::PageUp, _) => Key::PageUp,
        (KeyCode::PageDown, _) => Key::PageDown,
        (KeyCode::Home, _) => Key::First,
        (KeyCode::End, _) => Key::Last,
        (KeyCode::Enter | KeyCode::Right, _) => Key::Enter,
        (KeyCode::Esc | KeyCode::Left | KeyCode::Backspace, _) => Key::Back,
        _ => Key::None,
    }
}
