//! `rejoin snapshot verify`

use std::collections::{HashMap, HashSet};

use clap::Args;
use rejoin_core::{ConversationId, PinId, SnapshotId};
use rejoin_hub::rfc3339;
use rejoin_store::{CheckedChunks, ChunkError, Snapshot, SnapshotFlaw, Unusable, VerifyDepth};
use serde_json::{Value, json};

use super::list::handles;
use super::{short, vault};
use crate::app::App;
use crate::output::format::{Now, count, size};
use crate::output::{Line, Progress, Tone};
use rejoin_errors::{CommandError, Result, codes};

/// Check that snapshots can be restored
///
/// Checks every manifest and that every chunk exists; with --read-data also every byte. Exits with 11
/// if something is damaged.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin snapshot verify\n  rejoin snapshot verify tmqx --read-data"
)]
pub(crate) struct VerifyArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV")]
    conversation: Option<String>,
    /// Read, open and compare every chunk
    #[arg(long)]
    read_data: bool,
}

/// Snapshots read with one query.
const PAGE: i64 = 32;
/// Damaged chunks that are named, of one snapshot.
const NAMED: usize = 3;

struct Damaged {
    snapshot: Snapshot,
    flaws: Vec<SnapshotFlaw>,
}

#[derive(Default)]
struct Found {
    checked: CheckedChunks,
    snapshots: u64,
    damaged: Vec<Damaged>,
    /// The whole snapshots of each session.
    well: HashMap<PinId, Vec<SnapshotId>>,
}

pub(super) async fn run(app: &App, args: &VerifyArgs) -> Result<u8> {
    let depth = if args.read_data {
        VerifyDepth::Data
    } else {
        VerifyDepth::Present
    };
    let only = match &args.conversation {
        Some(name) => Some(app.hub().find(name, &app.folders()).await?.conversation.id),
        None => None,
    };
    let found = look(app, only, depth).await?;
    if found.damaged.is_empty() {
        return Ok(well(app, &found, args));
    }
    let damaged: HashSet<_> = found.damaged.iter().map(|d| d.snapshot.id).collect();
    let (is, never) = match damaged.len() {
        1 => ("is", "it is never used"),
        _ => ("are", "they are never used"),
    };
    let of = count(found.snapshots, "snapshot");
    let elsewhere = |flaw: &SnapshotFlaw| matches!(flaw, SnapshotFlaw::Elsewhere(_));
    if found.damaged.iter().all(|d| d.flaws.iter().all(elsewhere)) {
        let lie = if damaged.len() == 1 { "lies" } else { "lie" };
        let message = format!(
            "{} of {of} {lie} in another place than the one that is configured here",
            damaged.len()
        );
        let failure = CommandError::config(message)
            .try_this("set REJOIN_BLOBS_URL to where they were saved, or run rejoin snapshot save");
        return report(app, &found, failure).await;
    }
    let message = format!("{} of {of} {is} damaged; {never}", damaged.len());
    let failure = CommandError::new(codes::DAMAGED, message);
    let failure = if args.read_data {
        failure.try_this("rejoin snapshot save, while the session is still here")
    } else {
        failure
    };
    report(app, &found, failure).await
}

async fn look(app: &App, only: Option<ConversationId>, depth: VerifyDepth) -> Result<Found> {
    let vault = vault(app)?;
    let store = &app.hub().store;
    let progress = Progress::new(app.out);
    let mut found = Found::default();
    let mut after = None;
    loop {
        let page = match only {
            Some(c) => store.read().await?.snapshots().of(c).await?,
            None => store.read().await?.snapshots().after(after, PAGE).await?,
        };
        let last = only.is_some() || page.len() < PAGE as usize;
        for snapshot in page {
            after = Some(snapshot.id);
            if snapshot.expired.is_some() {
                continue;
            }
            found.snapshots += 1;
            let watch = |chunks| progress.at("chunks checked:", chunks, None);
            let flaws = vault
                .verify(&snapshot, depth, &mut found.checked, &watch)
                .await
                .map_err(|lost| unknown(&snapshot, lost))?;
            if flaws.is_empty() {
                found
                    .well
                    .entry(snapshot.pin)
                    .or_default()
                    .push(snapshot.id);
            } else {
                found.damaged.push(Damaged { snapshot, flaws });
            }
        }
        if last {
            return Ok(found);
        }
    }
}

/// Failure of a check that could not be made. Damage is reported otherwise.
fn unknown(snapshot: &Snapshot, lost: ChunkError) -> CommandError {
    let name = short(snapshot.id);
    match lost {
        ChunkError::Unavailable(error) => error.into(),
        ChunkError::WrongKey { key } => CommandError::config(format!(
            "the snapshot {name} is encrypted with the key {key}, which is not configured here"
        ))
        .try_this("add that key to the file of snapshots.key_file, below the current one"),
        ChunkError::Missing
        | ChunkError::Elsewhere { .. }
        | ChunkError::Damaged(_)
        | ChunkError::Io(_) => {
            CommandError::unavailable(format!("the snapshot {name} could not be checked: {lost}"))
        }
    }
}

fn well(app: &App, found: &Found, args: &VerifyArgs) -> u8 {
    let (chunks, bytes) = (found.checked.chunks(), found.checked.bytes);
    if app.out.json {
        app.out.json(&json!({
            "ok": true, "snapshots": found.snapshots, "chunks": chunks, "bytes": bytes,
            "read_data": args.read_data, "damaged": [],
        }));
    } else {
        let how = if args.read_data {
            "every byte of them is what was kept"
        } else {
            "all of them there (--read-data reads them too)"
        };
        app.out.text(&format!(
            "{}, {} of {}: {how}",
            count(found.snapshots, "snapshot"),
            count(chunks, "chunk"),
            size(bytes)
        ));
    }
    0
}

async fn report(app: &App, found: &Found, failure: CommandError) -> Result<u8> {
    let snapshots: Vec<_> = found.damaged.iter().map(|d| d.snapshot.clone()).collect();
    let handles = handles(app, &snapshots).await?;
    let handle = |s: &Snapshot| handles.get(&s.conversation).cloned().unwrap_or_default();
    if app.out.json {
        let damaged: Vec<Value> = found
            .damaged
            .iter()
            .map(|d| d.document(&handle(&d.snapshot), found))
            .collect();
        app.out.json(&json!({
            "ok": false, "snapshots": found.snapshots, "chunks": found.checked.chunks(),
            "bytes": found.checked.bytes, "damaged": damaged,
            "error": {"code": failure.code, "message": failure.message, "try": failure.next},
        }));
        return Ok(failure.exit);
    }
    let now = Now::at(app.hub().clock.now());
    let mut lines = vec![];
    for damaged in &found.damaged {
        lines.extend(damaged.lines(&handle(&damaged.snapshot), found, &now));
    }
    app.out.lines(&lines);
    Err(failure)
}

impl Damaged {
    /// The consequence for the conversation.
    fn means(&self, found: &Found) -> &'static str {
        let well = found
            .well
            .get(&self.snapshot.pin)
            .map_or(&[][..], Vec::as_slice);
        let newer = |id: &SnapshotId| *id > self.snapshot.id;
        if well.iter().any(newer) {
            "a newer one of its session is well, so nothing is lost"
        } else if well.is_empty() {
            "without its session here, the next turn is told what was said instead"
        } else {
            "without its session here, an older one serves, and is told what came after"
        }
    }

    fn lines(&self, handle: &str, found: &Found, now: &Now) -> Vec<Line> {
        let s = &self.snapshot;
        let taken = now.ago(&rfc3339(s.taken_at));
        let head = format!("  {handle} {} {taken}: ", s.agent);
        let mut lines = vec![
            Line::new()
                .with(Tone::Bad, &short(s.id))
                .with(Tone::Plain, &head)
                .with(Tone::Plain, self.means(found)),
        ];
        for flaw in self.flaws.iter().take(NAMED) {
            lines.push(Line::plain(&format!("          {}", words(flaw))));
        }
        if let Some(more) = self.flaws.len().checked_sub(NAMED).filter(|more| *more > 0) {
            lines.push(Line::faint(&format!(
                "          and {}",
                count(more as u64, "more chunk")
            )));
        }
        lines
    }

    fn document(&self, handle: &str, found: &Found) -> Value {
        let flaw = |flaw: &SnapshotFlaw| match flaw {
            SnapshotFlaw::Manifest(why) => json!({"manifest": why.to_string()}),
            SnapshotFlaw::Elsewhere(_) => json!({"elsewhere": words(flaw)}),
            SnapshotFlaw::Chunk {
                part,
                path,
                chunk,
                why,
            } => {
                json!({"part": part, "path": path, "chunk": hex(chunk), "why": why})
            }
        };
        let s = &self.snapshot;
        json!({
            "id": s.id, "conversation_id": s.conversation, "handle": handle, "agent": s.agent,
            "session_id": s.session, "taken_at": rfc3339(s.taken_at),
            "flaws": self.flaws.iter().map(flaw).collect::<Vec<_>>(), "means": self.means(found),
        })
    }
}

fn words(flaw: &SnapshotFlaw) -> String {
    match flaw {
        SnapshotFlaw::Manifest(Unusable::Damaged) => "its manifest is not what was written".into(),
        SnapshotFlaw::Manifest(why) => why.to_string(),
        SnapshotFlaw::Elsewhere(here) => {
            format!("it lies in another place than the one that is configured here, {here}")
        }
        SnapshotFlaw::Chunk {
            part,
            path,
            chunk,
            why,
        } => {
            let file = if part.is_empty() {
                path.clone()
            } else {
                format!("{part}/{path}")
            };
            format!("{file}: {why} ({}…)", &hex(chunk)[..12])
        }
    }
}

fn hex(chunk: &[u8; 32]) -> String {
    blake3::Hash::from(*chunk).to_hex().to_string()
}
