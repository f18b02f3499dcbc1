//! Detects poolers. A pooler between rejoin and its server must give each connection a session of
//! its own, because settings and prepared statements belong to it. A pooler that shares sessions
//! per transaction (PgBouncer with `pool_mode = transaction`) is refused before anything is
//! written.

use sqlx::error::DatabaseError;
use sqlx::postgres::PgConnection;

use super::Server;
use crate::engine::{ServerConnection, answered};
use crate::error::{Error, Result};

/// Value that every connection requests at startup, and that no server has by default. A pooler
/// does not pass it on.
const ASKED: &str = "2";
/// Number of comparisons between two connections.
const TIMES: usize = 3;

/// Fails if two connections share sessions of the server. Costs one query without a pooler.
pub(super) async fn must_keep_sessions(
    server: &Server,
    served: &mut ServerConnection,
) -> Result<()> {
    let place = &server.place;
    let sql = "select current_setting('extra_float_digits') as value";
    let found: String = answered(place, ask(&mut served.line, sql)).await?;
    if found == ASKED {
        return Ok(());
    }
    let session = "select pg_backend_pid()::text as value";
    let mut other = server.connect(false).await?;
    for _ in 0..TIMES {
        let first: String = answered(place, ask(&mut served.line, session)).await?;
        let again = answered(place, ask(&mut served.line, session)).await?;
        let others = answered(place, ask(&mut other.line, session)).await?;
        if first != again || first == others {
            let place = place.to_string();
            return Err(Error::Pooled { place });
        }
    }
    Ok(())
}

/// Queries without a prepared statement, which such a pooler would lose.
async fn ask(line: &mut PgConnection, sql: &'static str) -> Result<String, sqlx::Error> {
    let mut rows = sqlx::raw_sql(sql).fetch_all(line).await?;
    let row = rows.pop().ok_or(sqlx::Error::RowNotFound)?;
    sqlx::Row::try_get(&row, "value")
}

/// Returns true if the pooler rejects the setting that every connection requests.
pub(super) fn is_refusal(error: &sqlx::Error) -> bool {
    let said = error.as_database_error().map(DatabaseError::message);
    said.is_some_and(|said| said.contains("unsupported startup parameter"))
}
