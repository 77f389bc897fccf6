//! The body of a webhook request: JSON, or a message of Slack or Teams.
//!
//! Names, titles and notes are written by agents and users. They are sent only in elements without
//! markup: `plain_text` in Slack, `TextRun` in Teams. The text that Slack displays in its
//! notifications has no such element, so its control characters are escaped.

use serde::Serialize;
use serde_json::{Value, json};

use crate::config::MessageFormat;
use crate::wire::notification::Notification;

/// Limits of Slack, in characters.
const MAX_SECTION: usize = 3_000;
const MAX_BUTTON: usize = 75;

/// The default format: all fields, and both messages, for receivers that pass them on.
#[derive(Serialize)]
struct Json<'n> {
    #[serde(flatten)]
    notification: &'n Notification,
    blocks: Value,
    card: Value,
}

/// The body of a notification.
pub(super) fn body(
    notification: &Notification,
    format: MessageFormat,
) -> Result<String, serde_json::Error> {
    match format {
        MessageFormat::Json => serde_json::to_string(&Json {
            blocks: blocks(notification),
            card: card(notification),
            notification,
        }),
        MessageFormat::Slack => serde_json::to_string(&json!({
            "text": escaped(&notification.text),
            "blocks": blocks(notification),
        })),
        MessageFormat::Teams => serde_json::to_string(&json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": null,
                "content": card(notification),
            }],
        })),
    }
}

/// Title, address and style of each button: the decisions, and the page.
fn buttons(notification: &Notification) -> Vec<(&str, &str, Option<&str>)> {
    let decisions = notification.decisions.iter();
    let mut buttons: Vec<_> = decisions
        .map(|decision| {
            let style = match decision.action {
                "approve" => Some("primary"),
                "reject" => Some("danger"),
                _ => None,
            };
            (decision.title, decision.url.as_str(), style)
        })
        .collect();
    buttons.extend(notification.url.as_deref().map(|url| ("Open", url, None)));
    buttons
}

/// The texts of a message, each in its own paragraph.
fn paragraphs(notification: &Notification) -> impl Iterator<Item = &str> {
    let note = notification.note.as_deref();
    let note = note.filter(|_| !notification.includes_note);
    let texts = std::iter::once(notification.text.as_str()).chain(note);
    texts.filter(|text| !text.trim().is_empty())
}

/// Blocks of Slack.
fn blocks(notification: &Notification) -> Value {
    let section = |text: &str| {
        json!({
            "type": "section",
            "text": { "type": "plain_text", "text": shortened(text, MAX_SECTION), "emoji": false },
        })
    };
    let mut blocks: Vec<Value> = paragraphs(notification).map(section).collect();
    if let Some(expiry) = expiry(notification) {
        let text = json!({ "type": "plain_text", "text": expiry, "emoji": false });
        blocks.push(json!({ "type": "context", "elements": [text] }));
    }
    let button = |(title, url, style): (&str, &str, Option<&str>)| {
        let title = shortened(title, MAX_BUTTON);
        let mut button = json!({
            "type": "button",
            "text": { "type": "plain_text", "text": title, "emoji": false },
            "url": url,
        });
        if let (Some(style), Some(button)) = (style, button.as_object_mut()) {
            button.insert("style".to_owned(), style.into());
        }
        button
    };
    let buttons: Vec<Value> = buttons(notification).into_iter().map(button).collect();
    if !buttons.is_empty() {
        blocks.push(json!({ "type": "actions", "elements": buttons }));
    }
    Value::Array(blocks)
}

/// An Adaptive Card, for Teams.
fn card(notification: &Notification) -> Value {
    let paragraph = |text: &str, is_subtle: bool| {
        json!({
            "type": "RichTextBlock",
            "inlines": [{ "type": "TextRun", "text": text, "isSubtle": is_subtle }],
        })
    };
    let texts = paragraphs(notification).map(|text| paragraph(text, false));
    let expiry = expiry(notification).map(|text| paragraph(&text, true));
    let body: Vec<Value> = texts.chain(expiry).collect();
    let action = |(title, url, _): (&str, &str, Option<&str>)| json!({ "type": "Action.OpenUrl", "title": title, "url": url });
    let actions: Vec<Value> = buttons(notification).into_iter().map(action).collect();
    json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": actions,
    })
}

/// Who may use the links, and until when.
fn expiry(notification: &Notification) -> Option<String> {
    let first = notification.decisions.first()?;
    let recipient = notification.recipient.as_deref()?;
    Some(format!(
        "For {recipient}. The links expire at {}.",
        first.expires_at
    ))
}

/// A text of Slack's own markup without its control characters.
fn escaped(text: &str) -> String {
    let text = shortened(text, MAX_SECTION);
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

fn shortened(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    text.chars().take(max - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use onward_core::Timestamp;
    use onward_core::event::Decision;
    use onward_core::step::ReviewScope;

    use super::*;
    use crate::wire::notification::DecisionUrl;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    fn notification(text: &str, note: &str) -> Notification {
        let url = "https://onward.example.org/decide/a.b".to_owned();
        let decision = DecisionUrl::new(Decision::Approve, ReviewScope::Plan, url, NOW);
        let mut notification = Notification::test("local", NOW);
        text.clone_into(&mut notification.text);
        notification.note = Some(note.to_owned());
        notification.recipient = Some(note.to_owned());
        notification.decisions = vec![decision];
        notification
    }

    /// Calls `check` with every string in a value, and the type of the object that contains it.
    fn each_text(value: &Value, kind: &str, check: &mut impl FnMut(&str, &str)) {
        match value {
            Value::String(text) => check(text, kind),
            Value::Array(list) => list.iter().for_each(|item| each_text(item, kind, check)),
            Value::Object(object) => {
                let kind = object.get("type").and_then(Value::as_str).unwrap_or(kind);
                let texts = object.iter().filter(|(key, _)| *key != "type");
                texts.for_each(|(_, item)| each_text(item, kind, check));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn parsed(notification: &Notification, format: MessageFormat) -> Value {
        serde_json::from_str(&body(notification, format).unwrap()).unwrap()
    }

    #[test]
    fn texts_are_only_in_elements_without_markup() {
        for hostile in [
            "<!channel>",
            "<!here|here> & <@U1>",
            "<https://evil.example|page>",
            "&lt;!channel&gt;",
            "*bold* _it_ ~st~ `code` > quote",
            "[x](https://evil.example)",
            "<at>all</at> @everyone :rotating_light:",
            "{{DATE(2026-01-01T00:00:00Z)}} \u{202e}\u{0}\n# x",
        ] {
            let text = format!("{hostile}needle");
            let notification = notification(&text, &format!("note: {text}"));
            let slack = parsed(&notification, MessageFormat::Slack);
            let fallback = slack["text"].as_str().unwrap();
            assert!(!fallback.contains(['<', '>']), "{fallback}");
            let unescaped = fallback.replace("&lt;", "<").replace("&gt;", ">");
            assert_eq!(unescaped.replace("&amp;", "&"), text);
            let mut found = 0;
            each_text(&slack["blocks"], "", &mut |value, kind| {
                let contains = value.contains("needle");
                assert!(!contains || kind == "plain_text", "{kind}: {value}");
                found += u32::from(contains);
            });
            let teams = parsed(&notification, MessageFormat::Teams);
            each_text(&teams, "", &mut |value, kind| {
                let contains = value.contains("needle");
                assert!(!contains || kind == "TextRun", "{kind}: {value}");
                found += u32::from(contains);
            });
            assert_eq!(found, 6, "sentence, note and recipient in both");
        }
    }

    #[test]
    fn long_texts_are_shortened_to_the_limits_of_slack() {
        let long = "\u{e9}".repeat(MAX_SECTION + 1);
        let slack = parsed(&notification(&long, &long), MessageFormat::Slack);
        for block in [0, 1] {
            let text = slack["blocks"][block]["text"]["text"].as_str().unwrap();
            assert_eq!(text.chars().count(), MAX_SECTION);
        }
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("abcd", 3), "ab\u{2026}");
        for (text, expected) in [
            ("a & b", "a &amp; b"),
            ("<!here>", "&lt;!here&gt;"),
            ("&lt;", "&amp;lt;"),
        ] {
            assert_eq!(escaped(text), expected);
        }
    }

    #[test]
    fn the_note_is_repeated_only_if_the_sentence_does_not_contain_it() {
        let mut notification = notification("the plan failed: no space", "no space");
        let texts = |notification: &Notification| {
            let texts = paragraphs(notification).map(str::to_owned);
            texts.collect::<Vec<_>>()
        };
        assert_eq!(texts(&notification), [&*notification.text, "no space"]);
        notification.includes_note = true;
        assert_eq!(texts(&notification), [&*notification.text]);
    }

    #[test]
    fn every_title_fits_a_button_of_slack() {
        for decision in Decision::ALL {
            for scope in ReviewScope::ALL {
                let url = DecisionUrl::new(decision, scope, String::new(), NOW);
                assert!(url.title.chars().count() <= MAX_BUTTON);
            }
        }
    }
}
