//! Markdown from agents and users, rendered to safe HTML.
//!
//! A filter on the parser's events passes an allow list: paragraphs, headings, lists, quotes, code,
//! tables, emphasis, and links with `http`, `https` or `mailto`. HTML in the text is escaped,
//! images are replaced by their description, and no ids, classes or styles are copied. Single line
//! breaks are kept, because plain text is rendered the same way.

use std::fmt;

use askama::filters::HtmlSafe;
use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};

use super::format::truncate;
use crate::output::format;

/// Rendered HTML.
#[derive(Debug, Clone)]
pub(super) struct MarkdownHtml(String);

impl MarkdownHtml {
    /// Renders Markdown, truncated.
    pub(super) fn render(text: &str, max_chars: usize) -> Self {
        let (text, note) = truncate(text, max_chars);
        let mut page = render(&format::sanitize(text));
        if let Some(note) = note {
            page.push_str(&format!("<p class=\"hint\">{note}</p>\n"));
        }
        Self(page)
    }
}

impl fmt::Display for MarkdownHtml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for MarkdownHtml {}

/// The text without markup, for one line of a list.
pub(super) fn plain_text(text: &str) -> String {
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

fn render(text: &str) -> String {
    let mut filter = Filter::default();
    let events = parser(text).filter_map(|event| filter.pass(event));
    let mut page = String::with_capacity(text.len() * 2);
    html::push_html(&mut page, events);
    page
}

/// State of the filter between events.
#[derive(Default)]
struct Filter {
    /// For each open link, whether it is rendered.
    links: Vec<bool>,
    columns: Vec<Alignment>,
    column: usize,
    in_head: bool,
    /// The current heading and its ancestors.
    headings: Vec<HeadingLevel>,
}

impl Filter {
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
            // Not enabled in the parser.
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
                let is_allowed = is_external_link(dest_url);
                self.links.push(is_allowed);
                return is_allowed.then_some(Event::Start(tag));
            }
            Tag::Image { .. } => Event::Text(CowStr::Borrowed("[image: ")),
            Tag::Table(columns) => {
                self.columns = columns;
                html_event("<div class=\"scroll\" tabindex=\"0\"><table>")
            }
            Tag::TableHead => {
                (self.column, self.in_head) = (0, true);
                html_event("<thead><tr>")
            }
            Tag::TableRow => {
                self.column = 0;
                html_event("<tr>")
            }
            Tag::TableCell => {
                let aligned = self.columns.get(self.column).copied();
                self.column += 1;
                html_event(match (self.in_head, aligned) {
                    (true, Some(Alignment::Right)) => "<th scope=\"col\" class=\"number\">",
                    (true, _) => "<th scope=\"col\">",
                    (false, Some(Alignment::Right)) => "<td class=\"number\">",
                    (false, _) => "<td>",
                })
            }
            tag @ (Tag::List(_) | Tag::Item | Tag::Emphasis | Tag::Strong | Tag::Strikethrough) => {
                Event::Start(tag)
            }
            // Not enabled in the parser.
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => return None,
        })
    }

    /// The heading level on the page, by nesting depth. The page itself uses `h1` and `h2`, and no
    /// level is skipped.
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
            TagEnd::Table => html_event("</tbody></table></div>\n"),
            TagEnd::TableHead => {
                self.in_head = false;
                html_event("</tr></thead><tbody>\n")
            }
            TagEnd::TableRow => html_event("</tr>\n"),
            TagEnd::TableCell => html_event(if self.in_head { "</th>" } else { "</td>" }),
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

/// Literal HTML of this file.
fn html_event<'a>(html: &'static str) -> Event<'a> {
    Event::Html(CowStr::Borrowed(html))
}

/// Whether a link may be rendered: an absolute URL with a scheme that only displays something.
/// Relative links could point at actions of this server.
fn is_external_link(address: &str) -> bool {
    let scheme = address.split_once(':').map(|(scheme, _)| scheme);
    let scheme = scheme.map(str::to_ascii_lowercase);
    matches!(scheme.as_deref(), Some("http" | "https" | "mailto"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> String {
        MarkdownHtml::render(text, 10_000).to_string()
    }

    #[test]
    fn renders_markdown() {
        assert_eq!(
            html("# Pump *B*\n\n- **quiet**\n- `cheap`\n"),
            "<h3>Pump <em>B</em></h3>\n<ul>\n<li><strong>quiet</strong></li>\n\
             <li><code>cheap</code></li>\n</ul>\n"
        );
        assert_eq!(
            html("|a|b|\n|---|---:|\n|x|1|\n"),
            "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">a</th><th scope=\"col\" class=\"number\">b</th>\
             </tr></thead><tbody>\n<tr><td>x</td><td class=\"number\">1</td></tr>\n</tbody></table></div>\n"
        );
        assert_eq!(
            html("- [x] a\n"),
            "<ul>\n<li>☑ a</li>\n</ul>\n",
            "a task list marker is text, not a form field"
        );
        assert_eq!(
            html("```html onclick=\"x\"\na\n```"),
            "<pre><code>a\n</code></pre>\n"
        );
    }

    #[test]
    fn heading_levels_are_not_skipped() {
        assert_eq!(
            html("### a\n# b\n### c\n### d\n# e\n"),
            "<h3>a</h3>\n<h3>b</h3>\n<h4>c</h4>\n<h4>d</h4>\n<h3>e</h3>\n"
        );
    }

    #[test]
    fn plain_text_keeps_its_line_breaks() {
        assert_eq!(html("One.\nTwo.\n"), "<p>One.<br />\nTwo.</p>\n");
    }

    #[test]
    fn html_in_the_text_is_escaped() {
        let texts = [
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
        let allowed = [
            "p", "br", "h3", "a", "div", "table", "thead", "tbody", "tr", "th", "td", "code", "pre",
        ];
        for text in texts {
            let page = html(text);
            for tag in page.split('<').skip(1) {
                let name = tag.trim_start_matches('/');
                let name = name.split([' ', '>', '/']).next().unwrap_or_default();
                assert!(allowed.contains(&name), "{text}: {page}");
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
    fn only_external_links_are_rendered() {
        assert_eq!(
            html("[a](https://example.org/?b=c)"),
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
            assert_eq!(html(&format!("[a]({address})")), "<p>a</p>\n", "{address}");
        }
        assert_eq!(
            html("![a](https://example.org/x.png)"),
            "<p>[image: a]</p>\n"
        );
    }

    #[test]
    fn bidirectional_control_characters_are_replaced() {
        assert_eq!(html("a\u{202e}b"), "<p>a\u{fffd}b</p>\n");
    }

    #[test]
    fn truncated_text_ends_with_a_note() {
        let cut = MarkdownHtml::render("```\nabcdef", 6).to_string();
        assert!(cut.starts_with("<pre><code>ab</code></pre>\n<p class=\"hint\">…"));
        assert!(cut.contains("4 more characters"), "{cut}");
    }

    #[test]
    fn deeply_nested_text_does_not_overflow_the_stack() {
        for text in [">".repeat(20_000), "[".repeat(20_000), "*a ".repeat(20_000)] {
            let _ = MarkdownHtml::render(&text, 100_000);
        }
    }

    #[test]
    fn plain_text_has_no_markup() {
        assert_eq!(
            format::sanitize_line(&plain_text(
                "## Three\n\n**Two** of `them`\nare [good](https://x.y)."
            )),
            "Three Two of them are good."
        );
    }
}
