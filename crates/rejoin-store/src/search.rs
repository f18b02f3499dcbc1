//! Full text, by the engine's own facility.

mod postgres;

use rejoin_core::{ConversationId, MessageId, Role};

use crate::connections::Read;
use crate::db::{Ask as _, Row, one, rows, vals};
use crate::engine::Connection;
use crate::error::Result;
use crate::messages::role_of;

/// A message that holds the words.
#[derive(Debug, Clone)]
pub struct Hit {
    pub conversation: ConversationId,
    pub message: MessageId,
    pub seq: i64,
    pub role: Role,
    pub agent: Option<String>,
    /// Around the words, which stand between [`HIT_BEGINS`] and [`HIT_ENDS`].
    pub snippet: String,
    pub created_at: i64,
}

/// Control characters: no message that reaches a screen holds any.
pub const HIT_BEGINS: char = '\u{2}';
pub const HIT_ENDS: char = '\u{3}';

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct Search {
    pub namespace: String,
    pub text: String,
    pub agent: Option<String>,
    pub workdir: Option<String>,
    pub limit: i64,
}

/// Of more than so many, the newest are shown: to rank them all takes the engine too long.
const RANKED: i64 = 2_000;

/// Whoever is found is in the history, and of a conversation that is there.
macro_rules! found {
    ($order:literal) => {
        concat!(
            "select m.id, m.n, m.conversation_id, m.seq, m.role, m.agent, m.created_at
            from messages_text
            join messages m on m.n = messages_text.rowid
            join conversations c on c.id = m.conversation_id
            where messages_text match $1 and m.removed_at is null and m.seq is not null
              and c.redirect_to is null and c.namespace = $5
              and ($2 is null or m.agent = $2) and ($3 is null or c.workdir = $3)
            order by ",
            $order,
            " limit $4"
        )
    };
}

impl Read {
    /// Best first; if there are very many, newest first. Every word must be there, each as the beginning
    /// of one.
    pub async fn search(&mut self, search: &Search) -> Result<Vec<Hit>> {
        if let Connection::Postgres(_) = self.connection()? {
            return postgres::search(self, search).await;
        }
        let words = words(&search.text);
        if words.is_empty() {
            return Ok(vec![]);
        }
        let many = "select count(*) as many from
            (select rowid from messages_text where messages_text match $1 limit $2)";
        let many = one(self, many, vals![words.as_str(), RANKED]).await?;
        let many = many.map_or(Ok(0), |row| row.int("many"))? >= RANKED;
        let sql = if many {
            found!("messages_text.rowid desc")
        } else {
            found!("messages_text.rank, m.n desc")
        };
        let values = vals![
            words.as_str(),
            search.agent.clone(),
            search.workdir.clone(),
            search.limit,
            search.namespace.as_str(),
        ];
        let mut hits = vec![];
        for row in rows(self, sql, values).await? {
            hits.push(hit(&row, self.snippet(&words, row.int("n")?).await?)?);
        }
        Ok(hits)
    }

    async fn snippet(&mut self, words: &str, n: i64) -> Result<String> {
        let sql = "select snippet(messages_text, 0, char(2), char(3), '…', 16) as snippet
            from messages_text where messages_text match $1 and rowid = $2";
        let row = one(self, sql, vals![words, n]).await?;
        row.map_or(Ok(String::new()), |row| row.text("snippet"))
    }
}

fn hit(row: &Row, snippet: String) -> Result<Hit> {
    Ok(Hit {
        conversation: ConversationId::from_uuid(row.id("conversation_id")?),
        message: MessageId::from_uuid(row.id("id")?),
        seq: row.int("seq")?,
        role: role_of(row)?,
        agent: row.maybe_text("agent")?,
        snippet,
        created_at: row.int("created_at")?,
    })
}

/// What to look for, term by term. What stands in quotes is one phrase; else a term is the beginning
/// of a word.
struct Term {
    text: String,
    begins: bool,
}

fn terms(text: &str) -> Vec<Term> {
    let clean: String = text.replace(['\0', HIT_BEGINS, HIT_ENDS], " ");
    let mut terms = vec![];
    for (at, part) in clean.split('"').enumerate() {
        if at % 2 == 1 {
            let text = part.to_owned();
            terms.push(Term {
                text,
                begins: false,
            });
        } else {
            terms.extend(part.split_whitespace().map(|word| Term {
                text: word.to_owned(),
                begins: true,
            }));
        }
    }
    terms.retain(|term| term.text.chars().any(char::is_alphanumeric));
    terms
}

/// Every word quoted, so that none of it is taken for an operator of the engine.
fn words(text: &str) -> String {
    let quoted: Vec<String> = terms(text)
        .iter()
        .map(|Term { text, begins }| format!("\"{text}\"{}", if *begins { "*" } else { "" }))
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_never_operators() {
        assert_eq!(words("a OR b*"), "\"a\"* \"OR\"* \"b*\"*");
        assert_eq!(
            words("say \"two words\" x"),
            "\"say\"* \"two words\" \"x\"*"
        );
        assert_eq!(words(" - \" \0 "), "");
        assert_eq!(words("\"open"), "\"open\"");
    }
}
