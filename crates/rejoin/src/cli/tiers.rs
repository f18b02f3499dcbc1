//! `rejoin tiers`

use clap::Args;
use rejoin_agents::ADAPTERS;
use rejoin_core::{ToolLimit, span};
use rejoin_runner::tiers::{AgentParts, TierView, TiersView, as_root};

use crate::app::Invocation;
use crate::cli::command::{Help, Run, Task};
use crate::output::format::money;
use crate::output::{Line, Output, Tone};
use rejoin_errors::{CommandError, Result, codes};

/// List the tiers, and how each agent enforces them
///
/// A tier is a permission level with an agent, a model and tools: [[tier]] in the configuration, lowest
/// first. `check` exits with 5 if an agent cannot enforce its tier.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin tiers\n  rejoin tiers check\n  rejoin send --tier observe \"is everything up?\""
)]
pub(crate) struct TiersArgs {
    /// `check`: exit with 5 if a tier cannot be enforced
    #[arg(value_name = "check", value_parser = ["check"])]
    verb: Option<String>,
}

impl Run for TiersArgs {
    const NAME: &'static str = "tiers";
    const HELP: Help = Help::Change("tiers");

    fn task(self) -> Task {
        Task::machine(self, async |on, args| run(on, args))
    }
}

fn run(on: &Invocation, args: &TiersArgs) -> Result<u8> {
    let (out, config) = (on.out, on.config()?);
    if let Some(untrusted) = &config.untrusted {
        out.note(&untrusted.note());
    }
    let adapters: Vec<_> = ADAPTERS.iter().chain(&config.described).copied().collect();
    let mode = config.permission.unwrap_or_default();
    let view = TiersView::new(&config.tiers, &adapters, mode, as_root());
    let check = args.verb.is_some();
    if out.json {
        out.json(&view);
    } else {
        print(out, &view, check.then_some(config.default_agent.as_str()));
    }
    let impossible = view.impossible(&config.default_agent);
    match impossible.first().filter(|_| check) {
        Some((tier, agent, why)) if !out.json => {
            let text = format!("{agent} cannot enforce the tier `{tier}`: {why}");
            Err(CommandError::new(codes::ENVELOPE, text).try_this("rejoin tiers"))
        }
        Some(_) => Ok(codes::ENVELOPE.exit),
        None => Ok(0),
    }
}

/// Prints each tier. `runs` is the agent of tiers that name none, if only the agents that would run
/// are of interest.
fn print(out: Output, view: &TiersView, runs: Option<&str>) {
    if view.tiers.is_empty() {
        out.text("no tiers are configured; see [[tier]] in docs/configuration.md");
        return;
    }
    let mut lines = vec![];
    for tier in &view.tiers {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.extend(head(tier));
        for parts in &tier.agents {
            let own = tier.agent.as_deref().or(runs);
            if own.is_none_or(|own| own == parts.agent) {
                lines.extend(rows(parts));
            }
        }
    }
    out.lines(&lines);
    for warning in &view.warnings {
        out.note(&format!("rejoin: {warning}"));
    }
}

fn head(tier: &TierView) -> Vec<Line> {
    let mut facts = vec![tier.role.clone()];
    facts.extend(tier.agent.clone());
    facts.extend(tier.model.clone());
    facts.extend(tier.permission.map(|mode| mode.to_string()));
    facts.extend(tier.dry_run.then(|| "dry run".to_owned()));
    facts.extend(tier.approval.then(|| "needs an approval".to_owned()));
    facts.extend(
        tier.max_cost_usd
            .map(|most| format!("at most {} a turn", money(Some(most)))),
    );
    let mut lines = vec![
        Line::new()
            .with(Tone::Name, &tier.name)
            .with(Tone::Plain, "  ")
            .with(Tone::Plain, &facts.join(" · ")),
    ];
    let mut list = |word: &str, names: &[String]| {
        if !names.is_empty() {
            lines.push(Line::plain(&format!("  {word:8} {}", names.join(", "))));
        }
    };
    list("may", &tier.may);
    list("tools", tier.tools.as_deref().unwrap_or_default());
    list("denies", &tier.deny_tools);
    let limit =
        |limit: &ToolLimit| format!("{} {} per {}", limit.tool, limit.max, span(limit.per_ms));
    let limits: Vec<String> = tier.limit.iter().map(limit).collect();
    list("limits", &limits);
    lines
}

fn rows(parts: &AgentParts) -> Vec<Line> {
    let row = |tone, word: &str, part: &str, by: &str| {
        Line::plain(&format!("  {:9}", parts.agent))
            .with(tone, word)
            .with(Tone::Plain, &format!(" {part}: {by}"))
    };
    let impossible = parts.impossible.iter();
    let impossible = impossible.map(|part| row(Tone::Bad, "impossible", part.part, &part.by));
    let enforced = parts.enforced.iter();
    let enforced = enforced.map(|part| row(Tone::Plain, "enforced  ", part.part, &part.by));
    impossible.chain(enforced).collect()
}
