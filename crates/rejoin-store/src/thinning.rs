//! Removal of streamed pieces of texts that are stored whole.
//!
//! A turn that succeeded has its text twice: as the pieces in which it was streamed (`text.delta`) and as a whole
//! (`text`). Only a stream that runs at the moment needs the pieces. The first one stays, because its time is that of
//! the first text.

use rejoin_core::TurnId;

use crate::connections::{Read, Tx};
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::Result;

topic! {
    /// Streamed pieces of texts.
    Pieces, pieces
}

impl Pieces<'_, Tx> {
    /// Removes the streamed pieces of a turn. Returns their number.
    pub async fn thin(&mut self, turn: TurnId) -> Result<u64> {
        let sql = "delete from events where turn_id = $1 and type = 'text.delta'
            and seq > (select min(seq) from events where turn_id = $1 and type = 'text.delta')";
        self.0.run(sql, vals![turn.uuid()]).await
    }
}

impl Pieces<'_, Read> {
    /// Returns the number of streamed pieces that [`Pieces::thin`] would remove.
    pub async fn thinnable(&mut self, turn: TurnId) -> Result<u64> {
        let sql = "select count(*) as n from events where turn_id = $1 and type = 'text.delta'";
        let row = one(self.0, sql, vals![turn.uuid()]).await?;
        let found = row.map_or(Ok(0), |row| row.int("n"))?;
        Ok(found.saturating_sub(1).unsigned_abs())
    }
}

impl<C: Ask> Pieces<'_, C> {
    /// Lists the turns accepted from `since` to before `until` (milliseconds since 1970), oldest first: the time of
    /// each, and the turn if it succeeded.
    pub async fn turns_between(
        &mut self,
        since: u64,
        until: u64,
        limit: i64,
    ) -> Result<Vec<(u64, Option<TurnId>)>> {
        let first = |ms: u64| TurnId::from_parts(ms, [0; 10]).uuid();
        let sql = "select id, status from turns where id >= $1 and id < $2 order by id limit $3";
        let found = rows(self.0, sql, vals![first(since), first(until), limit]).await?;
        let turn = |row: &Row| {
            let id = row.id("id")?;
            let ms = (id.as_u128() >> 80) as u64;
            let whole = row.text("status")? == "succeeded";
            Ok((ms, whole.then(|| TurnId::from_uuid(id))))
        };
        found.iter().map(turn).collect()
    }
}
