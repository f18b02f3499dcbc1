//! The server's events, as far as they concern the turn.

use std::collections::HashSet;

use reqwest::Response;
use serde::Deserialize;

/// A longer event is left out: nothing of a turn comes near it.
const LONGEST: usize = 24 << 20;

/// Passed on. The others say how things grow (each time in full), or are about other things.
const WANTED: &[&str] = &[
    "message.part.updated",
    "permission.asked",
    "permission.replied",
    "question.asked",
    "question.rejected",
    "question.replied",
    "session.error",
    "session.idle",
    "session.status",
];

/// Events that are read for every session.
const OF_ANY: &[&str] = &["permission.asked", "question.asked", "session.status"];

pub(super) struct News {
    pub(super) kind: String,
    /// Id of a question or permission request.
    pub(super) id: Option<String>,
    /// As it was reported, on one line.
    pub(super) line: String,
    /// Set for the session of the turn, unset for that of a sub-agent.
    pub(super) ours: bool,
}

pub(super) struct Events {
    response: Response,
    blocks: Blocks,
    filter: Filter,
}

impl Events {
    pub(super) fn of(response: Response) -> Self {
        Self {
            response,
            blocks: Blocks::default(),
            filter: Filter::default(),
        }
    }

    pub(super) async fn connected(&mut self) -> Result<(), String> {
        self.block().await.map(drop)
    }

    pub(super) fn only(&mut self, session: &str) {
        session.clone_into(&mut self.filter.session);
    }

    /// The next one that concerns the turn. Can be given up at any time without losing any.
    pub(super) async fn next(&mut self) -> Result<News, String> {
        loop {
            let block = self.block().await?;
            if let Some(news) = self.filter.news(&block) {
                return Ok(news);
            }
        }
    }

    async fn block(&mut self) -> Result<String, String> {
        loop {
            if let Some(block) = self.blocks.next() {
                return Ok(block);
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.blocks.push(&bytes),
                Ok(None) | Err(_) => return Err("opencode serve went away".into()),
            }
        }
    }
}

/// Bytes of a stream, cut into the data of events (`text/event-stream`).
#[derive(Default)]
struct Blocks {
    bytes: Vec<u8>,
    /// Bytes searched for a line end already.
    looked_at: usize,
    data: String,
    /// The line or event is too long, and left out to its end.
    too_long: bool,
    whole: std::collections::VecDeque<String>,
}

impl Blocks {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        while let Some(end) = self.bytes[self.looked_at..]
            .iter()
            .position(|byte| *byte == b'\n')
        {
            let rest = self.bytes.split_off(self.looked_at + end + 1);
            let line = std::mem::replace(&mut self.bytes, rest);
            self.looked_at = 0;
            self.line(&line);
        }
        if self.bytes.len() > LONGEST {
            self.too_long = true;
            self.bytes.clear();
        }
        self.looked_at = self.bytes.len();
    }

    fn line(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if !data.is_empty() && !self.too_long {
                self.whole.push_back(data);
            }
            self.too_long = false;
        } else if let Some(data) = line.strip_prefix("data:") {
            let data = data.strip_prefix(' ').unwrap_or(data);
            if self.data.len() + data.len() > LONGEST {
                self.too_long = true;
            }
            if !self.too_long {
                // A line end in JSON is a blank.
                self.data.extend((!self.data.is_empty()).then_some(' '));
                self.data.push_str(data);
            }
        }
    }

    fn next(&mut self) -> Option<String> {
        self.whole.pop_front()
    }
}

#[derive(Default)]
struct Filter {
    session: String,
    /// Parts that were reported as running.
    running: HashSet<String>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    properties: Properties,
}

#[derive(Deserialize)]
struct Properties {
    #[serde(rename = "sessionID")]
    session: Option<String>,
    id: Option<String>,
    #[serde(rename = "requestID")]
    request: Option<String>,
    part: Option<Part>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    id: String,
    #[serde(rename = "sessionID")]
    session: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    state: Option<State>,
    time: Option<Time>,
}

#[derive(Deserialize)]
struct State {
    #[serde(default)]
    status: String,
}

#[derive(Deserialize)]
struct Time {
    end: Option<serde_json::Number>,
}

impl Filter {
    fn news(&mut self, data: &str) -> Option<News> {
        let event: Event = serde_json::from_str(data).ok()?;
        let Properties {
            session,
            id,
            request,
            part,
        } = event.properties;
        let of_part = part.as_ref().and_then(|part| part.session.clone());
        let session = session.or(of_part)?;
        let ours = session == self.session;
        let kind = event.kind.as_str();
        // What a sub-agent waits for holds up the turn.
        let wanted = WANTED.contains(&kind) && (ours || OF_ANY.contains(&kind));
        let complete = part.is_none_or(|part| self.counts(part));
        (wanted && complete).then(|| News {
            kind: event.kind,
            id: id.or(request),
            line: data.to_owned(),
            ours,
        })
    }

    /// Texts when they are complete; tools when they begin and when they are.
    fn counts(&mut self, part: Part) -> bool {
        match part.kind.as_str() {
            "text" | "reasoning" => part.time.is_some_and(|time| time.end.is_some()),
            "tool" => match part.state.map(|state| state.status).as_deref() {
                Some("running") => self.running.insert(part.id),
                Some("pending") | None => false,
                Some(_) => true,
            },
            kind => matches!(kind, "step-start" | "step-finish"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPTURED: &str =
        include_str!("../../../rejoin-agents/fixtures/opencode/1.18.33/serve/events.jsonl");

    fn cut(stream: &[u8], size: usize) -> Vec<String> {
        let mut blocks = Blocks::default();
        let mut found = vec![];
        for piece in stream.chunks(size) {
            blocks.push(piece);
            found.extend(std::iter::from_fn(|| blocks.next()));
        }
        found
    }

    #[test]
    fn events_come_in_pieces() {
        let stream =
            ": alive\n\ndata: {\"a\":\r\ndata: 1}\r\n\r\nid: 3\ndata:\u{e9}\n\n\n\ndata: half";
        for size in 1..stream.len() {
            assert_eq!(
                cut(stream.as_bytes(), size),
                ["{\"a\": 1}", "\u{e9}"],
                "{size}"
            );
        }
    }

    #[test]
    fn an_endless_event_is_left_out() {
        let long = "x".repeat(LONGEST + 2);
        let stream = format!(
            "data: {long}\n\ndata: a\n\ndata: {}\ndata: {long}\n\ndata: b\n\n",
            &long[..9]
        );
        assert_eq!(cut(stream.as_bytes(), 1 << 20), ["a", "b"]);
    }

    #[test]
    fn what_concerns_the_turn_is_passed_on() {
        let mut filter = Filter {
            session: "ses_e21a21ac8ffe2mwLHVqNDewT9o".into(),
            ..Filter::default()
        };
        let kinds = CAPTURED
            .lines()
            .filter_map(|line| filter.news(line))
            .map(|news| news.kind);
        let kinds: Vec<String> = kinds.collect();
        let count = |kind: &str| kinds.iter().filter(|one| *one == kind).count();
        assert_eq!(count("permission.asked"), 1);
        assert_eq!(count("question.replied"), 1);
        assert_eq!(count("session.error"), 1);
        assert_eq!(count("message.part.delta") + count("session.updated"), 0);
        assert!(count("message.part.updated") < 40, "{kinds:?}");
        filter.session = "ses_another".into();
        let mut of_others = CAPTURED.lines().filter_map(|line| filter.news(line));
        assert!(of_others.all(|news| !news.ours && OF_ANY.contains(&news.kind.as_str())));
        for odd in [
            "",
            "{",
            "7",
            "[]",
            "{\"type\":7}",
            "{\"type\":\"session.idle\"}",
        ] {
            assert!(filter.news(odd).is_none());
        }
    }
}
