//! Delivers an answer to the caller: at once, piece by piece, late, in part or not at all.

use std::{io, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::watch;

use crate::{
    answer::{Answer, Ending},
    dialects::{Frame, Part},
};

/// Pause before a break, in which the connection sends the bytes written so far, as a real network
/// would.
const BEFORE_BREAK: Duration = Duration::from_millis(10);

/// Tells all waiting tasks that the server is about to stop.
#[derive(Debug, Clone)]
pub(crate) struct Closing(pub(crate) watch::Receiver<bool>);

/// End of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    Fully,
    ServerStops,
}

impl Closing {
    pub(crate) async fn wait(&mut self, time: Duration) -> Waited {
        tokio::select! {
            () = tokio::time::sleep(time) => Waited::Fully,
            () = self.closed() => Waited::ServerStops,
        }
    }

    /// Ends when the server stops or is gone.
    pub(crate) async fn closed(&mut self) {
        drop(self.0.wait_for(|closing| *closing).await);
    }
}

/// An action while streaming.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Act {
    Send(Bytes),
    Wait(Duration),
    Break,
}

/// Returns the body of a streamed answer.
pub(crate) fn streamed(answer: &Answer, frames: Vec<Frame>, closing: Closing) -> Body {
    let acts = plan(answer, frames).into_iter();
    Body::from_stream(stream::unfold(
        (acts, closing),
        async |(mut acts, mut closing)| {
            let item = loop {
                match acts.next()? {
                    Act::Send(bytes) => break Ok(bytes),
                    Act::Wait(time) => match closing.wait(time).await {
                        Waited::Fully => {}
                        Waited::ServerStops => break Err(broken("the server stops")),
                    },
                    Act::Break => break Err(broken("broken off by the script")),
                }
            };
            Some((item, (acts, closing)))
        },
    ))
}

/// Returns the duration of an answer in one piece, and whether it arrives.
pub(crate) fn whole(answer: &Answer) -> (Duration, Arrival) {
    let pieces = u32::try_from(answer.pieces.len()).unwrap_or(u32::MAX);
    let writing = answer.delay.saturating_mul(pieces);
    match answer.ending {
        Ending::Complete => (writing, Arrival::Arrives),
        Ending::Hangs(time) => (time, Arrival::Breaks),
        Ending::CutAfter(_) | Ending::Unfinished => (writing, Arrival::Breaks),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    Arrives,
    Breaks,
}

fn plan(answer: &Answer, frames: Vec<Frame>) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut texts = 0;
    for frame in frames {
        let broken_off = match answer.ending {
            Ending::Unfinished if texts > 0 && frame.part == Part::Rest => return acts,
            Ending::Complete | Ending::Unfinished => None,
            Ending::Hangs(time) => (frame.part != Part::Opening).then_some(time),
            // The frame after the last allowed piece is the first that is not sent. With no piece
            // allowed, the text still begins.
            Ending::CutAfter(pieces) => {
                let over = texts >= pieces && (pieces > 0 || frame.part == Part::Text);
                over.then_some(BEFORE_BREAK)
            }
        };
        if let Some(time) = broken_off {
            acts.extend([Act::Wait(time), Act::Break]);
            return acts;
        }
        acts.push(Act::Send(Bytes::from(frame.bytes)));
        if frame.part == Part::Text {
            texts += 1;
            if !answer.delay.is_zero() {
                acts.push(Act::Wait(answer.delay));
            }
        }
    }
    // A script that asks for a cut gets one, even beyond the end of a short text.
    if let Ending::CutAfter(_) = answer.ending {
        acts.pop();
        acts.extend([Act::Wait(BEFORE_BREAK), Act::Break]);
    }
    acts
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{answer::Usage, dialects::Part::*};

    /// Plans a stream of opening, two texts and an end, and formats it as text.
    fn planned(delay_ms: u64, ending: Ending) -> String {
        let answer = Answer {
            id: String::new(),
            model: String::new(),
            thinking: None,
            pieces: vec!["a".into(), "b".into()],
            calls: Vec::new(),
            usage: Usage {
                input: 0,
                cache_read: 0,
                cache_creation: 0,
                output: 0,
            },
            delay: Duration::from_millis(delay_ms),
            ending,
        };
        let frames = [
            (Opening, "open"),
            (Rest, "start"),
            (Text, "a"),
            (Text, "b"),
            (Rest, "end"),
        ];
        let frames = frames.map(|(part, bytes)| Frame {
            part,
            bytes: bytes.to_owned(),
        });
        let acts = plan(&answer, frames.into());
        let words = acts.into_iter().map(|act| match act {
            Act::Send(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Act::Wait(time) => time.as_millis().to_string(),
            Act::Break => "break".to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn streams_are_planned_by_their_ending() {
        let table = [
            (0, Ending::Complete, "open start a b end"),
            (5, Ending::Complete, "open start a 5 b 5 end"),
            (0, Ending::Hangs(Duration::from_secs(1)), "open 1000 break"),
            (0, Ending::CutAfter(0), "open start 10 break"),
            (5, Ending::CutAfter(1), "open start a 5 10 break"),
            (0, Ending::CutAfter(2), "open start a b 10 break"),
            (0, Ending::CutAfter(9), "open start a b 10 break"),
            (5, Ending::Unfinished, "open start a 5 b 5"),
        ];
        for (delay, ending, expected) in table {
            assert_eq!(planned(delay, ending), expected, "{ending:?}");
        }
    }
}
