//! Questions of a run and messages to it. Every message has a key and the shim writes each key
//! once, so a later process may parse the run from its beginning and send everything again.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use rejoin_agents::{Say, StreamParser};
use rejoin_core::{Asked, Choice, EventBody, Given, QuestionId, QuestionState, TurnId};
use rejoin_hub::Hub;
use rejoin_store::{NewQuestion, StoredQuestion};

use crate::error::Result;
use crate::hook;
use crate::shim::{KNOWS_KEYS, Order};
use crate::shim_link::ShimLink;

pub(super) struct Talk {
    /// True if a person can answer.
    asks: bool,
    /// Questions by the agent's own call id.
    known: BTreeMap<String, Known>,
    unsaid: VecDeque<Say>,
    /// Folder of the run, in which a hook may hold a question.
    folder: PathBuf,
}

struct Known {
    id: QuestionId,
    asked: Asked,
    /// Answer; None while the question is open.
    given: Option<Given>,
    /// True if the parser turned the answer into a reply.
    told: bool,
    /// True if the hook was released from waiting.
    let_go: bool,
}

/// Events and questions to commit together with the lines they come from.
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
        hub: &Hub,
        turn: TurnId,
        n: i64,
        asks: bool,
        folder: &Path,
    ) -> Result<Self> {
        let stored = if asks {
            hub.questions(turn, n).await?
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

    /// Returns true if people were asked about this call.
    pub(super) fn asked(&self, call: &str) -> bool {
        self.known.contains_key(call)
    }

    /// Returns true if a question has no answer yet.
    pub(super) fn waits(&self) -> bool {
        self.known.values().any(|known| known.given.is_none())
    }

    /// Handles the questions and replies that a line caused. `fresh` is true if the line was not
    /// committed before.
    pub(super) fn hear(
        &mut self,
        hub: &Hub,
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
                self.put(hub, asked, batch)?;
            }
        }
        self.tell(parser);
        Ok(())
    }

    fn put(&mut self, hub: &Hub, asked: Asked, batch: &mut Batch) -> Result<()> {
        if self.known.contains_key(&asked.call_id) {
            return Ok(());
        }
        let id = hub.clock.question_id()?;
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

    /// Returns the earlier answer if a person allowed the same tool and input for as long as this
    /// process lives. A question that people were already asked stays open for them.
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

    /// Replies at once, because the question is already decided or no person can answer.
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

    /// Reads new answers from the store.
    pub(super) async fn look(
        &mut self,
        hub: &Hub,
        turn: TurnId,
        n: i64,
        parser: &mut dyn StreamParser,
    ) -> Result<()> {
        for stored in hub.questions(turn, n).await? {
            let (call, new) = known(stored);
            if let Some(known) = self.known.get_mut(&call) {
                known.given = new.given;
            }
        }
        self.tell(parser);
        Ok(())
    }

    /// Turns answers into replies once the parser has read their questions.
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
                // The hook still holds the question. If the hook cannot be released, it defers the
                // question, and the next attempt delivers the answer.
                known.let_go = hook::let_go(&self.folder, call).is_ok();
            }
        }
    }

    /// Sends the pending messages in order. A message that does not arrive is sent again over the
    /// next connection.
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
                // The CLI no longer reads its stdin.
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
