//! Inspects a database on a server. Creates, migrates and changes nothing.

use sqlx::postgres::PgConnection;

use super::Health;
use crate::connections::Store;
use crate::error::{Error, Result};
use crate::open::postgres::{Server, version};

impl Store {
    /// Returns server and database of a URL for display, without user and password.
    pub fn postgres_place(url: &str) -> Result<String> {
        Ok(Server::named(url)?.place.to_string())
    }

    /// Inspects the store. `None` if the database never had one.
    pub async fn health_of_postgres(url: &str) -> Result<Option<Health>> {
        let server = Server::named(url)?;
        let mut served = server.connect(false).await?;
        let mut health = Health {
            known_schema: crate::open::newest_schema(),
            ..Health::default()
        };
        let found = ask(&mut served.line, &mut health).await;
        let found = found.map_err(|error| Error::of_server(error, &server.place))?;
        Ok(found.then_some(health))
    }
}

async fn ask(at: &mut PgConnection, health: &mut Health) -> Result<bool, sqlx::Error> {
    let number = |sql| sqlx::query_scalar::<_, i64>(sql);
    let server: String = sqlx::query_scalar("select current_setting('server_version')")
        .fetch_one(&mut *at)
        .await?;
    health.server = Some(server);
    let Some(schema) = version(at).await? else {
        return Ok(false);
    };
    health.schema = schema;
    let size = "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c
        where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'";
    health.bytes = number(size).fetch_one(&mut *at).await?.unsigned_abs();
    for (sql, count) in super::counts(health) {
        *count = number(sql).fetch_one(&mut *at).await?;
    }
    Ok(true)
}
