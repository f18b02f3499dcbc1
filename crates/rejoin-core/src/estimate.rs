//! Estimates the cost of a turn from the cost of similar turns.
//!
//! rejoin knows no prices. It derives them from cost and tokens of earlier turns of the same
//! conversation, agent and model, by least squares over `cost = new·p + cached·q + output·r`. If
//! the turns are too few or too similar, new input and output get one common price. Prices that do
//! not explain those turns are discarded; then there is no estimate.

use crate::usage::{Micros, Usage};

/// A turn with known tokens and cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastTurn {
    pub usage: Usage,
    pub cost: Micros,
    /// True if the turn resumed a session.
    pub resumed: bool,
    /// Tokens in the session after the turn.
    pub held: Option<u64>,
}

impl PastTurn {
    fn new_input(&self) -> i128 {
        i128::from(self.usage.input) + i128::from(self.usage.cache_write)
    }

    fn cached(&self) -> i128 {
        i128::from(self.usage.cache_read)
    }

    fn output(&self) -> i128 {
        i128::from(self.usage.output)
    }
}

/// Source of the session from which the next turn would continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    Resume,
    /// In a new session, with or without a transcript.
    Anew,
}

/// Prices in micro-dollars per billion tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    new: i128,
    /// `None`: no turn read from a cache yet.
    cached: Option<i128>,
    output: i128,
}

const BILLION: i128 = 1_000_000_000;
/// A dollar per token. Anything above is not a price.
const ABSURD: i128 = BILLION * 1_000_000;
/// At most a quarter of the cost may remain unexplained.
const UNEXPLAINED: i128 = 4;

impl Prices {
    /// Derives prices from these turns. Returns `None` if they do not determine plausible ones.
    pub fn implied(turns: &[PastTurn]) -> Option<Self> {
        let costs: Vec<i128> = turns.iter().map(|t| i128::from(t.cost.0)).collect();
        let by = |row: fn(&PastTurn) -> Vec<i128>| {
            solve(&turns.iter().map(row).collect::<Vec<_>>(), &costs)
        };
        let candidates = if turns.iter().any(|t| t.cached() > 0) {
            [
                by(|t| vec![t.new_input(), t.output(), t.cached()]),
                by(|t| vec![t.new_input() + t.output(), t.cached()])
                    .map(|p| vec![p[0], p[0], p[1]]),
            ]
        } else {
            [
                by(|t| vec![t.new_input(), t.output()]),
                by(|t| vec![t.new_input() + t.output()]).map(|p| vec![p[0], p[0]]),
            ]
        };
        let prices = candidates.into_iter().flatten().map(|p| Self {
            new: p[0],
            output: p[1],
            cached: p.get(2).copied(),
        });
        prices
            .filter(Self::sane)
            .find(|prices| prices.explain(turns))
    }

    /// Returns true if a cached token costs no more than a new one and no price is negative or
    /// absurd.
    fn sane(&self) -> bool {
        let cached = self.cached.unwrap_or(0);
        (0..=self.new).contains(&cached) && self.new < ABSURD && (0..ABSURD).contains(&self.output)
    }

    fn explain(&self, turns: &[PastTurn]) -> bool {
        let cached = self.cached.unwrap_or(0);
        let (mut all, mut off) = (0_i128, 0_i128);
        for turn in turns {
            let sum =
                turn.new_input() * self.new + turn.output() * self.output + turn.cached() * cached;
            let cost = i128::from(turn.cost.0);
            all += cost;
            // Amounts are rounded, so a difference of one micro-dollar does not count.
            off += ((sum / BILLION) - cost).abs().saturating_sub(1);
        }
        off * UNEXPLAINED <= all
    }

    /// Cost of the turn without a session from which `held` tokens of history could be read.
    pub fn fresh(&self, turn: &PastTurn, held: u64) -> Option<Micros> {
        let read = turn.cached().min(i128::from(held));
        money(i128::from(turn.cost.0) * BILLION + read * (self.new - self.cached?))
    }

    /// Cost of the turn had its session of `held` tokens been resumed instead of sent as a
    /// transcript.
    pub fn resumed(&self, turn: &PastTurn, held: u64) -> Option<Micros> {
        let told = turn.new_input().min(i128::from(held));
        money(i128::from(turn.cost.0) * BILLION - told * (self.new - self.cached?))
    }

    /// Cost of a future turn as one model call: `sent` tokens in addition to the session, and an
    /// answer of average length. `turns` are ordered newest first.
    pub fn next(&self, ahead: Continuation, sent: u64, turns: &[PastTurn]) -> Option<Micros> {
        let held = turns.first()?.held?;
        let output = turns.iter().map(PastTurn::output).sum::<i128>() / turns.len().max(1) as i128;
        // If turns resumed without reading from a cache, this agent pays for the whole session
        // again.
        let uncached = turns.iter().any(|t| t.resumed).then_some(self.new);
        let input = match ahead {
            Continuation::Resume => {
                i128::from(held) * self.cached.or(uncached)? + i128::from(sent) * self.new
            }
            // The agent's own instructions and the transcript: about the size of the session.
            Continuation::Anew => i128::from(held.max(sent)) * self.new,
        };
        money(input + output * self.output)
    }
}

fn money(scaled: i128) -> Option<Micros> {
    let micros = (scaled.max(0) + BILLION / 2) / BILLION;
    i64::try_from(micros).ok().map(Micros)
}

/// Least squares in integers, scaled by a billion. `None` if the rows do not determine a solution
/// or the numbers overflow.
fn solve(rows: &[Vec<i128>], costs: &[i128]) -> Option<Vec<i128>> {
    let width = rows.first()?.len();
    let sum = |a: &dyn Fn(usize) -> i128, b: &dyn Fn(usize) -> i128| {
        (0..rows.len()).try_fold(0_i128, |sum, n| sum.checked_add(a(n).checked_mul(b(n))?))
    };
    let (mut normal, mut right) = (vec![], vec![]);
    for i in 0..width {
        let line: Option<Vec<i128>> = (0..width)
            .map(|j| sum(&|n| rows[n][i], &|n| rows[n][j]))
            .collect();
        normal.push(line?);
        right.push(sum(&|n| rows[n][i], &|n| costs[n])?);
    }
    // The determinant of sums of squares is never negative.
    let per = determinant(&normal)?;
    if per == 0 {
        return None;
    }
    let one = |column: usize| {
        let mut replaced = normal.clone();
        for (line, value) in replaced.iter_mut().zip(&right) {
            line[column] = *value;
        }
        for_a_billion(determinant(&replaced)?, per)
    };
    (0..width).map(one).collect()
}

fn for_a_billion(mut over: i128, mut under: i128) -> Option<i128> {
    // Sixty bits are exact enough and leave room for the multiplication below.
    while under > 1 << 60 {
        (over, under) = (over >> 1, under >> 1);
    }
    let half = if over < 0 { -under / 2 } else { under / 2 };
    Some((over.checked_mul(BILLION)? + half) / under)
}

fn determinant(lines: &[Vec<i128>]) -> Option<i128> {
    let Some((first, rest)) = lines.split_first() else {
        return Some(1);
    };
    let mut sum = 0_i128;
    for (column, value) in first.iter().enumerate() {
        let without = |line: &Vec<i128>| {
            let mut line = line.clone();
            line.remove(column);
            line
        };
        let minor: Vec<Vec<i128>> = rest.iter().map(without).collect();
        let part = value.checked_mul(determinant(&minor)?)?;
        let signed = if column % 2 == 0 { part } else { -part };
        sum = sum.checked_add(signed)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests;
