//! `[[schedule]]`: reads the schedules.

use std::path::Path;

use rejoin_core::Tiers;
use rejoin_hub::{Overlap, Rhythm, Schedule};
use rejoin_runner::foreign_file::read_regular;

use super::load::Loaded;
use super::section::{Section, sections, value, wrong};
use super::setting::{Origin, Setting};
use super::typed;
use crate::duration;
use rejoin_errors::Result;

/// Largest file with a prompt, in bytes.
const LARGEST_PROMPT: u64 = 64 << 10;
/// Time zone of a schedule that names none.
const UTC: &str = "UTC";

/// Builds the schedules that the configuration describes.
pub(super) fn build(loaded: &Loaded, tiers: &Tiers) -> Result<Vec<Schedule>> {
    let mut schedules: Vec<Schedule> = vec![];
    for section in sections(loaded, "schedule").values() {
        let schedule = schedule(section)?;
        if schedules.iter().any(|known| known.name == schedule.name) {
            let name = &schedule.name;
            let text = format!("there is another schedule `{name}`; names are unique");
            return Err(wrong(section, "name", &text));
        }
        match &schedule.tier {
            Some(tier) if tiers.find(tier).is_none() => {
                return Err(wrong(
                    section,
                    "tier",
                    &format!("there is no tier `{tier}`"),
                ));
            }
            None if schedule.climb => {
                let text = "a climb needs a `tier` to begin with";
                return Err(wrong(section, "climb", text));
            }
            Some(_) | None => {}
        }
        schedules.push(schedule);
    }
    Ok(schedules)
}

fn schedule(section: &Section<'_>) -> Result<Schedule> {
    let timezone: Option<String> = value(section, "timezone")?;
    let schedule = Schedule {
        name: value(section, "name")?.unwrap_or_default(),
        rhythm: rhythm(section, timezone.as_deref().unwrap_or(UTC))?,
        timezone: timezone.unwrap_or_else(|| UTC.to_owned()),
        tier: value(section, "tier")?,
        climb: value(section, "climb")?.unwrap_or_default(),
        prompt: prompt(section)?,
        workdir: section.get("workdir").map(|it| beside(it)).transpose()?,
        key: value(section, "key")?,
        overlap: value::<Overlap>(section, "overlap")?.unwrap_or_default(),
    };
    let checked = schedule.check_timezone();
    checked.map_err(|why| wrong(section, "timezone", &why))?;
    if let Some(text) = &schedule.key {
        let dated = text.replace("{date}", "2026-01-01");
        rejoin_hub::fields::key(&dated).map_err(|e| wrong(section, "key", &e.to_string()))?;
    }
    Ok(schedule)
}

fn rhythm(section: &Section<'_>, zone: &str) -> Result<Rhythm> {
    let every: Option<String> = value(section, "every")?;
    let cron: Option<String> = value(section, "cron")?;
    match (every, cron) {
        (Some(every), None) => {
            let micros = duration::micros(&every).unwrap_or_default();
            Rhythm::every(micros).map_err(|why| wrong(section, "every", &why))
        }
        (None, Some(cron)) => Rhythm::cron(&cron, zone).map_err(|why| wrong(section, "cron", &why)),
        (Some(_), Some(_)) => Err(wrong(
            section,
            "cron",
            "a schedule has `every` or `cron`, not both",
        )),
        (None, None) => Err(wrong(section, "name", "a schedule needs `every` or `cron`")),
    }
}

fn prompt(section: &Section<'_>) -> Result<String> {
    let text: Option<String> = value(section, "prompt")?;
    match (text, section.get("prompt_file")) {
        (Some(text), None) => Ok(text),
        (None, Some(setting)) => {
            let file = beside(setting)?;
            let refused = |what: String| wrong(section, "prompt_file", &what);
            let bytes = read_regular(Path::new(&file), LARGEST_PROMPT);
            let bytes = bytes.map_err(|error| refused(error.to_string()))?;
            let text = String::from_utf8(bytes);
            let text = text.map_err(|_| refused(format!("{file} is not UTF-8")))?;
            if text.trim().is_empty() {
                return Err(refused(format!("{file} is empty")));
            }
            Ok(text.trim_end().to_owned())
        }
        (Some(_), Some(_)) => {
            let text = "a schedule has `prompt` or `prompt_file`, not both";
            Err(wrong(section, "prompt_file", text))
        }
        (None, None) => {
            let text = "a schedule needs `prompt` or `prompt_file`";
            Err(wrong(section, "name", text))
        }
    }
}

/// Returns the path that a setting names. A relative one starts at the folder of its file.
fn beside(setting: &Setting) -> Result<String> {
    let name: String = typed(setting)?;
    let Origin::File { path, .. } = &setting.origin else {
        return Ok(name);
    };
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    Ok(folder.join(&name).to_string_lossy().into_owned())
}
