//! `retry` and `loop` of a step.

use super::fields::{self, find, unknown_keys, wrong};
use super::shown;
use super::step::StepReader;
use crate::keys::{self, MAX_ROUNDS, RETRY_CAUSES};
use crate::mistake::{Place, instead};
use crate::workflow::{Repeat, Retry};
use crate::yaml::Data;

impl StepReader<'_, '_> {
    pub(super) fn retry(&mut self) -> Retry {
        let mut retry = Retry::default();
        let Some(entry) = self.get("retry") else {
            return retry;
        };
        if let Data::Number(number) = &entry.value.data {
            wrong(
                entry,
                "a mapping",
                Some(format!("write {{ max: {number} }}")),
                self.mistakes,
            );
            return retry;
        }
        let Some(entries) = fields::mapping(entry, self.mistakes) else {
            return retry;
        };
        unknown_keys(entries, keys::RETRY, "`retry`", self.mistakes);
        match find(entries, "max") {
            Some(max) => {
                let max = fields::whole(max, 0, MAX_ROUNDS, self.mistakes);
                retry.max = max.unwrap_or_default() as u32;
            }
            None => {
                self.mistakes
                    .suggest(entry.place, "`retry` needs `max`", "write { max: 2 }");
            }
        }
        if let Some(wait) = find(entries, "wait") {
            retry.wait_ms = fields::time(wait, self.mistakes).unwrap_or_default();
        }
        if let Some(on) = find(entries, "on") {
            for cause in fields::texts(on, self.mistakes).unwrap_or_default() {
                if !RETRY_CAUSES.contains(&cause.raw.as_str()) {
                    let text = format!("unknown cause `{}`", shown(&cause.raw));
                    self.mistakes
                        .suggest(cause.place, text, instead(&cause.raw, RETRY_CAUSES));
                }
                retry.on.push(cause.raw.clone());
            }
        }
        retry
    }

    pub(super) fn repeat(&mut self) -> (Option<Repeat>, Option<(String, Place)>) {
        let Some(entry) = self.get("loop") else {
            return (None, None);
        };
        let Some(entries) = fields::mapping(entry, self.mistakes) else {
            return (None, None);
        };
        unknown_keys(entries, keys::LOOP, "`loop`", self.mistakes);
        for key in keys::LOOP.iter().filter(|key| find(entries, key).is_none()) {
            let example = "write { back_to: ID, while: \"…\", max: 3 }";
            self.mistakes
                .suggest(entry.place, format!("`loop` needs `{key}`"), example);
        }
        let back_to = find(entries, "back_to")
            .and_then(|entry| Some((fields::text(entry, self.mistakes)?, entry.value.place)));
        let max = find(entries, "max")
            .and_then(|entry| fields::whole(entry, 1, MAX_ROUNDS, self.mistakes));
        let condition = find(entries, "while").and_then(|entry| self.expression(entry, "while"));
        let repeat = condition.zip(max).map(|(condition, max)| Repeat {
            back_to: 0,
            condition,
            max: max as u32,
        });
        (repeat, back_to)
    }
}
