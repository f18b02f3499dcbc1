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

/// So many of the newest hits are ranked: to rank all of them would take longer the more there are.
const RANKED: i64 = 50;

/// Words of fewer bytes are not looked for as beginnings of others: too many begin so. One letter of a script
/// that writes without spaces is longer.
const BEGINS: usize = 3;

/// So many words that begin with one are looked for.
const WORDS: usize = 64;

/// Ranks by how often the words occur for the length of the text, and not by the engine's own `rank`, which
/// weighs words by the messages of all namespaces. Each occurrence adds one character to the highlight. The
/// engine gives hits newest first, and reads no more than are taken.
const FOUND: &str = "select id, n, conversation_id, seq, role, agent, created_at from (
        select m.id, m.n, m.conversation_id, m.seq, m.role, m.agent, m.created_at,
            length(highlight(messages_text, 0, char(2), '')) - length(m.text) as times,
            length(m.text) as size
        from messages_text cross join messages m cross join conversations c
        where messages_text match $1 and m.n = messages_text.rowid and c.id = m.conversation_id
          and m.removed_at is null and m.seq is not null
          and c.redirect_to is null and ($2 is null or c.workdir = $2)
          and messages_text.rowid >= $5 and c.namespace = $6 and ($7 is null or m.agent = $7)
        order by messages_text.rowid desc limit $4
    )
    order by times * 1000 / (size + 400) desc, n desc limit $3 /* sort: of the newest hits */";

/// How many of the newest hits there are, of all namespaces, and the oldest of them.
const NEWEST: &str = "select count(*) as hits, min(n) as lowest from (
        select rowid as n from messages_text where messages_text match $1 order by rowid desc limit $2)";

/// So many of them are looked at. Only if most are of others the engine is asked for those of the namespace,
/// for which it has to read more.
const LOOKED_AT: i64 = 4 * RANKED;

impl Read {
    /// Returns the best of the newest hits in the namespace. Every word must be there; where that gives too
    /// few, each as the beginning of one.
    pub async fn search(&mut self, search: &Search) -> Result<Vec<Hit>> {
        if let Connection::Postgres(_) = self.connection()? {
            return postgres::search(self, search).await;
        }
        let (mut found, mut asked) = (vec![], String::new());
        for begins in [false, true] {
            let words = self.words(&search.text, begins).await?;
            if words.is_empty() {
                return Ok(vec![]);
            }
            if words == asked {
                break;
            }
            asked = words;
            found = self.newest(search, &asked).await?;
            if found.len() as i64 >= search.limit {
                break;
            }
        }
        let asked = format!("text : ({asked})");
        let mut hits = vec![];
        for row in found {
            hits.push(hit(&row, self.snippet(&asked, row.int("n")?).await?)?);
        }
        Ok(hits)
    }

    /// Returns the newest hits of the namespace, best first.
    async fn newest(&mut self, search: &Search, words: &str) -> Result<Vec<Row>> {
        let everywhere = format!("text : ({words})");
        let newest = one(self, NEWEST, vals![everywhere.as_str(), LOOKED_AT]).await?;
        let (hits, lowest) = match newest {
            Some(row) => (row.int("hits")?, row.maybe_int("lowest")?.unwrap_or(0)),
            None => (0, 0),
        };
        let values = |words: &str, lowest: i64| {
            vals![
                words,
                search.workdir.clone(),
                search.limit,
                search.limit.max(RANKED),
                lowest,
                search.namespace.as_str(),
                search.agent.clone(),
            ]
        };
        let found = rows(self, FOUND, values(&everywhere, lowest)).await?;
        if found.len() as i64 >= search.limit || hits < LOOKED_AT {
            return Ok(found);
        }
        rows(self, FOUND, values(&within(search, words), 0)).await
    }

    /// Every word quoted, so that none of it is taken for an operator of the engine. `begins`: with the words
    /// that begin so.
    async fn words(&mut self, text: &str, begins: bool) -> Result<String> {
        let mut quoted = vec![];
        for Term { text, begins: may } in terms(text) {
            let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
            quoted.push(match (begins && may, plain) {
                (false, _) => format!("\"{text}\""),
                (true, false) => format!("\"{text}\"*"),
                (true, true) => {
                    let known = self.beginning(&text.to_ascii_lowercase()).await?;
                    let known = known.iter().map(|word| format!("\"{word}\""));
                    let any = known.collect::<Vec<_>>().join(" OR ");
                    if any.is_empty() {
                        format!("\"{text}\"")
                    } else {
                        format!("({any})")
                    }
                }
            });
        }
        Ok(quoted.join(" AND "))
    }

    /// Returns words that begin so, in the order of letters. The engine would read all messages that hold one
    /// of them; if it is given the words, it reads the newest.
    async fn beginning(&mut self, prefix: &str) -> Result<Vec<String>> {
        let sql = "select term from messages_words where term >= $1 and term < $2 limit 1";
        let mut words: Vec<String> = vec![];
        let mut from = prefix.to_owned();
        while words.len() < WORDS {
            let until = format!("{prefix}\u{10ffff}");
            let Some(row) = one(self, sql, vals![from.as_str(), until]).await? else {
                break;
            };
            let word = row.text("term")?;
            from = format!("{word}\u{1}");
            words.push(word);
        }
        Ok(words)
    }

    async fn snippet(&mut self, words: &str, n: i64) -> Result<String> {
        let sql = "select snippet(messages_text, 0, char(2), char(3), '…', 16) as snippet
            from messages_text where messages_text match $1 and rowid = $2";
        let row = one(self, sql, vals![words, n]).await?;
        row.map_or(Ok(String::new()), |row| row.text("snippet"))
    }
}

/// Returns the statements that are put together of pieces.
pub(crate) fn composed() -> Vec<&'static str> {
    vec![postgres::FOUND, postgres::AS_SAID, postgres::AS_FOUND]
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
                begins: word.len() >= BEGINS,
            }));
        }
    }
    terms.retain(|term| term.text.chars().any(char::is_alphanumeric));
    terms
}

/// Those words in the messages of a namespace, and of an agent.
fn within(search: &Search, words: &str) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16);
    let hex = |name: &str| {
        let halves = name.bytes().flat_map(|byte| [byte >> 4, byte & 15]);
        halves.filter_map(digit).collect::<String>()
    };
    let mut space = format!("\"ns{}\"", hex(&search.namespace));
    if let Some(agent) = &search.agent {
        space = format!("{space} \"by{}\"", hex(agent));
    }
    format!("text : ({words}) AND space : ({space})")
}
