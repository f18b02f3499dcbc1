//! Full text by tsvector: the same words are found as in the other engine.
//!
//! The engine reads every hit before it puts them in order. So the newest messages are searched first, and
//! older ones only if there are too few hits.

use super::{HIT_BEGINS, Hit, RANKED, Search, Term, hit, terms};
use crate::connections::Read;
use crate::db::{Row, one, rows, vals};
use crate::error::Result;

/// The words as `rejoin_words` makes them of a message.
macro_rules! query {
    () => {
        r"to_tsquery('simple', regexp_replace(normalize($1, nfd), '[\u0300-\u036f]', '', 'g'))"
    };
}

/// The best of the newest hits. `$4` says which messages are searched; `ts_rank` looks at the message alone. What
/// ends with `offset 0` is looked up for each hit.
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
/// The word stands inside a path or has marks: shown as it was found.
pub(super) const AS_FOUND: &str = snippet!("rejoin_words(text)");

/// Runs of messages that are searched one after the other: the name of a run, and the power of two that is its length.
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

/// The hits in the newest messages, or in all if those hold too few.
async fn newest(read: &mut Read, search: &Search, query: &str) -> Result<Vec<Row>> {
    let last = one(
        read,
        "select last_value as n from rejoin_messages_n",
        vec![],
    )
    .await?;
    let last = last.map_or(Ok(0), |row| row.int("n"))?;
    // Some may be of removed messages, or of another folder.
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

/// A word of our own, as a query holds it.
fn quoted(kind: &str, name: &str) -> String {
    format!(
        "'{kind}:{}'",
        name.replace('\\', "\\\\").replace('\'', "''")
    )
}

/// In the engine's own language; every word quoted, so that none of it is taken for an operator. None:
/// there is nothing to look for.
fn query(text: &str, begins: bool) -> Option<String> {
    let terms: Vec<String> = terms(text)
        .iter()
        .filter_map(|term| one_term(term, begins))
        .collect();
    (!terms.is_empty()).then(|| terms.join(" & "))
}

/// Signs part words, as in what was said; the parts of a term stand side by side.
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
