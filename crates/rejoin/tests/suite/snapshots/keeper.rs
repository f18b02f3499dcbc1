//! A session that no CLI wrote, captured and put back as the runner does it: for what depends on its
//! size alone. The benchmark uses it too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rejoin_core::{
    AgentName, ConversationId, FileMark, Folder, PermissionMode, Pin, PinId, PinState, Runtime,
    Scope, ScopeValue, SeenPrefix, SessionId, Version,
};
use rejoin_hub::{Clock, Hub};
use rejoin_runner::{Asks, Runner, RunnerConfig, marks, restore};
use rejoin_store::{Blobs, BlobsConfig, NewConversation, Sealer, Store, Vault};

const SESSION: &str = "0f0e0d0c-0b0a-4908-8706-050403020100";

/// One session in its agent's home, and the store that keeps it.
pub(crate) struct Keeper {
    pub(crate) vault: Vault,
    runner: Runner,
    home: PathBuf,
    /// As it was confirmed last.
    pin: Option<Pin>,
}

impl Keeper {
    /// Beneath `root`; `blobs` as in the configuration.
    pub(crate) async fn open(root: &Path, blobs: &str) -> Self {
        let home = root.join("home");
        fs_err::create_dir_all(&home).unwrap();
        let store = Store::open_sqlite(&root.join("rejoin.db")).await.unwrap();
        let url = blobs.replace("file:", &format!("file:{}/", root.display()));
        let blobs = Blobs::open(&BlobsConfig {
            url,
            ..BlobsConfig::default()
        });
        let vault = Vault::new(store.clone(), blobs.unwrap(), Sealer::plain());
        let hub = Hub {
            namespace: "".into(),
            ceiling: None,
            store,
            clock: Clock,
            machine: "m".into(),
            vault: Some(vault.clone()),
        };
        let config = RunnerConfig {
            home: root.to_owned(),
            agents: BTreeMap::default(),
            env: vec![],
            models: BTreeMap::default(),
            described: vec![],
            unrun: rejoin_runner::Unrun::default(),
            asks: Asks::Nobody,
            defer_after: None,
            warm: None,
            wall: rejoin_runner::WallConfig::default(),
        };
        Self {
            vault,
            runner: Runner::new(hub, config),
            home,
            pin: None,
        }
    }

    /// Where the session lies.
    pub(crate) fn file(&self) -> PathBuf {
        self.home.join("s.jsonl")
    }

    /// What a turn has added is read and confirmed, as at its end.
    pub(crate) async fn confirm(&mut self) {
        let before = self.pin.as_ref().map(|pin| pin.files[0].clone());
        let mark = marks::read_on(&self.home, "s.jsonl", before.as_ref(), |_| {}).unwrap();
        let turns = self.pin.as_ref().map_or(0, |pin| pin.seen.messages);
        let new = self.pin.is_none();
        let pin = pin(&self.home, mark, turns + 1);
        let mut tx = self.vault.store.begin().await.unwrap();
        if new {
            tx.conversations().add(&conversation()).await.unwrap();
            let c = conversation().id;
            tx.pins().add_confirmed(c, &pin, 1).await.unwrap();
        }
        assert!(tx.pins().confirm(&pin, 1).await.unwrap());
        tx.commit().await.unwrap();
        self.pin = Some(pin);
    }

    /// Captures what was confirmed; `before` is what its bytes were known to begin with.
    pub(crate) async fn capture(&self, before: Option<&FileMark>) {
        let pin = self.pin.as_ref().unwrap();
        self.runner.save_since(pin, before).await.unwrap().unwrap();
    }

    pub(crate) fn mark(&self) -> Option<FileMark> {
        self.pin.as_ref().map(|pin| pin.files[0].clone())
    }

    /// Puts the newest snapshot into a folder, checked and synced.
    pub(crate) async fn restore(&self, to: &Path) -> PathBuf {
        let newest = {
            let mut read = self.vault.store.read().await.unwrap();
            let newest = read.snapshots().of_pin(pin_id(), 1).await.unwrap().pop();
            newest.unwrap()
        };
        let files = restore::written_to(&self.vault, &newest, to).await.unwrap();
        files.unwrap().remove(0)
    }
}

fn pin_id() -> PinId {
    PinId::from_parts(1, [7; 10])
}

fn agent() -> AgentName {
    AgentName::new("claude").unwrap()
}

fn conversation() -> NewConversation {
    NewConversation {
        namespace: String::new(),
        id: ConversationId::from_parts(1, [1; 10]),
        key: None,
        title: "long".into(),
        agent: agent(),
        workdir: "/w".into(),
        permission: PermissionMode::Edit,
        scope: Scope::Full,
        parent: None,
        now: 1,
    }
}

fn pin(home: &Path, mark: FileMark, turns: u64) -> Pin {
    let mut value = [0; 32];
    value[..8].copy_from_slice(&turns.to_le_bytes());
    Pin {
        id: pin_id(),
        agent: agent(),
        session: SessionId::new(SESSION).unwrap(),
        state: PinState::Confirmed,
        seen: SeenPrefix {
            summarised: 0,
            value: ScopeValue(value),
            messages: turns,
            last_seq: turns as i64,
            last: None,
        },
        folder: Folder {
            path: "/w".into(),
            device: 1,
            inode: 2,
            checkout: None,
        },
        runtime: Runtime {
            product: "claude".into(),
            version: Version("1".into()),
        },
        machine: "m".into(),
        home: home.display().to_string(),
        files: vec![mark],
        cursor: None,
        total: None,
        usage: None,
        context: None,
        model: None,
        provider: None,
        failures: 0,
        compacted: false,
        instructions: None,
    }
}
