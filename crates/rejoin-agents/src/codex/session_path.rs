//! Location of a session: in a folder of the day on which it began.

use jiff::{Timestamp, ToSpan};
use rejoin_core::SessionId;
use uuid::Uuid;

use crate::session::SessionPath;

/// Pattern of all day folders.
pub(super) const ANYWHERE: &str = "sessions/*/*/*";
pub(super) const BEGINS: &str = "rollout-";

/// Returns the place of a session. The id is a UUIDv7, which contains the time. The CLI names
/// folders by local time, so it may be the day before or after. It also finds a session in any
/// other folder (an older id, a file put there by hand). A copy is named as the CLI would name it,
/// by the time in its id.
pub(super) fn place(session: &SessionId) -> SessionPath {
    let began = began(session);
    let days = began.into_iter().flat_map(|time| {
        let day = |days: i64| folder(time.checked_add((24 * days).hours()).unwrap_or(time));
        [day(0), day(-1), day(1)]
    });
    let ends = format!("-{session}.jsonl");
    let copy = began.map(|time| {
        let name = time.strftime("%Y-%m-%dT%H-%M-%S");
        format!("{}/{BEGINS}{name}{ends}", folder(time))
    });
    SessionPath::Find {
        folders: days.chain([ANYWHERE.to_owned()]).collect(),
        begins: BEGINS.into(),
        ends,
        copy,
    }
}

/// Returns the time in the id. None if the id contains no time.
fn began(session: &SessionId) -> Option<Timestamp> {
    let id = Uuid::try_parse(session.as_str()).ok()?;
    let milliseconds = i64::try_from(id.as_u128() >> 80).ok()?;
    let time = Timestamp::from_millisecond(milliseconds).ok()?;
    (id.get_version_num() == 7).then_some(time)
}

/// Returns the folder of a day.
fn folder(time: Timestamp) -> String {
    format!("sessions/{}", time.strftime("%Y/%m/%d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_is_in_the_id() {
        let at = |id: &str| match place(&SessionId::new(id).unwrap()) {
            SessionPath::Find { folders, ends, .. } => (folders.join(" "), ends),
            SessionPath::At(path) => panic!("{path}"),
        };
        let id = "01a1de49-2494-7391-a595-647f5b1aba14";
        let (folders, ends) = at(id);
        assert_eq!(
            folders,
            "sessions/2026/11/15 sessions/2026/11/14 sessions/2026/11/16 sessions/*/*/*"
        );
        assert_eq!(ends, format!("-{id}.jsonl"));
        // An id without a time: the session may be in any folder.
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
            let time = Timestamp::from_second(day * 86_400).unwrap();
            assert_eq!(folder(time), format!("sessions/{name}"));
        }
    }
}
