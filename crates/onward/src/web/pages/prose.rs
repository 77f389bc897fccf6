//! What agents wrote, as people read it: Markdown, let through a sieve.
//!
//! The sieve works on what the parser found, and lets through what it knows: paragraphs, headings, lists,
//! quotes, code, tables, emphasis, and links to `http`, `https` and `mailto`. HTML inside of a text is
//! shown as it was written. Pictures are named and not fetched, and nothing carries an id, a class of its
//! own choice, or a style. A single line break is one, as it is in a text that never meant to be Markdown.

use std::fmt;

use askama::filters::HtmlSafe;
use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};

use super::show::beginning;
use crate::output::words;

/// A text, as HTML of ours.
#[derive(Debug, Clone)]
pub(super) struct Prose(String);

impl Prose {
    /// A text; where it is very long, its beginning.
    pub(super) fn of(text: &str, longest: usize) -> Self {
        let (beginning, missing) = beginning(text, longest);
        let mut page = rendered(&words::lines(beginning));
        if let Some(missing) = missing {
            page.push_str(&format!("<p class=\"hint\">{missing}</p>\n"));
        }
        Self(page)
    }
}

impl fmt::Display for Prose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Prose {}

/// The words of a text without its marks, for one line of a list.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::new();
    for event in parser(text) {
        match event {
            Event::Text(words)
            | Event::Code(words)
            | Event::Html(words)
            | Event::InlineHtml(words) => plain.push_str(&words),
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough)
            | Event::End(TagEnd::Link | TagEnd::Image)
            | Event::Start(_) => {}
            Event::End(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_) => {
                if !plain.is_empty() && !plain.ends_with(' ') {
                    plain.push(' ');
                }
            }
        }
    }
    plain
}

fn parser(text: &str) -> Parser<'_> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    Parser::new_ext(text, options)
}

fn rendered(text: &str) -> String {
    let mut sieve = Sieve::default();
    let events = parser(text).filter_map(|event| sieve.pass(event));
    let mut page = String::with_capacity(text.len() * 2);
    html::push_html(&mut page, events);
    page
}

/// What was let through of what is still open.
#[derive(Default)]
struct Sieve {
    /// For each link that is open, whether it is one.
    links: Vec<bool>,
    columns: Vec<Alignment>,
    column: usize,
    in_head: bool,
    /// The heading that was last met, below those that it stands under.
    headings: Vec<HeadingLevel>,
}

impl Sieve {
    fn pass<'a>(&mut self, event: Event<'a>) -> Option<Event<'a>> {
        Some(match event {
            Event::Start(tag) => return self.open(tag),
            Event::End(tag) => return self.close(tag),
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::SoftBreak => Event::HardBreak,
            Event::TaskListMarker(done) => {
                Event::Text(CowStr::Borrowed(if done { "☑ " } else { "☐ " }))
            }
            event @ (Event::Text(_) | Event::Code(_) | Event::HardBreak | Event::Rule) => event,
            // Nothing of this is asked for.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                Event::Text(text)
            }
        })
    }

    fn open<'a>(&mut self, tag: Tag<'a>) -> Option<Event<'a>> {
        Some(match tag {
            Tag::Paragraph | Tag::HtmlBlock => Event::Start(Tag::Paragraph),
            Tag::Heading { level, .. } => {
                while self.headings.pop_if(|last| *last >= level).is_some() {}
                self.headings.push(level);
                Event::Start(Tag::Heading {
                    level: self.level(),
                    id: None,
                    classes: Vec::new(),
                    attrs: Vec::new(),
                })
            }
            Tag::CodeBlock(_) => Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)),
            Tag::BlockQuote(_) => Event::Start(Tag::BlockQuote(None)),
            Tag::Link { ref dest_url, .. } => {
                let leads = leads_outside(dest_url);
                self.links.push(leads);
                return leads.then_some(Event::Start(tag));
            }
            Tag::Image { .. } => Event::Text(CowStr::Borrowed("[picture: ")),
            Tag::Table(columns) => {
                self.columns = columns;
                ours("<table>")
            }
            Tag::TableHead => {
                (self.column, self.in_head) = (0, true);
                ours("<thead><tr>")
            }
            Tag::TableRow => {
                self.column = 0;
                ours("<tr>")
            }
            Tag::TableCell => {
                let aligned = self.columns.get(self.column).copied();
                self.column += 1;
                ours(match (self.in_head, aligned) {
                    (true, Some(Alignment::Right)) => "<th scope=\"col\" class=\"number\">",
                    (true, _) => "<th scope=\"col\">",
                    (false, Some(Alignment::Right)) => "<td class=\"number\">",
                    (false, _) => "<td>",
                })
            }
            tag @ (Tag::List(_) | Tag::Item | Tag::Emphasis | Tag::Strong | Tag::Strikethrough) => {
                Event::Start(tag)
            }
            // Nothing of this is asked for.
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => return None,
        })
    }

    /// The level of the heading on the page, which has two of its own above it: by how deep it stands,
    /// so that none is skipped on the way down.
    fn level(&self) -> HeadingLevel {
        match self.headings.len() {
            0 | 1 => HeadingLevel::H3,
            2 => HeadingLevel::H4,
            3 => HeadingLevel::H5,
            _ => HeadingLevel::H6,
        }
    }

    fn close<'a>(&mut self, tag: TagEnd) -> Option<Event<'a>> {
        Some(match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => Event::End(TagEnd::Paragraph),
            TagEnd::Heading(_) => Event::End(TagEnd::Heading(self.level())),
            TagEnd::BlockQuote(_) => Event::End(TagEnd::BlockQuote(None)),
            TagEnd::Link => {
                return (self.links.pop() == Some(true)).then_some(Event::End(TagEnd::Link));
            }
            TagEnd::Image => Event::Text(CowStr::Borrowed("]")),
            TagEnd::Table => ours("</tbody></table>\n"),
            TagEnd::TableHead => {
                self.in_head = false;
                ours("</tr></thead><tbody>\n")
            }
            TagEnd::TableRow => ours("</tr>\n"),
            TagEnd::TableCell => ours(if self.in_head { "</th>" } else { "</td>" }),
            tag @ (TagEnd::CodeBlock
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough) => Event::End(tag),
            TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => return None,
        })
    }
}

/// HTML that stands in this file.
fn ours<'a>(html: &'static str) -> Event<'a> {
    Event::Html(CowStr::Borrowed(html))
}

/// Whether an address names a place that a link may lead to: in full, so that nothing of this server
/// is meant, and by a scheme that only shows something.
fn leads_outside(address: &str) -> bool {
    let scheme = address.split_once(':').map(|(scheme, _)| scheme);
    let scheme = scheme.map(str::to_ascii_lowercase);
    matches!(scheme.as_deref(), Some("http" | "https" | "mailto"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> String {
        Prose::of(text, 10_000).to_string()
    }

    #[test]
    fn markdown_is_shown_as_what_it_means() {
        assert_eq!(
            page("# Pump *B*\n\n- **quiet**\n- `cheap`\n"),
            "<h3>Pump <em>B</em></h3>\n<ul>\n<li><strong>quiet</strong></li>\n\
             <li><code>cheap</code></li>\n</ul>\n"
        );
        assert_eq!(
            page("|a|b|\n|---|---:|\n|x|1|\n"),
            "<table><thead><tr><th scope=\"col\">a</th><th scope=\"col\" class=\"number\">b</th>\
             </tr></thead><tbody>\n<tr><td>x</td><td class=\"number\">1</td></tr>\n</tbody></table>\n"
        );
        assert_eq!(
            page("- [x] a\n"),
            "<ul>\n<li>☑ a</li>\n</ul>\n",
            "a box is a sign, and no field"
        );
        assert_eq!(
            page("```html onclick=\"x\"\na\n```"),
            "<pre><code>a\n</code></pre>\n"
        );
    }

    #[test]
    fn no_heading_is_skipped_on_the_way_down() {
        assert_eq!(
            page("### a\n# b\n### c\n### d\n# e\n"),
            "<h3>a</h3>\n<h3>b</h3>\n<h4>c</h4>\n<h4>d</h4>\n<h3>e</h3>\n"
        );
    }

    #[test]
    fn a_text_that_is_no_markdown_keeps_its_lines() {
        assert_eq!(page("One.\nTwo.\n"), "<p>One.<br />\nTwo.</p>\n");
    }

    #[test]
    fn nothing_in_a_text_becomes_html() {
        let evil = [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div\nonclick=alert(1)>\n\n</div>",
            "<!-- --><svg onload=alert(1)>",
            "# a <b onclick=x> {#id .class onclick=x}",
            "|<i>|\n|---|\n|<u onclick=x>|",
            "[<b>](https://example.org/\"onclick=x)",
            "![<b>\"](https://example.org/x.png \"t\")",
            "`<b>`\n\n    <b>\n\n```<b>\n<b>\n```",
            "[a]: https://example.org '<b>'\n\n[a]",
        ];
        let known = [
            "p", "br", "h3", "a", "table", "thead", "tbody", "tr", "th", "td", "code", "pre",
        ];
        for text in evil {
            let page = page(text);
            for tag in page.split('<').skip(1) {
                let name = tag.trim_start_matches('/');
                let name = name.split([' ', '>', '/']).next().unwrap_or_default();
                assert!(known.contains(&name), "{text}: {page}");
                let inside = tag.split('>').next().unwrap_or_default();
                let mut unquoted = inside.split('"').step_by(2);
                assert!(
                    !unquoted.any(|part| part.contains("onclick")),
                    "{text}: {page}"
                );
            }
        }
    }

    #[test]
    fn a_link_leads_outside_or_is_none() {
        assert_eq!(
            page("[a](https://example.org/?b=c)"),
            "<p><a href=\"https://example.org/?b=c\">a</a></p>\n"
        );
        for address in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "/logout",
            "//example.org",
            "settings",
            "#a",
            "java&#115;cript:alert(1)",
        ] {
            assert_eq!(page(&format!("[a]({address})")), "<p>a</p>\n", "{address}");
        }
        assert_eq!(
            page("![a](https://example.org/x.png)"),
            "<p>[picture: a]</p>\n"
        );
    }

    #[test]
    fn what_turns_text_around_is_seen_and_does_nothing() {
        assert_eq!(page("a\u{202e}b"), "<p>a\u{fffd}b</p>\n");
    }

    #[test]
    fn a_long_text_says_how_much_is_missing_whatever_it_is_in() {
        let cut = Prose::of("```\nabcdef", 6).to_string();
        assert!(cut.starts_with("<pre><code>ab</code></pre>\n<p class=\"hint\">…"));
        assert!(cut.contains("4 more characters"), "{cut}");
    }

    #[test]
    fn however_deep_it_goes_it_is_read() {
        for text in [">".repeat(20_000), "[".repeat(20_000), "*a ".repeat(20_000)] {
            let _ = Prose::of(&text, 100_000);
        }
    }

    #[test]
    fn in_a_list_there_are_only_the_words() {
        assert_eq!(
            words::line(&plain(
                "## Three\n\n**Two** of `them`\nare [good](https://x.y)."
            )),
            "Three Two of them are good."
        );
    }
}
