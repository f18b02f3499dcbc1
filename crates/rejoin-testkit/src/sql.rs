//! Changes the database in which a CLI keeps a session.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

/// One statement; what it changed is in the file itself afterwards.
pub fn sql(file: &Path, statement: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(file);
        let mut at = options.connect().await.unwrap();
        for text in [statement, "pragma wal_checkpoint(truncate)"] {
            let query = sqlx::query(AssertSqlSafe(text.to_owned()));
            query.execute(&mut at).await.unwrap();
        }
        at.close().await.unwrap();
    });
}
