//! Notifications that are to be delivered, and how that went.

use rejoin_core::TurnId;
use uuid::Uuid;

use crate::connections::{Read, Tx};
use crate::db::{Row, one, rows, vals};
use crate::error::Result;

#[derive(Debug, Clone)]
pub struct NewDelivery<'a> {
    pub id: Uuid,
    pub turn: TurnId,
    pub kind: &'a str,
    pub target: &'a str,
    pub now: i64,
}

#[derive(Debug, Clone)]
pub struct Delivery {
    pub id: Uuid,
    pub turn: TurnId,
    pub kind: String,
    pub target: String,
    /// `pending`, `sent` or `failed`.
    pub state: String,
    pub tries: i64,
    pub next_at: i64,
    pub error: Option<String>,
    pub created_at: i64,
    pub sent_at: Option<i64>,
}

/// How a try went.
#[derive(Debug, Clone)]
pub enum Tried<'a> {
    Sent,
    /// Tried again then.
    Later(i64, &'a str),
    Failed(&'a str),
}

impl Tx {
    /// Moves on from where somebody was, if they still are there.
    pub async fn move_on(&mut self, name: &str, from: Option<i64>, to: i64) -> Result<bool> {
        let moved = match from {
            None => {
                let sql = "insert into watermarks (name, seq) values ($1, $2) on conflict (name) do nothing";
                self.run(sql, vals![name, to]).await?
            }
            Some(from) => {
                let sql = "update watermarks set seq = $3 where name = $1 and seq = $2";
                self.run(sql, vals![name, from, to]).await?
            }
        };
        Ok(moved > 0)
    }

    pub async fn add_delivery(&mut self, new: &NewDelivery<'_>) -> Result<()> {
        let sql =
            "insert into deliveries (id, turn_id, kind, target, state, tries, next_at, created_at, namespace)
            values ($1, $2, $3, $4, 'pending', 0, $5, $5, (select namespace from turns where id = $2))";
        let values = vals![new.id, new.turn.uuid(), new.kind, new.target, new.now];
        self.run(sql, values).await?;
        Ok(())
    }

    /// Takes it in hand until then. False: somebody else has.
    pub async fn try_delivery(&mut self, id: Uuid, tries: i64, until: i64) -> Result<bool> {
        let sql = "update deliveries set tries = tries + 1, next_at = $3
            where id = $1 and tries = $2 and state = 'pending'";
        Ok(self.run(sql, vals![id, tries, until]).await? > 0)
    }

    pub async fn delivery_tried(&mut self, id: Uuid, tried: &Tried<'_>, now: i64) -> Result<()> {
        let (state, next, error) = match tried {
            Tried::Sent => ("sent", now, None),
            Tried::Later(at, why) => ("pending", *at, Some(*why)),
            Tried::Failed(why) => ("failed", now, Some(*why)),
        };
        let sql = "update deliveries set state = $2, next_at = $3, error = $4,
                sent_at = case when $2 = 'sent' then $5 else sent_at end
            where id = $1";
        self.run(sql, vals![id, state, next, error, now]).await?;
        Ok(())
    }
}

impl Read {
    /// How far somebody has come; none: they have not begun.
    pub async fn watermark(&mut self, name: &str) -> Result<Option<i64>> {
        let sql = "select seq from watermarks where name = $1";
        let row = one(self, sql, vals![name]).await?;
        row.map(|row| row.int("seq")).transpose()
    }

    /// What is to be tried now, oldest first.
    pub async fn deliveries_due(&mut self, now: i64, limit: i64) -> Result<Vec<Delivery>> {
        let sql = "select * from deliveries where state = 'pending' and next_at <= $1 order by next_at limit $2";
        let found = rows(self, sql, vals![now, limit]).await?;
        found.iter().map(read).collect()
    }

    /// The newest of a namespace first.
    pub async fn deliveries(&mut self, namespace: &str, limit: i64) -> Result<Vec<Delivery>> {
        let sql = "select * from deliveries where namespace = $1 order by id desc limit $2";
        let found = rows(self, sql, vals![namespace, limit]).await?;
        found.iter().map(read).collect()
    }
}

fn read(row: &Row) -> Result<Delivery> {
    Ok(Delivery {
        id: row.id("id")?,
        turn: TurnId::from_uuid(row.id("turn_id")?),
        kind: row.text("kind")?,
        target: row.text("target")?,
        state: row.text("state")?,
        tries: row.int("tries")?,
        next_at: row.int("next_at")?,
        error: row.maybe_text("error")?,
        created_at: row.int("created_at")?,
        sent_at: row.maybe_int("sent_at")?,
    })
}
