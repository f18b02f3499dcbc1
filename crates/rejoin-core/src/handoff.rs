//! The handoff: what the turns of a chain found and did, for a tier that cannot resume their session.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::ids::{ConversationId, TurnId};
use crate::limit::LimitState;
use crate::transcript::tokens_of;

/// Version of the document.
pub const HANDOFF_VERSION: u32 = 2;
/// Size of the document, in tokens.
pub const HANDOFF_TOKENS: u64 = 4_000;
/// Share of the document for findings, in percent.
const FINDINGS: u64 = 50;
/// Length of a finding that does not fit as a whole, in characters.
const SHORT: usize = 800;

/// Findings, checks and actions of the turns of a chain, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Handoff {
    pub schema_version: u32,
    pub conversation_id: ConversationId,
    /// Turn after which the next tier would begin.
    pub turn_id: TurnId,
    pub chain_id: TurnId,
    pub tier: Option<String>,
    /// Answers of the turns.
    pub findings: Vec<Finding>,
    /// Calls that looked something up, and commands of read-only tiers.
    pub checks: Vec<HandoffCall>,
    /// Calls that changed something, or may have.
    pub attempted_actions: Vec<HandoffCall>,
    pub affected_services: Vec<String>,
    pub cooldown_state: Vec<TierState>,
    /// Entries that did not fit.
    pub left_out: LeftOut,
}

/// Answer of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Finding {
    pub turn_id: TurnId,
    pub tier: Option<String>,
    pub agent: String,
    pub text: String,
    /// True if the text was cut.
    pub shortened: bool,
}

/// Call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HandoffCall {
    pub turn_id: TurnId,
    pub tier: Option<String>,
    pub tool: String,
    /// File, command or query.
    pub subject: String,
    /// `ok`, `failed`, or `unknown` if the turn ended without its result.
    pub result: String,
    pub at: String,
}

/// Cooldown and limits of a tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TierState {
    pub tier: String,
    pub cooldown_ms: Option<u64>,
    /// Last climb of the conversation into the tier.
    pub last_climb_at: Option<String>,
    /// Time from which a climb into the tier is possible again.
    pub available_at: Option<String>,
    pub limits: Vec<LimitState>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LeftOut {
    pub findings: u64,
    pub checks: u64,
    pub attempted_actions: u64,
}

impl Handoff {
    /// Cuts the document to a budget. Entries are newest first, so the oldest are left out; actions
    /// are more specific than checks and come first.
    #[must_use]
    pub fn within(mut self, tokens: u64) -> Self {
        let mut left = tokens * FINDINGS / 100;
        let mut kept = vec![];
        for mut finding in self.findings {
            let cost = tokens_of(&finding.text);
            if cost > left {
                if !kept.is_empty() && left < tokens_of(&"x".repeat(SHORT)) {
                    self.left_out.findings += 1;
                    continue;
                }
                finding.text = finding.text.chars().take(SHORT).collect();
                finding.shortened = true;
            }
            left = left.saturating_sub(tokens_of(&finding.text));
            kept.push(finding);
        }
        self.findings = kept;
        let mut left = tokens * (100 - FINDINGS) / 100;
        (self.attempted_actions, self.left_out.attempted_actions) =
            calls_within(self.attempted_actions, &mut left);
        (self.checks, self.left_out.checks) = calls_within(self.checks, &mut left);
        self
    }

    /// Formats the whole document.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if !self.findings.is_empty() {
            text.push_str("Findings:\n");
        }
        for finding in &self.findings {
            let tier = finding.tier.as_deref().unwrap_or("no tier");
            let cut = if finding.shortened { " …" } else { "" };
            let words = finding.text.trim().replace('\n', "\n  ");
            let _ = writeln!(text, "- [{tier}] {words}{cut}");
        }
        if self.left_out.findings > 0 {
            let _ = writeln!(text, "- {} older ones are left out", self.left_out.findings);
        }
        self.facts(&mut text);
        text.trim_end().to_owned()
    }

    /// Formats the document for a new session whose transcript contains the findings. Empty if there
    /// is nothing to say.
    pub fn beside_transcript(&self) -> String {
        let mut text = String::new();
        self.facts(&mut text);
        if text.is_empty() {
            return text;
        }
        format!("Handoff of the tiers before, newest first; the record above contains their findings:\n{text}")
            .trim_end()
            .to_owned()
    }

    /// Formats everything but the findings.
    fn facts(&self, text: &mut String) {
        if !self.affected_services.is_empty() {
            let services = self.affected_services.join(", ");
            let _ = writeln!(text, "Affected services: {services}");
        }
        calls(
            text,
            "Attempted actions",
            &self.attempted_actions,
            self.left_out.attempted_actions,
        );
        calls(text, "Checks", &self.checks, self.left_out.checks);
        let mut states = vec![];
        for state in &self.cooldown_state {
            if let Some(at) = &state.available_at {
                states.push(format!("{}: next climb from {at}", state.tier));
            }
            for limit in &state.limits {
                let (tool, left, max) = (&limit.tool, limit.left, limit.max);
                states.push(format!(
                    "{}: {left} of {max} calls of {tool} left",
                    state.tier
                ));
            }
        }
        if !states.is_empty() {
            let _ = writeln!(text, "Cooldown and limits: {}", states.join("; "));
        }
    }
}

fn calls_within(calls: Vec<HandoffCall>, left: &mut u64) -> (Vec<HandoffCall>, u64) {
    let mut kept = vec![];
    let mut dropped = 0;
    for call in calls {
        let cost = tokens_of(&line(&call));
        if dropped > 0 || cost > *left {
            dropped += 1;
            continue;
        }
        *left -= cost;
        kept.push(call);
    }
    (kept, dropped)
}

fn line(call: &HandoffCall) -> String {
    let HandoffCall {
        tool,
        subject,
        result,
        ..
    } = call;
    let tier = call.tier.as_deref().unwrap_or("no tier");
    format!("- [{tier}] {tool}: {subject} ({result})")
}

fn calls(text: &mut String, title: &str, calls: &[HandoffCall], left_out: u64) {
    if calls.is_empty() {
        return;
    }
    let _ = writeln!(text, "{title}:");
    for call in calls {
        let _ = writeln!(text, "{}", line(call));
    }
    if left_out > 0 {
        let _ = writeln!(text, "- {left_out} older ones are left out");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(subject: &str) -> HandoffCall {
        HandoffCall {
            turn_id: TurnId::nil(),
            tier: Some("observe".into()),
            tool: "Bash".into(),
            subject: subject.into(),
            result: "ok".into(),
            at: String::new(),
        }
    }

    fn handoff(findings: &[&str], checks: usize) -> Handoff {
        let finding = |text: &&str| Finding {
            turn_id: TurnId::nil(),
            tier: None,
            agent: "demo".into(),
            text: (*text).to_owned(),
            shortened: false,
        };
        Handoff {
            schema_version: HANDOFF_VERSION,
            conversation_id: ConversationId::nil(),
            turn_id: TurnId::nil(),
            chain_id: TurnId::nil(),
            tier: None,
            findings: findings.iter().map(finding).collect(),
            checks: (0..checks).map(|n| call(&format!("check {n}"))).collect(),
            attempted_actions: vec![call("docker restart db")],
            affected_services: vec!["db".into()],
            cooldown_state: vec![],
            left_out: LeftOut::default(),
        }
    }

    #[test]
    fn the_newest_entries_are_kept_and_the_others_counted() {
        let whole = handoff(&["newest", "older"], 3).within(HANDOFF_TOKENS);
        assert_eq!(whole, handoff(&["newest", "older"], 3));
        let long = "word ".repeat(4_000);
        let cut = handoff(&["newest", &long, &long], 5_000).within(1_000);
        assert_eq!(cut.findings[0].text, "newest");
        assert!(cut.findings[1].shortened && cut.findings[1].text.len() <= SHORT);
        assert_eq!(cut.findings.len() as u64 + cut.left_out.findings, 3);
        assert_eq!(cut.attempted_actions.len(), 1);
        assert_eq!(cut.checks[0].subject, "check 0");
        assert_eq!(cut.checks.len() as u64 + cut.left_out.checks, 5_000);
        assert!(tokens_of(&cut.beside_transcript()) < 1_000);
    }

    #[test]
    fn the_text_beside_a_transcript_contains_no_finding() {
        let text = handoff(&["the finding"], 1).beside_transcript();
        assert!(!text.contains("the finding"), "{text}");
        for part in [
            "Affected services: db",
            "Attempted actions:\n- [observe] Bash: docker restart db (ok)",
            "Checks:\n- [observe] Bash: check 0 (ok)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
