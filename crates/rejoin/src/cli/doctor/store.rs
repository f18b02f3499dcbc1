//! The store and the turns in it, also if it cannot be opened.

use std::time::Duration;

use std::path::Path;

use rejoin_core::TurnId;
use rejoin_hub::{Clock, Hub};
use rejoin_runner::doctor_facts;
use rejoin_store::Health;
use serde_json::{Value, json};

use super::report::{Report, bytes};
use crate::app::make_home;
use crate::config::Config;
use crate::store_url::StoreUrl;
use rejoin_errors::Result;

/// Long enough for a process that has nothing left to do.
const ON_ITS_WAY_OUT: Duration = Duration::from_millis(300);

/// The hub is there if the store is well. `keep`: somebody wants to write into it.
pub(super) async fn look(
    report: &mut Report,
    config: &Config,
    home: &Path,
    keep: bool,
) -> (Option<Hub>, Value) {
    report.section("store");
    let at = match StoreUrl::named(home, config.database_url.as_deref()) {
        Ok(at) => at,
        Err(failure) => {
            let next = failure.next.unwrap_or_default();
            report.bad("", &failure.message, &next);
            return (None, Value::Null);
        }
    };
    let shown = at.place();
    let (mut found, unreached) = match &at {
        StoreUrl::File(path) => (json!({"path": path}), "check REJOIN_HOME"),
        StoreUrl::Server { .. } => (
            json!({"server": shown}),
            "see that the server runs, and that database.url is right: rejoin config show",
        ),
    };
    let health = match at.health().await {
        Ok(health) => health,
        Err(failure) => {
            report.bad(&shown, &failure.message, unreached);
            found["error"] = json!(failure.message);
            return (None, found);
        }
    };
    let Some(health) = health else {
        report.note(&shown, "not there yet; the first message makes it");
        let hub = if keep && make_home(home).is_ok() {
            open(&at).await.ok()
        } else {
            None
        };
        found["exists"] = json!(false);
        return (hub, found);
    };
    let facts = json!({
        "exists": true, "bytes": health.bytes, "schema": health.schema,
        "known_schema": health.known_schema, "damage": health.damage,
        "running": health.running, "queued": health.queued, "conversations": health.conversations,
    });
    if let (Some(found), Value::Object(facts)) = (found.as_object_mut(), facts) {
        found.extend(facts);
    }
    if let Some(version) = &health.server {
        found["server_version"] = json!(version);
    }
    if !judge(report, &shown, &health) {
        return (None, found);
    }
    let hub = match open(&at).await {
        Ok(hub) => hub,
        Err(failure) => {
            let next = failure.next.unwrap_or_else(|| unreached.into());
            report.bad(&shown, &failure.message, &next);
            return (None, found);
        }
    };
    match turns(report, &hub, &health, home).await {
        Ok(left) => found["leftovers"] = left,
        Err(failure) => report.bad("turns", &failure.message, "rejoin list"),
    }
    (Some(hub), found)
}

/// Reports the store's health. Returns true if the store can be opened.
fn judge(report: &mut Report, path: &str, health: &Health) -> bool {
    if let Some(damage) = health.damage.first() {
        let next = format!("put a backup in its place, or begin anew: mv {path} {path}.damaged");
        report.bad(path, &format!("damaged: {damage}"), &next);
        return false;
    }
    let (schema, known) = (health.schema, health.known_schema);
    if schema > known {
        let text = format!("written by a newer rejoin (schema {schema}, this one knows {known})");
        report.bad(path, &text, "install the newer rejoin");
        return false;
    }
    let size = bytes(health.bytes);
    let count = health.conversations;
    let conversations = if count == 1 {
        "conversation"
    } else {
        "conversations"
    };
    report.good(
        path,
        &match &health.server {
            None => format!("{size}, {count} {conversations}, schema {schema}, intact"),
            Some(version) => {
                format!("{size}, {count} {conversations}, schema {schema}, server {version}")
            }
        },
    );
    true
}

async fn open(at: &StoreUrl) -> Result<Hub> {
    Ok(Hub {
        namespace: "".into(),
        ceiling: None,
        store: at.open().await?,
        clock: Clock,
        machine: String::new(),
        vault: None,
    })
}

/// Reports running turns, waiting turns and leftovers of turns that ended.
async fn turns(report: &mut Report, hub: &Hub, health: &Health, home: &Path) -> Result<Value> {
    let mut read = hub.store.read().await?;
    let running = read.turns().running().await?;
    let queued = health.queued;
    let mut unattended = 0;
    for turn in &running {
        let attended = doctor_facts::is_attended(hub, home, turn).await?;
        unattended += usize::from(!attended);
    }
    report.good(
        "turns",
        &format!("{} running, {queued} queued", running.len()),
    );
    if unattended > 0 {
        let text = format!(
            "{unattended} without the command that sent them; the next command takes them up"
        );
        report.note("", &text);
    }
    let resting = doctor_facts::resting(home);
    if resting > 0 {
        let text = format!("{resting} kept up for the next message ([serve] warm)");
        report.note("", &text);
    }
    let (mut strays, mut kept) = (vec![], vec![]);
    for process in doctor_facts::turn_processes() {
        let Ok(id) = process.turn.parse::<TurnId>() else {
            continue;
        };
        match read.turns().get(id).await? {
            Some(turn) if !turn.status.ended() => {}
            Some(turn) if turn.request["keep_background"] == json!(true) => kept.push(process),
            Some(_) => strays.push(process),
            // Of another store.
            None => {}
        }
    }
    if !strays.is_empty() {
        // The shim of a turn that has just ended is still on its way out.
        tokio::time::sleep(ON_ITS_WAY_OUT).await;
        let living = doctor_facts::turn_processes();
        strays.retain(|stray| living.contains(stray));
    }
    for process in &kept {
        let text = format!(
            "{} {} kept by --keep-background: rejoin cancel {}",
            process.pid, process.command, process.turn
        );
        report.note("", &text);
    }
    if !strays.is_empty() {
        let pids: Vec<String> = strays.iter().map(|p| p.pid.to_string()).collect();
        let commands: Vec<&str> = strays.iter().map(|p| p.command.as_str()).collect();
        let text = format!(
            "processes of ended turns still run: {}",
            commands.join("; ")
        );
        report.bad("leftovers", &text, &format!("kill {}", pids.join(" ")));
    }
    let mut folders = 0;
    for name in doctor_facts::turn_folders(home) {
        let Ok(id) = name.parse::<TurnId>() else {
            continue;
        };
        folders += usize::from(
            read.turns()
                .get(id)
                .await?
                .is_some_and(|t| t.status.ended()),
        );
    }
    if folders > 0 {
        report.note(
            "leftovers",
            &format!("{folders} folders of ended turns; the next command removes them"),
        );
    }
    let strays: Vec<Value> = strays
        .iter()
        .map(|p| json!({"pid": p.pid, "turn_id": p.turn, "command": p.command}))
        .collect();
    Ok(
        json!({"processes": strays, "kept": kept.len(), "folders": folders, "unattended": unattended}),
    )
}
