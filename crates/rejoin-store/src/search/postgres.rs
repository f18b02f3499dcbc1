//! Full text search with tsvector. Finds the same words as the other engine.
//!
//! The engine reads every hit before it sorts them. So the newest messages are searched first, and
//! older ones only if there are too few hits.

use super::{HIT_BEGINS, Hit, RANKED, Search, Term, hit, terms};
use crate::connections::Read;
use crate::db::{Row, one, rows, vals};
use crate::error::Result;

/// Query words, normalised as `rejoin_words` does for messages.
macro_rules! query {
    () => {
        r"to_tsquery('simple', regexp_replace(normalize($1, nfd), '[\u0300-\u036f]', '', 'g'))"
    };
}

/// The best of the newest hits. `$4` selects the messages to search; `ts_rank` looks at the message
/// alone. Subqueries with `offset 0` are evaluated for each hit.
pub(super) const FOUND: &str = concat!(
    "select m.id, m.conversation_id, m.seq, m.role, m.agent, m.created_at from (
        select message_id, n, words from messages_text where words @@ (",
    query!(),
    " && cast($4 as tsquery)) order by n desc limit $5
    ) as t
    cross join lateral (select * from messages where id = t.message_id and removed_at is null
        and seq is not null offset 0) as m
    cross join lateral (select 1 from conversations where id = m.conversation_id and redirect_to is null
        and ($2 is null or workdir = $2) offset 0) as c
    order by ts_rank(t.words, ",
    query!(),
    ") desc, t.n desc limit $3 /* sort: of the newest hits */"
);

macro_rules! snippet {
    ($text:literal) => {
        concat!(
            "select ts_headline('simple', ",
            $text,
            ", ",
            query!(),
            ", 'StartSel=' || chr(2) || ',StopSel=' || chr(3) || ',MaxWords=16,MinWords=8,HighlightAll=false') as snippet
            from messages where id = $2"
        )
    };
}

pub(super) const AS_SAID: &str = snippet!("left(text, 150000)");
/// For a word inside a path or with diacritics: shown in its normalised form.
pub(super) const AS_FOUND: &str = snippet!("rejoin_words(text)");

/// Ranges of messages that are searched one after the other: name, and length as a power of two.
const RUNS: [(&str, u32); 3] = [("at0", 12), ("at1", 16), ("at2", 20)];

pub(super) async fn search(read: &mut Read, search: &Search) -> Result<Vec<Hit>> {
    let (mut found, mut asked) = (vec![], String::new());
    for begins in [false, true] {
        let Some(query) = query(&search.text, begins) else {
            return Ok(vec![]);
        };
        if query == asked {
            break;
        }
        asked = query;
        found = newest(read, search, &asked).await?;
        if found.len() as i64 >= search.limit {
            break;
        }
    }
    let mut hits = vec![];
    for row in found {
        let id = row.id("id")?;
        let mut said = one(read, AS_SAID, vals![asked.as_str(), id]).await?;
        let shown = |row: &Row| row.text("snippet");
        let marked = said.as_ref().map(shown).transpose()?;
        if !marked.is_some_and(|snippet| snippet.contains(HIT_BEGINS)) {
            said = one(read, AS_FOUND, vals![asked.as_str(), id]).await?;
        }
        let snippet = said.as_ref().map(shown).transpose()?.unwrap_or_default();
        hits.push(hit(&row, snippet)?);
    }
    Ok(hits)
}

/// Returns the hits in the newest messages, or in all messages if those contain too few.
async fn newest(read: &mut Read, search: &Search, query: &str) -> Result<Vec<Row>> {
    let last = one(
        read,
        "select last_value as n from rejoin_messages_n",
        vec![],
    )
    .await?;
    let last = last.map_or(Ok(0), |row| row.int("n"))?;
    // Some hits may be in removed messages or in another folder.
    let spare = if search.workdir.is_some() { 100 } else { 4 };
    let most = search.limit.max(RANKED) * spare;
    let mut space = quoted("ns", &search.namespace);
    if let Some(agent) = &search.agent {
        space = format!("{space} & {}", quoted("by", agent));
    }
    let runs = RUNS.iter().filter(|(_, length)| last >> length > 1);
    let runs = runs.map(|(name, length)| {
        let run = last >> length;
        format!("{space} & ('{name}:{run}' | '{name}:{}')", run - 1)
    });
    for within in runs.chain([space.clone()]) {
        let values = vals![
            query,
            search.workdir.clone(),
            search.limit,
            within.as_str(),
            most
        ];
        let found = rows(read, FOUND, values).await?;
        if found.len() as i64 >= search.limit || within == space {
            return Ok(found);
        }
    }
    Ok(vec![])
}

/// Quotes one of our own words for a query.
fn quoted(kind: &str, name: &str) -> String {
    format!(
        "'{kind}:{}'",
        name.replace('\\', "\\\\").replace('\'', "''")
    )
}

/// Builds a query in the engine's language. Every word is quoted, so that none is taken for an
/// operator. `None` if there is no word to search.
fn query(text: &str, begins: bool) -> Option<String> {
    let terms: Vec<String> = terms(text)
        .iter()
        .filter_map(|term| one_term(term, begins))
        .collect();
    (!terms.is_empty()).then(|| terms.join(" & "))
}

/// Builds one term. Punctuation separates words, as in messages; the parts of a term must be
/// adjacent.
fn one_term(term: &Term, begins: bool) -> Option<String> {
    let parts = term
        .text
        .split(|c: char| c.is_whitespace() || c.is_ascii_punctuation() || c.is_control());
    let parts: Vec<String> = parts
        .filter(|part| part.chars().any(char::is_alphanumeric))
        .map(|part| format!("'{part}'"))
        .collect();
    let tail = if begins && term.begins { ":*" } else { "" };
    (!parts.is_empty()).then(|| format!("({}{tail})", parts.join(" <-> ")))
}

#[cfg(test)]
mod tests {
    use super::{query, quoted};

    #[test]
    fn words_are_never_operators() {
        let asked = |text| query(text, true).unwrap_or_default();
        assert_eq!(asked("abc | bcd*"), "('abc':*) & ('bcd':*)");
        assert_eq!(
            asked("it's \"two words\""),
            "('it' <-> 's':*) & ('two' <-> 'words')"
        );
        assert_eq!(asked("!a'b\\c:*"), "('a' <-> 'b' <-> 'c':*)");
        assert_eq!(asked(" - \" \0 & "), "");
        assert_eq!(query("abc", false).unwrap_or_default(), "('abc')");
        assert_eq!(quoted("ns", "a'b\\"), r"'ns:a''b\\'");
    }
}
