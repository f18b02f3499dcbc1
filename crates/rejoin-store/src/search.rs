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

/// The newest hits of the namespace are ranked: to rank all of them takes the engine too long.
const RANKED: i64 = 200;

/// Ranks by how often the words occur for the length of the text, and not by the engine's own `rank`, which
/// weighs words by the messages of all namespaces. Each occurrence adds one character to the highlight.
const FOUND: &str = "select id, n, conversation_id, seq, role, agent, created_at from (
        select m.id, m.n, m.conversation_id, m.seq, m.role, m.agent, m.created_at,
            length(highlight(messages_text, 0, char(2), '')) - length(m.text) as times,
            length(m.text) as size
        from messages_text
        join messages m on m.n = messages_text.rowid
        join conversations c on c.id = m.conversation_id
        where messages_text match $1 and m.removed_at is null and m.seq is not null
          and c.redirect_to is null and c.namespace = $5
          and ($2 is null or m.agent = $2) and ($3 is null or c.workdir = $3)
        order by messages_text.rowid desc limit $6
    )
    order by times * 1000 / (size + 400) desc, n desc limit $4";

impl Read {
    /// Best first, of the newest hits in the namespace. Every word must be there, each as the beginning of
    /// one.
    pub async fn search(&mut self, search: &Search) -> Result<Vec<Hit>> {
        if let Connection::Postgres(_) = self.connection()? {
            return postgres::search(self, search).await;
        }
        let words = words(&search.text);
        if words.is_empty() {
            return Ok(vec![]);
        }
        let values = vals![
            words.as_str(),
            search.agent.clone(),
            search.workdir.clone(),
            search.limit,
            search.namespace.as_str(),
            search.limit.max(RANKED),
        ];
        let mut hits = vec![];
        for row in rows(self, FOUND, values).await? {
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
