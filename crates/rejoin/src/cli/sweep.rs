//! `rejoin sweep`

use clap::Args;
use rejoin_hub::{Thinned, fault, rfc3339};
use rejoin_store::{Expiring, SweepPlan, SweepProgress as Step, SweepResult, SweepStep};
use serde_json::{Value, json};

use super::snapshot::short;
use crate::app::App;
use crate::cli::command::{Help, Run, Task};
use crate::output::format::{Now, count, size};
use crate::output::{Line, Progress, Tone, table};
use rejoin_errors::Result;

/// Remove expired snapshots, unused chunks and streamed pieces of old texts
///
/// snapshots.keep_latest, snapshots.keep_older and retention.deltas set the lifetime. Pinned snapshots stay.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin sweep --dry-run    shows what would be removed\n  rejoin sweep"
)]
pub(crate) struct SweepArgs {
    /// Show what would be removed, change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for SweepArgs {
    const NAME: &'static str = "sweep";
    const HELP: Help = Help::Change("free space");

    fn task(self) -> Task {
        Task::store(self, run)
    }
}

async fn run(app: &App, args: &SweepArgs) -> Result<u8> {
    let hub = app.hub();
    let progress = Progress::new(app.out);
    let watch = |step| match step {
        Step::Reading(n) => progress.at("snapshots read:", n, None),
        Step::Listing(n) => progress.at("objects listed:", n, None),
        Step::Removing(n, of) => {
            fault::point("sweep_removing");
            progress.at("removing", n, Some(of));
        }
        Step::At(stage) => may_die(stage),
    };
    let keep = app.config.snapshots.keep;
    let now = hub.shared_now().await?;
    let deltas = app.config.keep_deltas;
    let thinned = if args.dry_run {
        hub.plan_thinning(deltas, now).await?
    } else {
        hub.thin_events(deltas, now).await?
    };
    let Some(vault) = hub.vault.as_ref() else {
        // Snapshots are switched off.
        if app.out.json {
            app.out
                .json(&json!({"dry_run": args.dry_run, "thinned": of(thinned)}));
        } else {
            note_thinned(app, thinned, args.dry_run);
        }
        return Ok(0);
    };
    let plan = vault.plan_sweep(keep, now, &watch).await?;
    let swept = if args.dry_run {
        None
    } else {
        Some(vault.sweep(&plan, &watch).await?)
    };
    drop(progress);
    if app.out.json {
        app.out.json(&document(&plan, swept.as_ref(), thinned));
    } else {
        page(app, &plan, swept.as_ref());
        note_thinned(app, thinned, args.dry_run);
    }
    match swept.and_then(|swept| swept.why) {
        Some(error) if !app.out.json => {
            app.out
                .note("what was not removed is removed by the next sweep");
            Err(error.into())
        }
        Some(_) => Ok(6),
        None => Ok(0),
    }
}

fn may_die(stage: SweepStep) {
    match stage {
        SweepStep::Expiring => fault::point("sweep_expiring"),
        SweepStep::Expired => fault::point("sweep_expired"),
        SweepStep::Reached => fault::point("sweep_reached"),
        SweepStep::Forgetting => fault::point("sweep_forgetting"),
        SweepStep::Forgotten => fault::point("sweep_forgotten"),
        SweepStep::Removed => fault::point("sweep_removed"),
    }
}

fn page(app: &App, plan: &SweepPlan, swept: Option<&SweepResult>) {
    let now = Now::at(app.hub().clock.now());
    let row = |over: &Expiring| {
        vec![
            Line::new().with(Tone::Name, &short(over.id)),
            Line::plain(over.agent.as_str()),
            Line::faint(&now.ago(&rfc3339(over.taken_at))),
            Line::plain(&size(over.length)),
            Line::faint(&over.why),
        ]
    };
    let rows: Vec<_> = plan.expiring.iter().map(row).collect();
    let fit = app.out.screen().then(|| app.out.width());
    app.out.lines(&table(&rows, fit));
    let stay = count(plan.staying, "snapshot");
    let text = match swept {
        None => format!(
            "would give up {}, keep {stay}, and free {} in {}",
            count(plan.expiring.len() as u64, "snapshot"),
            size(plan.bytes),
            count(plan.chunks + plan.strays.len() as u64, "chunk"),
        ),
        Some(swept) => format!(
            "gave up {}, kept {stay}, and freed {} in {}",
            count(swept.expired, "snapshot"),
            size(swept.bytes),
            count(swept.chunks + swept.strays, "chunk"),
        ),
    };
    app.out.text(&text);
    if plan.waiting > 0 {
        let waiting = count(plan.waiting, "chunk");
        app.out.note(&format!(
            "{waiting} too new to go: somebody may be about to use them"
        ));
    }
    if !plan.damaged.is_empty() {
        let damaged = count(plan.damaged.len() as u64, "snapshot");
        app.out.note(&format!(
            "{damaged} cannot be read any more; try: rejoin snapshot verify"
        ));
    }
}

fn of(thinned: Thinned) -> Value {
    json!({"turns": thinned.turns, "events": thinned.events})
}

/// Prints the number of streamed pieces of texts that were removed, or would be.
fn note_thinned(app: &App, thinned: Thinned, dry_run: bool) {
    if thinned.events == 0 {
        return;
    }
    let verb = if dry_run { "would remove" } else { "removed" };
    let events = count(thinned.events, "streamed piece");
    let turns = count(thinned.turns, "turn");
    app.out.text(&format!(
        "{verb} {events} of texts from {turns}; the texts stay"
    ));
}

fn document(plan: &SweepPlan, swept: Option<&SweepResult>, thinned: Thinned) -> Value {
    let one = |over: &Expiring| {
        json!({
            "id": over.id, "conversation_id": over.conversation, "agent": over.agent,
            "taken_at": rfc3339(over.taken_at), "bytes": over.length, "why": over.why,
        })
    };
    let expired: Vec<Value> = plan.expiring.iter().map(one).collect();
    let strays = plan.strays.len() as u64;
    let (chunks, bytes, strays) = swept.map_or((plan.chunks, plan.bytes, strays), |swept| {
        (swept.chunks, swept.bytes, swept.strays)
    });
    let mut document = json!({
        "dry_run": swept.is_none(), "expired": expired, "kept": plan.staying, "chunks": chunks,
        "bytes": bytes, "strays": strays, "waiting": plan.waiting, "damaged": plan.damaged,
        "thinned": of(thinned),
    });
    if let Some(error) = swept.and_then(|swept| swept.why.as_ref()) {
        document["error"] = json!({
            "code": "unavailable", "message": error.to_string(), "try": "rejoin doctor",
        });
    }
    document
}
