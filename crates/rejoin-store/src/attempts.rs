//! Attempts: runs of a CLI. A turn has one, or more if the CLI refused a session or the turn was
//! deferred.

use rejoin_core::{PinId, Reason, TurnId, Verdict};
use serde_json::Value;

use crate::connections::Tx;
use crate::db::{Ask, rows, topic, vals};
use crate::error::Result;
use crate::turns::FASTER;

pub(crate) const END_ATTEMPT: &str =
    "update attempts set status = $3, session_id = coalesce($4, session_id)
    where turn_id = $1 and n = $2";
pub(crate) const ADVANCE_SPOOL: &str = "update attempts set spool = $4
    where turn_id = $1 and n = $3 and spool <= $4
        and exists (select 1 from turns where id = $1 and fence = $2 and status in ('running', 'waiting'))";

/// A run of a CLI.
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
    /// Data that the runner needs to settle the run, also in another process.
    pub plan: Value,
    /// Bytes of the spool whose events are committed.
    pub spool: i64,
}

topic! {
    /// Attempts of turns.
    Attempts, attempts
}

impl Attempts<'_, Tx> {
    pub async fn add(&mut self, turn: TurnId, a: &Attempt) -> Result<()> {
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
        self.0.run(sql, values).await?;
        Ok(())
    }

    /// Ends an attempt. `session` is set if the session id was not known before.
    pub async fn end(
        &mut self,
        turn: TurnId,
        n: i64,
        status: &str,
        session: Option<&str>,
    ) -> Result<()> {
        self.0
            .run(END_ATTEMPT, vals![turn.uuid(), n, status, session])
            .await?;
        Ok(())
    }

    /// Replaces the plan of an attempt by one from which the turn can continue.
    pub async fn replan(&mut self, turn: TurnId, n: i64, plan: &Value) -> Result<()> {
        let sql = "update attempts set plan = $3 where turn_id = $1 and n = $2";
        self.0
            .run(sql, vals![turn.uuid(), n, plan.to_string()])
            .await?;
        Ok(())
    }

    /// Deletes an attempt for which no process was started.
    pub async fn forget(&mut self, turn: TurnId, n: i64) -> Result<()> {
        let sql = "delete from attempts where turn_id = $1 and n = $2";
        self.0.run(sql, vals![turn.uuid(), n]).await?;
        Ok(())
    }

    /// Deletes the attempts of a turn for which no process was started.
    pub async fn forget_all(&mut self, turn: TurnId) -> Result<()> {
        self.0
            .run(
                "delete from attempts where turn_id = $1",
                vals![turn.uuid()],
            )
            .await?;
        Ok(())
    }

    /// Stores the position up to which the spool was read. Fails if the caller no longer holds the
    /// turn.
    pub async fn advance_spool(
        &mut self,
        turn: TurnId,
        fence: i64,
        n: i64,
        spool: i64,
    ) -> Result<()> {
        self.0
            .must(ADVANCE_SPOOL, vals![turn.uuid(), fence, n, spool], FASTER)
            .await
    }
}

impl<C: Ask> Attempts<'_, C> {
    pub async fn of(&mut self, id: TurnId) -> Result<Vec<Attempt>> {
        attempts(self.0, id).await
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
