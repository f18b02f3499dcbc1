//! Full text search with the engine's own facility.

mod postgres;

use rejoin_core::{ConversationId, MessageId, Role};

use crate::connections::Read;
use crate::db::{Ask as _, Row, one, rows, vals};
use crate::engine::Connection;
use crate::error::Result;
use crate::messages::role_of;

/// A message that contains the words.
#[derive(Debug, Clone)]
pub struct Hit {
    pub conversation: ConversationId,
    pub message: MessageId,
    pub seq: i64,
    pub role: Role,
    pub agent: Option<String>,
    /// Text around the words, which are enclosed in [`HIT_BEGINS`] and [`HIT_ENDS`].
    pub snippet: String,
    pub created_at: i64,
}

/// Control characters: no message that reaches a screen contains any.
pub const HIT_BEGINS: char = '\u{2}';
pub const HIT_ENDS: char = '\u{3}';

/// Parameters of a search.
#[derive(Debug, Clone, Default)]
pub struct Search {
    pub namespace: String,
    pub text: String,
    pub agent: Option<String>,
    pub workdir: Option<String>,
    pub limit: i64,
}

/// Number of newest hits to rank: ranking all of them would take longer the more there are.
const RANKED: i64 = 50;

/// Minimum length in bytes of a word that is also searched as a prefix: too many words begin with a
/// shorter one. One letter of a script without spaces is longer.
const BEGINS: usize = 3;

/// Maximum number of words to search for one prefix.
const WORDS: usize = 64;

/// Ranks by the number of occurrences relative to the length of the text, and not by the engine's
/// own `rank`, which weighs words by the messages of all namespaces. Each occurrence adds one
/// character to the highlight. The engine returns hits newest first, and reads no more than are
/// taken.
macro_rules! found {
    ($also:literal, $which:literal) => {
        concat!(
            "select id, n, conversation_id, seq, role, agent, created_at from (
        select m.id, m.n, m.conversation_id, m.seq, m.role, m.agent, m.created_at,
            length(highlight(messages_text, 0, char(2), '')) - length(m.text) as times,
            length(m.text) as size
        from messages_text cross join messages m ",
            $also,
            " where messages_text match $1 and messages_text.rowid > $2 and messages_text.rowid < $3
          and m.n = messages_text.rowid and m.removed_at is null and m.seq is not null ",
            $which,
            "
        order by messages_text.rowid desc limit $4
    )
    order by times * 1000 / (size + 400) desc, n desc limit $5 /* sort: of the newest hits */"
        )
    };
}

const FOUND: &str = found!("", "");
const FOUND_IN_WORKDIR: &str = found!(
    "cross join conversations c",
    "and c.id = m.conversation_id and c.workdir = $6"
);

/// Part of the index with the messages of a namespace: numbers above the first and below the
/// second.
type Range = (i64, i64);

/// Size of the range of a namespace. The migrations use the same number.
const RANGE: i64 = 1 << 40;

/// A word is frequent if this many of the namespace's newest messages contain [`RANKED`] hits.
const FREQUENT: i64 = 2_000;

impl Read {
    /// Returns the best of the newest hits in the namespace. Every word must occur; if that gives
    /// too few hits, each word also counts as a prefix.
    pub async fn search(&mut self, search: &Search) -> Result<Vec<Hit>> {
        if let Connection::Postgres(_) = self.connection()? {
            return postgres::search(self, search).await;
        }
        let Some(range) = self.range_of(&search.namespace).await? else {
            return Ok(vec![]);
        };
        let (mut found, mut asked) = (vec![], String::new());
        for begins in [false, true] {
            let words = self.words(&search.text, begins, range).await?;
            if words.is_empty() {
                return Ok(vec![]);
            }
            if words == asked {
                break;
            }
            asked = words;
            found = self.newest(search, &asked, range).await?;
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

    /// Returns the numbers of the messages of a namespace. `None`: it has no message.
    async fn range_of(&mut self, namespace: &str) -> Result<Option<Range>> {
        let sql = "select base from spaces where name = $1";
        let row = one(self, sql, vals![namespace]).await?;
        let base = row.map(|row| row.int("base")).transpose()?;
        Ok(base.map(|base| (base, base + RANGE)))
    }

    /// Returns the newest hits of the namespace, best first.
    async fn newest(&mut self, search: &Search, words: &str, range: Range) -> Result<Vec<Row>> {
        let words = match &search.agent {
            Some(agent) => {
                let agent = rejoin_core::hex(agent.as_bytes());
                format!("text : ({words}) AND space : (\"by{agent}\")")
            }
            None => format!("text : ({words})"),
        };
        let ranked = search.limit.max(RANKED);
        let mut values = vals![words, range.0, range.1, ranked, search.limit];
        let Some(workdir) = &search.workdir else {
            return rows(self, FOUND, values).await;
        };
        values.extend(vals![workdir.as_str()]);
        rows(self, FOUND_IN_WORKDIR, values).await
    }

    /// Quotes every word, so that none is taken for an operator of the engine. `begins`: adds the
    /// words that begin with it.
    async fn words(&mut self, text: &str, begins: bool, range: Range) -> Result<String> {
        let mut quoted = vec![];
        for Term { text, begins: may } in terms(text) {
            let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
            quoted.push(match (begins && may, plain) {
                (false, _) => format!("\"{text}\""),
                (true, false) => format!("\"{text}\"*"),
                (true, true) => {
                    let known = self.beginning(&text.to_ascii_lowercase(), range).await?;
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

    /// Returns words with this prefix, in alphabetical order. For a prefix the engine would read
    /// all messages that contain one of them; given the words, it reads only the newest.
    ///
    /// Stops at a frequent word: the engine reads all its places to find the word behind it, and
    /// the newest hits are those of the frequent word anyway.
    async fn beginning(&mut self, prefix: &str, range: Range) -> Result<Vec<String>> {
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
            let frequent = self.is_frequent(&word, range).await?;
            words.push(word);
            if frequent {
                break;
            }
        }
        Ok(words)
    }

    async fn is_frequent(&mut self, word: &str, range: Range) -> Result<bool> {
        let sql = "select count(*) as hits, max(n) - min(n) as among from (
                select rowid as n from messages_text where messages_text match $1 and rowid > $2 and rowid < $3
                order by rowid desc limit $4)";
        let word = format!("text : \"{word}\"");
        let row = one(self, sql, vals![word, range.0, range.1, RANKED]).await?;
        row.map_or(Ok(false), |row| {
            let among = row.maybe_int("among")?.unwrap_or(i64::MAX);
            Ok(row.int("hits")? == RANKED && among < FREQUENT)
        })
    }

    async fn snippet(&mut self, words: &str, n: i64) -> Result<String> {
        let sql = "select snippet(messages_text, 0, char(2), char(3), '…', 16) as snippet
            from messages_text where messages_text match $1 and rowid = $2";
        let row = one(self, sql, vals![words, n]).await?;
        row.map_or(Ok(String::new()), |row| row.text("snippet"))
    }
}

/// Returns the statements that are composed of pieces.
pub(crate) fn composed() -> Vec<&'static str> {
    vec![
        FOUND,
        FOUND_IN_WORKDIR,
        postgres::FOUND,
        postgres::AS_SAID,
        postgres::AS_FOUND,
    ]
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

/// A term of a search. Quoted text is a phrase; any other term may be the beginning of a word.
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
