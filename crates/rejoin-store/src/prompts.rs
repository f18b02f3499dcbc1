//! Text that rejoin added to the messages of runs.

use rejoin_core::TurnId;

use crate::connections::Tx;
use crate::db::{Ask, rows, topic, vals};
use crate::error::{Error, Result};

/// Longest text, in bytes: more than any context window holds.
const LONGEST: usize = 64 << 20;
/// Level of compression: that of small snapshots.
const LEVEL: i32 = 3;

topic! {
    /// Text that rejoin added to the messages of runs.
    Prompts, prompts
}

impl Prompts<'_, Tx> {
    /// Stores the text of a run.
    pub async fn add(&mut self, turn: TurnId, n: i64, context: &str) -> Result<()> {
        let packed = zstd::bulk::compress(context.as_bytes(), LEVEL);
        let packed = packed.map_err(|e| Error::Foreign(e.to_string()))?;
        let sql = "insert into prompts (turn_id, n, context) values ($1, $2, $3)
            on conflict (turn_id, n) do update set context = excluded.context";
        self.0.run(sql, vals![turn.uuid(), n, packed]).await?;
        Ok(())
    }
}

impl<C: Ask> Prompts<'_, C> {
    /// Lists the texts of a turn, with the numbers of their runs.
    pub async fn of(&mut self, turn: TurnId) -> Result<Vec<(i64, String)>> {
        let sql = "select n, context from prompts where turn_id = $1 order by n";
        let found = rows(self.0, sql, vals![turn.uuid()]).await?;
        let mut texts = vec![];
        for row in found {
            let packed = row.maybe_bytes("context")?.unwrap_or_default();
            let damaged = || Error::Foreign("the text of a prompt is damaged".into());
            let text = zstd::bulk::decompress(&packed, LONGEST).map_err(|_| damaged())?;
            let text = String::from_utf8(text).map_err(|_| damaged())?;
            texts.push((row.int("n")?, text));
        }
        Ok(texts)
    }
}
