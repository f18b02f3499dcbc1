//! Both engines have the same tables, column by column.

use std::collections::BTreeMap;
use std::path::PathBuf;

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
