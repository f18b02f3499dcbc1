//! Leases: the time until which a turn belongs to its holder, on a store that machines share. Only
//! the database's own clock counts, because clocks of machines may be wrong.

use rejoin_core::{ConversationId, PinId, PinState, TurnId};

use crate::connections::Tx;
use crate::db::{Ask, one, topic, vals};
use crate::engine::Connection;
use crate::error::{Error, Result};
use crate::pins::StoredPin;

topic! {
    /// Leases of turns, and the clock that they use.
    Leases, leases
}

impl Leases<'_, Tx> {
    /// Stores the location of a turn's folder, and the end of the lease.
    pub async fn set_place(
        &mut self,
        id: TurnId,
        place: Option<&str>,
        until: Option<i64>,
    ) -> Result<()> {
        let sql = "update turns set place = $2, lease_until = $3 where id = $1";
        self.0.run(sql, vals![id.uuid(), place, until]).await?;
        Ok(())
    }

    /// Renews the lease. Returns false if another holder took the turn or it has ended.
    pub async fn renew(&mut self, id: TurnId, fence: i64, until: i64) -> Result<bool> {
        let sql = "update turns set lease_until = $3
            where id = $1 and fence = $2 and status in ('running', 'waiting')";
        Ok(self.0.run(sql, vals![id.uuid(), fence, until]).await? > 0)
    }

    /// Fails if the lease has not expired. Other machines take a turn over only after that.
    pub async fn check_expired(&mut self, id: TurnId, now: i64) -> Result<()> {
        let sql = "select 1 as found from turns where id = $1 and lease_until > $2";
        match one(self.0, sql, vals![id.uuid(), now]).await? {
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
        self.0
            .must(sql, vals![id.uuid(), holder, until], lost)
            .await
    }

    /// Marks the content of a session's files as unknown: only its snapshots can be used. Retires a
    /// session without a confirmed state.
    pub async fn lose_pin(&mut self, id: PinId, why: &str, now: i64) -> Result<()> {
        let stored = self.0.pins().get(id).await?;
        let retired = |stored: &StoredPin| matches!(stored.state, PinState::Retired(_));
        if stored.as_ref().is_some_and(retired) {
            return Ok(());
        }
        let Some(mut pin) = stored.and_then(|stored| stored.pin) else {
            return self.0.pins().retire(id, why, now).await;
        };
        NOWHERE.clone_into(&mut pin.machine);
        self.0.pins().restore(&pin, now).await
    }
}

/// Name that no machine has.
const NOWHERE: &str = "";

impl<C: Ask> Leases<'_, C> {
    /// Returns the database's time in microseconds since 1970.
    pub async fn clock(&mut self) -> Result<i64> {
        clock(self.0).await
    }
}

async fn clock(at: &mut impl Ask) -> Result<i64> {
    let sql = match at.connection()? {
        Connection::Sqlite(_) => {
            "select cast((julianday('now') - 2440587.5) * 86400000000.0 as integer) as now"
        }
        // The current time, not that of the transaction's begin.
        Connection::Postgres(_) => {
            "select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) as now"
        }
    };
    let row = one(at, sql, vec![]).await?;
    row.map_or(Ok(0), |row| row.int("now"))
}
