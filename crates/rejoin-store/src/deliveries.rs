//! Deliveries of notifications, and their results.

use rejoin_core::TurnId;
use uuid::Uuid;

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
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

/// Result of a try.
#[derive(Debug, Clone)]
pub enum DeliveryResult<'a> {
    Sent,
    /// Try again at that time.
    Later(i64, &'a str),
    Failed(&'a str),
}

topic! {
    /// Deliveries of notifications, and the watermarks up to which they were found.
    Deliveries, deliveries
}

impl Deliveries<'_, Tx> {
    /// Moves a watermark. Returns false if it is no longer at `from`.
    pub async fn move_watermark(&mut self, name: &str, from: Option<i64>, to: i64) -> Result<bool> {
        let moved = match from {
            None => {
                let sql = "insert into watermarks (name, seq) values ($1, $2) on conflict (name) do nothing";
                self.0.run(sql, vals![name, to]).await?
            }
            Some(from) => {
                let sql = "update watermarks set seq = $3 where name = $1 and seq = $2";
                self.0.run(sql, vals![name, from, to]).await?
            }
        };
        Ok(moved > 0)
    }

    pub async fn add(&mut self, new: &NewDelivery<'_>) -> Result<()> {
        let sql =
            "insert into deliveries (id, turn_id, kind, target, state, tries, next_at, created_at, namespace)
            values ($1, $2, $3, $4, 'pending', 0, $5, $5, (select namespace from turns where id = $2))";
        let values = vals![new.id, new.turn.uuid(), new.kind, new.target, new.now];
        self.0.run(sql, values).await?;
        Ok(())
    }

    /// Takes a delivery until that time. Returns false if another process has taken it.
    pub async fn claim(&mut self, id: Uuid, tries: i64, until: i64) -> Result<bool> {
        let sql = "update deliveries set tries = tries + 1, next_at = $3
            where id = $1 and tries = $2 and state = 'pending'";
        Ok(self.0.run(sql, vals![id, tries, until]).await? > 0)
    }

    pub async fn record_result(
        &mut self,
        id: Uuid,
        tried: &DeliveryResult<'_>,
        now: i64,
    ) -> Result<()> {
        let (state, next, error) = match tried {
            DeliveryResult::Sent => ("sent", now, None),
            DeliveryResult::Later(at, why) => ("pending", *at, Some(*why)),
            DeliveryResult::Failed(why) => ("failed", now, Some(*why)),
        };
        let sql = "update deliveries set state = $2, next_at = $3, error = $4,
                sent_at = case when $2 = 'sent' then $5 else sent_at end
            where id = $1";
        self.0.run(sql, vals![id, state, next, error, now]).await?;
        Ok(())
    }
}

impl<C: Ask> Deliveries<'_, C> {
    /// Returns the position of a watermark. `None` if it was never set.
    pub async fn watermark(&mut self, name: &str) -> Result<Option<i64>> {
        let sql = "select seq from watermarks where name = $1";
        let row = one(self.0, sql, vals![name]).await?;
        row.map(|row| row.int("seq")).transpose()
    }

    /// Lists the due deliveries, oldest first.
    pub async fn due(&mut self, now: i64, limit: i64) -> Result<Vec<Delivery>> {
        let sql = "select * from deliveries where state = 'pending' and next_at <= $1 order by next_at limit $2";
        let found = rows(self.0, sql, vals![now, limit]).await?;
        found.iter().map(read).collect()
    }

    /// Lists the deliveries of a namespace, newest first.
    pub async fn of_namespace(&mut self, namespace: &str, limit: i64) -> Result<Vec<Delivery>> {
        let sql = "select * from deliveries where namespace = $1 order by id desc limit $2";
        let found = rows(self.0, sql, vals![namespace, limit]).await?;
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
