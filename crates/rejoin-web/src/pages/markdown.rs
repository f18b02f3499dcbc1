//! Markdown of messages as HTML. Only the tags below are ever written; all other text is escaped.

use std::fmt::Write as _;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::html::{Html, escape, escape_into};

/// Returns Markdown as HTML.
pub(crate) fn render(text: &str) -> Html {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::default();
    for event in Parser::new_ext(text, options) {
        writer.event(event);
    }
    Html(writer.out)
}

/// Address that a link may have, or `None` if it is shown as text.
fn address(url: &str) -> Option<&str> {
    let lower = url.trim_start().to_ascii_lowercase();
    let allowed = ["https://", "http://", "mailto:"];
    let plain = !url.chars().any(|c| c.is_control() || c.is_whitespace());
    (plain && allowed.iter().any(|scheme| lower.starts_with(scheme))).then_some(url)
}

#[derive(Default)]
struct Writer {
    out: String,
    /// End tags of open links: a link with a refused address has an end of another kind.
    links: Vec<&'static str>,
    head: bool,
    aligned: Vec<Alignment>,
    column: usize,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Code(code) => {
                self.out.push_str("<code>");
                escape_into(&mut self.out, &code);
                self.out.push_str("</code>");
            }
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr class=\"rule\">"),
            Event::TaskListMarker(done) => {
                let mark = if done { "☑ " } else { "☐ " };
                self.out.push_str(mark);
            }
            // HTML of others is text.
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => escape_into(&mut self.out, &text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.out.push_str("<p>"),
            Tag::Heading { .. } => self.out.push_str("<p class=\"h\"><strong>"),
            Tag::BlockQuote(_) => self.out.push_str("<blockquote>"),
            Tag::CodeBlock(kind) => {
                self.out
                    .push_str("<div class=\"codebox\"><pre tabindex=\"0\"><code");
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    let _ = write!(self.out, " data-language=\"{}\"", escape(&language));
                }
                self.out.push('>');
            }
            Tag::List(None) => self.out.push_str("<ul>"),
            Tag::List(Some(first)) => {
                let _ = write!(self.out, "<ol start=\"{first}\">");
            }
            Tag::Item => self.out.push_str("<li>"),
            Tag::Table(aligned) => {
                self.aligned = aligned;
                self.out.push_str("<div class=\"scroll-x\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>");
            }
            Tag::TableHead => {
                (self.head, self.column) = (true, 0);
                self.out.push_str("<thead><tr>");
            }
            Tag::TableRow => {
                self.column = 0;
                self.out.push_str("<tr>");
            }
            Tag::TableCell => {
                let cell = if self.head { "th" } else { "td" };
                let right = self.aligned.get(self.column) == Some(&Alignment::Right);
                let class = if right { " class=\"r\"" } else { "" };
                let _ = write!(self.out, "<{cell}{class}>");
                self.column += 1;
            }
            Tag::Emphasis => self.out.push_str("<em>"),
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<del>"),
            Tag::Link { dest_url, .. } => self.link(&dest_url, ""),
            // Nothing is loaded from other sites: an image is a link.
            Tag::Image { dest_url, .. } => self.link(&dest_url, "image: "),
            Tag::FootnoteDefinition(_)
            | Tag::MetadataBlock(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript => {}
        }
    }

    fn link(&mut self, url: &str, before: &str) {
        // A link inside of a link would end the outer one.
        let inside = self.links.contains(&"</a>");
        match address(url).filter(|_| !inside) {
            Some(url) => {
                let url = escape(url);
                let _ = write!(
                    self.out,
                    "<a href=\"{url}\" title=\"{url}\" rel=\"noopener noreferrer nofollow\">{before}"
                );
                self.links.push("</a>");
            }
            None => {
                self.out.push_str(before);
                self.links.push("");
            }
        }
    }

    fn end(&mut self, tag: TagEnd) {
        let end = match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => "</p>",
            TagEnd::Heading(_) => "</strong></p>",
            TagEnd::BlockQuote(_) => "</blockquote>",
            TagEnd::CodeBlock => "</code></pre></div>",
            TagEnd::List(true) => "</ol>",
            TagEnd::List(false) => "</ul>",
            TagEnd::Item => "</li>",
            TagEnd::Table => "</tbody></table></div>",
            TagEnd::TableHead => {
                self.head = false;
                "</tr></thead><tbody>"
            }
            TagEnd::TableRow => "</tr>",
            TagEnd::TableCell if self.head => "</th>",
            TagEnd::TableCell => "</td>",
            TagEnd::Emphasis => "</em>",
            TagEnd::Strong => "</strong>",
            TagEnd::Strikethrough => "</del>",
            TagEnd::Link | TagEnd::Image => self.links.pop().unwrap_or_default(),
            TagEnd::FootnoteDefinition
            | TagEnd::MetadataBlock(_)
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript => "",
        };
        self.out.push_str(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_a_few_known_tags() {
        let html =
            render("# T\n\nA **b** `c<d`\n\n- x\n\n|a|\n|-|\n|1|\n\n```rs\nfn x() {}\n```\n").0;
        assert!(
            html.contains("<p class=\"h\"><strong>T</strong></p>"),
            "{html}"
        );
        assert!(html.contains("<code>c&lt;d</code>"), "{html}");
        assert!(
            html.contains("<tbody><tr><td>1</td></tr></tbody>"),
            "{html}"
        );
        assert!(html.contains("data-language=\"rs\""), "{html}");
    }

    #[test]
    fn foreign_html_and_addresses_are_text() {
        let hostile = "<script>alert(1)</script>\n\n<img src=x onerror=y> [a](javascript:alert(1)) [b](JaVaScRiPt:x) \
                       ![p](https://example.org/p.png) [c](data:text/html,x) <a href=\"//x\">";
        let html = render(hostile).0;
        assert!(
            !html.contains("<script") && !html.contains("<img"),
            "{html}"
        );
        assert!(!html.to_lowercase().contains("href=\"javascript"), "{html}");
        assert!(!html.contains("href=\"data"), "{html}");
        assert!(
            html.contains("<a href=\"https://example.org/p.png\""),
            "{html}"
        );
    }

    /// Every tag and attribute that is ever written.
    const TAGS: &str =
        " p strong blockquote div pre code ul ol li table thead tbody tr th td em del a br hr ";
    const ATTRIBUTES: &str = " class tabindex role aria-label data-language start href title rel ";

    fn is_safe(html: &str) -> bool {
        let mut rest = html;
        while let Some((before, tag)) = rest.split_once('<') {
            let Some((tag, after)) = tag.split_once('>') else {
                return false;
            };
            let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
            let known = TAGS.contains(&format!(" {} ", name.trim_start_matches('/')));
            // Values are between quotes, and no quote of others is left in them.
            let parts: Vec<&str> = attributes.split('"').collect();
            let named = |part: &str| {
                ATTRIBUTES.contains(&format!(" {} ", part.trim().trim_end_matches('=')))
            };
            let pairs = parts.chunks_exact(2).all(|pair| {
                let value = pair[1].to_ascii_lowercase();
                let address = ["http://", "https://", "mailto:"]
                    .iter()
                    .any(|s| value.starts_with(s));
                named(pair[0]) && (pair[0].trim() != "href=" || address)
            });
            if before.contains('>') || !known || !pairs || parts.len().is_multiple_of(2) {
                return false;
            }
            rest = after;
        }
        !rest.contains('>')
    }

    #[test]
    fn no_mixture_of_hostile_pieces_becomes_anything_else() {
        assert!(
            is_safe("<p class=\"h\">x</p>")
                && !is_safe("<p onclick=\"x\">")
                && !is_safe("<script>")
        );
        assert!(!is_safe("<a href=\"javascript:x\">"));
        let pieces = [
            "<script>",
            "</p>",
            "<img src=x onerror=y>",
            "[a](",
            "javascript:x)",
            "https://e.org/\"onx=\"y)",
            "![",
            "](",
            "`",
            "```\n",
            "\n\n",
            "> ",
            "- ",
            "|a|\n|-|\n",
            "*",
            "**",
            "~~",
            "&lt;",
            "&#60;b&#62;",
            "\u{202e}",
            "\0",
            "<!--",
            "-->",
            "<a href='",
            "'>",
            "\"",
            "# ",
            "\\",
            "<https://e.org/<b>>",
            "x",
            " ",
            "\t",
            "mailto:a@b ",
        ];
        let mut seed = 7_u64;
        let mut draw = |most: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % most
        };
        for _ in 0..5_000 {
            let text: String = (0..=draw(14)).map(|_| pieces[draw(pieces.len())]).collect();
            let html = render(&text).0;
            assert!(is_safe(&html), "{text:?}\n{html}");
        }
    }
}
