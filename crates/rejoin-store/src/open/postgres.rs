//! Opens a database on a PostgreSQL server. Everything is bounded, so that neither a dead server
//! nor a dead client blocks others for long.

mod pooler;

use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::connections::{Origin, Store};
use crate::engine::{Connection, ServerConnection, is_lost};
use crate::error::{Error, Result};
use crate::open::newest_schema;

/// Append-only. `migrations/sqlite` has the same numbers.
const MIGRATIONS: &[(i64, &str)] = &[
    (
        1,
        include_str!("../../../../migrations/postgres/0001_conversations.sql"),
    ),
    (
        2,
        include_str!("../../../../migrations/postgres/0002_history.sql"),
    ),
    (
        3,
        include_str!("../../../../migrations/postgres/0003_snapshots.sql"),
    ),
    (
        4,
        include_str!("../../../../migrations/postgres/0004_leases.sql"),
    ),
    (
        5,
        include_str!("../../../../migrations/postgres/0005_questions.sql"),
    ),
    (
        6,
        include_str!("../../../../migrations/postgres/0006_namespaces.sql"),
    ),
    (
        7,
        include_str!("../../../../migrations/postgres/0007_deliveries.sql"),
    ),
    (
        8,
        include_str!("../../../../migrations/postgres/0008_ceilings.sql"),
    ),
    (
        9,
        include_str!("../../../../migrations/postgres/0009_answers.sql"),
    ),
    (
        10,
        include_str!("../../../../migrations/postgres/0010_indexes.sql"),
    ),
    (
        11,
        include_str!("../../../../migrations/postgres/0011_search.sql"),
    ),
    (
        12,
        include_str!("../../../../migrations/postgres/0012_search_ranges.sql"),
    ),
    (
        13,
        include_str!("../../../../migrations/postgres/0013_browser_sessions.sql"),
    ),
    (
        14,
        include_str!("../../../../migrations/postgres/0014_chains.sql"),
    ),
    (
        15,
        include_str!("../../../../migrations/postgres/0015_views.sql"),
    ),
    (
        16,
        include_str!("../../../../migrations/postgres/0016_limits.sql"),
    ),
    (
        17,
        include_str!("../../../../migrations/postgres/0017_schedules.sql"),
    ),
    (
        18,
        include_str!("../../../../migrations/postgres/0018_prompts.sql"),
    ),
    (
        19,
        include_str!("../../../../migrations/postgres/0019_workflows.sql"),
    ),
];

const CONNECTS_WITHIN: Duration = Duration::from_secs(5);
/// Longest wait for a server that has no free connection, is starting, or was reachable before.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(10);
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// The lock timeout is longer than the time a transaction may stay idle. Keepalives: without them
/// the server would notice a vanished client machine only after hours. A commit must survive a
/// crash of the server: if the server is configured otherwise, it is switched on for the session.
const MANNERS: &str = "set lock_timeout = '20s'; set statement_timeout = '30s';
    set idle_in_transaction_session_timeout = '10s'; set client_min_messages = 'error';
    set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3;
    select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'";

/// Excludes other migrations first, then writers by their own lock.
const ALONE: &str = "set local statement_timeout = 0;
    select pg_advisory_xact_lock(hashtextextended('rejoin:' || coalesce(current_schema(), ''), 0));
    create table if not exists rejoin_schema (version bigint not null);
    select pg_advisory_xact_lock(hashtextextended('rejoin', 'rejoin_schema'::regclass::oid::bigint))";

/// Address of a server. Its debug output contains no password.
#[derive(Clone)]
pub(crate) struct Server {
    options: PgConnectOptions,
    pub(crate) place: Arc<str>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Server").field(&self.place).finish()
    }
}

impl Store {
    /// Opens the store, and creates or updates its tables in the schema that `search_path` names.
    pub async fn open_postgres(url: &str) -> Result<Self> {
        let server = Server::named(url)?;
        let mut served = server.connect(false).await?;
        pooler::must_keep_sessions(&server, &mut served).await?;
        // Without a time limit: only the wait for the lock has the usual one.
        let migrated = migrate(&mut served.line).await;
        migrated.map_err(|error| Error::of_server(error, &server.place))??;
        let writer = Connection::Postgres(Box::new(served));
        Ok(Self::new(writer, Origin::Postgres(Box::new(server))))
    }
}

impl Server {
    pub(crate) fn named(url: &str) -> Result<Self> {
        let options = PgConnectOptions::from_str(url).map_err(|_| Error::Address)?;
        // The displayed text contains only the names, whether the URL is encoded or not.
        let host = match options.get_socket() {
            Some(folder) => folder.display().to_string(),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        };
        let database = options.get_database().unwrap_or(options.get_username());
        let place = format!("{host}, database {database} (PostgreSQL)").into();
        let named = options.get_application_name().is_some();
        let options = if named {
            options
        } else {
            options.application_name("rejoin")
        };
        Ok(Self {
            options: options.disable_statement_logging(),
            place,
        })
    }

    /// Connects. `again`: the server was reachable before, so it may be restarting.
    pub(crate) async fn connect(&self, again: bool) -> Result<ServerConnection> {
        let until = Instant::now() + COMES_BACK_WITHIN;
        loop {
            let error = match self.connect_once().await {
                Ok(line) => {
                    let place = Arc::clone(&self.place);
                    return Ok(ServerConnection { line, place });
                }
                Err(error) => error,
            };
            let wait = has_no_room(&error) || (again && is_lost(&error));
            if !wait || Instant::now() > until {
                return Err(Error::of_server(error, &self.place));
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the place")]
    async fn connect_once(&self) -> Result<PgConnection, sqlx::Error> {
        let connected = async {
            let mut line = match self.options.connect().await {
                // The pooler passes on only settings that it knows.
                Err(error) if pooler::is_refusal(&error) => {
                    let plain = self.options.clone().extra_float_digits(None);
                    plain.connect().await?
                }
                connected => connected?,
            };
            sqlx::raw_sql(MANNERS).execute(&mut line).await?;
            Ok(line)
        };
        tokio::time::timeout(CONNECTS_WITHIN, connected)
            .await
            .unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
    }
}

/// Returns true for too many connections, or a server that is starting.
fn has_no_room(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| matches!(code.as_ref(), "53300" | "57P03"))
}

/// Returns the schema version. `None` if the database never had a store.
pub(crate) async fn version(at: &mut PgConnection) -> Result<Option<i64>, sqlx::Error> {
    let found = sqlx::query_scalar("select version from rejoin_schema")
        .fetch_optional(at)
        .await;
    match found {
        Err(error) if is_unknown_table(&error) => Ok(None),
        found => found,
    }
}

fn is_unknown_table(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| code == "42P01")
}

async fn migrate(at: &mut PgConnection) -> Result<Result<()>, sqlx::Error> {
    let known = newest_schema();
    match version(at).await? {
        Some(found) if found == known => return Ok(Ok(())),
        Some(found) if found > known => return Ok(Err(Error::Newer { found, known })),
        Some(_) | None => {}
    }
    let encoding: String = sqlx::query_scalar("show server_encoding")
        .fetch_one(&mut *at)
        .await?;
    if encoding != "UTF8" {
        let text = format!("the encoding of the database is {encoding}, rejoin needs UTF8");
        return Err(sqlx::Error::Configuration(text.into()));
    }
    let mut tx = at.begin().await?;
    sqlx::raw_sql(ALONE).execute(&mut *tx).await?;
    // Another process may have been faster.
    let found = version(&mut tx).await?;
    for (number, sql) in MIGRATIONS.iter().filter(|(n, _)| *n > found.unwrap_or(0)) {
        sqlx::raw_sql(*sql).execute(&mut *tx).await?;
        let stamp = match number {
            1 => "insert into rejoin_schema (version) values ($1)",
            _ => "update rejoin_schema set version = $1",
        };
        sqlx::query(stamp).bind(number).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(Ok(()))
}
