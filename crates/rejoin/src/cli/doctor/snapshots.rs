//! Snapshot storage: its place, its size, and sessions without a snapshot.

use rejoin_agents::adapter;
use rejoin_hub::Hub;
use rejoin_store::{Blobs, Inventory};
use serde_json::{Value, json};

use super::report::{Report, bytes};
use crate::config::Config;
use crate::output::format::count;

pub(super) async fn look(report: &mut Report, config: &Config, hub: Option<&Hub>) -> Value {
    report.section("snapshots");
    let blobs =
        match Blobs::open(&config.snapshots.blobs).map_err(rejoin_errors::CommandError::from) {
            Ok(blobs) => blobs,
            Err(failure) => {
                let next = failure.next.unwrap_or_default();
                report.bad("", &failure.message, &next);
                return Value::Null;
            }
        };
    if !config.snapshots.enabled {
        let text = "switched off: sessions lie only where their agents keep them, and claude deletes its own after 30 days";
        report.note("", text);
    }
    let place = blobs.place();
    let key = match config.snapshots.sealer() {
        Ok(sealer) => sealer.key_id(),
        Err(failure) => {
            let next = failure.next.unwrap_or_default();
            report.bad("key", &failure.message, &next);
            None
        }
    };
    let answers = match &blobs {
        Blobs::Database => None,
        Blobs::Objects(objects) => Some(objects.list(None).await.map(drop)),
    };
    let stock = stock(hub).await;
    let sealed = key.as_ref().map_or_else(
        || "not encrypted".to_owned(),
        |key| format!("encrypted with the key {key}"),
    );
    let amount = format!(
        "{}, {} in {}, {sealed}",
        count(stock.snapshots as u64, "snapshot"),
        bytes(stock.bytes as u64),
        count(stock.chunks as u64, "chunk"),
    );
    match &answers {
        Some(Err(error)) => {
            report.bad(&place, &error.to_string(), "check [blobs], or that it runs");
            report.note("", &amount);
        }
        Some(Ok(())) => report.good(&place, &format!("it answers; {amount}")),
        None => report.good(&place, &amount),
    }
    let unsaved = unsaved(report, hub).await;
    json!({
        "place": place, "answers": answers.map(|answers| answers.is_ok()), "key": key,
        "snapshots": stock.snapshots, "expired": stock.expired, "chunks": stock.chunks,
        "bytes": stock.bytes, "unsaved": unsaved,
    })
}

async fn stock(hub: Option<&Hub>) -> Inventory {
    let Some(hub) = hub else {
        return Inventory::default();
    };
    match hub.store.read().await {
        Ok(mut read) => read.inventory().count().await.unwrap_or_default(),
        Err(_) => Inventory::default(),
    }
}

/// Sessions whose newest confirmation is in no snapshot.
async fn unsaved(report: &mut Report, hub: Option<&Hub>) -> Vec<Value> {
    let Some(hub) = hub else {
        return vec![];
    };
    let Ok(mut read) = hub.store.read().await else {
        return vec![];
    };
    let mut all = vec![];
    for (c, pin, why) in read.snapshots().unsaved().await.unwrap_or_default() {
        let handle = match read.conversations().get(c).await {
            Ok(Some(found)) => read
                .conversations()
                .short_handle(&found.handle)
                .await
                .unwrap_or_default(),
            Ok(None) | Err(_) => continue,
        };
        let agent = read
            .pins()
            .get(pin)
            .await
            .ok()
            .flatten()
            .map(|pin| pin.agent);
        let days = agent
            .as_ref()
            .and_then(|a| adapter(a.as_str())?.profile().deletes_after_days);
        let soon = match (&agent, days) {
            (Some(agent), Some(days)) => format!("; {agent} itself deletes it after {days} days"),
            _ => String::new(),
        };
        let next = format!("rejoin snapshot save {handle}");
        let text = format!("its session is not saved: {why}{soon}");
        report.bad(&handle, &text, &next);
        all.push(json!({"conversation_id": c, "handle": handle, "why": why}));
    }
    all
}
