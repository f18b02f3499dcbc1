//! `[[tier]]`: reads the tiers, and refuses one that no agent could hold to.

use std::path::Path;

use rejoin_agents::{Adapter, tier_permissions};
use rejoin_core::{AgentName, Micros, PermissionMode, Tier, Tiers, ToolLimit, check_template};
use rejoin_runner::foreign_file::read_regular;
use serde::Deserialize;

use super::load::Loaded;
use super::section::{Section, sections, value, wrong, wrong_setting};
use super::setting::Origin;
use super::{of, or_default, typed};
use crate::duration;
use rejoin_errors::Result;

/// Largest template, in bytes.
const LARGEST_TEMPLATE: u64 = 16 << 10;

/// Builds the tiers that the configuration describes, lowest first.
pub(super) fn build(loaded: &Loaded, described: &[&'static dyn Adapter]) -> Result<Tiers> {
    let mut tiers = Tiers {
        tiers: vec![],
        max_tier: of(loaded, "climb.max_tier")?,
        max_cost: of::<f64>(loaded, "climb.max_cost_usd")?.and_then(Micros::from_dollars),
        hold: or_default(loaded, "climb.hold")?,
    };
    for section in sections(loaded, "tier").values() {
        let tier = tier(section)?;
        if tiers.find(&tier.name).is_some() {
            let text = format!("there is another tier `{}`; names are unique", tier.name);
            return Err(wrong(section, "name", &text));
        }
        can_be_enforced(&tier, section, described)?;
        tiers.tiers.push(tier);
    }
    if let Some(setting) = loaded.settings.get("climb.max_tier")
        && let Some(name) = tiers
            .max_tier
            .as_deref()
            .filter(|name| tiers.find(name).is_none())
    {
        return Err(wrong_setting(
            setting,
            &format!("there is no tier `{name}`"),
        ));
    }
    Ok(tiers)
}

fn tier(section: &Section<'_>) -> Result<Tier> {
    let name: String = value(section, "name")?.unwrap_or_default();
    let agent: Option<String> = value(section, "agent")?;
    let agent = agent.map(AgentName::new).transpose();
    let timeout: Option<String> = value(section, "timeout")?;
    let timeout = timeout.and_then(|text| duration::micros(&text));
    let cooldown: Option<String> = value(section, "cooldown")?;
    let cooldown = cooldown.and_then(|text| duration::micros(&text));
    let max_cost: Option<f64> = value(section, "max_cost_usd")?;
    Ok(Tier {
        role: value(section, "role")?.unwrap_or_else(|| name.clone()),
        name,
        agent: agent.map_err(|e| wrong(section, "agent", &e.to_string()))?,
        model: value(section, "model")?,
        permission: value(section, "permission")?,
        tools: value(section, "tools")?,
        deny_tools: value(section, "deny_tools")?.unwrap_or_default(),
        may: value(section, "may")?.unwrap_or_default(),
        dry_run: value(section, "dry_run")?.unwrap_or_default(),
        timeout_ms: timeout.map(|micros| (micros / 1000).unsigned_abs()),
        max_cost: max_cost.and_then(Micros::from_dollars),
        cooldown_ms: cooldown.map(|micros| (micros / 1000).unsigned_abs()),
        approval: value(section, "approval")?.unwrap_or_default(),
        limit: limits(section)?,
        prompt: template(section)?,
        window: None,
    })
}

/// Reads the template that a tier names.
fn template(section: &Section<'_>) -> Result<Option<String>> {
    let Some(setting) = section.get("prompt") else {
        return Ok(None);
    };
    let Origin::File { path, .. } = &setting.origin else {
        return Ok(None);
    };
    let name: String = typed(setting)?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let file = folder.join(&name);
    let wrong = |what: String| wrong_setting(setting, &what);
    let bytes = read_regular(&file, LARGEST_TEMPLATE).map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| wrong(format!("{} is not UTF-8", file.display())))?;
    if text.trim().is_empty() {
        return Err(wrong(format!("{} is empty", file.display())));
    }
    check_template(&text).map_err(|error| {
        let (file, line) = (file.display(), error.line);
        wrong(format!("{file}, line {line}: {error}"))
    })?;
    Ok(Some(text.trim_end().to_owned()))
}

/// Limit as it is written.
#[derive(Deserialize)]
struct WrittenLimit {
    tool: String,
    max: u64,
    per: String,
}

fn limits(section: &Section<'_>) -> Result<Vec<ToolLimit>> {
    let written: Vec<WrittenLimit> = value(section, "limit")?.unwrap_or_default();
    let mut limits: Vec<ToolLimit> = vec![];
    for limit in written {
        if limits.iter().any(|known| known.tool == limit.tool) {
            let text = format!("there are two limits of `{}`", limit.tool);
            return Err(wrong(section, "limit", &text));
        }
        let per = duration::micros(&limit.per).unwrap_or_default();
        limits.push(ToolLimit {
            tool: limit.tool,
            max: limit.max,
            per_ms: (per / 1000).unsigned_abs(),
        });
    }
    Ok(limits)
}

/// Refuses a tier whose agent cannot enforce its permissions. A tier without an agent is checked
/// when a turn runs: its agent is that of the conversation.
fn can_be_enforced(
    tier: &Tier,
    section: &Section<'_>,
    described: &[&'static dyn Adapter],
) -> Result<()> {
    let Some(agent) = tier.agent.as_ref().map(AgentName::as_str) else {
        return Ok(());
    };
    let own = || described.iter().copied().find(|a| a.name() == agent);
    let Some(adapter) = rejoin_agents::adapter(agent).or_else(own) else {
        return Ok(());
    };
    let parts = rejoin_agents::enforced_parts(tier, PermissionMode::Edit, adapter, false);
    if let Some(part) = parts.iter().find(|part| !part.enforced) {
        return Err(wrong(section, part.part, &part.by));
    }
    let whole = tier_permissions(tier, PermissionMode::Edit, Some(adapter));
    let checked = adapter.check_permissions(&whole, false);
    checked.map_err(|why| wrong(section, "tools", &why))
}
