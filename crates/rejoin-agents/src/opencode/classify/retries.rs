//! Tracks requests to a model that fail and are retried.

use std::time::Duration;

use rejoin_core::{Class, Failure};

use super::api::ApiError;

/// Number of failures after which a run is hopeless. 1.18.33 gives up by itself after six.
const MOST: u64 = 7;
/// Longest wait. The CLI itself never waits this long before that many failures, but an API may
/// tell it to wait for days.
const LONGEST: Duration = Duration::from_secs(90);

/// Retries in all sessions of a run. Sub-agents have sessions of their own.
#[derive(Debug, Default)]
pub(in super::super) struct Retries {
    /// State of each session. The first reported one is the run's own.
    sessions: Vec<(String, Session)>,
    gave_up: bool,
}

#[derive(Debug, Default)]
struct Session {
    /// Number of failures since the last answer.
    failures: u64,
    last: Option<ApiError>,
    /// True if requests to the model are reported for this session.
    told: bool,
    /// True if the CLI waits before the next request.
    waits: bool,
}

impl Retries {
    fn of(&mut self, id: &str) -> &mut Session {
        let at = self.sessions.iter().position(|(known, _)| known == id);
        let at = at.unwrap_or_else(|| {
            self.sessions.push((id.to_owned(), Session::default()));
            self.sessions.len() - 1
        });
        &mut self.sessions[at].1
    }

    fn own(&self) -> Option<&Session> {
        self.sessions.first().map(|(_, own)| own)
    }

    pub(in super::super) fn asks(&mut self, id: &str) {
        let session = self.of(id);
        // The request before this one did not fail.
        if !session.waits {
            session.failures = 0;
        }
        (session.told, session.waits) = (true, false);
    }

    pub(in super::super) fn failed(&mut self, id: &str, said: String) {
        let session = self.of(id);
        session.failures += 1;
        session.last = Some(ApiError::said(said));
        session.waits = true;
    }

    /// Handles the end of a step of the run's own session.
    pub(super) fn answered(&mut self, reason: &str) {
        let Some((_, own)) = self.sessions.first_mut() else {
            return;
        };
        (own.failures, own.waits) = (0, false);
        // The request succeeded, so the session is no longer too long.
        if reason == "tool-calls" {
            own.last = None;
        }
    }

    /// Returns the maximum silence while the run's own session waits for a retry, because nothing
    /// else of it runs then. None otherwise: while a sub-agent waits, other work may continue.
    pub(in super::super) fn patience(&self) -> Option<Duration> {
        self.own()
            .filter(|own| own.waits && own.told)
            .map(|_| LONGEST)
    }

    pub(in super::super) fn give_up(&mut self) {
        self.gave_up = true;
    }

    /// Returns the failure that makes further waiting useless. None if there is none.
    pub(in super::super) fn hopeless(&self) -> Option<Failure> {
        let sessions = self.sessions.iter().map(|(_, session)| session);
        let mut hopeless = sessions.filter(|session| session.failures >= MOST);
        let given_up = self.own().filter(|_| self.gave_up);
        let session = hopeless.next().or(given_up)?;
        session.last.as_ref().map(ApiError::failure)
    }

    /// Returns the failure if the session was too long for its model.
    pub(super) fn overflow(&self) -> Option<Failure> {
        let last = self.own().and_then(|own| own.last.as_ref());
        let failure = last.map(ApiError::failure);
        failure.filter(|failure| failure.class == Class::ContextOverflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "ses_own";

    #[test]
    fn only_failures_in_a_row() {
        let mut retries = Retries::default();
        for _ in 1..MOST {
            retries.asks(OWN);
            retries.failed(OWN, "rate limited".into());
        }
        assert_eq!(retries.hopeless(), None);
        assert_eq!(retries.patience(), Some(LONGEST));
        retries.asks(OWN);
        assert_eq!(retries.patience(), None, "an answer may take its time");
        retries.failed(OWN, "rate limited".into());
        assert_eq!(retries.hopeless().map(|it| it.class), Some(Class::Quota));
        retries.asks(OWN);
        retries.asks(OWN);
        assert_eq!(retries.hopeless(), None, "it was answered in between");
    }

    #[test]
    fn an_api_that_tells_it_to_wait() {
        let mut retries = Retries::default();
        retries.failed(OWN, "Overloaded".into());
        assert_eq!(
            retries.patience(),
            None,
            "a version that does not tell when it asks"
        );
        retries.asks(OWN);
        retries.failed(OWN, "Overloaded".into());
        retries.give_up();
        assert_eq!(
            retries.hopeless().map(|it| it.class),
            Some(Class::Transient)
        );
    }

    #[test]
    fn sub_agents_count_for_themselves() {
        let mut retries = Retries::default();
        retries.asks(OWN);
        for sub in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            retries.asks(sub);
            retries.failed(sub, "not found".into());
        }
        assert_eq!((retries.hopeless(), retries.patience()), (None, None));
        for _ in 1..MOST {
            retries.asks("a");
            retries.asks("b");
            retries.failed("a", "rate limited".into());
        }
        assert_eq!(retries.hopeless().map(|it| it.class), Some(Class::Quota));
    }

    #[test]
    fn what_was_too_long_may_work_later() {
        let mut retries = Retries::default();
        retries.asks(OWN);
        retries.failed(OWN, "prompt is too long".into());
        retries.answered("stop");
        assert!(retries.overflow().is_some());
        retries.answered("tool-calls");
        assert_eq!(retries.overflow(), None);
        retries.failed(
            OWN,
            "Too many tokens, please wait before trying again.".into(),
        );
        assert_eq!(retries.overflow(), None, "a limit, not a length");
    }
}
