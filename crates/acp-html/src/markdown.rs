//! Renders Markdown, as agents write it.
//!
//! Markup in the text is shown as text. Links show where they lead, and images are not loaded.

use acp::v1::ContentBlock;
use maud::{Escaper, Markup, PreEscaped};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::fmt::Write as _;

use crate::text;
use crate::thread::MAX_TEXT_CHARS;

/// Renders Markdown.
#[must_use]
pub fn render_markdown(markdown: &str) -> Markup {
    let markdown = text::truncate_text(&text::sanitize_text(markdown), MAX_TEXT_CHARS);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = HtmlWriter::default();
    writer.out.push_str("<div class=\"markdown\">");
    for event in Parser::new_ext(&markdown, options) {
        writer.write(event);
    }
    writer.out.push_str("</div>");
    PreEscaped(writer.out)
}

/// Returns the text of a block that is Markdown.
pub(crate) fn as_markdown(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(block) => Some(&block.text),
        _ => None,
    }
}

#[derive(Default)]
struct HtmlWriter {
    out: String,
    is_in_table_head: bool,
    /// The open links: their addresses, and where their texts begin.
    links: Vec<(String, usize)>,
}

impl HtmlWriter {
    fn write(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::FootnoteReference(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.push_text(&text),
            Event::Code(code) => {
                self.out.push_str("<code>");
                self.push_text(&code);
                self.out.push_str("</code>");
            }
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr>"),
            Event::TaskListMarker(is_done) => {
                self.out.push_str(if is_done { "☑ " } else { "☐ " });
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                let _ = write!(self.out, "<h{}>", heading_level(level as usize));
            }
            Tag::BlockQuote(_) => self.out.push_str("<blockquote>"),
            Tag::CodeBlock(kind) => {
                self.out.push_str("<pre>");
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.out.push_str("<span class=\"language\">");
                    self.push_text(&language);
                    self.out.push_str("</span>\n");
                }
                self.out.push_str("<code>");
            }
            Tag::List(Some(first)) => {
                let _ = write!(self.out, "<ol start=\"{first}\">");
            }
            Tag::List(None) => self.out.push_str("<ul>"),
            Tag::Item => self.out.push_str("<li>"),
            Tag::Table(_) => self.out.push_str("<table>"),
            Tag::TableHead => {
                self.is_in_table_head = true;
                self.out.push_str("<tr>");
            }
            Tag::TableRow => self.out.push_str("<tr>"),
            Tag::TableCell => self.out.push_str(if self.is_in_table_head {
                "<th>"
            } else {
                "<td>"
            }),
            Tag::Emphasis => self.out.push_str("<em>"),
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<del>"),
            Tag::Link { dest_url, .. } => {
                if is_web_address(&dest_url) {
                    self.out
                        .push_str("<a target=\"_blank\" rel=\"noopener noreferrer\" href=\"");
                    self.push_text(&dest_url);
                    self.out.push_str("\">");
                } else {
                    self.out.push_str("<span>");
                }
                self.links.push((dest_url.into_string(), self.out.len()));
            }
            Tag::Image { dest_url, .. } => {
                self.out.push_str("<span class=\"chip\">image ");
                self.links.push((dest_url.into_string(), self.out.len()));
            }
            Tag::Paragraph => self.out.push_str("<p>"),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(level) => {
                let _ = write!(self.out, "</h{}>", heading_level(level as usize));
            }
            TagEnd::BlockQuote(_) => self.out.push_str("</blockquote>"),
            TagEnd::CodeBlock => self.out.push_str("</code></pre>"),
            TagEnd::List(true) => self.out.push_str("</ol>"),
            TagEnd::List(false) => self.out.push_str("</ul>"),
            TagEnd::Item => self.out.push_str("</li>"),
            TagEnd::Table => self.out.push_str("</table>"),
            TagEnd::TableHead => {
                self.is_in_table_head = false;
                self.out.push_str("</tr>");
            }
            TagEnd::TableRow => self.out.push_str("</tr>"),
            TagEnd::TableCell => {
                self.out.push_str(if self.is_in_table_head {
                    "</th>"
                } else {
                    "</td>"
                });
            }
            TagEnd::Emphasis => self.out.push_str("</em>"),
            TagEnd::Strong => self.out.push_str("</strong>"),
            TagEnd::Strikethrough => self.out.push_str("</del>"),
            TagEnd::Link => {
                let Some((address, begin)) = self.links.pop() else {
                    return;
                };
                let label = escape(&address);
                let is_shown = self.out.get(begin..) == Some(&label);
                self.out.push_str(if is_web_address(&address) {
                    "</a>"
                } else {
                    "</span>"
                });
                if !is_shown {
                    let _ = write!(self.out, " <span class=\"soft\">({label})</span>");
                }
            }
            TagEnd::Image => {
                if let Some((address, _)) = self.links.pop() {
                    let _ = write!(self.out, " <code>{}</code></span>", escape(&address));
                }
            }
            TagEnd::Paragraph => self.out.push_str("</p>"),
            _ => {}
        }
    }

    fn push_text(&mut self, text: &str) {
        self.out.push_str(&escape(text));
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    // Writing to a string does not fail.
    let _ = Escaper::new(&mut escaped).write_str(text);
    escaped
}

/// Returns the level of a heading below those of the page.
fn heading_level(level: usize) -> usize {
    (level + 2).min(6)
}

/// Returns `true` for addresses that a browser opens as a page. Others, such as `javascript:`, could run code.
fn is_web_address(address: &str) -> bool {
    ["https://", "http://", "mailto:"].iter().any(|scheme| {
        address
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(markdown: &str) -> String {
        let html = render_markdown(markdown).into_string();
        let html = html.strip_prefix("<div class=\"markdown\">").unwrap();
        html.strip_suffix("</div>").unwrap().to_owned()
    }

    #[test]
    fn usual_markdown_is_rendered() {
        assert_eq!(
            rendered("# A\n\nb *c* **d** `e<`\n\n1. f\n2. g"),
            "<h3>A</h3><p>b <em>c</em> <strong>d</strong> <code>e&lt;</code></p><ol start=\"1\"><li>f</li><li>g</li></ol>"
        );
        assert_eq!(
            rendered("```rust\na < b\n```"),
            "<pre><span class=\"language\">rust</span>\n<code>a &lt; b\n</code></pre>"
        );
        assert_eq!(
            rendered("|a|b|\n|-|-|\n|1|2|"),
            "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"
        );
    }

    #[test]
    fn markup_is_text_and_links_show_where_they_lead() {
        let html = rendered("<script>x</script>\n\na <b onclick=y>c</b>");
        assert!(!html.contains("<script") && !html.contains("<b "), "{html}");
        assert!(html.contains("&lt;b onclick=y&gt;"), "{html}");
        let html = rendered("[bank](https://evil.example/\"x) <https://a.example/>");
        assert!(html.contains("(https://evil.example/&quot;x)"), "{html}");
        assert!(html.contains(">https://a.example/</a>"), "{html}");
        for unsafe_address in [
            "javascript:alert(1)",
            "data:text/html,x",
            "JAVASCRIPT:x",
            "/session",
        ] {
            let html = rendered(&format!("[a]({unsafe_address})"));
            assert!(!html.contains("href"), "{html}");
            assert!(html.contains(&escape(unsafe_address)), "{html}");
        }
        let html = rendered("![alt](https://evil.example/track.png)");
        assert!(
            !html.contains("<img") && html.contains("track.png"),
            "{html}"
        );
    }
}
