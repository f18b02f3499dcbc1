//! Questions of agents to people, and the turns that wait for answers.

use rejoin_core::{Asked, ConversationId, Given, MessageId, QuestionId, QuestionState, TurnId};

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::Result;

#[derive(Debug, Clone)]
pub struct NewQuestion {
    pub id: QuestionId,
    pub asked: Asked,
}

#[derive(Debug, Clone)]
pub struct StoredQuestion {
    pub id: QuestionId,
    pub turn: TurnId,
    pub conversation: ConversationId,
    pub attempt: i64,
    pub asked: Asked,
    pub state: QuestionState,
    pub given: Option<Given>,
    pub by: Option<String>,
    pub asked_at: i64,
    pub answered_at: Option<i64>,
    /// Message that the answer became because the process that asked was gone.
    pub answer_message: Option<MessageId>,
    /// Idempotency key of the answer.
    pub answer_key: Option<String>,
}

/// An answer to store.
#[derive(Debug, Clone, Copy)]
pub struct NewAnswer<'a> {
    pub question: QuestionId,
    pub given: &'a Given,
    pub by: &'a str,
    pub key: Option<&'a str>,
    pub now: i64,
}

/// Attempt of a question that no run asked: runs are numbered from 1.
pub const NO_RUN: i64 = 0;

const OF_TURN: &str = "select * from questions where turn_id = $1 order by id";

topic! {
    /// Questions of agents, and their answers.
    Questions, questions
}

impl Questions<'_, Tx> {
    /// Stores questions. The turn waits from now on.
    pub async fn add(
        &mut self,
        conversation: ConversationId,
        turn: TurnId,
        attempt: i64,
        now: i64,
        new: &[NewQuestion],
    ) -> Result<()> {
        let sql = "update turns set status = 'waiting' where id = $1 and status in ('running', 'waiting')";
        self.0.run(sql, vals![turn.uuid()]).await?;
        self.insert(conversation, turn, attempt, now, new).await
    }

    /// Stores a question about a turn that has ended. No process waits for the answer.
    pub async fn add_after_end(
        &mut self,
        conversation: ConversationId,
        turn: TurnId,
        now: i64,
        new: &NewQuestion,
    ) -> Result<()> {
        let new = std::slice::from_ref(new);
        self.insert(conversation, turn, NO_RUN, now, new).await
    }

    async fn insert(
        &mut self,
        conversation: ConversationId,
        turn: TurnId,
        attempt: i64,
        now: i64,
        new: &[NewQuestion],
    ) -> Result<()> {
        let sql = "insert into questions (id, turn_id, conversation_id, attempt, call_id, kind, tool, input, questions, state, asked_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10)";
        for NewQuestion { id, asked } in new {
            let values = vals![
                id.uuid(),
                turn.uuid(),
                conversation.uuid(),
                attempt,
                asked.call_id.as_str(),
                asked.kind.as_str(),
                asked.tool.as_str(),
                asked.input.to_string(),
                serde_json::to_string(&asked.questions)?,
                now,
            ];
            self.0.run(sql, values).await?;
        }
        Ok(())
    }

    pub async fn answer(&mut self, answer: &NewAnswer<'_>) -> Result<()> {
        let sql =
            "update questions set state = 'answered', decision = $2, by = $3, answer_key = $4, answered_at = $5
            where id = $1 and state = 'pending'";
        let values = vals![
            answer.question.uuid(),
            serde_json::to_string(answer.given)?,
            answer.by,
            answer.key,
            answer.now,
        ];
        let faster = "somebody else has answered it";
        self.0.must(sql, values, faster).await
    }

    /// Stores the answer to a question whose process is gone, and the message that it became.
    /// Returns false if the question already has an answer.
    pub async fn answer_gone(
        &mut self,
        answer: &NewAnswer<'_>,
        message: MessageId,
    ) -> Result<bool> {
        let sql =
            "update questions set state = 'answered', decision = $2, by = $3, answer_key = $4, answered_at = $5,
                answer_message = $6
            where id = $1 and state = 'gone'";
        let values = vals![
            answer.question.uuid(),
            serde_json::to_string(answer.given)?,
            answer.by,
            answer.key,
            answer.now,
            message.uuid(),
        ];
        Ok(self.0.run(sql, values).await? > 0)
    }

    /// Reopens a question whose answer became a message that is now withdrawn.
    pub(crate) async fn withdraw_answer(&mut self, message: MessageId) -> Result<()> {
        let sql =
            "update questions set state = 'gone', decision = null, by = null, answered_at = null,
                answer_message = null, answer_key = null
            where answer_message = $1";
        self.0.run(sql, vals![message.uuid()]).await?;
        Ok(())
    }

    pub async fn get(&mut self, id: QuestionId) -> Result<Option<StoredQuestion>> {
        let sql = "select * from questions where id = $1";
        let found = one(self.0, sql, vals![id.uuid()]).await?;
        found.as_ref().map(read).transpose()
    }

    /// Lets the turn continue if no question is pending any more.
    pub async fn resume_if_answered(&mut self, turn: TurnId) -> Result<()> {
        let sql = "update turns set status = 'running' where id = $1 and status = 'waiting'
            and not exists (select 1 from questions where turn_id = $1 and state = 'pending')";
        self.0.run(sql, vals![turn.uuid()]).await?;
        Ok(())
    }

    /// Reopens a question whose answer never reached the agent.
    pub async fn reopen(&mut self, turn: TurnId, call: &str) -> Result<()> {
        let sql =
            "update questions set state = 'pending', decision = null, by = null, answered_at = null, answer_key = null
            where turn_id = $1 and call_id = $2 and state = 'answered'";
        self.0.run(sql, vals![turn.uuid(), call]).await?;
        Ok(())
    }

    /// Marks pending questions as `gone`: the process that asked has ended.
    pub async fn forget_pending(&mut self, turn: TurnId) -> Result<()> {
        let sql = "update questions set state = 'gone' where turn_id = $1 and state = 'pending'";
        self.0.run(sql, vals![turn.uuid()]).await?;
        Ok(())
    }
}

impl<C: Ask> Questions<'_, C> {
    /// Lists the questions of a turn in the order in which they were asked.
    pub async fn of(&mut self, turn: TurnId) -> Result<Vec<StoredQuestion>> {
        of_turn(self.0, turn).await
    }

    pub async fn is_waiting(&mut self, turn: TurnId) -> Result<bool> {
        let sql = "select 1 as found from turns where id = $1 and status = 'waiting'";
        Ok(one(self.0, sql, vals![turn.uuid()]).await?.is_some())
    }

    /// Lists the turns that wait for a person, longest wait first. Unless their conversation has a
    /// newer turn, also turns that were lost while waiting, and ended turns with an open question.
    pub async fn waiting_turns(&mut self) -> Result<Vec<TurnId>> {
        let sql = "select id from turns where status in ('running', 'waiting') and status = 'waiting'
            union
            select t.id from questions q cross join turns t
            where q.state = 'gone' and t.id = q.turn_id and t.status = 'lost'
                and not exists (select 1 from turns n where n.conversation_id = t.conversation_id and n.id > t.id)
            union
            select t.id from questions q cross join turns t
            where q.state = 'pending' and q.attempt = 0 and t.id = q.turn_id
                and not exists (select 1 from turns n where n.conversation_id = t.conversation_id and n.id > t.id)
            order by id";
        let found = rows(self.0, sql, vec![]).await?;
        found
            .iter()
            .map(|row| Ok(TurnId::from_uuid(row.id("id")?)))
            .collect()
    }
}

async fn of_turn(at: &mut impl Ask, turn: TurnId) -> Result<Vec<StoredQuestion>> {
    let found = rows(at, OF_TURN, vals![turn.uuid()]).await?;
    found.iter().map(read).collect()
}

fn read(row: &Row) -> Result<StoredQuestion> {
    Ok(StoredQuestion {
        id: QuestionId::from_uuid(row.id("id")?),
        turn: TurnId::from_uuid(row.id("turn_id")?),
        conversation: ConversationId::from_uuid(row.id("conversation_id")?),
        attempt: row.int("attempt")?,
        asked: Asked {
            call_id: row.text("call_id")?,
            kind: row.word("kind")?,
            tool: row.text("tool")?,
            input: row.json("input")?,
            questions: row.json("questions")?,
        },
        state: row.word("state")?,
        given: row.maybe_json("decision")?,
        by: row.maybe_text("by")?,
        asked_at: row.int("asked_at")?,
        answered_at: row.maybe_int("answered_at")?,
        answer_message: row.maybe_id("answer_message")?.map(MessageId::from_uuid),
        answer_key: row.maybe_text("answer_key")?,
    })
}
