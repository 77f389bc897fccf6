//! The response of `get_artifact` and of the resources of artifacts and outputs: a page of a text.

use onward_engine::TextPage;
use schemars::JsonSchema;
use serde::Serialize;

use super::notice::NOTICE;

/// Maximum number of characters of the response as JSON.
const MAX_RESPONSE: usize = 40_000;
/// Characters of the JSON around title and content, at most, without the notice.
const ENVELOPE: usize = 150;
/// Maximum number of characters in a page.
pub(crate) const MAX_PAGE: u32 = 40_000;
/// Default number of characters in a page.
pub(crate) const DEFAULT_PAGE: u32 = 20_000;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Text {
    title: String,
    content: String,
    total_chars: u32,
    /// Whether more text follows this page
    truncated: bool,
    /// The `offset` of the next page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u32>,
}

impl Text {
    /// The page that starts at `offset`, cut so that the response stays within the limit however
    /// much of it must be escaped.
    pub(crate) fn new(page: TextPage, offset: u32) -> Self {
        let TextPage {
            title,
            mut content,
            total_chars,
        } = page;
        let title = super::line(title);
        let title_chars: usize = title.chars().map(escaped).sum();
        let mut left = MAX_RESPONSE.saturating_sub(ENVELOPE + NOTICE.len() + title_chars);
        let mut chars = 0;
        let end = content
            .char_indices()
            .find_map(|(at, c)| match left.checked_sub(escaped(c)) {
                Some(rest) => {
                    left = rest;
                    chars += 1;
                    None
                }
                None => Some(at),
            });
        content.truncate(end.unwrap_or(content.len()));
        let next_offset = offset.saturating_add(chars);
        let truncated = next_offset < total_chars;
        Self {
            title,
            content,
            total_chars,
            truncated,
            next_offset: truncated.then_some(next_offset),
        }
    }
}

/// The number of characters of a character in a JSON string.
const fn escaped(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content: String) -> TextPage {
        let total_chars = u32::try_from(content.chars().count()).unwrap();
        TextPage {
            title: "\u{1}".repeat(200),
            content,
            total_chars,
        }
    }

    #[test]
    fn a_page_stays_within_the_limit_after_escaping() {
        for text in ["a", "\u{1}", "\"", "\n", "🌊", "é\u{7f}\u{2028}"] {
            let text = Text::new(page(text.repeat(40_000)), 0);
            let mut json = serde_json::to_value(&text).unwrap();
            json["notice"] = NOTICE.into();
            let chars = json.to_string().chars().count();
            assert!(chars <= MAX_RESPONSE, "{chars}");
            assert!(text.truncated);
            let taken = u32::try_from(text.content.chars().count()).unwrap();
            assert!(taken > 6_000, "{taken}");
            assert_eq!(text.next_offset, Some(taken));
        }
    }

    #[test]
    fn the_last_page_is_not_truncated() {
        let text = Text::new(page("tide".to_owned()), 0);
        assert_eq!((text.truncated, text.next_offset), (false, None));
        let after_the_end = TextPage {
            content: String::new(),
            ..page("tide".to_owned())
        };
        let text = Text::new(after_the_end, 99);
        assert_eq!((text.truncated, text.next_offset), (false, None));
    }
}
