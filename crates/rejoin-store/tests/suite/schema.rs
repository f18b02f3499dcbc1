//! Both engines have the same tables, column by column.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rejoin_core::{AgentName, ConversationId, MessageId, Scope, in_scope};
use rejoin_store::{Search, Store};

type Schema = BTreeMap<String, Vec<(String, &'static str)>>;

fn schema(engine: &str) -> (Vec<String>, Schema) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../migrations")
        .join(engine);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    let mut tables = Schema::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        for create in text.split("create table ").skip(1) {
            let (name, rest) = create.split_once('(').unwrap();
            let (body, _) = rest.split_once("\n)").unwrap();
            let columns = body.lines().filter_map(column).collect();
            tables.insert(name.trim().to_owned(), columns);
        }
    }
    let names = files
        .iter()
        .map(|f| f.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    (names, tables)
}

/// A column and its kind, whatever the engine calls it.
fn column(line: &str) -> Option<(String, &'static str)> {
    let mut words = line.split_whitespace();
    let (name, kind) = (words.next()?, words.next()?);
    let kind = match kind.trim_end_matches(',') {
        "blob" | "uuid" | "bytea" => "bytes",
        "integer" | "bigint" => "number",
        "text" => "text",
        _ => return None,
    };
    Some((name.to_owned(), kind))
}

#[test]
fn sqlite_and_postgres_are_in_step() {
    let (sqlite_files, sqlite) = schema("sqlite");
    let (postgres_files, postgres) = schema("postgres");
    assert_eq!(sqlite_files, postgres_files);
    assert!(
        sqlite.len() >= 8 && sqlite.values().all(|columns| columns.len() >= 3),
        "{sqlite:?}"
    );
    assert_eq!(sqlite, postgres);
}

/// A store of the first schema is read on: values, and words that can be found.
#[tokio::test]
async fn a_store_of_before_is_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let first = include_str!("../../../../migrations/sqlite/0001_conversations.sql");
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let mut at = sqlx::ConnectOptions::connect(&options).await.unwrap();
    let c = ConversationId::from_parts(1, [1; 10]);
    let (one, two) = (
        MessageId::from_parts(1, [2; 10]),
        MessageId::from_parts(2, [3; 10]),
    );
    sqlx::raw_sql(first).execute(&mut at).await.unwrap();
    let conversation = "insert into conversations values ($1, 'zzzz', null, 't', 'demo', '/', 'edit', 'full', '{}', 1, 1)";
    sqlx::query(conversation)
        .bind(c.uuid().as_bytes().to_vec())
        .execute(&mut at)
        .await
        .unwrap();
    for (id, seq, role, agent, boundary) in [
        (one, 1_i64, "assistant", Some("codex"), None),
        (two, 2, "assistant", Some("demo"), Some(one)),
    ] {
        let sql = "insert into messages values ($1, $2, zeroblob(16), $3, $4, $5, 'the harbour', '[]', 'ok', 'rejoin', 0, '[]',
            zeroblob(32), zeroblob(32), $6, null, 1)";
        sqlx::query(sql)
            .bind(id.uuid().as_bytes().to_vec())
            .bind(c.uuid().as_bytes().to_vec())
            .bind(seq)
            .bind(role)
            .bind(agent)
            .bind(boundary.map(|b: MessageId| b.uuid().as_bytes().to_vec()))
            .execute(&mut at)
            .await
            .unwrap();
    }
    sqlx::raw_sql("pragma user_version = 1")
        .execute(&mut at)
        .await
        .unwrap();
    sqlx::Connection::close(at).await.unwrap();

    let store = Store::open_sqlite(&path).await.unwrap();
    let demo = AgentName::new("demo").unwrap();
    let mut read = store.read().await.unwrap();
    let state = read.scope_before(c, Scope::Agent, &demo, 3).await.unwrap();
    assert_eq!((state.boundary, state.boundary_seq), (Some(one), 1));
    let search = Search {
        text: "harbour".into(),
        limit: 9,
        ..Search::default()
    };
    assert_eq!(read.search(&search).await.unwrap().len(), 2);
    drop(read);
    // Digests that were not kept then are made from the words.
    let mut tx = store.begin().await.unwrap();
    tx.refold(c, 1).await.unwrap();
    tx.commit().await.unwrap();
    let history = store
        .read()
        .await
        .unwrap()
        .messages_between(c, 0, 3)
        .await
        .unwrap();
    let folded = in_scope(Scope::Full, &demo, &history).value();
    let mut read = store.read().await.unwrap();
    assert_eq!(
        read.scope_before(c, Scope::Full, &demo, 3)
            .await
            .unwrap()
            .value,
        folded
    );
}
