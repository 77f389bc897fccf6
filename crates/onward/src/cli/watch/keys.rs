//! Key presses, read on a separate thread because reading the terminal blocks.

use std::thread;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

/// The meaning of a key.
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
    /// Deletes the last character of the filter.
    Delete,
    /// A character, which is a command or a part of the filter.
    Char(char),
    Quit,
    /// No action; the screen is redrawn, for example after a resize.
    None,
}

/// The stream of keys.
pub(super) struct Keys(mpsc::UnboundedReceiver<Key>);

impl Keys {
    /// Starts the reader. Its thread ends with the terminal or the process.
    pub(super) fn start() -> Self {
        let (sender, keys) = mpsc::unbounded_channel();
        thread::spawn(move || {
            while let Ok(event) = event::read() {
                if sender.send(interpret(&event)).is_err() {
                    return;
                }
            }
        });
        Self(keys)
    }

    /// The next key; `Quit` if the terminal is closed.
    pub(super) async fn next(&mut self) -> Key {
        self.0.recv().await.unwrap_or(Key::Quit)
    }
}

fn interpret(event: &Event) -> Key {
    let Event::Key(key) = event else {
        return Key::None;
    };
    if key.kind == KeyEventKind::Release {
        return Key::None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match (key.code, control) {
        (KeyCode::Char('c' | 'd'), true) => Key::Quit,
        (KeyCode::Char(char), false) => Key::Char(char),
        (KeyCode::Up, _) => Key::Up,
        (KeyCode::Down, _) => Key::Down,
        (KeyCode::PageUp, _) => Key::PageUp,
        (KeyCode::PageDown, _) => Key::PageDown,
        (KeyCode::Home, _) => Key::First,
        (KeyCode::End, _) => Key::Last,
        (KeyCode::Enter | KeyCode::Right, _) => Key::Enter,
        (KeyCode::Esc | KeyCode::Left, _) => Key::Back,
        (KeyCode::Backspace, _) => Key::Delete,
        _ => Key::None,
    }
}
