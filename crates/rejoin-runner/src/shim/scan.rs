//! Finds output lines with a certain top-level `"type"` (or `"method"`, or `"id"`), in constant memory.
//!
//! Lines may be hundreds of megabytes long and come in any pieces, so they are not parsed but
//! walked byte by byte. A line counts when it is complete and a whole JSON object; of a repeated
//! key the last one counts, as in every CLI's own parser.

/// Scanner for a stream of JSON lines.
#[derive(Debug)]
pub(super) struct Scanner {
    wanted: Vec<(Member, Vec<u8>)>,
    /// Length of the longest word that can match.
    longest: usize,
    state: State,
    depth: u32,
    place: Place,
    word: Vec<u8>,
    /// For each member, true if its last value matches.
    hits: [bool; MEMBERS.len()],
}

/// Member that identifies a line: an index into [`MEMBERS`].
type Member = usize;

const MEMBERS: [&str; 3] = ["type", "method", "id"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the `{` of a line.
    Start,
    /// In the object, outside strings.
    Between,
    Text(Role),
    /// After a backslash in a string.
    Escape(Role),
    /// In the digits of `\uXXXX`: number of digits left, value so far.
    Digits(Role, u8, u32),
    /// After the `}` of a line.
    Closed,
    /// In a line whose rest is ignored.
    Skip,
}

/// Meaning of a string for the scanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Key,
    /// Value of a member that identifies a line.
    Value(Member),
    Other,
}

/// Position among the members of the top-level object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Key,
    /// After a key.
    Value(Option<Member>),
}

impl Scanner {
    pub(super) fn new(wanted: &[String]) -> Self {
        let wanted: Vec<_> = wanted.iter().map(|word| named(word)).collect();
        let words = wanted.iter().map(|(_, word)| word.len());
        let longest = words.chain(MEMBERS.map(str::len)).fold(0, usize::max);
        Self {
            wanted,
            longest,
            state: State::Start,
            depth: 0,
            place: Place::Key,
            word: Vec::new(),
            hits: [false; MEMBERS.len()],
        }
    }

    /// Takes the next bytes. Returns true if one of the lines that they complete is wanted.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> bool {
        let mut found = false;
        while let Some((first, rest)) = bytes.split_first() {
            if let Some(dull) = self.dull_prefix(bytes) {
                bytes = bytes.get(dull..).unwrap_or_default();
                continue;
            }
            bytes = rest;
            if *first == b'\n' {
                found |= self.state == State::Closed && self.hits.contains(&true);
                self.state = State::Start;
                self.hits = [false; MEMBERS.len()];
            } else {
                self.state = self.step(*first);
            }
        }
        found
    }

    /// Returns the number of bytes that can be skipped at once: long strings and lines that are
    /// ignored.
    fn dull_prefix(&self, bytes: &[u8]) -> Option<usize> {
        let stop = match self.state {
            State::Text(Role::Other) => bytes
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | b'\n')),
            State::Skip => bytes.iter().position(|byte| *byte == b'\n'),
            State::Start
            | State::Between
            | State::Text(_)
            | State::Escape(_)
            | State::Digits(..)
            | State::Closed => return None,
        };
        Some(stop.unwrap_or(bytes.len())).filter(|count| *count > 0)
    }

    fn step(&mut self, byte: u8) -> State {
        match self.state {
            State::Start | State::Closed if byte.is_ascii_whitespace() => self.state,
            State::Start if byte == b'{' => {
                self.depth = 1;
                self.place = Place::Key;
                State::Between
            }
            State::Start | State::Closed | State::Skip => State::Skip,
            State::Between => self.between(byte),
            State::Text(role) => match byte {
                b'"' => self.close_text(role),
                b'\\' => State::Escape(role),
                _ => self.keep(role, byte),
            },
            State::Escape(role) => match byte {
                b'u' => State::Digits(role, 4, 0),
                b'"' | b'\\' | b'/' => self.keep(role, byte),
                // Control characters do not occur in any key or value that we look for.
                _ => self.keep(role, 0),
            },
            State::Digits(role, left, value) => {
                let Some(digit) = char::from(byte).to_digit(16) else {
                    return State::Skip;
                };
                let value = value * 16 + digit;
                if left > 1 {
                    return State::Digits(role, left - 1, value);
                }
                self.keep(
                    role,
                    u8::try_from(value).ok().filter(u8::is_ascii).unwrap_or(0),
                )
            }
        }
    }

    fn between(&mut self, byte: u8) -> State {
        match (byte, self.depth, self.place) {
            (b'"', 1, place) => {
                self.word.clear();
                State::Text(match place {
                    Place::Key => Role::Key,
                    Place::Value(Some(member)) => Role::Value(member),
                    Place::Value(None) => Role::Other,
                })
            }
            (b'"', ..) => State::Text(Role::Other),
            (b'{' | b'[', ..) => {
                self.depth = self.depth.saturating_add(1);
                State::Between
            }
            (b'}' | b']', ..) => {
                self.depth -= 1;
                if self.depth == 0 {
                    State::Closed
                } else {
                    State::Between
                }
            }
            (b',', 1, _) => {
                self.place = Place::Key;
                State::Between
            }
            _ => State::Between,
        }
    }

    /// Keeps one byte more than can match, so that a longer word does not match.
    fn keep(&mut self, role: Role, byte: u8) -> State {
        if role != Role::Other && self.word.len() <= self.longest {
            self.word.push(byte);
        }
        State::Text(role)
    }

    fn close_text(&mut self, role: Role) -> State {
        match role {
            Role::Key => {
                let is_it = |name: &&str| name.as_bytes() == self.word;
                let member = MEMBERS.iter().position(is_it);
                self.place = Place::Value(member);
                self.note(member, false);
            }
            Role::Value(member) => {
                let is_it = |(of, word): &(Member, Vec<u8>)| *of == member && *word == self.word;
                self.note(Some(member), self.wanted.iter().any(is_it));
            }
            Role::Other => {}
        }
        State::Between
    }

    fn note(&mut self, member: Option<Member>, hit: bool) {
        if let Some(slot) = member.and_then(|member| self.hits.get_mut(member)) {
            *slot = hit;
        }
    }
}

/// Parses `method:NAME`, `id:TEXT`, or a plain type.
fn named(word: &str) -> (Member, Vec<u8>) {
    let prefixed = MEMBERS
        .iter()
        .enumerate()
        .skip(1)
        .find_map(|(member, name)| {
            let value = word.strip_prefix(name)?.strip_prefix(':')?;
            Some((member, value.as_bytes().to_vec()))
        });
    prefixed.unwrap_or_else(|| (0, word.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: bool) {
        for size in [1, 2, 3, 7, text.len().max(1)] {
            let wanted = ["result", "turn.completed", "method:turn/completed", "id:p"];
            let mut scanner = Scanner::new(&wanted.map(str::to_owned));
            let found = text
                .as_bytes()
                .chunks(size)
                .fold(false, |it, part| scanner.feed(part) | it);
            assert_eq!(found, expect, "{text:?} in pieces of {size}");
            assert!(scanner.word.len() <= scanner.longest + 1);
        }
    }

    #[test]
    fn wanted() {
        check("{\"type\":\"result\"}\n", true);
        check("  { \"type\" : \"result\" } \r\n", true);
        check(
            "{\"type\":\"turn.completed\",\"usage\":{\"a\":[1,2]}}\n",
            true,
        );
        check("{\"x\":{\"type\":\"no\"},\"type\":\"result\"}\n", true);
        check("{\"x\":{\"type\":\"result\"},\"type\":\"result\"}\n", true);
        check("{\"type\":\"result\",\"x\":{\"type\":\"no\"}}\n", true);
        check(
            "{\"a\":\"\\\"}{\",\"b\":[\"\\\\\"],\"type\":\"result\"}\n",
            true,
        );
        check("{\"ty\\u0070e\":\"re\\u0073ult\"}\n", true);
        check("{\"type\":\"no\",\"type\":\"result\"}\n", true);
        check(
            "noise\n\n[1]\n{\"type\":\"x\"}\n{\"type\":\"result\"}\n{\"type\":\"x\"}\n",
            true,
        );
        check("{\"broken\": \"\n{\"type\":\"result\"}\n", true);
        check(
            "{\"k\":\"é\u{1F980}\",\"n\":-1.5e3,\"t\":true,\"type\":\"result\"}\n",
            true,
        );
    }

    #[test]
    fn by_other_members() {
        check("{\"method\":\"turn/completed\",\"params\":{}}\n", true);
        check("{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":\"p\"}\n", true);
        check("{\"id\":\"p\",\"id\":\"q\",\"method\":\"x\"}\n", false);
        check(
            "{\"method\":\"result\",\"type\":\"turn/completed\"}\n",
            false,
        );
        check("{\"id\":1,\"params\":{\"id\":\"p\"}}\n", false);
    }

    #[test]
    fn not_wanted() {
        check("", false);
        check("{\"type\":\"result\"}", false);
        check("{\"x\":{\"type\":\"result\"}}\n", false);
        check("{\"x\":[{\"type\":\"result\"}],\"type\":\"user\"}\n", false);
        check("[{\"type\":\"result\"}]\n", false);
        check("{\"type\":\"results\"}\n{\"type\":\"resul\"}\n", false);
        check(
            "{\"typed\":\"result\"}\n{\"kind\":\"type\",\"result\":1}\n",
            false,
        );
        check("{\"x\":\"\\\"type\\\":\\\"result\\\"\"}\n", false);
        check("{\"x\":\"type\",\"y\":\"result\"}\n", false);
        check(
            "{\"type\":[\"result\"]}\n{\"type\":{\"result\":\"result\"}}\n",
            false,
        );
        check(
            "{\"type\":\"result\",\"type\":\"no\"}\n{\"type\":\"result\",\"type\":1}\n",
            false,
        );
        check("{\"type\":\"result\"\n}\n", false);
        check("{\"type\":\"result\"} x\n", false);
        check("x {\"type\":\"result\"}\n", false);
        check(
            "{\"type\":\"r\\u00e9sult\"}\n{\"type\":\"result\\n\"}\n",
            false,
        );
        check("]]]}}}\n}{\"type\":\"result\"}\n", false);
    }

    #[test]
    fn long_lines_cost_no_memory() {
        let mut scanner = Scanner::new(&["result".to_owned()]);
        assert!(!scanner.feed(b"{\"type\":\""));
        for _ in 0..1000 {
            assert!(!scanner.feed(&[b'x'; 4096]));
        }
        assert!(scanner.word.capacity() < 64);
        assert!(!scanner.feed(b"\"}\n"));
        assert!(scanner.feed(b"{\"type\":\"result\"}\n"));
    }
}
