//! Character budget of a response, in characters of its JSON.
//!
//! Content is added in order of priority. What does not fit is omitted, or truncated if it is a
//! text, and the budget records that, so that the response can report it.

use onward_core::Json;

/// Minimum length of a truncated text; with less, its entry is omitted.
const MIN_TEXT: usize = 80;

/// The remaining budget.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
    truncated: bool,
}

impl Budget {
    /// A budget of this many characters.
    pub(super) fn new(characters: usize) -> Self {
        Self {
            left: characters,
            truncated: false,
        }
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Records that something did not fit.
    pub(super) fn mark_truncated(&mut self) {
        self.truncated = true;
    }

    /// Whether anything did not fit.
    pub(super) fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Spends the cost if it fits completely. Returns whether it did.
    pub(super) fn spend(&mut self, cost: usize) -> bool {
        let left = self.left.checked_sub(cost);
        self.truncated |= left.is_none();
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// Spends the cost of a text, up to `max_cost`, and truncates the text to fit.
    pub(super) fn text(&mut self, text: &mut String, max_cost: usize) {
        let available = self.left.min(max_cost);
        let costs = cost(text);
        if costs > available {
            truncate_text(text, available);
            self.truncated = true;
        }
        self.left = self.left.saturating_sub(costs.min(available));
    }

    /// Spends the cost of an entry with a text, which may be truncated. Returns false if too little
    /// of the text would remain.
    pub(super) fn entry(&mut self, fixed_cost: usize, text: &mut String) -> bool {
        let least = fixed_cost.saturating_add(cost(text).min(MIN_TEXT));
        if self.left < least {
            self.truncated = true;
            return false;
        }
        self.left -= fixed_cost;
        self.text(text, usize::MAX);
        true
    }

    /// Splits off a fraction of the remaining budget, to be returned with [`Self::return_share`].
    pub(super) fn share(&mut self, part: usize) -> Budget {
        let share = self.left / part.max(1);
        self.left -= share;
        Budget::new(share)
    }

    /// Returns the unspent part of a share.
    pub(super) fn return_share(&mut self, share: Budget) {
        self.left += share.left;
        self.truncated |= share.truncated;
    }
}

/// Cost of a text in JSON.
pub fn cost(text: &str) -> usize {
    text.chars().map(char_cost).sum()
}

/// Cost of a value in JSON.
pub(super) fn json_cost(data: &Json) -> usize {
    data.as_str().chars().count()
}

const fn char_cost(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => 1,
    }
}

/// Truncates a text that costs more, with a trailing ellipsis. Returns whether it did.
pub fn truncate(text: &mut String, max_cost: usize) -> bool {
    // A character costs at most six.
    let exceeds = text.len() > max_cost / 6 && cost(text) > max_cost;
    if exceeds {
        truncate_text(text, max_cost);
    }
    exceeds
}

/// The number of leading bytes of a text that cost at most this much.
pub(super) fn fitting(text: &str, max_cost: usize) -> usize {
    let mut spent = 0;
    let end = text.char_indices().find_map(|(index, char)| {
        spent += char_cost(char);
        (spent > max_cost).then_some(index)
    });
    end.unwrap_or(text.len())
}

/// Truncates a text to the given cost, with a trailing ellipsis.
fn truncate_text(text: &mut String, max_cost: usize) {
    let mut spent = 1;
    let end = text.char_indices().find_map(|(index, char)| {
        spent += char_cost(char);
        (spent > max_cost).then_some(index)
    });
    if let Some(end) = end {
        text.truncate(end);
    }
    if max_cost > 0 {
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truncate(text: &str, characters: usize) -> String {
        let mut text = text.to_owned();
        Budget::new(characters).text(&mut text, usize::MAX);
        text
    }

    #[test]
    fn truncates_a_text_that_exceeds_the_budget() {
        assert_eq!(truncate("tides", 5), "tides");
        assert_eq!(truncate("tides", 4), "tid…");
        assert_eq!(truncate("tides", 1), "…");
        assert_eq!(truncate("tides", 0), "");
        assert_eq!(truncate("über", 3), "üb…");
        assert_eq!(truncate("a\"b", 4), "a\"b", "four characters as JSON");
        assert_eq!(truncate("a\"b", 3), "a…");
        assert_eq!(cost("\u{1}"), "\\u0001".len());
    }

    #[test]
    fn returns_the_unspent_part_of_a_share() {
        let mut budget = Budget::new(100);
        assert!(budget.spend(10));
        let mut share = budget.share(3);
        assert_eq!((share.left(), budget.left()), (30, 60));
        assert!(share.spend(20) && !share.spend(20) && share.spend(10));
        budget.return_share(share);
        assert_eq!(budget.left(), 60);
        assert!(
            budget.is_truncated(),
            "truncation in a share counts for the whole budget"
        );
    }

    #[test]
    fn omits_an_entry_with_too_little_remaining_text() {
        let long = || "x".repeat(1_000);
        let mut budget = Budget::new(100 + MIN_TEXT - 1);
        assert!(!budget.entry(100, &mut long()) && budget.is_truncated());
        let mut budget = Budget::new(100 + MIN_TEXT);
        let mut text = long();
        assert!(budget.entry(100, &mut text) && budget.is_truncated());
        assert_eq!((cost(&text), budget.left()), (MIN_TEXT, 0));
        let mut budget = Budget::new(103);
        assert!(budget.entry(100, &mut "abc".to_owned()) && !budget.is_truncated());
    }
}
