//! Full text, by the engine's own facility.

use rejoin_core::{ConversationId, MessageId, Role};

use crate::connections::Read;
use crate::db::{rows, vals};
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
    pub text: String,
    pub agent: Option<String>,
    pub workdir: Option<String>,
    pub limit: i64,
}

impl Read {
    /// Best first. Every word must be there, each as the beginning of one.
    pub async fn search(&mut self, search: &Search) -> Result<Vec<Hit>> {
        let words = words(&search.text);
        if words.is_empty() {
            return Ok(vec![]);
        }
        let sql = "select m.id, m.conversation_id, m.seq, m.role, m.agent, m.created_at,
                snippet(messages_text, 0, char(2), char(3), '…', 16) as snippet
            from messages_text
            join messages m on m.n = messages_text.rowid
            join conversations c on c.id = m.conversation_id
            where messages_text match $1 and m.removed_at is null and m.seq is not null
              and c.redirect_to is null
              and ($2 is null or m.agent = $2) and ($3 is null or c.workdir = $3)
            order by messages_text.rank, m.created_at desc limit $4";
        let values = vals![
            words,
            search.agent.clone(),
            search.workdir.clone(),
            search.limit
        ];
        rows(self, sql, values)
            .await?
            .iter()
            .map(|row| {
                Ok(Hit {
                    conversation: ConversationId::from_uuid(row.id("conversation_id")?),
                    message: MessageId::from_uuid(row.id("id")?),
                    seq: row.int("seq")?,
                    role: role_of(row)?,
                    agent: row.maybe_text("agent")?,
                    snippet: row.text("snippet")?,
                    created_at: row.int("created_at")?,
                })
            })
            .collect()
    }
}

/// Every word quoted, so that none of it is taken for an operator of the engine. What stands in
/// quotes is one phrase.
fn words(text: &str) -> String {
    let clean: String = text.replace(['\0', HIT_BEGINS, HIT_ENDS], " ");
    let mut terms = vec![];
    for (at, part) in clean.split('"').enumerate() {
        if at % 2 == 1 {
            terms.push((part.to_owned(), ""));
        } else {
            terms.extend(part.split_whitespace().map(|w| (w.to_owned(), "*")));
        }
    }
    let says_something = |term: &str| term.chars().any(char::is_alphanumeric);
    let quoted: Vec<String> = terms
        .iter()
        .filter(|(term, _)| says_something(term))
        .map(|(term, tail)| format!("\"{term}\"{tail}"))
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
