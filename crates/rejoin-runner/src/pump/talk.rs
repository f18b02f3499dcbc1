//! What a run asks and what is said to it. Everything is said under a key, so that whoever comes after
//! us, and reads the run from its beginning, can say all of it again: its shim writes each thing once.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use rejoin_agents::{Say, StreamParser};
use rejoin_core::{Asked, Choice, EventBody, Given, QuestionId, QuestionState, TurnId};
use rejoin_hub::HubLink;
use rejoin_store::{NewQuestion, StoredQuestion};

use crate::error::Result;
use crate::hook;
use crate::shim::{KNOWS_KEYS, Order};
use crate::shim_link::ShimLink;

pub(super) struct Talk {
    /// There is somebody who could answer.
    asks: bool,
    /// What was asked, by the agent's name for it.
    known: BTreeMap<String, Known>,
    unsaid: VecDeque<Say>,
    /// Of the run: a hook in it may hold what is asked.
    folder: PathBuf,
}

struct Known {
    id: QuestionId,
    asked: Asked,
    /// None: it waits.
    given: Option<Given>,
    /// The parser has heard of it, and has put it into words.
    told: bool,
    /// So has the hook.
    let_go: bool,
}

/// What is to be committed with the lines it comes from.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) events: Vec<EventBody>,
    pub(super) asked: Vec<NewQuestion>,
}

impl Batch {
    pub(super) fn of(events: Vec<EventBody>) -> Self {
        let asked = vec![];
        Self { events, asked }
    }
}

impl Talk {
    pub(super) async fn of(
        link: &impl HubLink,
        turn: TurnId,
        n: i64,
        asks: bool,
        folder: &Path,
    ) -> Result<Self> {
        let stored = if asks {
            link.questions(turn, n).await?
        } else {
            vec![]
        };
        Ok(Self {
            asks,
            known: stored.into_iter().map(known).collect(),
            unsaid: VecDeque::new(),
            folder: folder.to_owned(),
        })
    }

    /// Was this put to people?
    pub(super) fn asked(&self, call: &str) -> bool {
        self.known.contains_key(call)
    }

    /// Something it asked has no answer yet.
    pub(super) fn waits(&self) -> bool {
        self.known.values().any(|known| known.given.is_none())
    }

    /// After a line: what is asked in it, and what it makes us say. `fresh`: it was not committed yet.
    pub(super) fn hear(
        &mut self,
        link: &impl HubLink,
        parser: &mut dyn StreamParser,
        fresh: bool,
        batch: &mut Batch,
    ) -> Result<()> {
        self.unsaid.extend(parser.says());
        for asked in parser.asked() {
            let given = self.decided(&asked);
            if !self.asks || given.is_some() {
                self.settle(parser, &asked, given.as_ref(), fresh, batch);
            } else {
                self.put(link, asked, batch)?;
            }
        }
        self.tell(parser);
        Ok(())
    }

    fn put(&mut self, link: &impl HubLink, asked: Asked, batch: &mut Batch) -> Result<()> {
        if self.known.contains_key(&asked.call_id) {
            return Ok(());
        }
        let id = link.clock().question_id()?;
        batch.events.push(EventBody::asked(&asked, Some(id)));
        let new = Known {
            id,
            asked: asked.clone(),
            given: None,
            told: false,
            let_go: false,
        };
        self.known.insert(asked.call_id.clone(), new);
        batch.asked.push(NewQuestion { id, asked });
        Ok(())
    }

    /// The very same was allowed for as long as this process lives. What was put to people stays theirs.
    fn decided(&self, asked: &Asked) -> Option<Given> {
        if self.known.contains_key(&asked.call_id) {
            return None;
        }
        let same = |known: &&Known| {
            let always = |given: &Given| given.decision == Choice::Always;
            known.given.as_ref().is_some_and(always)
                && known.asked.tool == asked.tool
                && known.asked.input == asked.input
        };
        self.known.values().find(same)?.given.clone()
    }

    /// Nobody has to be asked, or nobody is there: said at once.
    fn settle(
        &mut self,
        parser: &mut dyn StreamParser,
        asked: &Asked,
        given: Option<&Given>,
        fresh: bool,
        batch: &mut Batch,
    ) {
        let Some(reply) = parser.reply(&asked.call_id, given) else {
            return;
        };
        self.unsaid.push_back(Say {
            key: format!("unasked {}", asked.call_id),
            line: reply.line,
        });
        if fresh {
            let decision = given.map_or(Choice::Deny, |given| given.decision);
            batch.events.push(EventBody::asked(asked, None));
            batch.events.push(EventBody::Answered {
                id: asked.call_id.clone(),
                question_id: None,
                decision: decision.to_string(),
                message: reply.message,
                answers: BTreeMap::new(),
                by: None,
            });
        }
    }

    /// Looks for what people said since.
    pub(super) async fn look(
        &mut self,
        link: &impl HubLink,
        turn: TurnId,
        n: i64,
        parser: &mut dyn StreamParser,
    ) -> Result<()> {
        for stored in link.questions(turn, n).await? {
            let (call, new) = known(stored);
            if let Some(known) = self.known.get_mut(&call) {
                known.given = new.given;
            }
        }
        self.tell(parser);
        Ok(())
    }

    /// Puts answers into the agent's words, as soon as its question was read.
    fn tell(&mut self, parser: &mut dyn StreamParser) {
        for (call, known) in &mut self.known {
            let Some(given) = known.given.as_ref().filter(|_| !known.told) else {
                continue;
            };
            if let Some(reply) = parser.reply(call, Some(given)) {
                known.told = true;
                self.unsaid.push_back(Say {
                    key: known.id.to_string(),
                    line: reply.line,
                });
            } else if !known.let_go {
                // If it cannot be told, it puts the question off, and the answer is heard after that.
                known.let_go = hook::let_go(&self.folder, call).is_ok();
            }
        }
    }

    /// Says what is to be said, in order. What is not heard is said again, to the next who listens.
    pub(super) async fn say(&mut self, shim: &mut Option<ShimLink>) {
        while let (Some(link), Some(say)) = (shim.as_mut(), self.unsaid.front()) {
            let (key, data) = (say.key.clone(), say.line.clone());
            let order = if link.hello().shim >= KNOWS_KEYS {
                Order::Say { key, data }
            } else {
                Order::Stdin { data }
            };
            match link.order(order).await {
                Ok(()) => {}
                // The CLI reads nothing any more.
                Err(error) if error.kind() == io::ErrorKind::Other => {}
                Err(_) => {
                    *shim = None;
                    return;
                }
            }
            self.unsaid.pop_front();
        }
    }
}

fn known(stored: StoredQuestion) -> (String, Known) {
    let given = match stored.state {
        QuestionState::Answered => stored.given,
        QuestionState::Pending | QuestionState::Gone => None,
    };
    let known = Known {
        id: stored.id,
        asked: stored.asked,
        given,
        told: false,
        let_go: false,
    };
    (known.asked.call_id.clone(), known)
}
