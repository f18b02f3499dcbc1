//! Where a session lies: in a folder of the day it was begun.

use rejoin_core::SessionId;
use uuid::Uuid;

use crate::session::Place;

const DAY: i64 = 86_400;

/// A folder for each day.
pub(super) const ANYWHERE: &str = "sessions/*/*/*";
pub(super) const BEGINS: &str = "rollout-";

/// The day is in the id, a UUIDv7. The CLI names folders by local time, so it may be the day before
/// or after. One that is elsewhere all the same (an older id, a file put there by hand) it finds too.
pub(super) fn place(session: &SessionId) -> Place {
    let began = Uuid::try_parse(session.as_str())
        .ok()
        .filter(|id| id.get_version_num() == 7)
        .and_then(|id| i64::try_from(id.as_u128() >> 80).ok())
        .map(|milliseconds| milliseconds / 1000 / DAY);
    let days = began.into_iter().flat_map(|day| [day, day - 1, day + 1]);
    Place::Find {
        folders: days.map(folder).chain([ANYWHERE.to_owned()]).collect(),
        begins: BEGINS.into(),
        ends: format!("-{session}.jsonl"),
    }
}

/// Where a copy is put: in the folder of its day, named as the CLI would, by the time in its id.
pub(super) fn of_copy(session: &SessionId) -> Option<String> {
    let Place::Find {
        folders,
        begins,
        ends,
    } = place(session)
    else {
        return None;
    };
    let folder = folders.into_iter().next()?;
    let id = Uuid::try_parse(session.as_str()).ok()?;
    let second = i64::try_from(id.as_u128() >> 80).ok()? / 1000 % DAY;
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    let day = folder.strip_prefix("sessions/")?.replace('/', "-");
    Some(format!(
        "{folder}/{begins}{day}T{hours:02}-{minutes:02}-{seconds:02}{ends}"
    ))
}

/// Howard Hinnant's `civil_from_days`.
fn folder(day: i64) -> String {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year + era * 400 + later;
    format!("sessions/{year:04}/{month:02}/{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_is_in_the_id() {
        let at = |id: &str| match place(&SessionId::new(id).unwrap()) {
            Place::Find { folders, ends, .. } => (folders.join(" "), ends),
            Place::At(path) => panic!("{path}"),
        };
        let id = "01a1de49-2494-7391-a595-647f5b1aba14";
        let (folders, ends) = at(id);
        assert_eq!(
            folders,
            "sessions/2026/11/15 sessions/2026/11/14 sessions/2026/11/16 sessions/*/*/*"
        );
        assert_eq!(ends, format!("-{id}.jsonl"));
        // No time in it: anywhere.
        let (folders, _) = at("11111111-1111-4111-8111-111111111111");
        assert_eq!(folders, ANYWHERE);
    }

    #[test]
    fn days_of_the_calendar() {
        for (day, name) in [
            (0, "1970/01/01"),
            (19_782, "2024/02/29"),
            (20_453, "2025/12/31"),
            (20_454, "2026/01/01"),
        ] {
            assert_eq!(folder(day), format!("sessions/{name}"));
        }
    }
}
