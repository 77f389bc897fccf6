//! How much room there is for an answer, in characters of its JSON, and what it is spent on.
//!
//! Whoever is asked first is served first. What finds no room is left out, or cut where it is a text,
//! and that is remembered: the answer says so.

use serde_json::Value;

/// A text of which no more than this is left is not worth an entry of its own.
const LEAST: usize = 80;

/// What is left to spend.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
    cut: bool,
}

impl Budget {
    /// So many characters.
    pub(super) fn of(characters: usize) -> Self {
        Self {
            left: characters,
            cut: false,
        }
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Something finds no room.
    pub(super) fn cut(&mut self) {
        self.cut = true;
    }

    /// Whether anything found no room.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Spends so much, all or nothing.
    pub(super) fn take(&mut self, cost: usize) -> bool {
        let left = self.left.checked_sub(cost);
        self.cut |= left.is_none();
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// Spends what a text costs, up to a bound; what is past it is cut off.
    pub(super) fn text(&mut self, text: &mut String, most: usize) {
        let room = self.left.min(most);
        let costs = cost(text);
        if costs > room {
            shorten(text, room);
            self.cut = true;
        }
        self.left = self.left.saturating_sub(costs.min(room));
    }

    /// Spends what an entry costs whose text may be cut, unless next to nothing of it would be left.
    pub(super) fn entry(&mut self, beside: usize, text: &mut String) -> bool {
        let least = beside.saturating_add(cost(text).min(LEAST));
        if self.left < least {
            self.cut = true;
            return false;
        }
        self.left -= beside;
        self.text(text, usize::MAX);
        true
    }

    /// A part of what is left, to be spent apart and to be given back.
    pub(super) fn share(&mut self, part: usize) -> Budget {
        let share = self.left / part.max(1);
        self.left -= share;
        Budget::of(share)
    }

    /// Takes back what was not spent.
    pub(super) fn give_back(&mut self, share: Budget) {
        self.left += share.left;
        self.cut |= share.cut;
    }
}

/// What a text costs in JSON.
pub(super) fn cost(text: &str) -> usize {
    text.chars().map(cost_of).sum()
}

/// What a value costs in JSON.
pub(super) fn cost_of_data(data: &Value) -> usize {
    data.to_string().chars().count()
}

const fn cost_of(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => 1,
    }
}

/// Cuts a text so that it costs no more than this, with a sign that it was cut.
fn shorten(text: &mut String, room: usize) {
    let mut spent = 1;
    let end = text.char_indices().find_map(|(place, char)| {
        spent += cost_of(char);
        (spent > room).then_some(place)
    });
    if let Some(end) = end {
        text.truncate(end);
    }
    if room > 0 {
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, room: usize) -> String {
        let mut text = text.to_owned();
        Budget::of(room).text(&mut text, usize::MAX);
        text
    }

    #[test]
    fn a_text_is_cut_where_it_costs_more_than_there_is() {
        assert_eq!(cut("tides", 5), "tides");
        assert_eq!(cut("tides", 4), "tid…");
        assert_eq!(cut("tides", 1), "…");
        assert_eq!(cut("tides", 0), "");
        assert_eq!(cut("über", 3), "üb…");
        assert_eq!(cut("a\"b", 4), "a\"b", "as JSON it has four");
        assert_eq!(cut("a\"b", 3), "a…");
        assert_eq!(cost("\u{1}"), "\\u0001".len());
    }

    #[test]
    fn what_is_spent_is_gone_and_what_is_not_comes_back() {
        let mut budget = Budget::of(100);
        assert!(budget.take(10));
        let mut share = budget.share(3);
        assert_eq!((share.left(), budget.left()), (30, 60));
        assert!(share.take(20) && !share.take(20) && share.take(10));
        budget.give_back(share);
        assert_eq!(budget.left(), 60);
        assert!(budget.is_cut(), "what was cut in a share is cut");
    }

    #[test]
    fn an_entry_of_which_next_to_nothing_is_left_is_none() {
        let long = || "x".repeat(1_000);
        let mut budget = Budget::of(100 + LEAST - 1);
        assert!(!budget.entry(100, &mut long()) && budget.is_cut());
        let mut budget = Budget::of(100 + LEAST);
        let mut text = long();
        assert!(budget.entry(100, &mut text) && budget.is_cut());
        assert_eq!((cost(&text), budget.left()), (LEAST, 0));
        let mut budget = Budget::of(103);
        assert!(budget.entry(100, &mut "abc".to_owned()) && !budget.is_cut());
    }
}
