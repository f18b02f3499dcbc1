//! Changes the database in which a CLI keeps a session.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

/// What a store knows of binaries: identity, agent, facts.
pub(crate) fn binaries(store: &Path) -> Vec<[String; 3]> {
    if !store.exists() {
        return vec![];
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(store);
        let mut at = options.connect().await.unwrap();
        let rows: Vec<(String, String, String)> =
            sqlx::query_as("select identity, agent, facts from binaries")
                .fetch_all(&mut at)
                .await
                .unwrap();
        rows.into_iter().map(|(a, b, c)| [a, b, c]).collect()
    })
}

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
