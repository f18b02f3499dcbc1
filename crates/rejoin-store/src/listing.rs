//! Lists of conversations, page by page, newest first.
//!
//! A page is read from an index in the order of the list, beginning after the last row of the
//! previous page. Earlier and later rows cost nothing.

use rejoin_core::ConversationId;
use uuid::Uuid;

use crate::connections::Read;
use crate::conversations::{Conversation, read};
use crate::db::{rows, vals};
use crate::error::Result;

/// Selection of conversations to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    pub namespace: String,
    pub workdir: Option<String>,
    pub agent: Option<String>,
    /// `idle`, `queued`, `running` or `waiting`.
    pub state: Option<String>,
    /// True to list archived conversations instead of the others.
    pub archived: bool,
    /// Values `updated_at` and id of the last conversation already shown.
    pub after: Option<(i64, ConversationId)>,
    pub limit: i64,
}

/// A page of an index over namespace and shelf. `$by` selects the index, `$which` filters.
macro_rules! page {
    ($by:literal, $which:expr) => {
        concat!(
            "select * from conversations where namespace = $1 and shelf = $2 and ",
            $by,
            "(updated_at, id) < ($3, $4)",
            $which,
            " order by updated_at desc, id desc limit $5"
        )
    };
}

/// Conversations without a turn that runs, waits or is queued.
macro_rules! idle {
    () => {
        " and not exists (select 1 from turns where conversation_id = conversations.id and status in ('running', 'waiting'))
          and not exists (select 1 from turns where conversation_id = conversations.id and status = 'queued')"
    };
}

const ALL: [&str; 2] = [page!("", ""), page!("", idle!())];
const OF_AGENT: [&str; 2] = [
    page!("agent = $6 and ", ""),
    page!("agent = $6 and ", idle!()),
];
const OF_WORKDIR: [&str; 2] = [
    page!("workdir = $6 and ($7 is null or agent = $7) and ", ""),
    page!("workdir = $6 and ($7 is null or agent = $7) and ", idle!()),
];

/// Running and waiting turns are few, so their conversations are sorted.
const RUNNING: &str = "select c.* from turns t cross join conversations c
    where t.status in ('running', 'waiting') and t.status = $6 and c.id = t.conversation_id
        and c.namespace = $1 and c.shelf = $2 and (c.updated_at, c.id) < ($3, $4)
        and ($7 is null or c.workdir = $7) and ($8 is null or c.agent = $8)
    order by c.updated_at desc, c.id desc limit $5 /* sort: of what runs */";

/// Conversations of which no turn runs and at least one is queued. These are few as well.
const QUEUED: &str = "select c.* from (select distinct conversation_id from turns where status = 'queued') as waiting
        cross join conversations c
    where c.id = waiting.conversation_id
        and c.namespace = $1 and c.shelf = $2 and (c.updated_at, c.id) < ($3, $4)
        and ($6 is null or c.workdir = $6) and ($7 is null or c.agent = $7)
        and not exists (select 1 from turns where conversation_id = c.id and status in ('running', 'waiting'))
    order by c.updated_at desc, c.id desc limit $5 /* sort: of what is queued */";

/// Returns the statements composed above.
pub(crate) fn composed() -> Vec<&'static str> {
    [ALL, OF_AGENT, OF_WORKDIR].concat()
}

impl Read {
    /// Returns a page of the conversations of a namespace, newest first.
    pub async fn listing(&mut self, filter: &ListFilter) -> Result<Vec<Conversation>> {
        let (at, id) = match filter.after {
            Some((at, id)) => (at, id.uuid()),
            None => (i64::MAX, Uuid::max()),
        };
        let shelf = i64::from(filter.archived);
        let mut values = vals![filter.namespace.as_str(), shelf, at, id, filter.limit];
        let (workdir, agent) = (filter.workdir.clone(), filter.agent.clone());
        let idle = usize::from(filter.state.as_deref() == Some("idle"));
        let sql = match (filter.state.as_deref(), &workdir, &agent) {
            (Some(state @ ("running" | "waiting")), _, _) => {
                values.extend(vals![state, workdir, agent]);
                RUNNING
            }
            (Some("queued"), _, _) => {
                values.extend(vals![workdir, agent]);
                QUEUED
            }
            (_, Some(_), _) => {
                values.extend(vals![workdir, agent]);
                OF_WORKDIR[idle]
            }
            (_, None, Some(_)) => {
                values.extend(vals![agent]);
                OF_AGENT[idle]
            }
            (_, None, None) => ALL[idle],
        };
        rows(self, sql, values).await?.iter().map(read).collect()
    }
}
