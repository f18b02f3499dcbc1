//! `rejoin workflow list` and `show`.

use rejoin_errors::Result;
use rejoin_hub::{StepStatus, WorkflowRowView, WorkflowView, WorkflowsView};

use super::live;
use crate::hub_client::HubClient;
use crate::output::{Line, Tone, format, table};
use crate::remote::Ask;

pub(super) async fn list(hub: HubClient<'_>, _args: &()) -> Result<u8> {
    let view: WorkflowsView = match hub {
        HubClient::Local(app) => app.hub().workflows(None).await?,
        HubClient::Remote(remote) => remote.ask(Ask::get(&["api", "workflows"])).await?,
    };
    let out = hub.out();
    if out.json {
        out.json(&view);
        return Ok(0);
    }
    if view.workflows.is_empty() {
        out.text("no workflow has run yet; try: rejoin workflow new > demo.yaml");
        return Ok(0);
    }
    let now = HubClient::now();
    let row = |run: &WorkflowRowView| {
        let name = run
            .key
            .clone()
            .unwrap_or_else(|| run.workflow_id.to_string());
        vec![
            Line::new().with(Tone::Name, &name),
            Line::plain(&run.name),
            Line::new().with(tone(run.status), run.status.as_str()),
            Line::plain(&format::duration(run.duration_ms)),
            Line::plain(&format::money(run.cost_usd)),
            Line::faint(&now.ago(&run.started_at)),
        ]
    };
    let rows: Vec<_> = view.workflows.iter().map(row).collect();
    out.lines(&table(&rows, None));
    Ok(0)
}

#[expect(clippy::ptr_arg, reason = "the arguments of a command are owned")]
pub(super) async fn show(hub: HubClient<'_>, name: &String) -> Result<u8> {
    let view = whole(hub, name).await?;
    let out = hub.out();
    if out.json {
        out.json(&view);
    } else {
        out.lines(&live::tree(&view, out.width(), None));
        for line in live::details(&view) {
            out.text(&line);
        }
    }
    Ok(0)
}

/// Returns a run with the texts of its steps.
pub(super) async fn whole(hub: HubClient<'_>, name: &str) -> Result<WorkflowView> {
    Ok(match hub {
        HubClient::Local(app) => {
            let run = app.hub().find_workflow(name).await?;
            app.hub().workflow_view(&run).await?
        }
        HubClient::Remote(remote) => remote.ask(Ask::get(&["api", "workflows", name])).await?,
    })
}

pub(super) fn tone(status: StepStatus) -> Tone {
    match status {
        StepStatus::Succeeded => Tone::Good,
        StepStatus::Failed => Tone::Bad,
        StepStatus::Waiting => Tone::Name,
        StepStatus::Pending | StepStatus::Running | StepStatus::Skipped | StepStatus::Cancelled => {
            Tone::Faint
        }
    }
}
