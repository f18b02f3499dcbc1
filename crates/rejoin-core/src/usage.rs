//! Tokens and cost of a turn. Money is an integer number of micro-dollars, or unknown; never a bare
//! zero that means "unknown".

use std::fmt;

use serde::{Deserialize, Serialize};

/// Tokens of one turn. `input` excludes cache reads and writes. In JSON, a count that the CLI did
/// not report is null. Two values are equal if their counts are; `reported` is ignored.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(from = "Counts", into = "Counts")]
pub struct Usage {
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
    /// Counts that the CLI reported. Tells a reported zero from a missing count.
    pub reported: Reported,
}

/// Flags of the counts that a CLI reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reported {
    input: bool,
    cache_read: bool,
    cache_write: bool,
    output: bool,
}

/// Counts as a CLI reports them. `None`: not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    #[serde(default)]
    pub input: Option<u64>,
    #[serde(default)]
    pub cache_read: Option<u64>,
    #[serde(default)]
    pub cache_write: Option<u64>,
    #[serde(default)]
    pub output: Option<u64>,
}

impl From<Counts> for Usage {
    fn from(counts: Counts) -> Self {
        Self {
            input: counts.input.unwrap_or(0),
            cache_read: counts.cache_read.unwrap_or(0),
            cache_write: counts.cache_write.unwrap_or(0),
            output: counts.output.unwrap_or(0),
            reported: Reported {
                input: counts.input.is_some(),
                cache_read: counts.cache_read.is_some(),
                cache_write: counts.cache_write.is_some(),
                output: counts.output.is_some(),
            },
        }
    }
}

impl From<Usage> for Counts {
    fn from(usage: Usage) -> Self {
        let known = |count: u64, reported: bool| (count > 0 || reported).then_some(count);
        let reported = usage.reported;
        Self {
            input: known(usage.input, reported.input),
            cache_read: known(usage.cache_read, reported.cache_read),
            cache_write: known(usage.cache_write, reported.cache_write),
            output: known(usage.output, reported.output),
        }
    }
}

#[expect(
    clippy::missing_fields_in_debug,
    reason = "the counts are what one looks for"
)]
impl fmt::Debug for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usage")
            .field("input", &self.input)
            .field("cache_read", &self.cache_read)
            .field("cache_write", &self.cache_write)
            .field("output", &self.output)
            .finish()
    }
}

impl PartialEq for Usage {
    fn eq(&self, other: &Self) -> bool {
        let counts = |it: &Self| (it.input, it.cache_read, it.cache_write, it.output);
        counts(self) == counts(other)
    }
}

impl Eq for Usage {}

impl Usage {
    pub fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
        self.reported.input |= other.reported.input;
        self.reported.cache_read |= other.reported.cache_read;
        self.reported.cache_write |= other.reported.cache_write;
        self.reported.output |= other.reported.output;
    }

    /// Returns the turn's own share of the counts that its CLI reported. `before` is the session's
    /// count at the start of the turn, `None` if unknown. Returns `None` if the share cannot be
    /// determined.
    pub fn of_turn(scope: TotalsScope, total: Self, before: Option<Self>) -> Option<Self> {
        match (scope, before) {
            (TotalsScope::PerRun, _) => Some(total),
            (TotalsScope::Cumulative, Some(before)) => Some(Self {
                input: total.input.checked_sub(before.input)?,
                cache_read: total.cache_read.checked_sub(before.cache_read)?,
                cache_write: total.cache_write.checked_sub(before.cache_write)?,
                output: total.output.checked_sub(before.output)?,
                reported: total.reported,
            }),
            // In a new session both scopes give the same counts.
            (TotalsScope::Unproven, Some(before)) if before == Self::default() => Some(total),
            (TotalsScope::Cumulative | TotalsScope::Unproven, _) => None,
        }
    }

    pub fn all_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }
}

/// Micro-dollars: dollars x 1,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Micros(pub i64);

impl Micros {
    /// Converts a CLI's floating-point dollars. `None` if the amount is not plausible.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let micros = (dollars * 1e6).round();
        (micros.is_finite() && (0.0..1e15).contains(&micros)).then_some(Self(micros as i64))
    }

    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// Scope of a CLI's totals. A proven fact per binary, never guessed from the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TotalsScope {
    PerRun,
    /// Over the whole session, across resumes. A fork starts from its parent's total.
    Cumulative,
    Unproven,
}

/// Price of a model by configuration, in micro-dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    pub input: Option<Micros>,
    pub output: Option<Micros>,
    pub cache_read: Option<Micros>,
    pub cache_write: Option<Micros>,
}

impl Price {
    /// Returns the cost of these tokens, or `None` if a used kind of token has no price.
    pub fn of(&self, usage: Usage) -> Option<Micros> {
        let kinds = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        let mut all: i128 = 0;
        for (tokens, price) in kinds.into_iter().filter(|(tokens, _)| *tokens > 0) {
            all += i128::from(tokens) * i128::from(price?.0);
        }
        i64::try_from((all + 500_000) / 1_000_000).ok().map(Micros)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    Known(Micros),
    Unknown,
}

impl Cost {
    /// Returns the turn's own share of the total that its CLI reported (C-34, C-36). `before` is
    /// the session's total at the start of the turn, `None` if unknown.
    pub fn of_turn(scope: TotalsScope, total: Option<Micros>, before: Option<Micros>) -> Self {
        let Some(total) = total else {
            return Self::Unknown;
        };
        match (scope, before) {
            (TotalsScope::PerRun, _) => Self::Known(total),
            (TotalsScope::Cumulative, Some(before)) if total >= before => {
                Self::Known(Micros(total.0 - before.0))
            }
            (TotalsScope::Cumulative | TotalsScope::Unproven, _) => Self::Unknown,
        }
    }

    /// Adds the costs of two runs of one turn. Unknown if one of them is.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => Self::Known(Micros(a.0.saturating_add(b.0))),
            (Self::Known(_) | Self::Unknown, _) => Self::Unknown,
        }
    }

    pub fn known(self) -> Option<Micros> {
        match self {
            Self::Known(micros) => Some(micros),
            Self::Unknown => None,
        }
    }
}

/// How full the session was at its last call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Context {
    pub used: u64,
    pub window: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_null_and_a_reported_zero_is_not() {
        let counts = Counts {
            input: Some(5),
            cache_read: Some(0),
            ..Counts::default()
        };
        let mut usage = Usage::default();
        usage.add(Usage::from(counts));
        let json = serde_json::to_string(&usage).unwrap();
        assert_eq!(
            json,
            r#"{"input":5,"cache_read":0,"cache_write":null,"output":null}"#
        );
        let back: Usage = serde_json::from_str(&json).unwrap();
        assert_eq!(Counts::from(back), counts);
        let old = r#"{"input":5,"cache_read":0,"cache_write":0,"output":0}"#;
        let old: Usage = serde_json::from_str(old).unwrap();
        assert_eq!(Counts::from(old).output, Some(0));
        assert_eq!(old, usage);
    }

    /// C-34, C-36, C-37, C-39: $0.03, $0.47 and $2.00 stay apart for every way of counting.
    #[test]
    fn cost_is_the_turns_own() {
        let micros = |d| Micros::from_dollars(d).unwrap();
        let own = |scope, total, before| Cost::of_turn(scope, Some(micros(total)), before).known();
        assert_eq!(
            own(TotalsScope::PerRun, 0.47, Some(micros(0.03))),
            Some(micros(0.47))
        );
        assert_eq!(
            own(TotalsScope::Cumulative, 0.50, Some(micros(0.03))),
            Some(micros(0.47))
        );
        assert_eq!(
            own(TotalsScope::Cumulative, 2.50, Some(micros(0.50))),
            Some(micros(2.0))
        );
        assert_eq!(own(TotalsScope::Cumulative, 0.50, None), None);
        assert_eq!(own(TotalsScope::Cumulative, 0.01, Some(micros(0.03))), None);
        assert_eq!(own(TotalsScope::Unproven, 0.50, Some(micros(0.03))), None);
        assert_eq!(
            Cost::of_turn(TotalsScope::PerRun, None, None),
            Cost::Unknown
        );
    }

    #[test]
    fn tokens_are_the_turns_own() {
        let of = |input, output| Usage {
            input,
            output,
            ..Usage::default()
        };
        let own = |scope, before| Usage::of_turn(scope, of(3000, 70), before);
        assert_eq!(own(TotalsScope::PerRun, None), Some(of(3000, 70)));
        assert_eq!(
            own(TotalsScope::Cumulative, Some(of(1000, 20))),
            Some(of(2000, 50))
        );
        // Fewer than before, or unknown before: the share is unknown.
        assert_eq!(own(TotalsScope::Cumulative, Some(of(4000, 20))), None);
        assert_eq!(own(TotalsScope::Cumulative, None), None);
        assert_eq!(own(TotalsScope::Unproven, Some(of(1000, 20))), None);
        assert_eq!(
            own(TotalsScope::Unproven, Some(Usage::default())),
            Some(of(3000, 70))
        );
    }

    #[test]
    fn a_price_covers_all_that_was_used_or_nothing() {
        let dollars = Micros::from_dollars;
        let price = Price {
            input: dollars(3.0),
            output: dollars(15.0),
            cache_read: dollars(0.3),
            cache_write: None,
        };
        let usage = Usage {
            input: 1000,
            output: 200,
            cache_read: 10_000,
            cache_write: 0,
            ..Usage::default()
        };
        assert_eq!(price.of(usage), Some(Micros(3000 + 3000 + 3000)));
        let written = Usage {
            cache_write: 1,
            ..usage
        };
        assert_eq!(price.of(written), None);
        assert_eq!(price.of(Usage::default()), Some(Micros(0)));
    }

    #[test]
    fn odd_amounts_are_not_money() {
        for odd in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            assert_eq!(Micros::from_dollars(odd), None);
        }
    }
}
