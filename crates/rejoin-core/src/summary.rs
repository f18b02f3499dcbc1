//! The summary line of a turn: one line, fixed order, the same string everywhere.

use std::fmt::Write as _;

use crate::compose::Sent;
use crate::outcome::{Class, Failure};
use crate::reason::{Reason, Verdict};
use crate::turn::TurnStatus;
use crate::usage::{Cost, Counts, Micros, Usage};

/// Facts that the line is built from.
#[derive(Debug, Clone)]
pub struct SummaryFacts<'a> {
    pub status: TurnStatus,
    pub verdict: Option<Verdict>,
    pub reason: Option<Reason>,
    /// Evidence of the failed check, in a few words.
    pub because: Option<&'a str>,
    pub sent: Sent,
    /// Authors of the messages in the catch-up, if they are other agents.
    pub caught_up_by: Option<&'a str>,
    /// Reference such as `tmqx:14`.
    pub reference: &'a str,
    pub agent: &'a str,
    pub model: Option<&'a str>,
    pub usage: Option<Usage>,
    pub cost: Cost,
    pub fresh_estimate: Option<Micros>,
    pub duration_ms: u64,
    pub failure: Option<&'a Failure>,
    pub tools_run: u64,
    pub notes: &'a [String],
}

/// Formats `rejoin: VERDICT[, DETAILS] · REF · AGENT MODEL · IN in (P% cached) OUT out · COST ·
/// TIME[ · NOTE]`.
pub fn summary(f: &SummaryFacts<'_>) -> String {
    let mut line = String::from("rejoin: ");
    match f.status {
        TurnStatus::Succeeded => succeeded(&mut line, f),
        TurnStatus::Queued | TurnStatus::Running | TurnStatus::Waiting => {
            let _ = write!(line, "{} · {} · {}", f.status, f.reference, agent_model(f));
        }
        TurnStatus::Failed | TurnStatus::Cancelled | TurnStatus::Lost => ended_badly(&mut line, f),
    }
    for note in f.notes {
        let _ = write!(line, " · {note}");
    }
    one_line(&line)
}

fn succeeded(line: &mut String, f: &SummaryFacts<'_>) {
    let verdict = f.verdict.map_or("done", Verdict::as_str);
    line.push_str(verdict);
    let Sent {
        caught_up,
        transcribed,
        left_out,
        shortened,
        summarised,
        ..
    } = f.sent;
    if let (Some(Verdict::Restored), Some(from)) = (f.verdict, f.because) {
        let _ = write!(line, " {from}");
    }
    match f.verdict {
        Some(Verdict::Resumed | Verdict::Live | Verdict::Restored) if caught_up > 0 => {
            let _ = match left_out {
                0 => write!(line, ", caught up on {}", count(caught_up, "message")),
                _ => {
                    let all = count(caught_up + left_out, "message");
                    write!(line, ", caught up on {caught_up} of {all}")
                }
            };
            if let Some(by) = f.caught_up_by {
                let _ = write!(line, " by {by}");
            }
        }
        Some(Verdict::Restored) if f.because.is_some() => {}
        Some(Verdict::Resumed | Verdict::Live | Verdict::Restored) if summarised == 0 => {
            let _ = write!(line, ", {}", f.sent.knows());
        }
        Some(Verdict::Reseeded) => {
            if let Some(reason) = f.reason {
                let _ = write!(line, ", {reason}");
            }
            if let Some(because) = f.because {
                let _ = write!(line, ": {because}");
            }
            let _ = write!(
                line,
                " · told {transcribed} of {}",
                count(transcribed + left_out, "message")
            );
            if shortened > 0 {
                let _ = write!(line, ", {shortened} shortened");
            }
        }
        Some(Verdict::Resumed | Verdict::Live | Verdict::Restored | Verdict::Started) | None => {}
    }
    if summarised > 0 {
        let _ = write!(line, ", {}", f.sent.knows());
    }
    let _ = write!(line, " · {} · {}", f.reference, agent_model(f));
    if let Some(usage) = f.usage {
        let _ = write!(line, " · {}", token_counts(usage, " "));
    }
    let _ = write!(line, " · {}", money(f));
    let _ = write!(line, " · {}", duration(f.duration_ms));
    if f.verdict == Some(Verdict::Reseeded) {
        let conversation = f.reference.split(':').next().unwrap_or(f.reference);
        let _ = write!(line, " · rejoin explain {conversation}");
    }
}

fn ended_badly(line: &mut String, f: &SummaryFacts<'_>) {
    line.push_str(f.status.as_str());
    if let Some(Failure { class, message }) = f.failure {
        let _ = if *class == Class::Lost {
            write!(line, ": {message}")
        } else {
            write!(line, ", {class}: {message}")
        };
    }
    let tools = match f.tools_run {
        0 => "no tool ran".to_owned(),
        n => format!("{} ran", count(n, "tool")),
    };
    let held_back = f.failure.is_some_and(|f| f.class == Class::WouldReseed);
    let kept = if held_back { "not kept" } else { "kept" };
    let _ = write!(
        line,
        " · {} {kept}, {tools} · {}",
        f.reference,
        agent_model(f)
    );
}

fn agent_model(f: &SummaryFacts<'_>) -> String {
    f.model.map_or_else(
        || f.agent.to_owned(),
        |model| format!("{} {model}", f.agent),
    )
}

/// Returns the counts that the CLI reported, as `14.1k in (97% cached) 212 out`, with `between`
/// input and output. Omits a count that the CLI did not report, instead of showing zero.
pub fn token_counts(usage: Usage, between: &str) -> String {
    let all = usage.all_input();
    let known = Counts::from(usage);
    let input = match (known.input.or(known.cache_read), known.cache_read) {
        (None, _) => None,
        (Some(_), None) => Some(format!("{} in", short(all))),
        (Some(_), Some(read)) => {
            let cached = read.saturating_mul(100) / all.max(1);
            Some(format!("{} in ({cached}% cached)", short(all)))
        }
    };
    let output = known.output.map(|count| format!("{} out", short(count)));
    let shown: Vec<String> = input.into_iter().chain(output).collect();
    if shown.is_empty() {
        return "tokens unknown".into();
    }
    shown.join(between)
}

fn money(f: &SummaryFacts<'_>) -> String {
    match (f.cost, f.fresh_estimate) {
        (Cost::Unknown, _) => "cost unknown".into(),
        (Cost::Known(cost), None) => dollars(cost),
        (Cost::Known(cost), Some(fresh)) => {
            format!("{} (fresh ≈ {})", dollars(cost), dollars(fresh))
        }
    }
}

fn dollars(micros: Micros) -> String {
    let d = micros.dollars();
    if d >= 0.1 || micros.0 == 0 {
        format!("${d:.2}")
    } else if d >= 0.001 {
        format!("${d:.3}")
    } else {
        format!("${d:.6}")
    }
}

fn short(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

fn duration(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{:.1}s", ms as f64 / 1e3),
        10_000..120_000 => format!("{}s", ms / 1_000),
        _ => format!("{}m{:02}s", ms / 60_000, ms / 1_000 % 60),
    }
}

/// Says what a session knows of its messages, of which it holds at most `summarised` only in its agent's summary.
/// The one source of this sentence: verdict line, `explain` and checks.
pub(crate) fn knows(messages: u64, summarised: u64) -> String {
    let all = count(messages, "message");
    match messages.saturating_sub(summarised) {
        _ if summarised == 0 => format!("knows all {all}"),
        0 => format!("knows the agent's summary of {all}"),
        verbatim => {
            format!(
                "knows at least {verbatim} of {all} verbatim, the others from the agent's summary"
            )
        }
    }
}

fn count(n: u64, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}

/// Replaces control characters: foreign text must not break the line or the terminal.
fn one_line(line: &str) -> String {
    line.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(input: Option<u64>, cache_read: Option<u64>, output: Option<u64>) -> Usage {
        let cache_write = None;
        Usage::from(Counts {
            input,
            cache_read,
            cache_write,
            output,
        })
    }

    #[test]
    fn counts_that_were_not_reported_are_left_out() {
        let shown = |input, read, output| token_counts(counts(input, read, output), " ");
        assert_eq!(shown(Some(9), Some(0), Some(2)), "9 in (0% cached) 2 out");
        assert_eq!(shown(Some(9), None, Some(2)), "9 in 2 out");
        assert_eq!(shown(Some(5), Some(5), None), "10 in (50% cached)");
        assert_eq!(shown(None, None, Some(2)), "2 out");
        assert_eq!(shown(None, None, None), "tokens unknown");
    }

    fn facts() -> SummaryFacts<'static> {
        SummaryFacts {
            status: TurnStatus::Succeeded,
            verdict: Some(Verdict::Started),
            reason: Some(Reason::FirstTurn),
            because: None,
            sent: Sent::default(),
            caught_up_by: None,
            reference: "tmqx:2",
            agent: "claude",
            model: Some("sonnet"),
            usage: Some(counts(Some(14_100), Some(0), Some(212))),
            cost: Cost::Known(Micros(55_000)),
            fresh_estimate: None,
            duration_ms: 9_100,
            failure: None,
            tools_run: 0,
            notes: &[],
        }
    }

    #[test]
    fn the_lines_of_the_contract() {
        assert_eq!(
            summary(&facts()),
            "rejoin: started · tmqx:2 · claude sonnet · 14.1k in (0% cached) 212 out · $0.055 · 9.1s"
        );
        let resumed = SummaryFacts {
            verdict: Some(Verdict::Resumed),
            sent: Sent {
                resumed: 12,
                ..Sent::default()
            },
            reference: "tmqx:14",
            usage: Some(Usage {
                input: 930,
                cache_read: 30_070,
                cache_write: 0,
                output: 405,
                ..Usage::default()
            }),
            cost: Cost::Known(Micros(21_000)),
            fresh_estimate: Some(Micros(120_000)),
            duration_ms: 7_800,
            ..facts()
        };
        assert_eq!(
            summary(&resumed),
            "rejoin: resumed, knows all 12 messages · tmqx:14 · claude sonnet · 31.0k in (97% cached) 405 out · $0.021 (fresh ≈ $0.12) · 7.8s"
        );
        let caught_up = SummaryFacts {
            sent: Sent {
                resumed: 2,
                caught_up: 4,
                ..Sent::default()
            },
            caught_up_by: Some("codex"),
            cost: Cost::Unknown,
            usage: None,
            duration_ms: 22_000,
            notes: &["2 tools denied".to_owned()],
            ..resumed
        };
        assert_eq!(
            summary(&caught_up),
            "rejoin: resumed, caught up on 4 messages by codex · tmqx:14 · claude sonnet · cost unknown · 22s · 2 tools denied"
        );
        let compacted = |resumed: u64, caught_up: u64| Sent {
            resumed,
            summarised: 9,
            caught_up,
            ..Sent::default()
        };
        assert!(
            summary(&SummaryFacts { sent: compacted(12, 0), ..caught_up.clone() })
                .starts_with("rejoin: resumed, knows at least 3 of 12 messages verbatim, the others from the agent's summary · tmqx:14 · ")
        );
        assert!(
            summary(&SummaryFacts { sent: compacted(12, 4), ..caught_up.clone() })
                .starts_with("rejoin: resumed, caught up on 4 messages by codex, knows at least 3 of 12 messages verbatim, the others from the agent's summary · ")
        );
        let restored = SummaryFacts {
            verdict: Some(Verdict::Restored),
            because: Some("from snapshot 14:02 by ci-7"),
            sent: compacted(9, 0),
            ..caught_up.clone()
        };
        assert!(
            summary(&restored)
                .starts_with("rejoin: restored from snapshot 14:02 by ci-7, knows the agent's summary of 9 messages · ")
        );
        let reseeded = SummaryFacts {
            verdict: Some(Verdict::Reseeded),
            reason: Some(Reason::HistoryChanged),
            because: Some("message 3 was edited"),
            sent: Sent {
                transcribed: 22,
                ..Sent::default()
            },
            reference: "tmqx:24",
            ..facts()
        };
        assert_eq!(
            summary(&reseeded),
            "rejoin: reseeded, history_changed: message 3 was edited · told 22 of 22 messages · tmqx:24 · claude sonnet · 14.1k in (0% cached) 212 out · $0.055 · 9.1s · rejoin explain tmqx"
        );
        let failure = Failure {
            class: Class::Quota,
            message: "resets 15:00 UTC".into(),
        };
        let failed = SummaryFacts {
            status: TurnStatus::Failed,
            failure: Some(&failure),
            reference: "tmqx:25",
            notes: &[failure.class.advise("tmqx:25", "claude")],
            ..facts()
        };
        assert_eq!(
            summary(&failed),
            "rejoin: failed, quota: resets 15:00 UTC · tmqx:25 kept, no tool ran · claude sonnet · rejoin retry tmqx:25, or -a codex"
        );
    }
}
