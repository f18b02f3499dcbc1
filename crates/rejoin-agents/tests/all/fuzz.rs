//! Captured bytes of every CLI, changed at random, through every parser and reader: whatever comes,
//! nothing panics. Runs for `REJOIN_FUZZ_SECONDS` (2); a failure prints the seed to run it again.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rejoin_agents::{ADAPTERS, Adapter, EndCause, ProcessEnd, Trace};
use rejoin_core::SessionId;

struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// What JSON is made of, and what some CLI gives a meaning.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "-1",
    "1e999",
    "18446744073709551616",
    "\\u0000",
    "\\ud800",
    "\u{feff}",
    "\"type\":",
    "\"result\"",
    "\"session_id\":\"\"",
    "\"usage\":{}",
    "\"$set\":{\"messages\":[]}",
    "\"ordinal\":0",
    "\"parentUuid\":null",
    "\"parts\":7",
    "\"id\":\"rejoin-thread\"",
    "\"method\":\"item/completed\"",
    "\n",
    "\r",
    "<rejoin>",
    "</rejoin>",
    "\u{1b}[2J",
];

fn change(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let at = dice.below(bytes.len() + 1);
    match dice.below(7) {
        0 if !bytes.is_empty() => {
            let at = at.min(bytes.len() - 1);
            bytes[at] = dice.roll() as u8;
        }
        1 => bytes.truncate(at),
        2 => {
            let piece = dice.pick(PIECES).as_bytes().to_vec();
            bytes.splice(at..at, piece);
        }
        3 => {
            let end = (at + dice.below(200)).min(bytes.len());
            bytes.drain(at..end);
        }
        4 => {
            let from = dice.below(other.len() + 1);
            let to = (from + dice.below(400)).min(other.len());
            bytes.splice(at..at, other[from..to].to_vec());
        }
        5 => {
            let mut lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
            let (a, b) = (dice.below(lines.len()), dice.below(lines.len()));
            lines.swap(a, b);
            let repeated = lines[a];
            lines.push(repeated);
            *bytes = lines.join(&b'\n');
        }
        _ => {
            let end = (at + dice.below(40)).min(bytes.len());
            let twice = bytes[at..end].to_vec();
            bytes.splice(at..at, twice);
        }
    }
}

fn end(dice: &mut Dice) -> ProcessEnd {
    let causes = [
        EndCause::ByItself,
        EndCause::Cancelled,
        EndCause::WallLimit,
        EndCause::Unseen,
        EndCause::NotStarted,
    ];
    let asked = [
        "b731fd0c-68de-4452-a02a-ef7d040b8069",
        "ses_e21a13099ffesPgMJlFhtDvy9X",
    ];
    ProcessEnd {
        code: (dice.below(2) == 0).then(|| dice.below(256) as i32),
        signal: (dice.below(4) == 0).then_some(9),
        cause: *dice.pick(&causes),
        torn: dice.below(4) == 0,
        asked_session: (dice.below(2) == 0).then(|| SessionId::new(*dice.pick(&asked)).unwrap()),
    }
}

fn feed(adapter: &dyn Adapter, bytes: &[u8], stderr: &[u8], dice: &mut Dice) {
    let dialogues = [
        r#"{"prompt":"p","session":null}"#,
        r#"{"folder":"/w","session":null,"prompt":"p","raw":true}"#,
        "",
        "{",
        "{}",
    ];
    let can = adapter.capabilities();
    let mut parser = match can.dialogue.filter(|_| dice.below(2) == 0) {
        Some(dialogue) => dialogue.dialogue_parser(dialogues[dice.below(dialogues.len())]),
        None => adapter.parser(),
    };
    for line in bytes.split(|b| *b == b'\n') {
        parser.line(line);
        parser.says();
        for asked in parser.asked() {
            parser.reply(&asked.call_id, None);
        }
        parser.stop();
        parser.aside(line);
        parser.deferred();
    }
    if let Some(defer) = can.defer {
        defer.held_call(bytes);
        defer.call_state("toolu_1", &mut &bytes[..]).unwrap();
    }
    for line in stderr.split(|b| *b == b'\n').take(30) {
        parser.stderr(line);
    }
    let ran = parser.finish(&end(dice));
    let cursors = [None, Some(""), Some("7"), Some("a b"), Some("{\"n\":1}")];
    let mut reader = adapter.reader(*dice.pick(&cursors));
    for line in bytes.split(|b| *b == b'\n') {
        reader.line(line);
    }
    let reading = reader.finish();
    let _judged = reading.confirms("prompt", &ran.text);
    let _messages = reading.said();
    let name = "tmp/x/b731fd0c-68de-4452-a02a-ef7d040b8069.jsonl";
    if let Some(adopt) = can.adopt {
        let mut head = adopt.header(name, Some("/x"), &|_| Some(bytes.to_vec()));
        for line in bytes.split(|b| *b == b'\n') {
            head.line(line);
            adopt.ancestor(line);
        }
        head.finish();
        adopt.as_lines(bytes);
    }
    // What it would read on from must be readable too.
    let mut again = adapter.reader(reading.cursor.as_deref());
    again.line(bytes);
    again.finish();
    let text = String::from_utf8_lossy(bytes);
    adapter.runtime(&text);
    can.proof.map(|proof| proof.judge_probe(&text, &text));
    can.mentions.map(|mentions| mentions.mentions(&text));
    let session = SessionId::new("b731fd0c-68de-4452-a02a-ef7d040b8069").unwrap();
    if let Some(Trace::Notes { parse, .. }) = can.in_use.and_then(|it| it.trace(&session, None)) {
        parse(bytes);
    }
}

#[test]
fn changed_captures_never_panic() {
    let mut found = vec![];
    files(
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")),
        &mut found,
    );
    found.sort();
    let captures: Vec<Vec<u8>> = found.iter().map(|f| std::fs::read(f).unwrap()).collect();
    assert!(captures.len() > 100, "the captures are gone");
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let seconds = number("REJOIN_FUZZ_SECONDS").unwrap_or(2);
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = number("REJOIN_FUZZ_SEED").unwrap_or(since.as_nanos() as u64) | 1;
    println!("REJOIN_FUZZ_SEED={seed}");
    let mut dice = Dice(seed);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut rounds = 0_u64;
    while Instant::now() < until {
        let mut bytes = dice.pick(&captures).clone();
        bytes.truncate(200_000);
        for _ in 0..=dice.below(6) {
            let other = dice.pick(&captures).clone();
            change(&mut bytes, &other, &mut dice);
        }
        let stderr = dice.pick(&captures).clone();
        let adapter = *dice.pick(ADAPTERS);
        feed(adapter, &bytes, &stderr, &mut dice);
        rounds += 1;
    }
    println!("{rounds} rounds");
    assert!(rounds > 0);
}
