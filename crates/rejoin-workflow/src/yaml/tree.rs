//! Tree of values from the parser's events.

use saphyr_parser::{Event, Marker, ScalarStyle, Span};

use super::{Data, Entry, Layout, Node, scalar};
use crate::mistake::{Mistakes, Place};

/// Most keys in a mapping.
const MAX_KEYS: usize = 4_000;

/// Most values in a file.
const MAX_NODES: usize = 200_000;

/// Deepest nesting of lists and mappings.
const MAX_DEPTH: usize = 64;

/// List or mapping that is still open.
enum Open {
    List(Place, Vec<Node>),
    Map(Place, Vec<Entry>, Option<(String, Place)>),
}

pub(super) struct Tree<'a, 'm> {
    lines: Vec<&'a str>,
    pub(super) mistakes: &'m mut Mistakes,
    open: Vec<Open>,
    pub(super) root: Option<Node>,
    documents: usize,
    nodes: usize,
}

impl<'a, 'm> Tree<'a, 'm> {
    pub(super) fn new(text: &'a str, mistakes: &'m mut Mistakes) -> Self {
        Self {
            lines: text.lines().collect(),
            mistakes,
            open: Vec::new(),
            root: None,
            documents: 0,
            nodes: 0,
        }
    }

    /// Adds one event. Returns false if the rest of the file cannot be read.
    pub(super) fn take(&mut self, event: Event<'_>, span: Span) -> bool {
        let at = place(span.start);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => true,
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.mistakes.suggest(
                        at,
                        "the file contains a second document",
                        "write one workflow in each file",
                    );
                }
                self.documents == 1
            }
            Event::Alias(_) => {
                self.mistakes.suggest(
                    at,
                    "aliases (`*name`) are not available",
                    "write the value again",
                );
                false
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse(at, anchor, tag.is_some());
                let Some(text) = self.within_bounds(at).then(|| text.into_owned()) else {
                    return false;
                };
                self.scalar(at, text, style, span)
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse(at, anchor, tag.is_some());
                self.begin(at, Open::List(at, Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse(at, anchor, tag.is_some());
                self.begin(at, Open::Map(at, Vec::new(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(place, items)) => self.finish(collection(place, Data::List(items))),
                Some(Open::Map(place, entries, _)) => {
                    self.finish(collection(place, Data::Map(entries)))
                }
                None => true,
            },
        }
    }

    fn refuse(&mut self, at: Place, anchor: usize, tagged: bool) {
        if anchor != 0 {
            self.mistakes.suggest(
                at,
                "anchors (`&name`) are not available",
                "remove the anchor",
            );
        }
        if tagged {
            self.mistakes
                .suggest(at, "tags (`!name`) are not available", "remove the tag");
        }
    }

    fn within_bounds(&mut self, at: Place) -> bool {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            self.mistakes
                .add(at, format!("the file holds more than {MAX_NODES} values"));
        }
        self.nodes <= MAX_NODES
    }

    fn begin(&mut self, at: Place, open: Open) -> bool {
        if self.open.len() >= MAX_DEPTH {
            self.mistakes.add(
                at,
                format!("values are nested deeper than {MAX_DEPTH} levels"),
            );
            return false;
        }
        if let Some(Open::Map(_, _, None)) = self.open.last() {
            self.mistakes.suggest(
                at,
                "a key must be a text",
                "quote a text that begins with `{` or `[`",
            );
            return false;
        }
        self.open.push(open);
        self.within_bounds(at)
    }

    fn scalar(&mut self, at: Place, raw: String, style: ScalarStyle, span: Span) -> bool {
        if let Some(Open::Map(_, entries, key @ None)) = self.open.last_mut() {
            if entries.len() >= MAX_KEYS {
                self.mistakes
                    .add(at, format!("the mapping holds more than {MAX_KEYS} keys"));
                return false;
            }
            if entries.iter().any(|entry| entry.key == raw) {
                self.mistakes.suggest(
                    at,
                    format!("the key `{raw}` appears twice"),
                    "remove one of them",
                );
            }
            *key = Some((raw, at));
            return true;
        }
        let data = if style == ScalarStyle::Plain {
            scalar::plain(&raw)
        } else {
            Data::Text
        };
        let layout = Layout::of(style, span, &raw, &self.lines);
        self.finish(Node {
            place: at,
            raw,
            data,
            layout,
        })
    }

    fn finish(&mut self, value: Node) -> bool {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List(_, items)) => items.push(value),
            Some(Open::Map(_, entries, key)) => {
                if let Some((key, place)) = key.take() {
                    entries.push(Entry { key, place, value });
                }
            }
        }
        true
    }
}

fn collection(place: Place, data: Data) -> Node {
    Node {
        place,
        raw: String::new(),
        data,
        layout: Layout::Other,
    }
}

pub(super) fn place(marker: Marker) -> Place {
    Place {
        line: marker.line().max(1),
        column: marker.col() + 1,
    }
}
