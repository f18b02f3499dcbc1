//! Changes databases: those in which CLIs keep sessions, and stores.

use std::path::Path;

use rusqlite::Connection;

/// Returns the binaries that a store knows: identity, agent, facts.
pub(crate) fn binaries(store: &Path) -> Vec<[String; 3]> {
    if !store.exists() {
        return vec![];
    }
    let at = Connection::open(store).unwrap();
    let mut all = at
        .prepare("select identity, agent, facts from binaries")
        .unwrap();
    let rows = all.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]));
    rows.unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

/// Adds known binaries to a store.
pub(crate) fn add_binaries(store: &Path, known: &[[String; 3]]) {
    let at = Connection::open(store).unwrap();
    for row in known {
        let added = at.execute(
            "insert into binaries values (?1, ?2, ?3, 1)",
            row.each_ref(),
        );
        assert_eq!(added.unwrap(), 1);
    }
}

/// Runs a statement. Its changes are in the file itself afterwards, not in the log.
pub fn sql(file: &Path, statement: &str) {
    let at = Connection::open(file).unwrap();
    at.execute_batch(&format!("{statement}; pragma wal_checkpoint(truncate)"))
        .unwrap();
}

/// The write lock of a database, held by this process until dropped.
pub struct Locked(Connection);

impl Locked {
    #[track_caller]
    pub fn of(file: &Path) -> Self {
        let at = Connection::open(file).unwrap();
        at.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        at.execute_batch("begin immediate").unwrap();
        Self(at)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _released = self.0.execute_batch("rollback");
    }
}
