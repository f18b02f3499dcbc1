//! Names from the store and the configuration, offered while one types. A failure offers nothing.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use clap::builder::StyledStr;
use clap_complete::engine::CompletionCandidate;
use rejoin_store::{ListFilter, MessageRange, RangeEnd, Read};

use crate::app;
use crate::cli::models;
use crate::config::{Config, KEYS};
use crate::output::one_line;
use crate::store_url::StoreUrl;

/// Conversations offered, newest first.
const OFFERED: i64 = 50;
/// Longest title beside a name.
const TITLE: usize = 60;

pub(super) fn agents() -> Vec<CompletionCandidate> {
    let names = rejoin_agents::ADAPTERS.iter().map(|a| a.name());
    names.map(CompletionCandidate::new).collect()
}

pub(super) fn modes() -> Vec<CompletionCandidate> {
    ["read-only", "edit", "full", "ask"]
        .map(CompletionCandidate::new)
        .into()
}

/// Keys of the configuration, with the known agents in place of their star.
pub(super) fn settings() -> Vec<CompletionCandidate> {
    let mut offered = vec![];
    for key in KEYS {
        let names = match key.name.strip_prefix("agents.*") {
            Some(rest) => {
                let agents = rejoin_agents::ADAPTERS.iter().map(|a| a.name());
                agents
                    .map(|agent| format!("agents.{agent}{rest}"))
                    .collect()
            }
            None if key.name.contains(['*', '[']) => vec![],
            None => vec![key.name.to_owned()],
        };
        let about = StyledStr::from(one_line(key.about, TITLE));
        offered.extend(
            names
                .into_iter()
                .map(|name| CompletionCandidate::new(name).help(Some(about.clone()))),
        );
    }
    offered
}

/// Handles with their titles, newest first.
pub(super) fn conversations() -> Vec<CompletionCandidate> {
    let last = CompletionCandidate::new("last").help(Some("last used in this folder".into()));
    let offered = from_store(async |read, _| {
        let mut offered = vec![last];
        for (n, c) in read.listing(&newest()).await.ok()?.iter().enumerate() {
            let handle = read.conversations().short_handle(&c.handle).await.ok()?;
            let title = StyledStr::from(one_line(&c.title, TITLE));
            let candidate = CompletionCandidate::new(handle).help(Some(title));
            offered.push(candidate.display_order(Some(n + 1)));
        }
        Some(offered)
    });
    offered.unwrap_or_default()
}

/// Messages of the conversation that is named before the colon, newest first; before a colon
/// conversations.
pub(super) fn messages(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let Some((handle, number)) = typed.split_once(':') else {
        let begins =
            |c: &CompletionCandidate| c.get_value().to_string_lossy().starts_with(typed.as_ref());
        return conversations().into_iter().filter(begins).collect();
    };
    let offered = from_store(async |read, _| {
        let found = read.conversations().by_handle("", handle).await.ok()?;
        let [conversation] = found.as_slice() else {
            return None;
        };
        let span = MessageRange {
            after: 0,
            before: i64::MAX,
            end: RangeEnd::Newest,
            removed: false,
        };
        let page = read.pages().messages(conversation.id, span, OFFERED).await;
        let newest = page.ok()?.into_iter().rev().map(|stored| stored.message);
        let begins = newest.filter(|message| message.seq.to_string().starts_with(number));
        let offered = begins.enumerate().map(|(n, message)| {
            let text = StyledStr::from(one_line(&message.text, TITLE));
            let candidate = CompletionCandidate::new(format!("{handle}:{}", message.seq));
            candidate.help(Some(text)).display_order(Some(n))
        });
        Some(offered.collect())
    });
    offered.unwrap_or_default()
}

/// Keys of conversations with their titles, newest first.
pub(super) fn keys() -> Vec<CompletionCandidate> {
    let offered = from_store(async |read, _| {
        let found = read.listing(&newest()).await.ok()?;
        let keyed = found.into_iter().filter_map(|c| Some((c.key?, c.title)));
        let offered = keyed.enumerate().map(|(n, (key, title))| {
            let title = StyledStr::from(one_line(&title, TITLE));
            let candidate = CompletionCandidate::new(key).help(Some(title));
            candidate.display_order(Some(n))
        });
        Some(offered.collect())
    });
    offered.unwrap_or_default()
}

/// Models of the configuration and of recent turns.
pub(super) fn models() -> Vec<CompletionCandidate> {
    let offered = from_store(async |read, config| {
        let known = models::known(read, config).await.ok()?;
        let mut agents: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for model in known {
            agents.entry(model.name).or_default().extend(model.agent);
        }
        let offered = agents.into_iter().map(|(name, agents)| {
            CompletionCandidate::new(name).help(Some(agents.join(", ").into()))
        });
        Some(offered.collect())
    });
    offered.unwrap_or_default()
}

fn newest() -> ListFilter {
    ListFilter {
        limit: OFFERED,
        ..ListFilter::default()
    }
}

fn from_store<T>(look: impl AsyncFnOnce(&mut Read, &Config) -> Option<Vec<T>>) -> Option<Vec<T>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.ok()?.block_on(async {
        let config = Config::load(None, &app::here().ok()?).ok()?;
        if config.untrusted.as_ref().is_some_and(|u| u.names_store) {
            return None;
        }
        let at = StoreUrl::named(&app::data_home().ok()?, config.database_url.as_deref()).ok()?;
        if matches!(&at, StoreUrl::File(file) if !file.exists()) {
            return None;
        }
        let store = at.open().await.ok()?;
        let mut read = store.read().await.ok()?;
        look(&mut read, &config).await
    })
}
