//! Recomputes the values of a history after a change, without reading the texts.

use rejoin_core::{ConversationId, Digest, MessageId, Role, ScopeValue};

use crate::connections::Tx;
use crate::db::{Ask, one, rows, vals};
use crate::error::{Error, Result};
use crate::history::{Boundary, LastAnswer, Values, full_value, last_answer};
use crate::messages::{read, role_of};

impl Tx {
    /// Recomputes the values from a position to the end.
    pub async fn recompute(&mut self, c: ConversationId, from: i64) -> Result<()> {
        let mut full = full_value(self, c, from - 1).await?;
        let mut last = last_answer(self, c, from).await?;
        let after = last.as_ref().map_or(0, |l| l.itself.seq);
        let mut pending = vec![];
        for entry in folded(self, c, after).await? {
            if entry.seq < from {
                pending.push(entry.digest);
                continue;
            }
            full = full.fold(&entry.digest);
            let mut values = Values {
                full,
                run: full,
                boundary: None,
            };
            if entry.role == Role::Assistant {
                if let Some(last) = &last {
                    let (boundary, begin) = last.followed_by(entry.agent.as_deref());
                    let run = pending.iter().fold(begin, ScopeValue::fold);
                    values.run = run.fold(&entry.digest);
                    values.boundary = boundary;
                }
                pending.clear();
                last = Some(LastAnswer {
                    itself: Boundary {
                        root: entry.root,
                        seq: entry.seq,
                    },
                    agent: entry.agent.clone().unwrap_or_default(),
                    run: values.run,
                    boundary: values.boundary,
                });
            } else {
                pending.push(entry.digest);
            }
            self.keep_values(&entry, &values).await?;
        }
        Ok(())
    }

    async fn keep_values(&mut self, entry: &Folded, values: &Values) -> Result<()> {
        let sql = "update messages set value_full = $2, value_run = $3, run_boundary = $4, run_after = $5, digest = $6
            where id = $1";
        let values = vals![
            entry.id.uuid(),
            values.full.0,
            values.run.0,
            values.boundary.map(|b| b.root.uuid()),
            values.boundary.map(|b| b.seq),
            entry.digest.0,
        ];
        self.run(sql, values).await?;
        Ok(())
    }
}

/// A placed message, reduced to the data that values depend on.
struct Folded {
    id: MessageId,
    root: MessageId,
    seq: i64,
    role: Role,
    agent: Option<String>,
    digest: Digest,
}

/// Returns the messages after a position, in order. Only messages of an older build lack a digest.
async fn folded(at: &mut impl Ask, c: ConversationId, after: i64) -> Result<Vec<Folded>> {
    let sql = "select id, coalesce(root, id) as root, seq, role, agent, digest from messages
        where conversation_id = $1 and seq > $2 and removed_at is null order by seq";
    let mut all = vec![];
    for row in rows(at, sql, vals![c.uuid(), after]).await? {
        let id = MessageId::from_uuid(row.id("id")?);
        let digest = match row.maybe_hash("digest")? {
            Some(digest) => Digest(digest),
            None => digest_of(at, id).await?,
        };
        all.push(Folded {
            id,
            root: MessageId::from_uuid(row.id("root")?),
            seq: row.int("seq")?,
            role: role_of(&row)?,
            agent: row.maybe_text("agent")?,
            digest,
        });
    }
    Ok(all)
}

async fn digest_of(at: &mut impl Ask, id: MessageId) -> Result<Digest> {
    let row = one(at, "select * from messages where id = $1", vals![id.uuid()]).await?;
    let row = row.ok_or_else(|| Error::Foreign("a message is missing".into()))?;
    Ok(read(&row)?.message.digest())
}
