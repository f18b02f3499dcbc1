//! Both engines have the same tables, column by column.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use rejoin_core::{AgentName, ConversationId, MessageId, Scope, in_scope};
use rejoin_store::Search;

use super::engines::Place;

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
    let (sqlite_files, mut sqlite) = schema("sqlite");
    let (postgres_files, mut postgres) = schema("postgres");
    // There a table of the engine's own kind: not made in this way.
    assert!(postgres.remove("messages_text").is_some());
    // A server estimates how many rows a table has.
    assert!(sqlite.remove("counts").is_some());
    // A server finds the messages of a namespace by a word.
    assert!(sqlite.remove("spaces").is_some());
    assert_eq!(sqlite_files, postgres_files);
    assert!(
        sqlite.len() >= 8
            && sqlite.iter().all(|(table, columns)| columns.len() >= 3
                || ["stores", "watermarks"].contains(&table.as_str())),
        "{sqlite:?}"
    );
    assert_eq!(sqlite, postgres);
}

on_both_engines!(a_store_of_before_is_brought_up_to_date);

/// A store of the first schema is read on: values, and words that can be found.
async fn a_store_of_before_is_brought_up_to_date(place: Place) {
    let c = ConversationId::from_parts(1, [1; 10]);
    let one = MessageId::from_parts(1, [2; 10]);
    let two = MessageId::from_parts(2, [3; 10]);
    let id = |uuid: &str| match &place {
        Place::File(_) => format!("x'{}'", uuid.replace('-', "")),
        Place::Server(_) => format!("'{uuid}'"),
    };
    let hash = match &place {
        Place::File(_) => "zeroblob(32)",
        Place::Server(_) => "decode(repeat('00', 32), 'hex')",
    };
    let (conversation, nobody) = (id(&c.to_string()), id(&"0".repeat(32)));
    let mut sql = format!(
        "insert into conversations values ({conversation}, 'zzzz', null, 't', 'demo', '/', 'edit', 'full', '{{}}', 1, 1);"
    );
    for (message, seq, agent, boundary) in [
        (one, 1, "codex", "null".to_owned()),
        (two, 2, "demo", id(&one.to_string())),
    ] {
        let message = id(&message.to_string());
        let _ = write!(
            sql,
            "insert into messages values ({message}, {conversation}, {nobody}, {seq}, 'assistant', '{agent}',
                'the harbour', '[]', 'ok', 'rejoin', 0, '[]', {hash}, {hash}, {boundary}, null, 1);"
        );
    }
    let first = |engine| {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
        std::fs::read_to_string(folder.join(engine).join("0001_conversations.sql")).unwrap()
    };
    match &place {
        Place::File(dir) => {
            let at = rusqlite::Connection::open(dir.path().join("s.db")).unwrap();
            let sql = format!("{}; {sql} pragma user_version = 1", first("sqlite"));
            at.execute_batch(&sql).unwrap();
        }
        Place::Server(database) => {
            let version = "create table rejoin_schema (version bigint not null); insert into rejoin_schema values (1)";
            database.psql(&format!("{}; {sql} {version}", first("postgres")));
        }
    }

    let store = place.open().await;
    let demo = AgentName::new("demo").unwrap();
    let mut read = store.read().await.unwrap();
    let state = read
        .history()
        .scope_before(c, Scope::Agent, &demo, 3)
        .await
        .unwrap();
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
    tx.recompute(c, 1).await.unwrap();
    tx.commit().await.unwrap();
    let history = store
        .read()
        .await
        .unwrap()
        .history()
        .messages_between(c, 0, 3)
        .await
        .unwrap();
    let folded = in_scope(Scope::Full, &demo, &history).value();
    let mut read = store.read().await.unwrap();
    assert_eq!(
        read.history()
            .scope_before(c, Scope::Full, &demo, 3)
            .await
            .unwrap()
            .value,
        folded
    );
}
