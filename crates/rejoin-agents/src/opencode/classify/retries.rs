//! A model that fails and is asked again.

use std::time::Duration;

use rejoin_core::{Class, Failure};

use super::api::ApiError;

/// 1.18.33 gives up by itself after six.
const MOST: u64 = 7;
/// What the CLI waits by itself is half a minute at most; an API may tell it to wait for days.
const LONGEST: Duration = Duration::from_secs(90);

#[derive(Debug, Default)]
pub(in super::super) struct Retries {
    /// Failures since it was last answered.
    failures: u64,
    last: Option<ApiError>,
    /// Its model was asked, as far as this is told at all.
    told: bool,
    /// It waits before it asks again.
    waits: bool,
    gave_up: bool,
}

impl Retries {
    pub(in super::super) fn asks(&mut self) {
        // The one before did not fail.
        if !self.waits {
            self.failures = 0;
        }
        (self.told, self.waits) = (true, false);
    }

    pub(in super::super) fn failed(&mut self, said: String) {
        self.failures += 1;
        self.last = Some(ApiError::said(said));
        self.waits = true;
    }

    pub(super) fn answered(&mut self) {
        (self.failures, self.waits) = (0, false);
    }

    pub(in super::super) fn patience(&self) -> Option<Duration> {
        (self.waits && self.told).then_some(LONGEST)
    }

    pub(in super::super) fn give_up(&mut self) {
        self.gave_up = true;
    }

    /// Why it is not worth waiting for.
    pub(in super::super) fn hopeless(&self) -> Option<Failure> {
        let hopeless = self.gave_up || self.failures >= MOST;
        self.last
            .as_ref()
            .filter(|_| hopeless)
            .map(ApiError::failure)
    }

    /// The session was too long for its model.
    pub(super) fn overflow(&self) -> Option<Failure> {
        let failure = self.last.as_ref().map(ApiError::failure);
        failure.filter(|failure| failure.class == Class::ContextOverflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_in_a_row() {
        let mut retries = Retries::default();
        for _ in 1..MOST {
            retries.asks();
            retries.failed("rate limited".into());
        }
        assert_eq!(retries.hopeless(), None);
        assert_eq!(retries.patience(), Some(LONGEST));
        retries.asks();
        assert_eq!(retries.patience(), None, "an answer may take its time");
        retries.failed("rate limited".into());
        assert_eq!(retries.hopeless().map(|it| it.class), Some(Class::Quota));
        retries.asks();
        retries.asks();
        assert_eq!(retries.hopeless(), None, "it was answered in between");
    }

    #[test]
    fn an_api_that_tells_it_to_wait() {
        let mut retries = Retries::default();
        retries.failed("Overloaded".into());
        assert_eq!(
            retries.patience(),
            None,
            "a version that does not tell when it asks"
        );
        retries.asks();
        retries.failed("Overloaded".into());
        retries.give_up();
        assert_eq!(
            retries.hopeless().map(|it| it.class),
            Some(Class::Transient)
        );
    }
}
