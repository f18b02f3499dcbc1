//! Which store the configuration names: a file, or a database on a server.

use std::path::{Path, PathBuf};

use rejoin_store::{Health, Store};

use rejoin_runner::trust::real_place;

use rejoin_errors::{CommandError, Result};

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    File(PathBuf),
    /// With what is needed to get in: never shown.
    Server {
        url: String,
    },
}

impl StoreUrl {
    pub(crate) fn named(home: &Path, url: Option<&str>) -> Result<Self> {
        let Some(url) = url else {
            return Ok(Self::File(home.join("rejoin.db")));
        };
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Store::postgres_place(url)?;
            let url = url.to_owned();
            return Ok(Self::Server { url });
        }
        url.strip_prefix("sqlite:")
            .map(|path| PathBuf::from(path.trim_start_matches("//")))
            .filter(|path| !path.as_os_str().is_empty())
            .map(Self::File)
            .ok_or_else(|| {
                let text = "database.url: only sqlite:PATH and postgres://USER@HOST/DATABASE are understood";
                CommandError::config(text).try_this("rejoin config show, to see where it comes from")
            })
    }

    /// Returns true if this is a file that does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::File(path) if !path.exists())
    }

    pub(crate) async fn open(&self) -> Result<Store> {
        Ok(match self {
            Self::File(path) => Store::open_sqlite(path).await?,
            Self::Server { url } => Store::open_postgres(url).await?,
        })
    }

    /// For people.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Server { url } => Store::postgres_place(url).unwrap_or_default(),
        }
    }

    /// Stands for it, to tell whether two mean the same one. A file that was deleted has the mark that it had.
    pub(crate) fn mark(&self) -> String {
        let place = match self {
            Self::File(path) => fs_err::canonicalize(path)
                .ok()
                .or_else(|| real_place(path))
                .map_or_else(String::new, |path| path.display().to_string()),
            Self::Server { .. } => self.place(),
        };
        blake3::hash(place.as_bytes()).to_hex().to_string()
    }

    /// Checks the store without changing it; none: there is no store yet.
    pub(crate) async fn health(&self) -> Result<Option<Health>> {
        Ok(match self {
            Self::File(path) => Store::health(path).await?,
            Self::Server { url } => Store::health_of_postgres(url).await?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_files_and_servers() {
        let named = |url: &str| StoreUrl::named(Path::new("/h"), Some(url)).ok();
        let file = |path: &str| Some(StoreUrl::File(path.into()));
        let server = |url: &str| Some(StoreUrl::Server { url: url.into() });
        assert!(named("sqlite:/x/y.db") == file("/x/y.db"));
        assert!(named("sqlite:///x/y.db") == file("/x/y.db"));
        for url in ["postgres://h/d", "postgresql://u:p@h:1/d?sslmode=require"] {
            assert!(named(url) == server(url), "{url}");
        }
        for url in [
            "",
            "sqlite:",
            "mysql://h/d",
            "postgres:h",
            "postgres://u:geheim@[::/",
        ] {
            assert!(named(url).is_none(), "{url}");
        }
    }
}
