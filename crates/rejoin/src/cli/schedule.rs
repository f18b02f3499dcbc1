//! `rejoin schedule`

use clap::{Args, Subcommand};
use rejoin_hub::{OccurrenceView, Schedule, ScheduleView, SchedulesView, TurnView};
use rejoin_runner::occurrence::OccurrenceLimits;
use serde_json::{Value, json};

use super::escalate::follow_climbs;
use crate::app::App;
use crate::cli::command::{Help, Run, Task, TrustCheck};
use crate::hub_client::HubClient;
use crate::output::{Line, Output, Tone, table};
use crate::remote::Ask;
use rejoin_errors::{CommandError, Result};

/// Number of occurrences that are read of each schedule.
const RECENT: i64 = 10;

/// List the schedules; run, pause or resume one
///
/// A schedule, [[schedule]] in the configuration, sends its prompt at its times while rejoin serve runs.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin schedule list\n  rejoin schedule run health\n  rejoin schedule pause health"
)]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the schedules with their next time and their last occurrence
    List,
    /// Send the prompt of a schedule now, and follow its turns
    Run {
        /// Name of the schedule
        name: String,
    },
    /// Skip the occurrences of a schedule
    Pause {
        /// Name of the schedule
        name: String,
    },
    /// Run the occurrences of a schedule again
    Resume {
        /// Name of the schedule
        name: String,
    },
}

impl Run for ScheduleArgs {
    const NAME: &'static str = "schedule";
    const HELP: Help = Help::Change("schedules: list, run, pause");

    fn task(self) -> Task {
        let runs = matches!(self.what, What::Run { .. });
        let task = Task::hub(self, run);
        if runs {
            task.by_daemon().trust(TrustCheck::Required)
        } else {
            task
        }
    }
}

async fn run(hub: HubClient<'_>, args: &ScheduleArgs) -> Result<u8> {
    match &args.what {
        What::List => list(hub).await,
        What::Run { name } => run_now(hub, name).await,
        What::Pause { name } => pause(hub, name, true).await,
        What::Resume { name } => pause(hub, name, false).await,
    }
}

async fn list(hub: HubClient<'_>) -> Result<u8> {
    let view: SchedulesView = match hub {
        HubClient::Local(app) => app.hub().schedules(&app.config.schedules, RECENT).await?,
        HubClient::Remote(remote) => remote.ask(Ask::get(&["api", "schedules"])).await?,
    };
    if hub.out().json {
        hub.out().json(&view);
    } else {
        print(hub.out(), &view);
    }
    Ok(0)
}

async fn run_now(hub: HubClient<'_>, name: &str) -> Result<u8> {
    let turn = match hub {
        HubClient::Local(app) => {
            let schedule = find(app, name)?;
            let due = app.hub().occurrence_now(schedule).await?;
            let (defaults, limits) = (app.defaults()?, OccurrenceLimits::default());
            let accepted = app
                .runner
                .accept_occurrence(schedule, due, &defaults, limits, None)
                .await?;
            app.hub().turn_view(accepted.turn).await?
        }
        HubClient::Remote(remote) => {
            let ask = Ask::post(&["api", "schedules", name, "run"]);
            remote.ask::<TurnView>(ask).await?
        }
    };
    follow_climbs(hub, turn.conversation_id, turn.turn_id, false).await
}

async fn pause(hub: HubClient<'_>, name: &str, paused: bool) -> Result<u8> {
    match hub {
        HubClient::Local(app) => {
            let schedule = find(app, name)?;
            app.hub().pause_schedule(schedule, paused).await?;
        }
        HubClient::Remote(remote) => {
            let ask = Ask::put(&["api", "schedules", name]).body(json!({"paused": paused}));
            let _changed: Value = remote.ask(ask).await?;
        }
    }
    let out = hub.out();
    if out.json {
        out.json(&json!({"schedule": name, "paused": paused}));
    } else if paused {
        out.text(&format!(
            "{name} is paused; run it again: rejoin schedule resume {name}"
        ));
    } else {
        out.text(&format!("{name} runs at its times"));
    }
    Ok(0)
}

fn find<'a>(app: &'a App, name: &str) -> Result<&'a Schedule> {
    let all = &app.config.schedules;
    all.iter().find(|it| it.name == name).ok_or_else(|| {
        let text = format!("there is no schedule `{name}` in the configuration");
        CommandError::not_found(text).try_this("rejoin schedule list")
    })
}

fn print(out: Output, view: &SchedulesView) {
    if view.schedules.is_empty() {
        out.text("no schedules are configured; see [[schedule]] in docs/configuration.md");
        return;
    }
    let now = HubClient::now();
    let row = |schedule: &ScheduleView| {
        let next = match (&schedule.paused_at, &schedule.next_at) {
            (Some(_), _) => "paused".to_owned(),
            (None, Some(at)) => now.moment(at),
            (None, None) => "with rejoin serve".to_owned(),
        };
        let last = schedule
            .occurrences
            .first()
            .map(|it| last(it, &now.moment(&it.at)));
        vec![
            Line::new().with(Tone::Name, &schedule.name),
            Line::plain(&rule(schedule)),
            Line::plain(schedule.tier.as_deref().unwrap_or("-")),
            Line::plain(&format!("next {next}")),
            Line::plain(&format!("last {}", last.as_deref().unwrap_or("-"))),
        ]
    };
    let rows: Vec<_> = view.schedules.iter().map(row).collect();
    out.lines(&table(&rows, None));
}

fn rule(schedule: &ScheduleView) -> String {
    match (&schedule.cron, schedule.every_ms) {
        (Some(cron), _) => cron.clone(),
        (None, Some(ms)) => format!("every {}", rejoin_core::span(ms)),
        (None, None) => String::new(),
    }
}

fn last(occurrence: &OccurrenceView, when: &str) -> String {
    let status = match (&occurrence.turn_status, &occurrence.reason) {
        (Some(turn), _) if occurrence.status == "done" => turn.clone(),
        (_, Some(reason)) => format!("{}: {reason}", occurrence.status),
        _ => occurrence.status.clone(),
    };
    format!("{when}, {status}")
}
