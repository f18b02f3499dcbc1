//! Full text by tsvector: the same words are found as in the other engine.

use super::{HIT_BEGINS, Hit, RANKED, Search, Term, hit, terms};
use crate::connections::Read;
use crate::db::{one, rows, vals};
use crate::error::Result;

/// The words as `rejoin_words` makes them of a message.
macro_rules! query {
    () => {
        r"to_tsquery('simple', regexp_replace(normalize($1, nfd), '[\u0300-\u036f]', '', 'g'))"
    };
}

/// The best of the newest hits in the namespace. `ts_rank` looks at the message alone.
const FOUND: &str = concat!(
    "select id, conversation_id, seq, role, agent, created_at from (
        select m.id, m.conversation_id, m.seq, m.role, m.agent, m.created_at, t.words
        from messages_text t
        join messages m on m.id = t.message_id
        join conversations c on c.id = m.conversation_id
        where t.words @@ ",
    query!(),
    " and m.removed_at is null and m.seq is not null
          and c.redirect_to is null and c.namespace = $5
          and ($2 is null or m.agent = $2) and ($3 is null or c.workdir = $3)
        order by m.id desc limit $6
    ) as newest
    order by ts_rank(words, ",
    query!(),
    ") desc, id desc limit $4"
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

pub(super) async fn search(read: &mut Read, search: &Search) -> Result<Vec<Hit>> {
    let Some(query) = query(&search.text) else {
        return Ok(vec![]);
    };
    let values = vals![
        query.as_str(),
        search.agent.clone(),
        search.workdir.clone(),
        search.limit,
        search.namespace.as_str(),
        search.limit.max(RANKED),
    ];
    let mut hits = vec![];
    for row in rows(read, FOUND, values).await? {
        let id = row.id("id")?;
        let as_said = snippet!("left(text, 150000)");
        let mut said = one(read, as_said, vals![query.as_str(), id]).await?;
        let shown = |row: &crate::db::Row| row.text("snippet");
        let marked = said.as_ref().map(shown).transpose()?;
        if !marked.is_some_and(|snippet| snippet.contains(HIT_BEGINS)) {
            // The word stands inside a path or has marks: shown as it was found.
            let as_found = snippet!("rejoin_words(text)");
            said = one(read, as_found, vals![query.as_str(), id]).await?;
        }
        let snippet = said.as_ref().map(shown).transpose()?.unwrap_or_default();
        hits.push(hit(&row, snippet)?);
    }
    Ok(hits)
}

/// In the engine's own language; every word quoted, so that none of it is taken for an operator. None:
/// there is nothing to look for.
fn query(text: &str) -> Option<String> {
    let terms: Vec<String> = terms(text).iter().filter_map(one_term).collect();
    (!terms.is_empty()).then(|| terms.join(" & "))
}

/// Signs part words, as in what was said; the parts of a term stand side by side.
fn one_term(term: &Term) -> Option<String> {
    let parts = term
        .text
        .split(|c: char| c.is_whitespace() || c.is_ascii_punctuation() || c.is_control());
    let parts: Vec<String> = parts
        .filter(|part| part.chars().any(char::is_alphanumeric))
        .map(|part| format!("'{part}'"))
        .collect();
    let tail = if term.begins { ":*" } else { "" };
    (!parts.is_empty()).then(|| format!("({}{tail})", parts.join(" <-> ")))
}

#[cfg(test)]
mod tests {
    use super::query;

    #[test]
    fn words_are_never_operators() {
        let asked = |text| query(text).unwrap_or_default();
        assert_eq!(asked("a | b*"), "('a':*) & ('b':*)");
        assert_eq!(
            asked("it's \"two words\""),
            "('it' <-> 's':*) & ('two' <-> 'words')"
        );
        assert_eq!(asked("!a'b\\c:*"), "('a' <-> 'b' <-> 'c':*)");
        assert_eq!(asked(" - \" \0 & "), "");
    }
}
