//! Markdown for a terminal: headings, lists, code, quotes, tables; links as text.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::line::{Line, Tone};
use super::safe::without_floods;
use super::table::table;

/// The text as lines of at most `width` columns.
pub(crate) fn rendered(text: &str, width: usize) -> Vec<Line> {
    let text = without_floods(text);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page {
        width,
        ..Page::default()
    };
    for event in Parser::new_ext(&text, options) {
        page.take(event);
    }
    page.finish()
}

/// Text nobody meant as markdown: its own lines, wrapped.
pub(crate) fn plain(text: &str, width: usize) -> Vec<Line> {
    let text = without_floods(text);
    text.trim_end()
        .lines()
        .flat_map(|line| Line::plain(line).wrap(width))
        .collect()
}

#[derive(Default)]
struct Page {
    width: usize,
    lines: Vec<Line>,
    /// The paragraph being read.
    inline: Line,
    /// Margins of every line, outermost first.
    margins: Vec<Margin>,
    /// Numbers of the lists we are in; none for bullets.
    lists: Vec<Option<u64>>,
    tones: Vec<Tone>,
    link: Option<(String, usize)>,
    code: Option<String>,
    table: Vec<Vec<Line>>,
    /// A quote or an item has begun and nothing stands in it yet.
    begun: bool,
    row: Option<Vec<Line>>,
}

/// `first` stands before the first line only.
struct Margin {
    first: Option<Line>,
    rest: Line,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.say(&text),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.inline.push(Tone::Good, &text);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.html(&text),
            Event::FootnoteReference(name) => self.say(&format!("[{name}]")),
            Event::SoftBreak => self.say(" "),
            Event::HardBreak => self.paragraph(),
            Event::Rule => {
                self.gap();
                self.out(Line::faint(&"─".repeat(self.room().min(40))));
            }
            Event::TaskListMarker(done) => self.say(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock | Tag::Table(_) => self.gap(),
            Tag::Heading { .. } => {
                self.gap();
                self.tones.push(Tone::Strong);
            }
            Tag::BlockQuote(_) => {
                self.gap();
                self.margins.push(Margin {
                    first: None,
                    rest: Line::faint("│ "),
                });
                self.begun = true;
            }
            Tag::CodeBlock(kind) => {
                self.paragraph();
                self.gap();
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.out(Line::faint(&format!("  {language}")));
                }
                self.code = Some(String::new());
            }
            Tag::List(number) => {
                self.paragraph();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(number);
            }
            Tag::Item => {
                let sign = match self.lists.last_mut() {
                    Some(Some(n)) => {
                        *n += 1;
                        format!("{}. ", *n - 1)
                    }
                    _ => "• ".into(),
                };
                let rest = Line::plain(&" ".repeat(sign.chars().count()));
                self.margins.push(Margin {
                    first: Some(Line::plain(&sign)),
                    rest,
                });
                self.begun = true;
            }
            Tag::Emphasis | Tag::Strong => self.tones.push(Tone::Strong),
            Tag::Strikethrough => {
                self.say("~");
                self.tones.push(Tone::Faint);
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some((dest_url.into_string(), self.inline.width()));
            }
            Tag::TableHead => {
                self.row = Some(vec![]);
                self.tones.push(Tone::Strong);
            }
            Tag::TableRow => self.row = Some(vec![]),
            Tag::FootnoteDefinition(name) => {
                self.gap();
                self.say(&format!("[{name}] "));
            }
            Tag::TableCell
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => self.paragraph(),
            TagEnd::Heading(_) => {
                self.tones.pop();
                self.paragraph();
            }
            TagEnd::Emphasis | TagEnd::Strong => drop(self.tones.pop()),
            TagEnd::Strikethrough => {
                self.tones.pop();
                self.say("~");
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.paragraph();
                self.margins.pop();
            }
            TagEnd::CodeBlock => {
                for line in self.code.take().unwrap_or_default().trim_end().lines() {
                    for piece in Line::new()
                        .with(Tone::Good, line)
                        .wrap(self.room().saturating_sub(4))
                    {
                        self.out(Line::plain("    ").then(piece));
                    }
                }
            }
            TagEnd::List(_) => {
                self.paragraph();
                self.lists.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                self.row.get_or_insert_default().push(cell);
            }
            TagEnd::TableHead => {
                self.tones.pop();
                self.table.extend(self.row.take());
            }
            TagEnd::TableRow => self.table.extend(self.row.take()),
            TagEnd::Table => {
                let rows = std::mem::take(&mut self.table);
                for line in table(&rows, Some(self.room())) {
                    self.out(line);
                }
            }
            TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    /// A link says where it leads, unless its text does.
    fn end_link(&mut self) {
        let Some((url, from)) = self.link.take() else {
            return;
        };
        let bare = url.trim_start_matches("mailto:");
        let text = self.inline.render(false);
        if !url.is_empty() && !text.ends_with(bare) || self.inline.width() == from {
            self.inline.push(Tone::Faint, &format!(" <{url}>"));
        }
    }

    /// Shown as it is: nothing in an answer is hidden.
    fn html(&mut self, text: &str) {
        let mut lines = text.split('\n').peekable();
        while let Some(line) = lines.next() {
            self.say(line);
            if lines.peek().is_some() {
                self.paragraph();
            }
        }
    }

    fn say(&mut self, text: &str) {
        self.inline
            .push(self.tones.last().copied().unwrap_or_default(), text);
    }

    /// Writes down what was read so far.
    fn paragraph(&mut self) {
        if self.inline.is_empty() {
            return;
        }
        for line in std::mem::take(&mut self.inline).wrap(self.room()) {
            self.out(line);
        }
    }

    /// An empty line before a block, but not at the top, nor at the top of a quote or an item.
    fn gap(&mut self) {
        if !self.lines.is_empty() && !self.begun {
            self.out(Line::new());
        }
    }

    fn room(&self) -> usize {
        let margins: usize = self.margins.iter().map(|m| m.rest.width()).sum();
        self.width.saturating_sub(margins).max(20)
    }

    fn out(&mut self, line: Line) {
        self.begun = false;
        let mut whole = Line::new();
        for margin in &mut self.margins {
            let before = margin.first.take();
            whole = whole.then(before.unwrap_or_else(|| margin.rest.clone()));
        }
        self.lines.push(whole.then(line));
    }

    fn finish(mut self) -> Vec<Line> {
        self.paragraph();
        self.lines
    }
}

#[cfg(test)]
mod tests;
