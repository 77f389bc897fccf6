//! The steps of an approved plan, from its Markdown: the items of its longest list of numbered
//! items, otherwise of bullets, otherwise its headings. Nested items are details of their item.

use super::list::{MAX_TASKS, Task, TaskStatus};

/// The name and the steps of an approved plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The first heading.
    pub name: Option<String>,
    /// The steps.
    pub tasks: Vec<Task>,
}

/// What a line of Markdown is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Heading(usize, &'a str),
    Numbered(&'a str),
    Bullet(&'a str),
    Nested,
    Blank,
    Text,
}

/// Finds the name and the steps of a plan.
pub fn outline(markdown: &str) -> Outline {
    let mut headings: Vec<(usize, &str)> = Vec::new();
    let mut numbered: Vec<Vec<&str>> = vec![Vec::new()];
    let mut bullets: Vec<Vec<&str>> = vec![Vec::new()];
    let mut in_code = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            continue;
        }
        match classify(line) {
            Line::Heading(level, text) => {
                headings.push((level, text));
                bullets.push(Vec::new());
                numbered.push(Vec::new());
            }
            Line::Numbered(text) => push(&mut numbered, text),
            Line::Bullet(text) => push(&mut bullets, text),
            Line::Nested | Line::Blank | Line::Text => {}
        }
    }
    let name = headings.first().map(|(_, text)| (*text).to_owned());
    let below_title = headings.iter().skip(1).map(|(_, text)| *text);
    let items = longest(numbered).or_else(|| longest(bullets));
    let items = items.unwrap_or_else(|| below_title.collect());
    let tasks = items
        .into_iter()
        .filter_map(|text| Task::new(&plain(text), TaskStatus::Pending))
        .take(MAX_TASKS)
        .collect();
    Outline { name, tasks }
}

/// The longest list with more than one item; of several, the first.
fn longest(lists: Vec<Vec<&str>>) -> Option<Vec<&str>> {
    let longest = lists.into_iter().rev().max_by_key(Vec::len);
    longest.filter(|list| list.len() > 1)
}

fn push<'a>(lists: &mut [Vec<&'a str>], text: &'a str) {
    if let Some(list) = lists.last_mut() {
        list.push(text);
    }
}

fn classify(line: &str) -> Line<'_> {
    let text = line.trim_start();
    if text.is_empty() {
        return Line::Blank;
    }
    let level = text.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&level)
        && let Some(heading) = text.get(level..).and_then(|rest| rest.strip_prefix(' '))
    {
        return Line::Heading(level, heading.trim());
    }
    let is_nested = line.len() - text.len() >= 2;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after_digits = text.get(digits..).unwrap_or_default();
    let numbered = after_digits
        .strip_prefix(". ")
        .or_else(|| after_digits.strip_prefix(") "));
    let bullet = ["- ", "* ", "+ "]
        .iter()
        .find_map(|mark| text.strip_prefix(mark));
    match (numbered.filter(|_| digits > 0), bullet) {
        (Some(_), _) | (_, Some(_)) if is_nested => Line::Nested,
        (Some(text), _) => Line::Numbered(text.trim()),
        (None, Some(text)) => Line::Bullet(text.trim()),
        (None, None) => Line::Text,
    }
}

/// Text without check boxes and emphasis.
fn plain(text: &str) -> String {
    let boxes = ["[ ] ", "[x] ", "[X] "];
    let text = boxes
        .iter()
        .find_map(|mark| text.strip_prefix(mark))
        .unwrap_or(text);
    text.replace("**", "").replace('`', "")
}
