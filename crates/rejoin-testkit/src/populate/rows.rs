//! The rows of one conversation.

use rejoin_core::{
    ConversationId, Message, MessageId, MessageState, PinId, Role, ScopeValue, TurnId,
};
use serde_json::json;

use super::{COMMON, Cell, MIDDLING, RARE, Shape, handle};

/// Returns ten pseudo-random bytes, the same for the same seed.
fn chance(seed: u64) -> [u8; 10] {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut bytes = [0; 10];
    for byte in &mut bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = (state >> 24) as u8;
    }
    bytes
}

/// Returns a text of some fifteen words, a few of which are frequent.
fn text(said: u64) -> String {
    let mut words: Vec<String> = chance(said)
        .iter()
        .map(|byte| format!("w{}", u64::from(*byte) * u64::from(*byte) % 4099))
        .collect();
    words.push(format!("u{said}"));
    let mut sometimes = |every: u64, word: &str| {
        // In each run of that many messages one, at another place each time: in all namespaces.
        if said % every == said / every * 37 % every {
            words.push(word.to_owned());
        }
    };
    sometimes(2, COMMON);
    sometimes(100, MIDDLING);
    sometimes(1000, RARE);
    words.join(" ")
}

pub(super) fn conversation<E>(
    shape: &Shape,
    clock: &mut u64,
    said: &mut u64,
    put: &mut impl FnMut(&'static str, &[Cell]) -> Result<(), E>,
) -> Result<(), E> {
    *clock += 1000;
    let begun = *clock;
    let id = ConversationId::from_parts(begun, chance(begun));
    let micros = |ms: u64| (ms * 1000) as i64;
    let ended = begun + shape.turns * 100;
    let title = text(*said);
    let cost = 1200 * shape.turns as i64;
    put(
        "conversations",
        &[
            id.uuid().into(),
            handle(id).into(),
            shape.key.clone().into(),
            title.into(),
            shape.agent.as_str().into(),
            shape.workdir().into(),
            "edit".into(),
            "full".into(),
            "{}".into(),
            micros(begun).into(),
            micros(ended).into(),
            shape.namespace.as_str().into(),
            cost.into(),
        ],
    )?;
    let pin = PinId::from_parts(begun + 1, chance(begun + 1));
    let session = format!("session-{}", shape.n);
    put(
        "pins",
        &[
            pin.uuid().into(),
            id.uuid().into(),
            shape.agent.as_str().into(),
            session.as_str().into(),
            "retired".into(),
            "made".into(),
            0.into(),
            micros(begun).into(),
            micros(ended).into(),
        ],
    )?;
    put(
        "snapshots",
        &[
            pin.uuid().into(),
            id.uuid().into(),
            pin.uuid().into(),
            shape.agent.as_str().into(),
            session.as_str().into(),
            vec![0; 32].into(),
            vec![0; 32].into(),
            micros(ended).into(),
        ],
    )?;
    let mut history = History {
        shape,
        id,
        session: &session,
        pin,
        value: ScopeValue::begin(None),
        seq: 0,
    };
    for _ in 0..shape.turns {
        *clock += 100;
        history.turn(*clock, said, put)?;
    }
    Ok(())
}

struct History<'a> {
    shape: &'a Shape,
    id: ConversationId,
    session: &'a str,
    pin: PinId,
    value: ScopeValue,
    seq: i64,
}

impl History<'_> {
    fn turn<E>(
        &mut self,
        at: u64,
        said: &mut u64,
        put: &mut impl FnMut(&'static str, &[Cell]) -> Result<(), E>,
    ) -> Result<(), E> {
        let now = (at * 1000) as i64;
        let turn = TurnId::from_parts(at, chance(at));
        let [asked, reply] = [1, 2].map(|n| MessageId::from_parts(at + n, chance(at + n)));
        self.message(asked, turn, Role::User, now, said, put)?;
        self.message(reply, turn, Role::Assistant, now, said, put)?;
        let request = json!({"envelope": {"deny_tools": [], "mode": "edit", "tools": null}, "model": null,
            "workdir": self.shape.workdir()});
        let record = json!({"checks": [{"check": "history", "evidence": "seen through the last message", "ok": true}],
            "session_id": self.session, "command": [self.shape.agent.as_str()], "tools_run": 0});
        let usage = json!({"input": 900, "cache_read": 0, "cache_write": 0, "output": 120});
        put(
            "turns",
            &[
                turn.uuid().into(),
                self.id.uuid().into(),
                asked.uuid().into(),
                reply.uuid().into(),
                self.shape.agent.as_str().into(),
                request.to_string().into(),
                record.to_string().into(),
                usage.to_string().into(),
                1200.into(),
                format!("rejoin: resumed, knows all {} messages", self.seq).into(),
                now.into(),
                now.into(),
                (now + 4000).into(),
                self.shape.namespace.as_str().into(),
            ],
        )?;
        put(
            "attempts",
            &[
                turn.uuid().into(),
                self.session.into(),
                self.pin.uuid().into(),
                turn.to_string().into(),
            ],
        )?;
        for (kind, body) in [
            (
                "turn.accepted",
                json!({"type": "turn.accepted", "message_id": asked}),
            ),
            (
                "turn.ended",
                json!({"type": "turn.ended", "status": "succeeded", "summary": ""}),
            ),
        ] {
            put(
                "events",
                &[
                    self.id.uuid().into(),
                    turn.uuid().into(),
                    now.into(),
                    kind.into(),
                    body.to_string().into(),
                ],
            )?;
        }
        Ok(())
    }

    fn message<E>(
        &mut self,
        id: MessageId,
        turn: TurnId,
        role: Role,
        now: i64,
        said: &mut u64,
        put: &mut impl FnMut(&'static str, &[Cell]) -> Result<(), E>,
    ) -> Result<(), E> {
        *said += 1;
        self.seq += 1;
        let message = Message {
            id,
            seq: self.seq,
            role,
            agent: (role == Role::Assistant).then(|| self.shape.agent.clone()),
            text: text(*said),
            attachments: vec![],
            state: MessageState::Ok,
            trail: vec![],
        };
        let digest = message.digest();
        self.value = self.value.fold(&digest);
        put(
            "messages",
            &[
                id.uuid().into(),
                self.id.uuid().into(),
                turn.uuid().into(),
                self.seq.into(),
                if role == Role::User {
                    "user"
                } else {
                    "assistant"
                }
                .into(),
                message
                    .agent
                    .as_ref()
                    .map(|it| it.as_str().to_owned())
                    .into(),
                message.text.into(),
                self.value.0.to_vec().into(),
                digest.0.to_vec().into(),
                now.into(),
                (*said as i64).into(),
            ],
        )
    }
}
