//! Every statement is answered by an index, on a store that holds something, with and without statistics.
//!
//! Statements are taken from the source. `/* scan: why */` in one allows it to read a whole table, `/* sort: why */` to
//! sort what it then cuts off.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rejoin_store::{Store, composed_statements};
use rejoin_testkit::database;
use rejoin_testkit::populate::{Population, Server};

const SMALL: Population = Population {
    conversations: 3000,
    messages: 10,
    long: 500,
};

/// Indexes that hold only what is under way: to read one whole costs what there is to do.
const UNDER_WAY: [&str; 9] = [
    "turns_running",
    "turns_queued",
    "turns_one_running",
    "messages_queued",
    "pins_unsaved",
    "conversations_opened",
    "questions_gone",
    "questions_climbs",
    "workflows_running",
];

/// Tables of one row, or of a few that nobody adds to.
const FIXED: [&str; 6] = [
    "stores",
    "watermarks",
    "counts",
    "rejoin_schema",
    "pg_class",
    "rejoin_messages_n",
];

/// Pieces of statements that [`composed_statements`] has whole, and statements that are no queries.
const PIECES: [&str; 6] = [
    "select id, n, conversation_id, seq, role, agent, created_at from (",
    "select * from conversations where namespace = $1 and shelf = $2 and ",
    "select m.id, m.conversation_id, m.seq, m.role, m.agent, m.created_at from (",
    "select ts_headline('simple', ",
    "insert into rejoin_schema",
    "update rejoin_schema",
];

struct Statement {
    place: String,
    sql: String,
}

/// The statements in the source of this crate, without its tests.
fn statements() -> Vec<Statement> {
    let mut found = vec![];
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in files(&root) {
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        let name = file.strip_prefix(&root).unwrap().display().to_string();
        for (line, literal) in literals(text) {
            let begins = ["select ", "insert ", "update ", "delete ", "with "];
            let piece = PIECES.iter().any(|piece| literal.starts_with(piece));
            if !piece && begins.iter().any(|word| literal.starts_with(word)) {
                let sql = literal.replace("{rows}", "($1, $2, $3, $4, $5)");
                let place = format!("{name}:{line}");
                found.push(Statement { place, sql });
            }
        }
    }
    let composed = composed_statements().into_iter().map(|sql| Statement {
        place: "composed".to_owned(),
        sql: sql.to_owned(),
    });
    found.extend(composed);
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().is_some_and(|name| name != "tests.rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The string literals of a Rust file, each with its line.
fn literals(text: &str) -> Vec<(usize, String)> {
    let mut found = vec![];
    let mut letters = text.chars().peekable();
    let (mut line, mut before) = (1, ' ');
    while let Some(letter) = letters.next() {
        match letter {
            '\n' => line += 1,
            '/' if letters.peek() == Some(&'/') => {
                while letters.next_if(|c| *c != '\n').is_some() {}
            }
            '"' if before != '\'' => {
                let begin = line;
                let mut literal = String::new();
                while let Some(letter) = letters.next() {
                    match letter {
                        '"' => break,
                        '\\' => {
                            let escaped = letters.next().unwrap();
                            if escaped == '\n' {
                                line += 1;
                                while letters.next_if(|c| c.is_whitespace()).is_some() {}
                            } else {
                                literal.push(escaped);
                            }
                        }
                        letter => {
                            line += usize::from(letter == '\n');
                            literal.push(letter);
                        }
                    }
                }
                found.push((begin, literal));
            }
            _ => {}
        }
        before = letter;
    }
    found
}

fn allows(sql: &str, what: &str) -> bool {
    sql.contains(&format!("/* {what}: "))
}

/// What a plan of SQLite does that it should not.
fn faults_of_sqlite(sql: &str, plan: &[String]) -> Vec<String> {
    let mut faults = vec![];
    for step in plan {
        let words: Vec<&str> = step.split_whitespace().collect();
        if let ["SCAN", table, rest @ ..] = words.as_slice() {
            // What a statement made itself, or the engine's own index of words.
            let derived = [
                "CONSTANT", "names", "spent", "below", "above", "waiting", "told", "gone",
            ]
            .contains(table)
                || table.starts_with("(subquery")
                || rest.contains(&"VIRTUAL");
            let index = rest.iter().skip_while(|word| **word != "INDEX").nth(1);
            let under_way = index.is_some_and(|index| UNDER_WAY.contains(index));
            if !derived && !under_way && !FIXED.contains(table) && !allows(sql, "scan") {
                faults.push(step.clone());
            }
        }
        let sorts = step.contains("TEMP B-TREE FOR ORDER BY") && sql.contains(" limit ");
        if sorts && !allows(sql, "sort") {
            faults.push(step.clone());
        }
    }
    faults
}

/// A search reads only the numbers of one namespace: the bounds are the engine's, no filter.
#[tokio::test]
async fn a_search_is_bounded_by_its_namespace() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.db");
    drop(Store::open_sqlite(&file).await.unwrap());
    let at = rusqlite::Connection::open(&file).unwrap();
    let searches = composed_statements().into_iter();
    let searches = searches
        .filter(|sql| sql.contains("highlight("))
        .collect::<Vec<_>>();
    assert_eq!(searches.len(), 2);
    for sql in searches {
        let mut explained = at.prepare(&format!("explain query plan {sql}")).unwrap();
        let steps = explained.raw_query().mapped(|row| row.get::<_, String>(3));
        let steps = steps.collect::<Result<Vec<_>, _>>().unwrap();
        let search = steps
            .iter()
            .find(|step| step.contains("VIRTUAL TABLE INDEX"));
        let index = search.and_then(|step| step.split("INDEX ").nth(1)).unwrap();
        assert!(index.contains('<') && index.contains('>'), "{steps:?}");
    }
}

#[tokio::test]
async fn every_statement_of_sqlite_has_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.db");
    drop(Store::open_sqlite(&file).await.unwrap());
    SMALL.fill_sqlite(&file).unwrap();
    let at = rusqlite::Connection::open(&file).unwrap();
    let (mut faults, mut planned, mut unplanned) = (BTreeSet::new(), 0, vec![]);
    for statistics in [true, false] {
        if statistics {
            at.execute_batch("analyze").unwrap();
        } else {
            at.execute_batch("delete from sqlite_stat1; analyze sqlite_schema")
                .unwrap();
        }
        for Statement { place, sql } in statements() {
            let explained = at.prepare(&format!("explain query plan {sql}"));
            let Ok(mut explained) = explained else {
                unplanned.push((place, sql));
                continue;
            };
            planned += 1;
            let steps = explained
                .raw_query()
                .mapped(|row| row.get::<_, String>(3))
                .collect::<Result<Vec<_>, _>>();
            for fault in faults_of_sqlite(&sql, &steps.unwrap()) {
                faults.insert(format!("{place}: {fault}\n    {sql}"));
            }
        }
    }
    for (place, sql) in unplanned {
        let other = place.contains("postgres")
            || place == "composed"
            || place.starts_with("leases.rs")
            || place.starts_with("stats.rs");
        assert!(other, "{place}: not understood: {sql}");
    }
    assert!(planned > 400, "{planned}");
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(
        faults.is_empty(),
        "{} statements:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// Tables that [`SMALL`] fills.
const FILLED: [&str; 8] = [
    "conversations",
    "messages",
    "messages_text",
    "turns",
    "attempts",
    "events",
    "pins",
    "snapshots",
];

/// Rows of other tables: of an empty one every plan is as good.
const MORE: &str = "set session_replication_role = replica;
    insert into chunks (name, place, length, stored, at)
        select decode(md5(n::text) || md5(n::text), 'hex'), 'db', 1, 1, 1 from generate_series(1, 5000) as n;
    insert into questions (id, turn_id, conversation_id, attempt, call_id, kind, tool, input, questions, state, asked_at)
        select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, 'c', 'approval', '', '', '', 'answered', 1
        from generate_series(1, 5000);
    insert into adoptions select 'demo', n::text, gen_random_uuid(), '', 1 from generate_series(1, 5000) as n;
    analyze";

/// What a plan of PostgreSQL does that it should not. `chosen`: of several plans, this was the best.
fn faults_of_postgres(sql: &str, plan: &str, chosen: bool) -> Vec<String> {
    let mut faults = vec![];
    let lines: Vec<&str> = plan.lines().collect();
    for (n, line) in lines.iter().enumerate() {
        let after = |word: &str| {
            let rest = line.split_once(word)?.1;
            rest.split_whitespace().next().map(str::to_owned)
        };
        let table = after(" on ").unwrap_or_default();
        if FIXED.contains(&table.as_str()) || allows(sql, "scan") {
            continue;
        }
        let filled = FILLED.contains(&table.as_str());
        let whole_table = line.contains("Seq Scan on") && (filled || !chosen);
        let index = after(" using ").unwrap_or_default();
        let bounded = lines[n + 1..]
            .iter()
            .take_while(|line| !line.contains("->"))
            .any(|line| line.contains("Index Cond:"));
        let whole_index = line.contains("Scan using")
            && !bounded
            && !UNDER_WAY.contains(&index.as_str())
            && (filled || !chosen);
        if whole_table || whole_index {
            faults.push(line.trim().to_owned());
        }
    }
    faults
}

#[tokio::test]
async fn every_statement_of_postgresql_has_an_index() {
    let Some(database) = database() else { return };
    drop(Store::open_postgres(&database.url).await.unwrap());
    let server = Server {
        url: database.server().url(),
        schema: database.schema().to_owned(),
    };
    SMALL.fill_postgres(&server).unwrap();
    database.psql(MORE);
    let (mut faults, mut planned) = (BTreeSet::new(), 0);
    for chosen in [true, false] {
        let mut script = format!(
            "set search_path = {}; set plan_cache_mode = force_generic_plan; set enable_seqscan = {};\n",
            server.schema,
            if chosen { "on" } else { "off" },
        );
        let all = statements();
        for (n, Statement { sql, .. }) in all.iter().enumerate() {
            // The store says of which type a value is.
            let sql = (1..40).fold(sql.clone(), |sql, n| {
                sql.replace(
                    &format!("(${n} is null"),
                    &format!("(cast(${n} as text) is null"),
                )
            });
            let sql = sql.replace("length($1)", "length(cast($1 as bytea))");
            let values = (1..40)
                .rev()
                .find(|n| sql.contains(&format!("${n}")))
                .unwrap_or(0);
            let nulls = vec!["null"; values].join(", ");
            let nulls = if values == 0 {
                nulls
            } else {
                format!("({nulls})")
            };
            let _infallible = write!(
                script,
                "\\echo ### {n}\nprepare s{n} as {sql};\nexplain execute s{n}{nulls};\n"
            );
        }
        let said = database.server().script(&script);
        for part in said.split("### ").skip(1) {
            let (n, plan) = part.split_once('\n').unwrap_or((part, ""));
            let Statement { place, sql } = &all[n.trim().parse::<usize>().unwrap()];
            if !plan.contains("cost=") {
                let other = place.starts_with("leases.rs")
                    || place.starts_with("health.rs")
                    || place.starts_with("search.rs")
                    || sql.contains("highlight(")
                    || sql.contains("from counts");
                assert!(other, "{place}: not understood: {sql}");
                continue;
            }
            planned += 1;
            for fault in faults_of_postgres(sql, plan, chosen) {
                faults.insert(format!("{place}: {fault}\n    {sql}"));
            }
        }
    }
    assert!(planned > 400, "{planned}");
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(
        faults.is_empty(),
        "{} statements:\n{}",
        faults.len(),
        faults.join("\n")
    );
}
