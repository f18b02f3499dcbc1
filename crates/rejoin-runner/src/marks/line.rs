//! Line of a session file, assembled from pieces in bounded memory: texts that are too long for any
//! model are cut, the JSON around them is kept.

/// Length up to which a line is kept as it is.
const SHORT: usize = 4 * 1024 * 1024;
/// Number of bytes that are kept of a text in a longer line: more than any model is shown or
/// writes.
const MOST_TEXT: usize = 8 * 1024 * 1024;
/// Limit for the kept bytes of a line; beyond it the line is unreadable.
const MOST: usize = 2 * MOST_TEXT;
/// Replacement that every reader counts as an unreadable line.
const UNREADABLE: &[u8] = b"{";
/// Mark for the place at which a text was cut.
const CUT: &str = "[…]";

#[derive(Default)]
pub(crate) struct Line {
    kept: Vec<u8>,
    /// State of the JSON scan, for a line that is not short.
    texts: Option<Texts>,
}

impl Line {
    pub(crate) fn add(&mut self, piece: &[u8]) {
        if self.texts.is_none() && self.kept.len() + piece.len() > SHORT {
            let mut texts = Texts::new(MOST_TEXT);
            // Cuts nothing: no text is longer than the line so far.
            texts.pass(&std::mem::take(&mut self.kept), &mut self.kept);
            self.texts = Some(texts);
        }
        match &mut self.texts {
            None => self.kept.extend_from_slice(piece),
            Some(texts) if self.kept.len() < MOST => texts.pass(piece, &mut self.kept),
            Some(_) => {}
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Passes the kept bytes to `each`, without the newline, and begins the next line.
    pub(crate) fn take(&mut self, each: &mut impl FnMut(&[u8])) {
        let line = if self.kept.len() < MOST {
            self.kept.strip_suffix(b"\n").unwrap_or(&self.kept)
        } else {
            UNREADABLE
        };
        each(line);
        self.texts = None;
        self.kept.clear();
        // The memory of one long line is not kept until the end of the file.
        self.kept.shrink_to(SHORT);
    }
}

/// Position in the JSON of a line.
struct Texts {
    at: At,
    most: usize,
    /// Number of bytes of the current text.
    length: usize,
    cut: bool,
    /// True after the first of two escapes that form one character (a surrogate pair).
    half: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Outside,
    Text,
    Escape,
    /// Number of hex digits left, and if the escape could be a high surrogate.
    Digits(u8, bool),
}

impl Texts {
    fn new(most: usize) -> Self {
        Self {
            at: At::Outside,
            most,
            length: 0,
            cut: false,
            half: false,
        }
    }

    fn pass(&mut self, mut piece: &[u8], kept: &mut Vec<u8>) {
        while let Some((&byte, rest)) = piece.split_first() {
            piece = rest;
            if self.at == At::Text && byte != b'"' {
                // Only whole characters are cut off.
                let begins = byte & 0xc0 != 0x80 && !self.half;
                if begins && self.length >= self.most && !self.cut {
                    self.cut = true;
                    kept.extend_from_slice(CUT.as_bytes());
                }
            }
            self.length += 1;
            self.at = match (self.at, byte) {
                (At::Outside, b'"') => {
                    self.length = 0;
                    At::Text
                }
                (At::Outside, _) => At::Outside,
                (At::Text, b'"') => {
                    self.cut = false;
                    At::Outside
                }
                (At::Text, b'\\') => At::Escape,
                (At::Escape, b'u') => At::Digits(4, true),
                (At::Text | At::Escape, _) => {
                    self.half = false;
                    At::Text
                }
                (At::Digits(1, half), _) => {
                    self.half = half;
                    At::Text
                }
                (At::Digits(4, _), _) => At::Digits(3, matches!(byte, b'd' | b'D')),
                (At::Digits(3, half), _) => At::Digits(
                    2,
                    half && matches!(byte, b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B'),
                ),
                (At::Digits(left, half), _) => At::Digits(left.saturating_sub(1), half),
            };
            if !self.cut {
                kept.push(byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn line(text: &str) -> Vec<u8> {
        format!("{{\"a\":\"x\\\"y\",\"text\":\"{text}\",\"b\":7}}\n").into_bytes()
    }

    fn text_of(line: &[u8]) -> String {
        let read: Value = serde_json::from_slice(line).unwrap();
        assert_eq!((&read["a"], &read["b"]), (&"x\"y".into(), &7.into()));
        read["text"].as_str().unwrap().to_owned()
    }

    /// In pieces, as a file is read.
    fn kept(line: &[u8]) -> Vec<u8> {
        let (mut it, mut all) = (Line::default(), vec![]);
        line.chunks(100_003).for_each(|piece| it.add(piece));
        it.take(&mut |line| all = line.to_vec());
        assert!(it.is_empty());
        all
    }

    #[test]
    fn what_a_model_can_see_is_kept() {
        for n in [0, 1, SHORT, SHORT + 7, MOST_TEXT] {
            let text = "t".repeat(n);
            assert!(text_of(&kept(&line(&text))) == text, "{n}");
        }
        let text = text_of(&kept(&line(&"t".repeat(MOST_TEXT + 1))));
        assert!(text == "t".repeat(MOST_TEXT) + CUT);
    }

    /// For any characters, and at any position of the limit.
    #[test]
    fn a_longer_text_is_cut_between_characters() {
        for written in [
            "t",
            "日é",
            "\\n",
            "\\\\\\\"",
            "a\\u00e9",
            "\\ud83d\\ude00",
            "\\u65e5\\uD83D\\uDE00",
            "😀\\ud83d\\ude00\\ud7ff\\u12d8",
        ] {
            let whole = text_of(&line(&written.repeat(40)));
            for most in 4..64 {
                let mut kept = vec![];
                let mut texts = Texts::new(most);
                for piece in line(&written.repeat(40)).chunks(3) {
                    texts.pass(piece, &mut kept);
                }
                let read: Value = serde_json::from_slice(&kept).unwrap();
                let text = read["text"].as_str().unwrap();
                let begins = text.strip_suffix(CUT).map_or(text == whole, |begins| {
                    kept.len() < most + 80 && whole.starts_with(begins)
                });
                assert!(begins, "{written} at {most}: {text}");
            }
        }
    }

    #[test]
    fn many_long_texts_cannot_be_read() {
        let text = format!("{}\",\"x\":\"", "t".repeat(MOST_TEXT)).repeat(3);
        assert!(kept(&line(&text)) == UNREADABLE);
        assert!(kept(&vec![b'['; 2 * MOST]) == UNREADABLE);
    }

    #[test]
    fn the_next_one_is_whole() {
        let mut it = Line::default();
        it.add(&vec![b'x'; MOST + SHORT]);
        it.take(&mut |line| assert!(line == UNREADABLE));
        it.add(b"short\n");
        it.take(&mut |line| assert_eq!(line, b"short"));
    }
}
