//! Texts for turns of tiers: the escalation prompt, and how an agent asks for a higher tier.

use std::fmt::Write as _;

use crate::limit::LimitState;
use crate::permission::Permissions;
use crate::tier::{Tier, Tiers};
use crate::tier_template::fill_template;

/// Weight of a list in a prompt: see [`weight`].
const LIST: usize = 400;
/// Weight of the list of limits.
const LIMITS: usize = 300;
/// Weight of a name in a prompt.
const NAME: usize = 80;
/// Weight of a character beyond ASCII: it may be one and a half tokens, which is that many characters of ASCII.
const FOREIGN: usize = 6;

/// Facts for the prompt of a climb.
#[derive(Debug, Clone, Copy)]
pub struct ClimbPrompt<'a> {
    pub tiers: &'a Tiers,
    /// Rank of the tier before; `None` if that turn had none.
    pub from: Option<usize>,
    /// Rank of the tier that the climb leads to.
    pub rank: usize,
    pub limits: &'a [LimitState],
    /// Permissions of the next turn.
    pub permissions: &'a Permissions,
    /// Reason that the request gives.
    pub reason: &'a str,
    /// Tiers of the chain so far, root first.
    pub chain: &'a [String],
}

/// Returns the prompt of a climb into a tier: the tier's template with its values, or the built-in
/// prompt, which contains no findings.
pub fn escalation_prompt(facts: &ClimbPrompt<'_>) -> String {
    let ClimbPrompt {
        tiers,
        from,
        rank,
        limits,
        ..
    } = *facts;
    let Some(tier) = tiers.tiers.get(rank) else {
        return String::new();
    };
    let before = from.and_then(|from| tiers.tiers.get(from));
    if let Some(template) = &tier.prompt {
        return fill_template(template, |name| value(facts, tier, before, name));
    }
    let mut text = format!("You are now operating as {}", short(&tier.role));
    if let Some(before) = before {
        let _ = write!(text, ", after {}", short(&before.role));
    }
    text.push_str(".\n");
    text.push_str(&authorised(tier));
    text.push_str(&limited(limits));
    let cooldown = match tier.cooldown_ms {
        Some(ms) => format!("one climb into this tier per {}", span(ms)),
        None => "none".into(),
    };
    let _ = writeln!(text, "Cooldown: {cooldown}. {}", dry(tier));
    text.push_str("The earlier investigation is in the conversation history; do not repeat it.");
    if rank >= 2 {
        text.push_str(" The earlier remediation attempts are there too.");
    }
    text.push_str(" The new permissions replace the earlier ones.\n");
    text.push_str(&how_to_ask(tiers, rank));
    text.trim_end().to_owned()
}

/// Returns the value of a variable of templates.
fn value(
    facts: &ClimbPrompt<'_>,
    tier: &Tier,
    before: Option<&Tier>,
    name: &str,
) -> Option<String> {
    let permissions = facts.permissions;
    Some(match name {
        "tier" => tier.name.clone(),
        "role" => tier.role.clone(),
        "may" => tier.may.join("; "),
        "tools" => permissions.tools.clone().unwrap_or_default().join(", "),
        "deny_tools" => permissions.deny_tools.join(", "),
        "limits" => limit_texts(facts.limits).join("; "),
        "dry_run" => if tier.dry_run { "yes" } else { "no" }.to_owned(),
        "previous" => before.map(|tier| tier.role.clone()).unwrap_or_default(),
        "reason" => facts.reason.to_owned(),
        "chain" => facts.chain.join(" > "),
        _ => return None,
    })
}

/// Returns what a first turn of a tier is told besides its message.
pub fn tier_notice(tiers: &Tiers, rank: usize, limits: &[LimitState]) -> String {
    let Some(tier) = tiers.tiers.get(rank) else {
        return String::new();
    };
    let mut text = format!("You are operating as {}.\n", short(&tier.role));
    text.push_str(&authorised(tier));
    text.push_str(&limited(limits));
    let _ = writeln!(text, "{}", dry(tier));
    text.push_str(&how_to_ask(tiers, rank));
    text.trim_end().to_owned()
}

/// Returns the prompt by which a tier writes down its findings before another one goes on in a new
/// session.
pub fn findings_prompt(role: &str) -> String {
    format!(
        "{} goes on with this in a new session. Before that, write down for it what you found, what you checked and with which result, what was tried, and which services are affected. Be specific and short. Change nothing, and ask for no tier.",
        short(role)
    )
}

/// Returns what an agent is told whose request was refused.
pub fn refusal_notice(to: &str, evidence: &str) -> String {
    let (to, evidence) = (short(to), clip(evidence, LIST));
    format!("Your request for the tier `{to}` was refused: {evidence}. Continue without it.")
}

fn authorised(tier: &Tier) -> String {
    let mut text = String::new();
    if !tier.may.is_empty() {
        let _ = writeln!(text, "You are authorised to: {}.", list(&tier.may, "; "));
    }
    if !tier.deny_tools.is_empty() {
        let _ = writeln!(text, "Forbidden tools: {}.", list(&tier.deny_tools, ", "));
    }
    text
}

/// Returns the calls that are left. A list that is too long ends with the number of further limits.
fn limited(limits: &[LimitState]) -> String {
    if limits.is_empty() {
        return String::new();
    }
    format!(
        "Limits: {}.\n",
        list_within(&limit_texts(limits), "; ", LIMITS)
    )
}

fn limit_texts(limits: &[LimitState]) -> Vec<String> {
    // A tool that is used up is the most important one.
    let mut sorted: Vec<&LimitState> = limits.iter().collect();
    sorted.sort_by_key(|limit| limit.left > 0);
    let one = |limit: &&LimitState| {
        let (tool, per) = (&limit.tool, span(limit.per_ms));
        match (limit.left, &limit.again_at) {
            (0, Some(at)) => format!("{tool} is used up and denied until {at}"),
            (0, None) => format!("{tool} is used up and denied in this turn"),
            (left, _) => format!("{tool} {left} of {} calls left per {per}", limit.max),
        }
    };
    sorted.iter().map(one).collect()
}

fn dry(tier: &Tier) -> &'static str {
    if tier.dry_run {
        "This is a dry run: change nothing and run no command; say what you would do."
    } else {
        "This is not a dry run."
    }
}

/// Returns how the agent of a tier asks for the next one. Empty for the top tier.
fn how_to_ask(tiers: &Tiers, rank: usize) -> String {
    let Some(next) = tiers.tiers.get(rank + 1) else {
        return String::new();
    };
    let name = serde_json_string(&next.name);
    format!(
        "If the task needs more than this, ask for the tier {name}: end your final message with this block, and nothing after it:\n```rejoin\n{{\"escalate\": {{\"to\": {name}, \"reason\": \"one sentence\", \"services\": [\"name\"]}}}}\n```\n"
    )
}

/// Names of tiers are single words; quotes and backslashes in them are escaped.
fn serde_json_string(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

fn list(items: &[String], between: &str) -> String {
    let items: Vec<String> = items.iter().map(|item| short(item)).collect();
    list_within(&items, between, LIST)
}

fn list_within(items: &[String], between: &str, most: usize) -> String {
    let mut text = String::new();
    for (n, item) in items.iter().enumerate() {
        let item = clip(item, most);
        if weight(&text) + weight(&item) > most {
            let _ = write!(text, "{between}and {} more", items.len() - n);
            break;
        }
        if n > 0 {
            text.push_str(between);
        }
        text.push_str(&item);
    }
    text
}

fn short(text: &str) -> String {
    clip(&text.split_whitespace().collect::<Vec<_>>().join(" "), NAME)
}

/// Cuts a text to a weight.
fn clip(text: &str, most: usize) -> String {
    if weight(text) <= most {
        return text.to_owned();
    }
    let mut left = most - FOREIGN;
    let fits = |c: &char| {
        let rest = left.checked_sub(weight_of(*c));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{kept}…")
}

/// Returns the size of a text in a prompt, as a number of ASCII characters with as many tokens.
fn weight(text: &str) -> usize {
    text.chars().map(weight_of).sum()
}

fn weight_of(c: char) -> usize {
    if c.is_ascii() { 1 } else { FOREIGN }
}

/// Formats a time in the largest unit that divides it.
pub fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        _ if seconds.is_multiple_of(3600) => format!("{} h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::tokens_of;

    fn prompt(tiers: &Tiers, from: usize, rank: usize, limits: &[LimitState]) -> String {
        escalation_prompt(&ClimbPrompt {
            tiers,
            from: Some(from),
            rank,
            limits,
            permissions: &Permissions {
                tools: Some(vec!["Bash".into()]),
                deny_tools: vec!["Bash(helm:*)".into()],
                ..Permissions::default()
            },
            reason: "db {{ role }} is down",
            chain: &["tier-1".into()],
        })
    }

    #[test]
    fn a_template_replaces_the_built_in_prompt() {
        let mut tiers = Tiers {
            tiers: vec![tier(1), tier(2)],
            ..Tiers::default()
        };
        tiers.tiers[1].may = vec!["restart".into(), "notify".into()];
        let all = "{{ tier }}|{{ role }}|{{ may }}|{{ tools }}|{{ deny_tools }}|{{ limits }}|{{ dry_run }}|{{ previous }}|{{ reason }}|{{ chain }}";
        tiers.tiers[1].prompt = Some(all.into());
        assert_eq!(
            prompt(&tiers, 0, 1, &[]),
            "tier-2|Tier 2, role|restart; notify|Bash|Bash(helm:*)||no|Tier 1, role|db {{ role }} is down|tier-1"
        );
    }

    fn tier(n: usize) -> Tier {
        Tier {
            name: format!("tier-{n}"),
            role: format!("Tier {n}, role"),
            agent: None,
            model: None,
            permission: None,
            tools: None,
            deny_tools: vec![],
            may: vec![],
            dry_run: false,
            timeout_ms: None,
            max_cost: None,
            cooldown_ms: None,
            approval: false,
            limit: vec![],
            prompt: None,
            window: None,
        }
    }

    /// C-15, C-17, C-18, C-19, C-21, C-22, C-23, C-24, C-25: the names in the prompt, and the block of the next
    /// tier.
    #[test]
    fn c23_c24_c25_the_prompt_names_role_actions_limits_and_history() {
        let mut tiers = Tiers {
            tiers: vec![tier(1), tier(2), tier(3)],
            ..Tiers::default()
        };
        tiers.tiers[1].may = vec!["restart a container".into(), "notify".into()];
        tiers.tiers[1].deny_tools = vec!["Bash(helm:*)".into()];
        tiers.tiers[1].cooldown_ms = Some(1_800_000);
        let second = prompt(&tiers, 0, 1, &[]);
        for part in [
            "You are now operating as Tier 2, role, after Tier 1, role.",
            "You are authorised to: restart a container; notify.",
            "Forbidden tools: Bash(helm:*).",
            "Cooldown: one climb into this tier per 30 min. This is not a dry run.",
            "The earlier investigation is in the conversation history",
            "ask for the tier \"tier-3\"",
        ] {
            assert!(second.contains(part), "{part}: {second}");
        }
        assert!(!second.contains("remediation attempts"), "{second}");
        tiers.tiers[2].dry_run = true;
        let third = prompt(&tiers, 1, 2, &[]);
        assert!(
            third.contains("The earlier remediation attempts are there too."),
            "{third}"
        );
        assert!(third.contains("This is a dry run"), "{third}");
        assert!(
            !third.contains("```"),
            "the top tier asks for nothing: {third}"
        );
        assert!(tier_notice(&tiers, 0, &[]).contains("```rejoin"));
    }

    #[test]
    fn the_prompt_names_what_is_left_and_when_a_used_up_tool_is_available_again() {
        let tiers = Tiers {
            tiers: vec![tier(1), tier(2)],
            ..Tiers::default()
        };
        let limit = |tool: &str, left, again_at: Option<&str>| LimitState {
            tool: tool.into(),
            max: 2,
            per_ms: 14_400_000,
            left,
            again_at: again_at.map(str::to_owned),
        };
        let limits = [
            limit("Bash(make:*)", 1, None),
            limit(
                "Bash(docker restart:*)",
                0,
                Some("2026-01-02T03:04:05.000Z"),
            ),
        ];
        let line = "Limits: Bash(docker restart:*) is used up and denied until 2026-01-02T03:04:05.000Z; Bash(make:*) 1 of 2 calls left per 4 h.";
        let prompt = prompt(&tiers, 0, 1, &limits);
        assert!(prompt.contains(line), "{prompt}");
        assert!(tier_notice(&tiers, 1, &limits).contains(line));
        assert!(!tier_notice(&tiers, 1, &[]).contains("Limits"));
    }

    /// C-20: 20 tools and 10 categories, and whatever else an operator writes.
    #[test]
    fn the_prompt_is_shorter_than_500_tokens() {
        let mut tiers = Tiers {
            tiers: vec![tier(1), tier(2), tier(3)],
            ..Tiers::default()
        };
        for long in [false, true] {
            let tier = &mut tiers.tiers[1];
            let word = |n: usize| {
                if long {
                    format!("{n}{}", "ü漢x ".repeat(90))
                } else {
                    String::new()
                }
            };
            tier.role = format!("Tier 2, safe remediation{}", word(0));
            tier.may = (0..10)
                .map(|n| format!("restart the service number {n}{}", word(n)))
                .collect();
            tier.deny_tools = (0..20)
                .map(|n| format!("Bash(docker compose down {n}:*){}", word(n)))
                .collect();
            let limits: Vec<LimitState> = (0..5)
                .map(|n| LimitState {
                    tool: format!("Bash(docker restart {n}:*){}", word(n)),
                    max: 2,
                    per_ms: 3_600_000,
                    left: n as u64 % 2,
                    again_at: Some("2026-01-01T00:00:00.000Z".into()),
                })
                .collect();
            let prompt = prompt(&tiers, 0, 1, &limits);
            assert!(tokens_of(&prompt) < 500, "{}: {prompt}", tokens_of(&prompt));
            assert!(prompt.len() < 1_900, "{}", prompt.len());
        }
    }
}
