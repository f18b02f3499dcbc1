//! Leases: on a store that machines share, until when a turn is its holder's. Only the database's own
//! clock counts: those of the machines may be wrong.

use rejoin_core::{ConversationId, PinId, PinState, TurnId};

use crate::connections::{Read, Tx};
use crate::db::{Ask, one, vals};
use crate::engine::Connection;
use crate::error::{Error, Result};
use crate::pins::StoredPin;

impl Tx {
    /// Notes where the folder of a turn will lie, and until when it is its holder's.
    pub async fn place_turn(
        &mut self,
        id: TurnId,
        place: Option<&str>,
        until: Option<i64>,
    ) -> Result<()> {
        let sql = "update turns set place = $2, lease_until = $3 where id = $1";
        self.run(sql, vals![id.uuid(), place, until]).await?;
        Ok(())
    }

    /// It is its holder's for longer. False: it is not any more, or it has ended.
    pub async fn renew_turn(&mut self, id: TurnId, fence: i64, until: i64) -> Result<bool> {
        let sql = "update turns set lease_until = $3
            where id = $1 and fence = $2 and status in ('running', 'waiting')";
        Ok(self.run(sql, vals![id.uuid(), fence, until]).await? > 0)
    }

    /// Whoever is elsewhere takes it only after that.
    pub async fn must_have_run_out(&mut self, id: TurnId, now: i64) -> Result<()> {
        let sql = "select 1 as found from turns where id = $1 and lease_until > $2";
        match one(self, sql, vals![id.uuid(), now]).await? {
            Some(_) => Err(Error::Conflict("it is still its holder's")),
            None => Ok(()),
        }
    }

    pub async fn renew_open(
        &mut self,
        id: ConversationId,
        holder: &str,
        until: Option<i64>,
    ) -> Result<()> {
        let sql = "update conversations set opened_until = $3 where id = $1 and opened_by = $2";
        let lost = "somebody else has it open";
        self.must(sql, vals![id.uuid(), holder, until], lost).await
    }

    /// What its file holds is not known any more: it is nowhere, but for its snapshots. One without
    /// any is never used again.
    pub async fn lose_pin(&mut self, id: PinId, why: &str, now: i64) -> Result<()> {
        let stored = self.pin(id).await?;
        let retired = |stored: &StoredPin| matches!(stored.state, PinState::Retired(_));
        if stored.as_ref().is_some_and(retired) {
            return Ok(());
        }
        let Some(mut pin) = stored.and_then(|stored| stored.pin) else {
            return self.retire_pin(id, why, now).await;
        };
        NOWHERE.clone_into(&mut pin.machine);
        self.restore_pin(&pin, now).await
    }

    /// Microseconds since 1970, by the clock of the database.
    pub async fn clock(&mut self) -> Result<i64> {
        clock(self).await
    }
}

/// No machine is called so.
const NOWHERE: &str = "";

impl Read {
    /// Microseconds since 1970, by the clock of the database.
    pub async fn clock(&mut self) -> Result<i64> {
        clock(self).await
    }
}

async fn clock(at: &mut impl Ask) -> Result<i64> {
    let sql = match at.connection()? {
        Connection::Sqlite(_) => {
            "select cast((julianday('now') - 2440587.5) * 86400000000.0 as integer) as now"
        }
        // Of this moment, not of the transaction's begin.
        Connection::Postgres(_) => {
            "select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) as now"
        }
    };
    let row = one(at, sql, vec![]).await?;
    row.map_or(Ok(0), |row| row.int("now"))
}
