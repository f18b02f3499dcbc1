//! One story for both engines.

use rejoin_store::{Error, Store};
use rejoin_testkit::{Database, database};

/// Where a test keeps its store; goes with it.
pub(crate) enum Place {
    File(tempfile::TempDir),
    Server(Database),
}

impl Place {
    pub(crate) fn file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }

    /// None: PostgreSQL is not installed.
    pub(crate) fn server() -> Option<Self> {
        database().map(Self::Server)
    }

    pub(crate) async fn open(&self) -> Store {
        self.try_open().await.unwrap()
    }

    pub(crate) async fn try_open(&self) -> Result<Store, Error> {
        match self {
            Self::File(dir) => Store::open_sqlite(&dir.path().join("s.db")).await,
            Self::Server(database) => Store::open_postgres(&database.url).await,
        }
    }
}

/// Runs each function on a place of either kind.
macro_rules! on_both_engines {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $test() {
                super::$test($crate::suite::engines::Place::file()).await;
            })+
        }
        mod postgres {
            $(#[tokio::test] async fn $test() {
                if let Some(place) = $crate::suite::engines::Place::server() {
                    super::$test(place).await;
                }
            })+
        }
    };
}
