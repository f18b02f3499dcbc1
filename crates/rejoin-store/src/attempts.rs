//! Runs of a CLI: each turn has one, or more if it was refused or went on later.

use rejoin_core::{PinId, Reason, TurnId, Verdict};
use serde_json::Value;

use crate::connections::{Read, Tx};
use crate::db::{Ask, rows, vals};
use crate::error::Result;
use crate::turns::FASTER;

pub(crate) const END_ATTEMPT: &str =
    "update attempts set status = $3, session_id = coalesce($4, session_id)
    where turn_id = $1 and n = $2";
pub(crate) const ADVANCE_SPOOL: &str = "update attempts set spool = $4
    where turn_id = $1 and n = $3 and spool <= $4
        and exists (select 1 from turns where id = $1 and fence = $2 and status in ('running', 'waiting'))";

/// One run of a CLI.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub n: i64,
    pub verdict: Verdict,
    pub reason: Option<Reason>,
    /// `running`, `refused`, `deferred`, or the status of the turn it ended.
    pub status: String,
    pub session_id: String,
    pub pin: PinId,
    pub prompt_id: String,
    /// Whatever the runner needs to settle it, also in another process.
    pub plan: Value,
    /// Bytes of the spool whose events are committed.
    pub spool: i64,
}

impl Tx {
    pub async fn add_attempt(&mut self, turn: TurnId, a: &Attempt) -> Result<()> {
        let sql = "insert into attempts (turn_id, n, verdict, reason, status, session_id, pin_id, prompt_id, plan, spool)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let values = vals![
            turn.uuid(),
            a.n,
            a.verdict.as_str(),
            a.reason.map(Reason::as_str),
            a.status.as_str(),
            a.session_id.as_str(),
            a.pin.uuid(),
            a.prompt_id.as_str(),
            a.plan.to_string(),
            a.spool,
        ];
        self.run(sql, values).await?;
        Ok(())
    }

    /// `session`: if it was not known before.
    pub async fn end_attempt(
        &mut self,
        turn: TurnId,
        n: i64,
        status: &str,
        session: Option<&str>,
    ) -> Result<()> {
        self.run(END_ATTEMPT, vals![turn.uuid(), n, status, session])
            .await?;
        Ok(())
    }

    /// What is needed to go on from it.
    pub async fn replan_attempt(&mut self, turn: TurnId, n: i64, plan: &Value) -> Result<()> {
        let sql = "update attempts set plan = $3 where turn_id = $1 and n = $2";
        self.run(sql, vals![turn.uuid(), n, plan.to_string()])
            .await?;
        Ok(())
    }

    /// Drops an attempt for which nothing was started.
    pub async fn forget_attempt(&mut self, turn: TurnId, n: i64) -> Result<()> {
        let sql = "delete from attempts where turn_id = $1 and n = $2";
        self.run(sql, vals![turn.uuid(), n]).await?;
        Ok(())
    }

    /// Drops the attempts of a turn for which nothing was started.
    pub async fn forget_attempts(&mut self, turn: TurnId) -> Result<()> {
        self.run(
            "delete from attempts where turn_id = $1",
            vals![turn.uuid()],
        )
        .await?;
        Ok(())
    }

    /// Notes how far the spool is read, if whoever says so still holds the turn.
    pub async fn advance_spool(
        &mut self,
        turn: TurnId,
        fence: i64,
        n: i64,
        spool: i64,
    ) -> Result<()> {
        self.must(ADVANCE_SPOOL, vals![turn.uuid(), fence, n, spool], FASTER)
            .await
    }

    pub async fn attempts(&mut self, id: TurnId) -> Result<Vec<Attempt>> {
        attempts(self, id).await
    }
}

impl Read {
    pub async fn attempts(&mut self, id: TurnId) -> Result<Vec<Attempt>> {
        attempts(self, id).await
    }
}

async fn attempts(at: &mut impl Ask, id: TurnId) -> Result<Vec<Attempt>> {
    let found = rows(
        at,
        "select * from attempts where turn_id = $1 order by n",
        vals![id.uuid()],
    )
    .await?;
    found
        .iter()
        .map(|row| {
            Ok(Attempt {
                n: row.int("n")?,
                verdict: row.word("verdict")?,
                reason: row.maybe_word("reason")?,
                status: row.text("status")?,
                session_id: row.text("session_id")?,
                pin: PinId::from_uuid(row.id("pin_id")?),
                prompt_id: row.text("prompt_id")?,
                plan: row.json("plan")?,
                spool: row.int("spool")?,
            })
        })
        .collect()
}
